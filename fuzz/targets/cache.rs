//! The files of a context cache that a stranger has made.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rialto_context::fuzzing::{index, manifest};

// The first byte chooses; an index comes with a budget and, to the next zero, a query.
fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    if *choice == b'{' {
        return manifest(data);
    }
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let Ok(query) = std::str::from_utf8(&rest[..end]) else { return };
    index(rest.get(end + 1..).unwrap_or_default(), query, u64::from(*choice) * 16);
});
