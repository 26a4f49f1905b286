//! How long to wait before the next try: quickly at first, patiently later, and never in step with others.

use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::time::Duration;

/// A relay that restarts is back within seconds, and so are we: within two, with the noise that is added.
const FIRST: Duration = Duration::from_millis(100);
const SOON: Duration = Duration::from_millis(1500);
/// After a minute of quick tries a relay is taken for gone.
const QUICK_TRIES: u32 = 45;
const LATE: Duration = Duration::from_secs(30);
/// A relay that works, but not for long, is tried as if this often in vain: it is not asked ten times a second.
const EASED: u32 = 3;

/// Successive waiting times for one relay.
#[derive(Debug)]
pub(crate) struct Backoff {
    tries: u32,
    noise: u64,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        // Differs between processes and relays; more is not asked of it.
        Self::from_noise(RandomState::new().build_hasher().finish())
    }

    /// Where chance begins with `seed`, the waiting times of each relay can be repeated.
    pub(crate) fn seeded(seed: Option<u64>, relay: &str) -> Self {
        let Some(seed) = seed else { return Self::new() };
        let mut hasher = DefaultHasher::new();
        (seed, relay).hash(&mut hasher);
        Self::from_noise(hasher.finish())
    }

    fn from_noise(noise: u64) -> Self {
        Self { tries: 0, noise: noise | 1 }
    }

    pub(crate) fn reset(&mut self) {
        self.tries = 0;
    }

    /// The relay was there, if only for a moment: it is not taken for gone.
    pub(crate) fn ease(&mut self) {
        self.tries = self.tries.min(EASED);
    }

    pub(crate) fn tries(&self) -> u32 {
        self.tries
    }

    /// The next waiting time, between three and five quarters of its nominal length.
    pub(crate) fn next(&mut self) -> Duration {
        let nominal = match self.tries {
            tries @ 0..8 => (FIRST * 2u32.pow(tries)).min(SOON),
            tries if tries < QUICK_TRIES => SOON,
            tries => (SOON * 2u32.pow((tries - QUICK_TRIES + 1).min(8))).min(LATE),
        };
        self.tries = self.tries.saturating_add(1);
        self.jittered(nominal)
    }

    /// Spreads a duration by a quarter to both sides.
    pub(crate) fn jittered(&mut self, nominal: Duration) -> Duration {
        self.noise ^= self.noise << 13;
        self.noise ^= self.noise >> 7;
        self.noise ^= self.noise << 17;
        let share = 0.75 + (self.noise % 1024) as f64 / 2048.0;
        nominal.mul_f64(share)
    }
}

#[cfg(test)]
mod tests {
    use super::Backoff;
    use std::time::Duration;

    #[test]
    fn begins_quickly_and_ends_patiently() {
        let mut backoff = Backoff::new();
        let waits: Vec<Duration> = (0..60).map(|_| backoff.next()).collect();
        assert!(waits[0] <= Duration::from_millis(125), "{:?}", waits[0]);
        assert!(waits[..45].iter().all(|wait| *wait < Duration::from_secs(2)), "{waits:?}");
        assert!(waits[50..].iter().all(|wait| *wait >= Duration::from_secs(22) && *wait < Duration::from_secs(38)));
        backoff.reset();
        assert!(backoff.next() <= Duration::from_millis(125));
    }

    #[test]
    fn with_a_seed_it_waits_as_long_again() {
        let waits = |seed, relay| {
            (0..20).map(move |_| seed).scan(Backoff::seeded(seed, relay), |backoff, _| Some(backoff.next()))
        };
        let same: Vec<Duration> = waits(Some(7), "ws://a").collect();
        assert_eq!(same, waits(Some(7), "ws://a").collect::<Vec<_>>());
        assert_ne!(same, waits(Some(7), "ws://b").collect::<Vec<_>>());
        assert_ne!(same, waits(Some(8), "ws://a").collect::<Vec<_>>());
    }

    #[test]
    fn a_relay_that_works_for_a_moment_at_a_time_is_not_taken_for_gone() {
        let mut backoff = Backoff::new();
        for _ in 0..100 {
            assert!(backoff.next() < Duration::from_secs(2));
            backoff.ease();
        }
        assert!(backoff.next() > Duration::from_millis(500), "nor is it asked all the time");
    }
}
