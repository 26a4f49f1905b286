//! The wallets behind the interface of `rialto-payment`: one module for each, and [`reference`] to open one by its address.

mod answer;
pub mod cashu;
pub mod lnbits;
pub mod lnd;
pub mod nwc;
pub mod reference;
pub mod rest;
#[cfg(feature = "testing")]
pub mod testing;
