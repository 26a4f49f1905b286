//! SHA-256 as the caches write it.

use ring::digest::{Context, SHA256, digest};

/// What stands before the digits of every hash.
pub(crate) const PREFIX: &str = "sha256:";

/// The hash of one piece of content.
pub(crate) type Hash = [u8; 32];

pub(crate) fn hash(bytes: &[u8]) -> Hash {
    finished(digest(&SHA256, bytes))
}

fn finished(digest: ring::digest::Digest) -> Hash {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest.as_ref());
    hash
}

/// A hash over pieces.
pub(crate) struct Hasher(Context);

impl Hasher {
    pub(crate) fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// A piece with its length before it, so that no two lists of pieces look the same.
    pub(crate) fn add_piece(&mut self, bytes: &[u8]) {
        self.add(&(bytes.len() as u64).to_le_bytes());
        self.add(bytes);
    }

    pub(crate) fn finish(self) -> Hash {
        finished(self.0.finish())
    }
}

/// Lower-case digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    digits.map(char::from).collect()
}

/// `sha256:` and the digits.
pub(crate) fn versioned(hash: &Hash) -> String {
    format!("{PREFIX}{}", hex(hash))
}

/// Reads what [`versioned`] writes, and nothing else.
pub(crate) fn read_version(text: &str) -> Option<Hash> {
    let digits = text.strip_prefix(PREFIX)?.as_bytes();
    let mut hash = [0; 32];
    if digits.len() != 2 * hash.len() {
        return None;
    }
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::{hash, read_version, versioned};

    #[test]
    fn versions_are_read_as_they_are_written() {
        let empty = versioned(&hash(b""));
        assert_eq!(empty, "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(read_version(&empty), Some(hash(b"")));
        for wrong in ["", "sha256:", &empty[1..], &empty[..70], &empty.to_uppercase(), &empty.replace("e3", "g3")] {
            assert_eq!(read_version(wrong), None, "{wrong}");
        }
    }
}
