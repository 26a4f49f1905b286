//! NIP-04 step by step: AES-256-CBC under the shared x coordinate, so that each step can be done wrongly.

use aes::Aes256;
use base64::Engine as _;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockDecryptMut as _, BlockEncryptMut as _, KeyIvInit as _};
use nostr::key::Keys;
use secp256k1::ecdh::shared_secret_point;
use secp256k1::{PublicKey, SecretKey};

use super::event::{Draft, Event, unhex};

pub const MESSAGE: u32 = 4;
/// Inside of a seal.
pub const CHAT: u32 = 14;

/// The x coordinate of the shared point, as it is.
fn shared(mine: &Keys, theirs: &str) -> Option<[u8; 32]> {
    let mut point = vec![2];
    point.extend(unhex(theirs)?);
    let point = PublicKey::from_slice(&point).ok()?;
    let secret = SecretKey::from_slice(&unhex(&mine.secret_key().to_secret_hex())?).ok()?;
    shared_secret_point(&point, &secret)[..32].try_into().ok()
}

/// `<ciphertext>?iv=<iv>`, for any bytes.
pub fn encrypt_bytes(from: &Keys, to: &str, bytes: &[u8], iv: [u8; 16]) -> String {
    let key = shared(from, to).unwrap();
    let cipher = cbc::Encryptor::<Aes256>::new(&key.into(), &iv.into());
    let text = cipher.encrypt_padded_vec_mut::<Pkcs7>(bytes);
    format!("{}?iv={}", STANDARD.encode(text), STANDARD.encode(iv))
}

pub fn encrypt(from: &Keys, to: &str, text: &str) -> String {
    // A new key's public half is as good as any other random bytes.
    let iv = unhex(&Keys::generate().public_key().to_hex()).unwrap();
    encrypt_bytes(from, to, text.as_bytes(), iv[..16].try_into().unwrap())
}

pub fn decrypt(reader: &Keys, from: &str, content: &str) -> Option<String> {
    decrypt_with(&STANDARD, reader, from, content)
}

/// The same for somebody who does not look closely at the base64.
pub fn decrypt_leniently(reader: &Keys, from: &str, content: &str) -> Option<String> {
    let config = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent);
    decrypt_with(&GeneralPurpose::new(&ALPHABET, config), reader, from, content)
}

fn decrypt_with(base64: &GeneralPurpose, reader: &Keys, from: &str, content: &str) -> Option<String> {
    let (text, iv) = content.split_once("?iv=")?;
    let (text, iv) = (base64.decode(text).ok()?, base64.decode(iv).ok()?);
    let iv: [u8; 16] = iv.try_into().ok()?;
    let cipher = cbc::Decryptor::<Aes256>::new(&shared(reader, from)?.into(), &iv.into());
    String::from_utf8(cipher.decrypt_padded_vec_mut::<Pkcs7>(&text).ok()?).ok()
}

/// A message as it should be, without its signature.
pub fn draft(from: &Keys, to: &str, text: &str) -> Draft {
    Draft::new(MESSAGE, encrypt(from, to, text)).tag(&["p", to])
}

pub fn send(from: &Keys, to: &str, text: &str) -> Event {
    draft(from, to, text).sign(from)
}
