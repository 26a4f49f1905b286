//! Amounts of money. A thousandth of a satoshi is the smallest that Lightning knows; everything is counted in it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// All the money there will ever be.
const MAX: u64 = 21_000_000 * 100_000_000 * 1000;

/// Thousandths of a satoshi. Never negative, never more than there is; sums that would be are not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Msat(u64);

impl Msat {
    pub const ZERO: Msat = Msat(0);

    /// `None` if there is not that much money.
    pub fn new(msat: u64) -> Option<Self> {
        (msat <= MAX).then_some(Self(msat))
    }

    /// `None` if there is not that much money.
    pub fn from_sat(sat: u64) -> Option<Self> {
        sat.checked_mul(1000).and_then(Self::new)
    }

    pub fn get(self) -> u64 {
        self.0
    }

    /// Whole satoshis that are at least as much.
    pub fn sat_rounded_up(self) -> u64 {
        self.0.div_ceil(1000)
    }

    /// Whole satoshis that are at most as much.
    pub fn sat_rounded_down(self) -> u64 {
        self.0 / 1000
    }

    /// The same, in whole satoshis that are at least as much.
    pub fn rounded_up(self) -> Self {
        Self(self.0.next_multiple_of(1000).min(MAX))
    }

    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).and_then(Self::new)
    }

    /// Nothing, if `other` is more.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
}

/// In satoshis, with the thousandths that there are.
impl fmt::Display for Msat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % 1000 {
            0 => write!(f, "{} sat", self.0 / 1000),
            rest => {
                let fraction = format!("{rest:03}");
                write!(f, "{}.{} sat", self.0 / 1000, fraction.trim_end_matches('0'))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX, Msat};

    #[test]
    fn amounts_are_written_in_satoshis() {
        for (msat, text) in [
            (0, "0 sat"),
            (1, "0.001 sat"),
            (500, "0.5 sat"),
            (1000, "1 sat"),
            (21_050, "21.05 sat"),
            (MAX, "2100000000000000 sat"),
        ] {
            assert_eq!(Msat::new(msat).unwrap().to_string(), text);
        }
    }

    #[test]
    fn no_sum_is_more_than_there_is() {
        let all = Msat::new(MAX).unwrap();
        assert_eq!(all.checked_add(Msat::new(1).unwrap()), None);
        assert_eq!(Msat::new(MAX + 1), None);
        assert_eq!(Msat::from_sat(u64::MAX), None);
        assert_eq!(Msat::new(1).unwrap().saturating_sub(all), Msat::ZERO);
        assert_eq!(all.rounded_up(), all);
        let little = Msat::new(1001).unwrap();
        assert_eq!((little.sat_rounded_up(), little.sat_rounded_down(), little.rounded_up().get()), (2, 1, 2000));
    }
}
