//! Everything that looks like a payment and is none, a hundred times each, against a provider that is served as in earnest.
//!
//! Two things are counted. A run that nobody has paid for is one that the tool was talked into; a payment that was not served
//! is one whose call was neither done nor its money given back or credited. Both must be none, whatever is tried. Each case
//! ends with payments in earnest: a provider that had stopped to serve at all would otherwise pass.

mod claims;
mod crowd;
mod late;
mod wallets;

use torture::stage::runner::Case;

pub(crate) const CLAIMS: &[Case] = claims::CASES;
pub(crate) const LATE: &[Case] = late::CASES;
pub(crate) const WALLETS: &[Case] = wallets::CASES;
