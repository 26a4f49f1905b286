//! Filters of strangers: the relay's store finds what a look at every event finds, in the same order.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| rialto_relay::fuzzing::filter(text));
