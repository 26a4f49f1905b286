//! Messages between relays and clients, in both directions, and the events in them: read as a plain reader of JSON would, and
//! what a relay passes on is what was signed.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| rialto_relay::fuzzing::message(text));
