//! A response in parts, put together again.

use rialto_wire::dvmcp::answer;

/// The longest response that is put together.
pub(crate) const MAX_BYTES: usize = 1024 * 1024;

/// The parts that have come. The first one says how many there are.
#[derive(Debug)]
pub(crate) struct Parts {
    digest: String,
    pieces: Vec<Option<String>>,
    size: usize,
}

/// Why the parts do not make a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    #[error("its parts are longer than 1 MiB together")]
    TooLong,
    #[error("its parts do not have the hash that they should have")]
    Digest,
}

impl Parts {
    pub(crate) fn new(of: usize, digest: String) -> Self {
        Self { digest, pieces: vec![None; of], size: 0 }
    }

    /// Takes one part; gives the whole once all are there. A part that does not belong to the others is ignored.
    pub(crate) fn take(
        &mut self,
        number: usize,
        of: usize,
        digest: &str,
        piece: String,
    ) -> Result<Option<String>, Broken> {
        if of != self.pieces.len() || digest != self.digest {
            return Ok(None);
        }
        let Some(place) = number.checked_sub(1).and_then(|index| self.pieces.get_mut(index)) else { return Ok(None) };
        if place.is_some() {
            return Ok(None);
        }
        self.size += piece.len();
        if self.size > MAX_BYTES {
            return Err(Broken::TooLong);
        }
        *place = Some(piece);
        if self.pieces.iter().any(Option::is_none) {
            return Ok(None);
        }
        let whole: String = self.pieces.iter_mut().filter_map(Option::take).collect();
        if answer::digest(&whole).eq_ignore_ascii_case(&self.digest) { Ok(Some(whole)) } else { Err(Broken::Digest) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Broken, MAX_BYTES, Parts};
    use crate::canonical::sha256;

    #[test]
    fn parts_in_any_order_make_the_whole_once() {
        let digest = sha256(b"abc");
        let mut parts = Parts::new(3, digest.clone());
        assert_eq!(parts.take(3, 3, &digest, "c".into()), Ok(None));
        assert_eq!(parts.take(3, 3, &digest, "x".into()), Ok(None), "the first one counts");
        assert_eq!(parts.take(1, 2, &digest, "x".into()), Ok(None), "it belongs to something else");
        assert_eq!(parts.take(1, 3, "other", "x".into()), Ok(None));
        assert_eq!(parts.take(1, 3, &digest, "a".into()), Ok(None));
        assert_eq!(parts.take(2, 3, &digest, "b".into()), Ok(Some("abc".into())));
    }

    #[test]
    fn wrong_and_endless_parts_are_refused() {
        let mut parts = Parts::new(1, sha256(b"abc"));
        assert_eq!(parts.take(1, 1, &sha256(b"abc"), "abd".into()), Err(Broken::Digest));
        let mut parts = Parts::new(3, "d".into());
        assert_eq!(parts.take(1, 3, "d", "x".repeat(MAX_BYTES)), Ok(None));
        assert_eq!(parts.take(2, 3, "d", "x".into()), Err(Broken::TooLong));
    }
}
