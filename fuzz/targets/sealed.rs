//! What stands inside a wrap: whoever wrote it, only the author of the seal is believed, and requests in it are read like any
//! others.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rialto_relay::fuzzing::{me, sealed};
use rialto_wire::dvmcp::request::OpenJobs;
use rialto_wire::request::{Body, Reading};
use rialto_wire::{dvmcp, manifest};

fuzz_target!(|text: &str| {
    let Some(event) = sealed(text) else { return };
    let readings = [dvmcp::request::read(&event, &me(), OpenJobs::Taken), manifest::request::read(&event, &me())];
    for reading in readings {
        let address = match &reading {
            Reading::NotOurs => continue,
            Reading::Refused { address, .. } => address,
            Reading::Request(request) => &request.address,
        };
        assert_eq!((Some(address.request), address.customer), (event.id, event.pubkey));
        if let Reading::Request(request) = &reading
            && let Body::Execute(execution) = &request.body
        {
            let again: serde_json::Value = serde_json::from_str(&execution.arguments).expect("arguments are JSON");
            assert_eq!(again, execution.value, "what is passed on is what was checked");
        }
    }
    let _ = dvmcp::answer::read(&event);
    let _ = manifest::answer::read(&event, &me());
});
