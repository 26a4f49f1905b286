//! The wallets behind the interface of `rialto-payment`: one module for each.

pub mod cashu;
pub mod nwc;
#[cfg(feature = "testing")]
pub mod testing;
