//! State that clients keep for us and cannot change.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

/// Signs and checks what is handed out.
pub(crate) struct Seal {
    key: hmac::Key,
    random: SystemRandom,
}

impl Seal {
    pub(crate) fn new() -> Result<Self, ring::error::Unspecified> {
        let random = SystemRandom::new();
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &random)?;
        Ok(Self { key, random })
    }

    /// `text` in a form that [`open`](Self::open) reads back.
    pub(crate) fn close(&self, text: &str) -> String {
        let tag = hmac::sign(&self.key, text.as_bytes());
        format!("{}.{}", URL_SAFE_NO_PAD.encode(text), URL_SAFE_NO_PAD.encode(tag))
    }

    /// The text within, unless somebody has changed it.
    pub(crate) fn open(&self, sealed: &str) -> Option<String> {
        let (text, tag) = sealed.split_once('.')?;
        let (text, tag) = (URL_SAFE_NO_PAD.decode(text).ok()?, URL_SAFE_NO_PAD.decode(tag).ok()?);
        hmac::verify(&self.key, &text, &tag).ok()?;
        String::from_utf8(text).ok()
    }

    /// A name that nobody can guess.
    pub(crate) fn name(&self) -> Result<String, ring::error::Unspecified> {
        let mut bytes = [0; 16];
        self.random.fill(&mut bytes)?;
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }
}
