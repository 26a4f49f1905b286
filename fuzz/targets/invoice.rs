//! Invoices, alone and in what a provider asks for: read again, they say the same, and no change of one letter passes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nostr::prelude::{Kind, PublicKey, Tag, Timestamp, UnsignedEvent};
use rialto_payment::invoice::{Invoice, MAX_LENGTH};
use rialto_wire::dvmcp::answer::{self, Answer, Status};

// Each line is a tag with words between `|`; the last is an invoice.
fuzz_target!(|text: &str| {
    let (head, last) = text.rsplit_once('\n').unwrap_or(("", text));
    check(last);
    let tags = head.lines().filter_map(|line| Tag::parse(line.split('|')).ok());
    let tags = tags.chain([Tag::custom("e", ["11".repeat(32)]), Tag::custom("invoice", [last])]);
    let author = PublicKey::from_byte_array([1; 32]);
    let event = UnsignedEvent::new(author, Timestamp::from(1), Kind::from(7000), tags, "");
    let Some((_, Answer::Feedback(feedback))) = answer::read(&event) else { return };
    if let Some(invoice) = feedback.invoice.filter(|_| feedback.status == Status::PaymentRequired) {
        assert!(invoice.starts_with("ln"));
        check(&invoice);
    }
});

fn check(text: &str) {
    let Ok(invoice) = text.parse::<Invoice>() else { return };
    assert!(invoice.text.len() <= MAX_LENGTH && text.len() <= MAX_LENGTH + 2 * "lightning:".len() + text.len());
    assert!(invoice.expires >= invoice.made);
    assert_eq!(invoice.text.parse::<Invoice>().as_ref(), Ok(&invoice), "what is kept says the same");
    assert_eq!(format!("lightning:{}", invoice.text.to_uppercase()).parse::<Invoice>().as_ref(), Ok(&invoice));
    // The checksum sees any one letter.
    let middle = invoice.text.len() / 2;
    let other = if invoice.text.as_bytes()[middle] == b'q' { "p" } else { "q" };
    let changed = [&invoice.text[..middle], other, &invoice.text[middle + 1..]].concat();
    assert!(changed.parse::<Invoice>().is_err(), "{changed}");
}
