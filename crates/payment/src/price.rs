//! What calls cost: a rule for each tool, and discounts for certain customers.

use crate::amount::Msat;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What one tool costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// For each call.
    #[serde(rename = "sat", default)]
    pub base: u64,
    /// For each thousand bytes of arguments, begun ones included.
    #[serde(rename = "sat_per_kb", default, skip_serializing_if = "is_zero")]
    pub per_kb: u64,
    /// Calls that each customer has for nothing.
    #[serde(rename = "first_free", default, skip_serializing_if = "is_none_free")]
    pub first_free: u32,
}

fn is_zero(sat: &u64) -> bool {
    *sat == 0
}

fn is_none_free(calls: &u32) -> bool {
    *calls == 0
}

impl Rule {
    pub const FREE: Rule = Rule { base: 0, per_kb: 0, first_free: 0 };

    pub fn is_free(&self) -> bool {
        self.base == 0 && self.per_kb == 0
    }

    /// For arguments of this length; `None` if there is not that much money.
    pub fn amount(&self, input: usize) -> Option<Msat> {
        let kilobytes = u64::try_from(input.div_ceil(1000)).ok()?;
        Msat::from_sat(self.base.checked_add(self.per_kb.checked_mul(kilobytes)?)?)
    }
}

/// For people: `5 sat + 1 sat/kB, first 3 free`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.base, self.per_kb) {
            (0, 0) => return f.write_str("free"),
            (base, 0) => write!(f, "{base} sat")?,
            (0, per_kb) => write!(f, "{per_kb} sat/kB")?,
            (base, per_kb) => write!(f, "{base} sat + {per_kb} sat/kB")?,
        }
        match self.first_free {
            0 => Ok(()),
            calls => write!(f, ", first {calls} free"),
        }
    }
}

/// What all tools of a service cost.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prices {
    pub tools: BTreeMap<String, Rule>,
    /// Of tools that have no rule of their own; `None` if those are free.
    pub others: Option<Rule>,
    /// Percent that these customers need not pay, by their keys (x only).
    pub discounts: BTreeMap<[u8; 32], u8>,
}

impl Prices {
    pub fn rule(&self, tool: &str) -> Rule {
        self.tools.get(tool).copied().or(self.others).unwrap_or(Rule::FREE)
    }

    pub fn are_free(&self) -> bool {
        self.tools.values().chain(&self.others).all(Rule::is_free)
    }

    /// What a call costs this customer, not counting calls that are free. `None` if there is not that much money.
    pub fn amount(&self, tool: &str, input: usize, customer: &[u8; 32]) -> Option<Msat> {
        let whole = self.rule(tool).amount(input)?;
        let percent = u64::from(100 - self.discounts.get(customer).copied().unwrap_or(0).min(100));
        let reduced = u128::from(whole.get()) * u128::from(percent) / 100;
        // Wallets that count in satoshis must be able to ask for it.
        Some(Msat::new(u64::try_from(reduced).ok()?)?.rounded_up())
    }
}

#[cfg(test)]
mod tests {
    use super::{Prices, Rule};

    #[test]
    fn a_call_costs_what_its_rule_says() {
        let rule = |base, per_kb| Rule { base, per_kb, first_free: 0 };
        for (rule, input, sat) in [
            (rule(5, 0), 100_000, 5),
            (rule(0, 2), 0, 0),
            (rule(0, 2), 1, 2),
            (rule(0, 2), 1000, 2),
            (rule(5, 2), 1001, 9),
            (Rule::FREE, 9, 0),
        ] {
            assert_eq!(rule.amount(input).unwrap().get(), sat * 1000, "{rule:?} {input}");
        }
        assert_eq!(rule(u64::MAX, 1).amount(1), None);
        assert_eq!(rule(1, u64::MAX / 2).amount(5000), None);
    }

    #[test]
    fn discounts_are_in_whole_satoshis_and_never_below_nothing() {
        let (friend, stranger) = ([1; 32], [2; 32]);
        let mut prices = Prices { others: Some(Rule { base: 5, ..Rule::FREE }), ..Prices::default() };
        prices.tools.insert("free".into(), Rule::FREE);
        for (percent, sat) in [(0, 5), (10, 5), (20, 4), (50, 3), (100, 0), (255, 0)] {
            prices.discounts.insert(friend, percent);
            assert_eq!(prices.amount("any", 1, &friend).unwrap().get(), sat * 1000, "{percent}");
        }
        assert_eq!(prices.amount("any", 1, &stranger).unwrap().get(), 5000);
        assert!(prices.amount("free", 1, &stranger).unwrap().is_zero() && !prices.are_free());
    }

    #[test]
    fn rules_are_shown_to_people() {
        let shown = |base, per_kb, first_free| Rule { base, per_kb, first_free }.to_string();
        assert_eq!(shown(5, 0, 0), "5 sat");
        assert_eq!(shown(0, 1, 0), "1 sat/kB");
        assert_eq!(shown(5, 1, 3), "5 sat + 1 sat/kB, first 3 free");
        assert_eq!(shown(0, 0, 3), "free");
    }
}
