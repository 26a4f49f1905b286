//! The Secret Service of freedesktop.org, over D-Bus. Secrets are encrypted on the bus.

use super::{Trouble, title};
use nostr::prelude::PublicKey;
use secret_service::{EncryptionType, Error, Item, SecretService};
use std::collections::HashMap;

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        match error {
            Error::Unavailable => Trouble::Absent,
            Error::Locked | Error::Prompt | Error::PromptDisconnected => Trouble::Locked,
            other => Trouble::Other(other.to_string()),
        }
    }
}

/// Without a bus there is no service either, whatever the reason.
async fn connect() -> Result<SecretService<'static>, Trouble> {
    SecretService::connect(EncryptionType::Dh).await.map_err(|_| Trouble::Absent)
}

/// What a secret is found by.
fn attributes(key: &str) -> HashMap<&str, &str> {
    HashMap::from([("application", "rialto"), ("type", "nostr"), ("public_key", key)])
}

/// What is kept for a key, unlocked.
async fn items<'a>(service: &'a SecretService<'_>, key: &str) -> Result<Vec<Item<'a>>, Trouble> {
    let found = service.search_items(attributes(key)).await?;
    let mut items = found.unlocked;
    for item in found.locked {
        item.unlock().await?;
        items.push(item);
    }
    Ok(items)
}

pub(super) async fn keep(key: &PublicKey, secret: &str) -> Result<(), Trouble> {
    let service = connect().await?;
    let key_text = key.to_hex();
    // A service without a place for secrets is as good as none.
    let place = service.get_default_collection().await.map_err(|error| match error {
        Error::NoResult => Trouble::Absent,
        other => other.into(),
    })?;
    if place.is_locked().await? {
        place.unlock().await?;
    }
    place.create_item(&title(key), attributes(&key_text), secret.as_bytes(), true, "text/plain").await?;
    Ok(())
}

pub(super) async fn read(key: &PublicKey) -> Result<Option<String>, Trouble> {
    let service = connect().await?;
    let key = key.to_hex();
    let Some(item) = items(&service, &key).await?.into_iter().next() else { return Ok(None) };
    let secret = item.get_secret().await?;
    String::from_utf8(secret).map(Some).map_err(|_| Trouble::Other("what it keeps is no text".to_owned()))
}

pub(super) async fn erase(key: &PublicKey) -> Result<(), Trouble> {
    let service = connect().await?;
    let key = key.to_hex();
    for item in items(&service, &key).await? {
        item.delete().await?;
    }
    Ok(())
}
