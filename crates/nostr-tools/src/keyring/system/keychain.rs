//! The login keychain of a Mac.

use super::{Trouble, title};
use nostr::prelude::PublicKey;
use security_framework::base::Error;
use security_framework::passwords::{
    PasswordOptions, delete_generic_password, generic_password, set_generic_password_options,
};

/// What secrets are kept under, beside their public key.
const SERVICE: &str = "rialto-nostr";

/// Numbers of `SecBase.h`.
const NOT_FOUND: i32 = -25300;
const NOT_AVAILABLE: i32 = -25291;
const NO_SUCH_KEYCHAIN: i32 = -25294;
const REFUSED: i32 = -25293;
const CANCELLED: i32 = -128;
const NO_INTERACTION: i32 = -25308;

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        match error.code() {
            NOT_AVAILABLE | NO_SUCH_KEYCHAIN => Trouble::Absent,
            REFUSED | CANCELLED | NO_INTERACTION => Trouble::Locked,
            code => Trouble::Other(error.message().unwrap_or_else(|| format!("error {code}"))),
        }
    }
}

/// The calls wait for a person, so they have a thread of their own.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> Result<T, Trouble> + Send + 'static) -> Result<T, Trouble> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Trouble::Other(error.to_string()))?
}

pub(super) async fn keep(key: &PublicKey, secret: &str) -> Result<(), Trouble> {
    let (account, label, secret) = (key.to_hex(), title(key), secret.to_owned());
    apart(move || {
        let mut options = PasswordOptions::new_generic_password(SERVICE, &account);
        options.set_label(&label);
        Ok(set_generic_password_options(secret.as_bytes(), options)?)
    })
    .await
}

pub(super) async fn read(key: &PublicKey) -> Result<Option<String>, Trouble> {
    let account = key.to_hex();
    apart(move || match generic_password(PasswordOptions::new_generic_password(SERVICE, &account)) {
        Ok(secret) => {
            String::from_utf8(secret).map(Some).map_err(|_| Trouble::Other("what it keeps is no text".to_owned()))
        }
        Err(error) if error.code() == NOT_FOUND => Ok(None),
        Err(error) => Err(error.into()),
    })
    .await
}

pub(super) async fn erase(key: &PublicKey) -> Result<(), Trouble> {
    let account = key.to_hex();
    apart(move || match delete_generic_password(SERVICE, &account) {
        Err(error) if error.code() != NOT_FOUND => Err(error.into()),
        _ => Ok(()),
    })
    .await
}
