//! Nostr relays: a pool of connections behind one verifying gate, sealed events, and an embedded relay.
//!
//! [`pool::Pool`] is where to start. It knows nothing of what the events mean.

pub mod address;
mod backoff;
pub mod clock;
mod connection;
pub mod embedded;
mod frame;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod gate;
pub mod http;
pub mod information;
pub mod nip05;
mod outbox;
pub mod own;
pub mod pool;
pub mod probe;
pub mod publication;
pub mod seal;
mod sieve;
pub mod sign;
pub mod socket;
pub mod status;
pub mod verdict;
pub mod work;
