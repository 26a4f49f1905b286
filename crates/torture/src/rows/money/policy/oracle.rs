//! What should happen to a call, worked out from what the documentation promises, and from nothing of the product.

use std::collections::BTreeMap;

use super::{Caller, Tool};

/// How a service is offered: the flags it is started with, and the same once more in words of our own.
#[derive(Clone, Default)]
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) flags: Vec<String>,
    /// Only these may use it, if there are any.
    pub(super) private: Vec<Caller>,
    pub(super) denied: Vec<Caller>,
    /// Only these are offered, if there are any.
    pub(super) shown: Vec<Tool>,
    pub(super) hidden: Vec<Tool>,
    pub(super) prices: BTreeMap<Tool, Price>,
    /// For tools without a price of their own.
    pub(super) others: Price,
    /// Percent.
    pub(super) discounts: BTreeMap<Caller, u64>,
    /// Requests of one key that are looked at in the time that the experiment takes.
    pub(super) requests: Option<usize>,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Price {
    pub(super) sat: u64,
    pub(super) sat_per_kb: u64,
    pub(super) first_free: usize,
}

/// What must be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// An error with this code, and no run.
    Refused(&'static str),
    /// So many satoshis are asked for; it runs when they are paid, and only then.
    Costs(u64),
    Runs,
    /// Nothing runs, and whether that is said depends on how much was said before.
    Limited,
}

/// What has happened before counts for what is free and for how much was asked.
#[derive(Default)]
pub(super) struct Oracle {
    free: BTreeMap<(Caller, Tool), usize>,
    requests: BTreeMap<Caller, usize>,
}

impl Oracle {
    pub(super) fn expect(&mut self, rule: &Rule, caller: Caller, tool: Tool, argument_bytes: usize) -> Expected {
        let requests = self.requests.entry(caller).or_default();
        *requests += 1;
        if rule.requests.is_some_and(|most| *requests > most) {
            return Expected::Limited;
        }
        let is_stranger = !rule.private.is_empty() && !rule.private.contains(&caller);
        if is_stranger || rule.denied.contains(&caller) {
            return Expected::Refused("unauthorized");
        }
        let is_shown = rule.shown.is_empty() || rule.shown.contains(&tool);
        if tool == Tool::Absent || !is_shown || rule.hidden.contains(&tool) {
            return Expected::Refused("unknown_tool");
        }
        let price = rule.prices.get(&tool).unwrap_or(&rule.others);
        let used = self.free.entry((caller, tool)).or_default();
        *used += 1;
        if *used <= price.first_free {
            return Expected::Runs;
        }
        let whole = price.sat + price.sat_per_kb * u64::try_from(argument_bytes.div_ceil(1000)).unwrap();
        let percent = 100 - rule.discounts.get(&caller).copied().unwrap_or(0);
        match (whole * percent).div_ceil(100) {
            0 => Expected::Runs,
            sat => Expected::Costs(sat),
        }
    }
}
