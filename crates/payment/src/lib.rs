//! Money: [`amount`]s, [`price`]s, [`invoice`]s, and the [`wallet`]s that make, watch and pay them.
//!
//! Nothing here knows of events or of requests. This is the only place that turns sat into msat and back.

pub mod amount;
pub mod invoice;
pub mod price;
pub mod secret;
pub mod wallet;
