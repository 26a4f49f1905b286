//! What must not be shown: preimages, wallet addresses with keys in them, tokens.

use ring::digest::{SHA256, digest};
use std::fmt;
use std::str::FromStr;

/// Which payment is meant: the SHA-256 of its preimage. Public.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PaymentHash(pub [u8; 32]);

impl fmt::Display for PaymentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PaymentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PaymentHash({self})")
    }
}

impl FromStr for PaymentHash {
    type Err = NotHex;

    fn from_str(text: &str) -> Result<Self, NotHex> {
        from_hex(text).map(Self)
    }
}

/// What settles a payment. Who knows it before the payee can take the money on its way.
#[derive(Clone, PartialEq, Eq)]
pub struct Preimage([u8; 32]);

impl Preimage {
    /// A new one, from the system's source of randomness.
    pub fn generate() -> std::io::Result<Self> {
        let mut bytes = [0; 32];
        let mut filled = 0;
        while filled < bytes.len() {
            filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
        }
        Ok(Self(bytes))
    }

    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub fn from_hex(text: &str) -> Result<Self, NotHex> {
        from_hex(text).map(Self)
    }

    pub fn hash(&self) -> PaymentHash {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, &self.0).as_ref());
        PaymentHash(hash)
    }

    /// For the wallet and the ledger, and nobody else.
    pub fn reveal(&self) -> &[u8; 32] {
        &self.0
    }

    /// The same in hex.
    pub fn reveal_hex(&self) -> String {
        PaymentHash(self.0).to_string()
    }
}

impl fmt::Debug for Preimage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Preimage(…)")
    }
}

/// A text that opens a wallet or is money: never printed, never in `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// For whoever it is meant for, and nobody else.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("these are not 64 hexadecimal digits")]
pub struct NotHex;

fn from_hex(text: &str) -> Result<[u8; 32], NotHex> {
    let digits = text.as_bytes();
    if digits.len() != 64 {
        return Err(NotHex);
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).ok_or(NotHex);
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{PaymentHash, Preimage, Secret};

    #[test]
    fn secrets_do_not_show() {
        let preimage = Preimage::generate().unwrap();
        let shown = format!("{preimage:?} {:?}", Secret::new("nostr+walletconnect://x"));
        assert!(!shown.contains(&preimage.reveal_hex()) && !shown.contains("wallet"), "{shown}");
        assert_ne!(Preimage::generate().unwrap(), preimage);
    }

    #[test]
    fn a_hash_is_that_of_its_preimage() {
        let preimage = Preimage::new([0; 32]);
        let hash = "66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925";
        assert_eq!(preimage.hash().to_string(), hash);
        assert_eq!(hash.parse::<PaymentHash>().unwrap(), preimage.hash());
        assert_eq!(Preimage::from_hex(&preimage.reveal_hex()).unwrap(), preimage);
        for bad in ["", "6", &hash[..63], &format!("{hash}0"), &hash.replace('6', "g")] {
            assert!(bad.parse::<PaymentHash>().is_err(), "{bad}");
        }
    }
}
