//! Which protocols a service speaks: both, unless it is told otherwise.

use serde_json::json;

use torture::nostr_side::desk::{Desk, MANIFEST};
use torture::nostr_side::messenger::{BOTH, Way, request};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(both_wires_are_spoken_unless_told_otherwise),
    case!(dvmcp_alone_publishes_no_manifest_and_answers_no_message),
    case!(manifests_alone_publish_no_announcement_and_answer_no_dvmcp),
    case!(an_unknown_wire_is_refused),
];

fn both_wires_are_spoken_unless_told_otherwise() {
    for flags in [&[][..], &["--wire", "dvmcp,manifest"], &["--wire", "manifest,dvmcp"]] {
        let desk = Desk::new(flags);
        let dvmcp = desk.dvmcp_customer();
        for way in BOTH {
            assert_eq!(desk.customer.call(way, "note", &json!({ "text": "hello" })).said(), "hello");
        }
        assert_eq!(dvmcp.call("note", &json!({ "text": "hello" })).text(), "hello");
        let sealed = dvmcp.ask_sealed("execute-tool", &json!({ "name": "note", "parameters": {} }));
        assert_eq!(sealed.text(), "noted");
        for kind in [MANIFEST, 31990, 10002, 10050] {
            desk.relay.wait_for_event(&format!("kind {kind}"), |event| event.kind == kind);
        }
    }
}

fn dvmcp_alone_publishes_no_manifest_and_answers_no_message() {
    let desk = Desk::new(&["--wire", "dvmcp"]);
    let dvmcp = desk.dvmcp_customer();
    let ids: Vec<String> =
        BOTH.iter().map(|way| desk.customer.post(*way, &request("note", &json!({ "tag": "no" })))).collect();
    for way in BOTH {
        let (_, event) =
            desk.customer.finish(way, &desk.customer.draft(way, &request("note", &json!({ "tag": "no" }))));
        desk.inject(&event);
    }
    dvmcp.barrier();
    dvmcp.ask_sealed("list-tools", &json!(""));
    assert_eq!(dvmcp.call("note", &json!({ "text": "yes" })).text(), "yes");
    assert!(ids.iter().all(|id| desk.customer.answers(id).is_empty()));
    assert_eq!(desk.world.effects(), ["note"]);
    let published = desk.relay.published();
    assert!(published.iter().any(|event| event.kind == 31990));
    let me = &desk.provider.pubkey;
    let wrong = published.iter().filter(|event| event.pubkey == *me && [MANIFEST, 10050, 4].contains(&event.kind));
    assert_eq!(wrong.count(), 0);
}

fn manifests_alone_publish_no_announcement_and_answer_no_dvmcp() {
    let mut desk = Desk::new(&["--wire", "manifest", "--name", "weather"]);
    let dvmcp = desk.dvmcp_customer();
    let call = json!({ "name": "note", "parameters": { "tag": "no" } });
    let plain = dvmcp.post(&dvmcp.draft("execute-tool", &call));
    let open = dvmcp.post(&dvmcp.draft("list-tools", &json!("")).without("p"));
    let sealed = dvmcp.post_sealed(&dvmcp.draft("execute-tool", &call));
    desk.inject(&dvmcp.draft("execute-tool", &call).sign(&dvmcp.keys));
    desk.manifest("a manifest", |_| true);
    desk.customer.barrier();
    assert_eq!(desk.customer.call(Way::Message, "note", &json!({ "text": "yes" })).said(), "yes");
    for id in [plain, open, sealed] {
        assert_eq!(dvmcp.so_far(&id).0.len(), 0);
    }
    assert_eq!(desk.world.effects(), ["note"]);
    desk.provider.process.stop();
    let me = &desk.provider.pubkey;
    let published = desk.relay.published();
    let mine = || published.iter().filter(|event| event.pubkey == *me);
    assert_eq!(mine().filter(|event| [31990, 6910, 7000].contains(&event.kind)).count(), 0);
    let withdrawal = mine().find(|event| event.kind == 5).unwrap();
    assert_eq!(withdrawal.tags("k"), [["30200"]]);
}

fn an_unknown_wire_is_refused() {
    let desk = Desk::new(&[]);
    let url = desk.relay.url();
    for wire in ["telepathy", "", "dvmcp,telepathy"] {
        let arguments = ["serve", "--json", "--relay", &url, "--wire", wire, "--", "cat"];
        let mut process = desk.world.rialto("other", &arguments);
        assert_eq!(process.end().code(), Some(2), "{wire:?}: {}", process.told());
    }
}
