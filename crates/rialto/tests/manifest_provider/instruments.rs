//! The instruments themselves: a test that measures with a wrong ruler proves nothing.

use nostr::key::Keys;

use torture::nostr_side::event::hex_key;
use torture::nostr_side::message::{decrypt, decrypt_leniently, encrypt, encrypt_bytes};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] =
    &[case!(messages_are_encrypted_as_others_encrypt_them), case!(what_was_changed_is_not_read_as_before)];

fn messages_are_encrypted_as_others_encrypt_them() {
    // Made with another implementation: two keys, an initialization vector, and what comes of them.
    let alice = Keys::parse("6b911fd37cdf5c81d4c0adb1ab7fa822ed253ab0ad9aa18d77257c88b29b718e").unwrap();
    let bob = Keys::parse("7b911fd37cdf5c81d4c0adb1ab7fa822ed253ab0ad9aa18d77257c88b29b718e").unwrap();
    let theirs = "dJc+WbBgaFCD2/kfg1XCWJParplBDxnZIdJGZ6FCTOg=?iv=M6VxRPkMZu7aIdD+10xPuw==";
    assert_eq!(decrypt(&alice, &hex_key(&bob), theirs).as_deref(), Some("Saturn, bringer of old age"));
    let iv = [0x33, 0xa5, 0x71, 0x44, 0xf9, 0x0c, 0x66, 0xee, 0xda, 0x21, 0xd0, 0xfe, 0xd7, 0x4c, 0x4f, 0xbb];
    assert_eq!(encrypt_bytes(&bob, &hex_key(&alice), b"Saturn, bringer of old age", iv), theirs);
    for text in ["", "{}", "Zürich \u{1f324}", &"x".repeat(100_000)] {
        let there = encrypt(&alice, &hex_key(&bob), text);
        assert_eq!(decrypt(&bob, &hex_key(&alice), &there).as_deref(), Some(text));
        assert_eq!(decrypt(&alice, &hex_key(&bob), &there).as_deref(), Some(text), "its author can read it as well");
        assert_ne!(encrypt(&alice, &hex_key(&bob), text), there, "never twice the same");
    }
}

fn what_was_changed_is_not_read_as_before() {
    let (alice, bob) = (Keys::generate(), Keys::generate());
    let text = "a text that is longer than one block of sixteen bytes";
    let good = encrypt(&alice, &hex_key(&bob), text);
    assert_eq!(decrypt(&Keys::generate(), &hex_key(&alice), &good), None);
    assert_eq!(decrypt(&bob, &hex_key(&alice), &good.replace("?iv=", "?IV=")), None);
    assert_eq!(decrypt(&bob, &hex_key(&alice), &good[..good.len() - 4]), None);
    let unpadded = good.trim_end_matches('=');
    assert_eq!(decrypt(&bob, &hex_key(&alice), unpadded), None);
    assert_eq!(decrypt_leniently(&bob, &hex_key(&alice), unpadded).as_deref(), Some(text));
}
