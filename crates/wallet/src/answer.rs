//! What any wallet answers is believed only as far as it can be checked.

use rialto_payment::invoice::Invoice;
use rialto_payment::secret::{PaymentHash, Preimage};
use rialto_payment::wallet::{Error, Order};
use serde::Deserialize;
use serde_json::Value;

/// The longest words of a wallet that are repeated.
const MAX_WORDS: usize = 200;

pub(crate) fn malformed(what: &str) -> Error {
    Error::Malformed(what.to_owned())
}

/// An invoice that is what was asked for.
pub(crate) fn invoice(text: &str, order: &Order, hash: Option<PaymentHash>) -> Result<Invoice, Error> {
    let invoice: Invoice = text.parse().map_err(|error| Error::Malformed(format!("{error}")))?;
    if invoice.amount != Some(order.amount) {
        return Err(malformed("the invoice is over another amount than was asked for"));
    }
    if hash.is_some_and(|hash| hash != invoice.hash) {
        return Err(malformed("the invoice has another hash than was asked for"));
    }
    Ok(invoice)
}

/// The preimage of a payment, if one is given.
pub(crate) fn preimage(text: Option<&str>, hash: PaymentHash) -> Result<Option<Preimage>, Error> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let preimage = Preimage::from_hex(text).ok().filter(|preimage| preimage.hash() == hash);
    preimage.map(Some).ok_or_else(|| malformed("the preimage does not belong to the payment"))
}

/// What is expected, out of what came.
pub(crate) fn read<T: for<'a> Deserialize<'a>>(value: Value) -> Result<T, Error> {
    // What stands in the value may be secret, so the words of the error are not repeated.
    serde_json::from_value(value).map_err(|_| malformed("something is missing, or is not what it should be"))
}

/// Words by others, fit to be repeated.
pub(crate) fn one_line(words: &str) -> String {
    words.chars().map(|char| if char.is_control() { ' ' } else { char }).take(MAX_WORDS).collect()
}
