//! What must hold of keys that are kept.

use super::{Activate, Fate, Keyring, Material, Passphrase, Place};
use nostr::nips::nip19::ToBech32;
use nostr::prelude::Keys;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn ring(directory: &Path) -> Keyring {
    Keyring::open(directory, Passphrase::none()).unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory.join("secrets"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_secret_survives_renaming_and_can_be_found_after_removal() {
    let home = tempfile::tempdir().unwrap();
    let ring = ring(home.path());
    let keys = Keys::generate();
    ring.add("one", &Material::Secret(keys.clone()), 1, Activate::Yes).unwrap();
    let file = home.path().join("secrets").join(keys.public_key().to_hex());
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    ring.rename(None, "two").unwrap();
    assert_eq!(ring.signer().await.unwrap().public_key(), keys.public_key());
    assert_eq!(ring.active().unwrap().unwrap().label, "two");
    assert!(ring.remove("two", Fate::SetAside).await.unwrap().is_some());
    assert!(ring.remove("two", Fate::SetAside).await.unwrap().is_none());
    assert_eq!(ring.signer().await.unwrap_err().reason, "no_signer");
    let kept = home.path().join("secrets/removed").join(keys.public_key().to_hex());
    assert_eq!(std::fs::read_to_string(kept).unwrap().trim(), keys.secret_key().to_bech32().unwrap());
}

#[tokio::test]
async fn labels_and_keys_are_there_once() {
    let home = tempfile::tempdir().unwrap();
    let ring = ring(home.path());
    let keys = Keys::generate();
    let watched = Material::Watched(keys.public_key());
    ring.add("me", &watched, 1, Activate::No).unwrap();
    assert_eq!(ring.active().unwrap().unwrap().label, "me", "the first is active");
    assert!(ring.add("me", &Material::generate(), 1, Activate::No).is_err());
    assert!(ring.add("other", &watched, 1, Activate::No).is_err());
    assert!(ring.add(" ", &Material::generate(), 1, Activate::No).is_err());
    assert!(ring.signer().await.unwrap_err().message.contains("watched"));
    ring.add("me", &Material::Secret(keys.clone()), 2, Activate::No).unwrap();
    assert_eq!(ring.signer().await.unwrap().public_key(), keys.public_key());
    assert_eq!(ring.list().unwrap().0.len(), 1);
    ring.add("you", &Material::generate(), 3, Activate::No).unwrap();
    assert!(ring.rename(Some("you"), "me").is_err());
    assert!(ring.rename(Some("nobody"), "x").is_err());
}

#[tokio::test]
async fn a_sealed_secret_opens_with_its_passphrase_only() {
    let home = tempfile::tempdir().unwrap();
    let keys = Keys::generate();
    let passphrase = Passphrase::new("correct horse").cheap();
    let ring = Keyring::open(home.path(), passphrase.clone()).unwrap();
    let identity = ring.add("me", &Material::Secret(keys.clone()), 1, Activate::Yes).unwrap();
    assert_eq!(identity.secret, Place::Sealed);
    let name = format!("{}.ncryptsec", keys.public_key().to_hex());
    assert_eq!(names(home.path()), [name.as_str()]);
    let text = std::fs::read_to_string(home.path().join("secrets").join(name)).unwrap();
    assert!(text.starts_with("ncryptsec1"));
    let again = Keyring::open(home.path(), passphrase).unwrap();
    assert_eq!(again.signer().await.unwrap().public_key(), keys.public_key());
    for wrong in [Passphrase::none(), Passphrase::new("wrong")] {
        let failure = Keyring::open(home.path(), wrong).unwrap().signer().await.unwrap_err();
        assert_eq!(failure.reason, "no_signer");
    }
}

#[tokio::test]
async fn a_secret_may_stay_in_a_file_of_somebody_else() {
    let home = tempfile::tempdir().unwrap();
    let keys = Keys::generate();
    let path = home.path().join("k");
    std::fs::write(&path, keys.secret_key().to_bech32().unwrap()).unwrap();
    let reference = format!("file:{}", path.display());
    let exposed = Material::parse(&reference, &Passphrase::none()).unwrap_err();
    assert!(exposed.message.contains("chmod 600"), "{exposed}");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let ring = ring(home.path());
    let material = Material::parse(&reference, &Passphrase::none()).unwrap();
    ring.add("me", &material, 1, Activate::Yes).unwrap();
    assert!(names(home.path()).is_empty(), "nothing is copied");
    assert_eq!(ring.signer().await.unwrap().public_key(), keys.public_key());
    std::fs::write(&path, Keys::generate().secret_key().to_bech32().unwrap()).unwrap();
    assert!(ring.signer().await.unwrap_err().message.contains("another key"));
}

#[test]
fn what_could_be_either_half_of_a_key_is_refused() {
    let keys = Keys::generate();
    let hex = keys.secret_key().to_secret_hex();
    let failure = Material::parse(&hex, &Passphrase::none()).unwrap_err();
    assert!(!failure.message.contains(&hex));
    assert!(Material::parse("env:RIALTO_TEST_NO_SUCH_VARIABLE", &Passphrase::none()).is_err());
    assert!(Material::parse("nsec1damaged", &Passphrase::none()).is_err());
    assert!(Material::parse("hello", &Passphrase::none()).is_err());
    let npub = keys.public_key().to_bech32().unwrap();
    assert!(matches!(Material::parse(&npub, &Passphrase::none()), Ok(Material::Watched(_))));
}
