//! Invoices (BOLT 11) as a wallet would write them, but for the signature, which nobody here checks.

use torture::nostr_side::event::{hash, now, unhex};

const LETTERS: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/// An invoice over so many thousandths of a satoshi, for what has this description.
pub(crate) fn invoice(amount: u64, description: &str) -> String {
    let prefix = format!("lnbcrt{}n", amount / 100);
    let mut data = number(u64::try_from(now()).unwrap(), 7);
    for (kind, bytes) in [(1, vec![7; 32]), (23, unhex(&hash(description)).unwrap())] {
        let groups = groups(&bytes);
        data.push(kind);
        data.extend(number(groups.len() as u64, 2));
        data.extend(groups);
    }
    data.extend([0; 104]);
    let sum = checksum(&prefix, &data);
    data.extend((0..6).map(|place| u8::try_from(sum >> (5 * (5 - place)) & 31).unwrap()));
    format!("{prefix}1{}", data.iter().map(|group| char::from(LETTERS[usize::from(*group)])).collect::<String>())
}

/// A number in so many groups of 5 bits.
fn number(value: u64, length: usize) -> Vec<u8> {
    (0..length).rev().map(|place| u8::try_from(value >> (5 * place) & 31).unwrap()).collect()
}

/// Bytes in groups of 5 bits.
fn groups(bytes: &[u8]) -> Vec<u8> {
    let bits: Vec<u8> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    bits.chunks(5).map(|chunk| (0..5).fold(0, |all, at| all << 1 | chunk.get(at).copied().unwrap_or(0))).collect()
}

fn checksum(prefix: &str, data: &[u8]) -> u32 {
    const GENERATOR: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
    let words = prefix.bytes().map(|byte| byte >> 5).chain([0]).chain(prefix.bytes().map(|byte| byte & 31));
    let sum = words.chain(data.iter().copied()).chain([0; 6]).fold(1u32, |sum, value| {
        let top = sum >> 25;
        let sum = ((sum & 0x01ff_ffff) << 5) ^ u32::from(value);
        GENERATOR.iter().enumerate().fold(sum, |sum, (bit, word)| if top >> bit & 1 == 1 { sum ^ word } else { sum })
    });
    sum ^ 1
}
