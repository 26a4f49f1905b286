//! How much each customer, and all together, may ask for.

use nostr::prelude::PublicKey;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// Customers that are remembered at once; beyond, those who have been quiet are forgotten.
const MAX_CUSTOMERS: usize = 20_000;

/// A customer gets at most one error of the cheap kind in this time, so that nobody can make us flood relays.
const ERROR_PAUSE: Duration = Duration::from_secs(10);

/// Errors of the cheap kind a minute, to all customers together: keys cost nothing.
const ERRORS_PER_MINUTE: u32 = 600;

/// What is allowed.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Requests a minute of one customer; 0 for any number.
    pub rate_per_key: u32,
    /// Requests a minute of all; 0 for any number.
    pub rate: u32,
    /// Tools that run at once, for one customer and for all.
    pub running_per_key: usize,
    pub running: usize,
    /// Requests that wait for a free place.
    pub waiting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rate_per_key: 120, rate: 0, running_per_key: 8, running: 64, waiting: 256 }
    }
}

/// Fills steadily, empties by one with each request.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    filled: Instant,
}

impl Bucket {
    /// Takes one; `false` if there is none. A minute's worth fits in.
    fn take(&mut self, per_minute: u32, now: Instant) -> bool {
        if per_minute == 0 {
            return true;
        }
        let size = f64::from(per_minute);
        self.left = (self.left + (now - self.filled).as_secs_f64() * size / 60.0).min(size);
        self.filled = now;
        let has_one = self.left >= 1.0;
        if has_one {
            self.left -= 1.0;
        }
        has_one
    }
}

#[derive(Debug)]
struct Customer {
    bucket: Bucket,
    running: usize,
    last_error: Option<Instant>,
}

/// Keeps count.
#[derive(Debug)]
pub(crate) struct Gauge {
    limits: Limits,
    customers: HashMap<PublicKey, Customer>,
    all: Bucket,
    errors: Bucket,
    running: usize,
}

impl Gauge {
    pub(crate) fn new(limits: Limits, now: Instant) -> Self {
        let all = Bucket { left: f64::from(limits.rate), filled: now };
        let errors = Bucket { left: f64::from(ERRORS_PER_MINUTE), filled: now };
        Self { limits, customers: HashMap::new(), all, errors, running: 0 }
    }

    fn customer(&mut self, key: &PublicKey, now: Instant) -> &mut Customer {
        if self.customers.len() >= MAX_CUSTOMERS && !self.customers.contains_key(key) {
            // Full buckets say nothing; those who have one are no different from those we do not know.
            let quiet = Duration::from_secs(60);
            self.customers.retain(|_, customer| customer.running > 0 || now - customer.bucket.filled < quiet);
            if self.customers.len() >= MAX_CUSTOMERS {
                self.customers.retain(|_, customer| customer.running > 0);
            }
        }
        let full = f64::from(self.limits.rate_per_key);
        let fresh = || Customer { bucket: Bucket { left: full, filled: now }, running: 0, last_error: None };
        self.customers.entry(*key).or_insert_with(fresh)
    }

    /// Whether one more request may come.
    pub(crate) fn admit(&mut self, key: &PublicKey, now: Instant) -> bool {
        let (per_key, rate) = (self.limits.rate_per_key, self.limits.rate);
        self.customer(key, now).bucket.take(per_key, now) && self.all.take(rate, now)
    }

    /// Whether a cheap error may be sent to this customer.
    pub(crate) fn may_complain(&mut self, key: &PublicKey, now: Instant) -> bool {
        let customer = self.customer(key, now);
        let is_due = customer.last_error.is_none_or(|last| now - last >= ERROR_PAUSE);
        if is_due {
            customer.last_error = Some(now);
        }
        is_due && self.errors.take(ERRORS_PER_MINUTE, now)
    }

    /// Whether a request that cannot be served may be answered. Who may ask as often as they like is told each time.
    pub(crate) fn may_refuse(&mut self, now: Instant) -> bool {
        self.limits.rate_per_key == 0 || self.errors.take(ERRORS_PER_MINUTE, now)
    }

    /// Whether a tool may start now; if so it counts.
    pub(crate) fn start(&mut self, key: &PublicKey, now: Instant) -> bool {
        let (mine, all) = (self.limits.running_per_key, self.limits.running);
        if self.running >= all {
            return false;
        }
        let customer = self.customer(key, now);
        if customer.running >= mine {
            return false;
        }
        customer.running += 1;
        self.running += 1;
        true
    }

    pub(crate) fn end(&mut self, key: &PublicKey) {
        self.running = self.running.saturating_sub(1);
        if let Some(customer) = self.customers.get_mut(key) {
            customer.running = customer.running.saturating_sub(1);
        }
    }

    /// Whether one more request may wait, of somebody who has `own` among the `waiting` already. Nobody takes more than
    /// three quarters of the places.
    pub(crate) fn may_wait(&self, waiting: usize, own: usize) -> bool {
        waiting < self.limits.waiting && own < (self.limits.waiting * 3).div_ceil(4)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.running >= self.limits.running
    }
}

#[cfg(test)]
mod tests {
    use super::{Gauge, Limits, MAX_CUSTOMERS};
    use nostr::prelude::{Keys, PublicKey};
    use std::time::Duration;
    use tokio::time::Instant;

    fn key() -> PublicKey {
        Keys::generate().public_key()
    }

    #[test]
    fn a_minute_s_worth_at_once_and_then_steadily() {
        let now = Instant::now();
        let mut gauge = Gauge::new(Limits { rate_per_key: 60, ..Limits::default() }, now);
        let customer = key();
        assert_eq!((0..100).filter(|_| gauge.admit(&customer, now)).count(), 60);
        let later = now + Duration::from_secs(5);
        assert_eq!((0..100).filter(|_| gauge.admit(&customer, later)).count(), 5);
        assert!(gauge.admit(&key(), later), "others are not concerned");
    }

    #[test]
    fn places_are_counted_for_each_and_for_all() {
        let now = Instant::now();
        let mut gauge = Gauge::new(Limits { running: 3, running_per_key: 2, ..Limits::default() }, now);
        let (one, other) = (key(), key());
        assert_eq!((0..9).filter(|_| gauge.start(&one, now)).count(), 2);
        assert_eq!((0..9).filter(|_| gauge.start(&other, now)).count(), 1);
        assert!(gauge.is_full());
        gauge.end(&one);
        assert!(gauge.start(&other, now));
    }

    #[test]
    fn errors_are_rare_and_memory_is_bounded() {
        let now = Instant::now();
        let mut gauge = Gauge::new(Limits::default(), now);
        let customer = key();
        assert!(gauge.may_complain(&customer, now));
        assert!(!gauge.may_complain(&customer, now + Duration::from_secs(9)));
        assert!(gauge.may_complain(&customer, now + Duration::from_secs(10)));
        let mut bytes = [0; 32];
        for number in 0..2 * MAX_CUSTOMERS as u64 {
            bytes[..8].copy_from_slice(&number.to_le_bytes());
            gauge.admit(&PublicKey::from_byte_array(bytes), now);
        }
        assert!(gauge.customers.len() <= MAX_CUSTOMERS);
        let complaints = (0..2000).filter(|_| gauge.may_complain(&key(), now + Duration::from_secs(10))).count();
        assert!(complaints <= 600, "{complaints} errors to as many keys");
    }

    #[test]
    fn thousands_of_keys_that_send_nonsense_do_not_make_us_flood_relays() {
        let now = Instant::now();
        let mut gauge = Gauge::new(Limits::default(), now);
        assert_eq!((0..2000).filter(|_| gauge.may_refuse(now)).count(), 600);
        assert_eq!((0..2000).filter(|_| gauge.may_refuse(now + Duration::from_secs(1))).count(), 10);
        let mut unlimited = Gauge::new(Limits { rate_per_key: 0, ..Limits::default() }, now);
        assert_eq!((0..2000).filter(|_| unlimited.may_refuse(now)).count(), 2000);
    }
}
