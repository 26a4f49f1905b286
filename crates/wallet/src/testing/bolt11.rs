//! Invoices of a network that does not exist, signed by a key that everybody may know.

use super::network::Wanted;
use bitcoin::hashes::{Hash as _, sha256};
use bitcoin::secp256k1::{Secp256k1, SecretKey};
use lightning_invoice::{Currency, InvoiceBuilder, PaymentSecret};
use rialto_payment::amount::Msat;
use rialto_payment::secret::PaymentHash;
use std::time::Duration;

const NODE: [u8; 32] = [0x52; 32];

pub(super) fn write(hash: PaymentHash, wanted: &Wanted<'_>, made: u64) -> Result<String, String> {
    write_over(Some(wanted.amount), hash, wanted, made)
}

/// With another amount than is wanted, or none.
pub(super) fn write_over(
    amount: Option<Msat>,
    hash: PaymentHash,
    wanted: &Wanted<'_>,
    made: u64,
) -> Result<String, String> {
    let secp = Secp256k1::new();
    let key = SecretKey::from_slice(&NODE).map_err(|error| error.to_string())?;
    let builder = InvoiceBuilder::new(Currency::Regtest);
    let builder = match amount {
        Some(amount) => builder.amount_milli_satoshis(amount.get()),
        None => builder,
    };
    let invoice = builder
        .description(wanted.memo.to_owned())
        .payment_hash(sha256::Hash::from_byte_array(hash.0))
        // The network in memory has no routes on which anybody could guess.
        .payment_secret(PaymentSecret(hash.0))
        .duration_since_epoch(Duration::from_secs(made))
        .expiry_time(Duration::from_secs(wanted.expiry))
        .min_final_cltv_expiry_delta(18)
        .build_signed(|message| secp.sign_ecdsa_recoverable(message, &key));
    invoice.map(|invoice| invoice.to_string()).map_err(|error| error.to_string())
}
