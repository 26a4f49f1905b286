//! Providers that are killed, and what they know when they are back.

use std::time::Duration;

use serde_json::json;

use torture::nostr_side::PATIENCE;
use torture::nostr_side::desk::{Desk, UNLIMITED};
use torture::nostr_side::log::until;
use torture::nostr_side::messenger::{BOTH, Way, request};
use torture::nostr_side::sealed::WRAP;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_call_that_ran_when_the_provider_was_killed_has_an_unknown_outcome),
    case!(a_finished_call_is_not_run_again_after_a_restart),
    case!(a_request_that_came_while_the_provider_was_down_is_served),
    case!(an_answer_that_reached_no_relay_is_sent_after_the_restart),
    case!(a_repeat_ten_seconds_later_gets_the_same_answer_also_after_a_restart),
    case!(a_call_that_runs_at_a_clean_stop_is_answered),
];

fn gate(tag: &str) -> String {
    request("gate", &json!({ "name": "g", "tag": tag }))
}

fn a_call_that_ran_when_the_provider_was_killed_has_an_unknown_outcome() {
    let mut desk = Desk::unlimited();
    let ids: Vec<(Way, String)> = BOTH.map(|way| (way, desk.customer.post(way, &gate(&format!("{way:?}"))))).into();
    for way in BOTH {
        desk.world.wait_for_effect(&format!("gate {way:?}"));
    }
    desk.provider.process.kill();
    desk.world.open_gate("g");
    desk.kill_and_restart(&UNLIMITED);
    for (way, id) in &ids {
        assert_eq!(desk.customer.answer(*way, id).error(), "outcome_unknown", "{way:?}");
    }
    desk.customer.barrier();
    for (way, id) in &ids {
        assert_eq!(desk.world.times(&format!("gate {way:?}")), 1, "it was run again");
        assert_eq!(desk.customer.answers(id).len(), 1);
    }
    assert_eq!(desk.customer.call(Way::Message, "note", &json!({ "text": "on" })).said(), "on");
}

fn a_finished_call_is_not_run_again_after_a_restart() {
    let mut desk = Desk::unlimited();
    let ids = BOTH.map(|way| (way, desk.customer.post(way, &request("note", &json!({ "tag": format!("{way:?}") })))));
    for (way, id) in &ids {
        assert_eq!(desk.customer.answer(*way, id).said(), "noted");
    }
    for _ in 0..2 {
        // The relay still has the requests and gives them to every new subscription.
        desk.kill_and_restart(&UNLIMITED);
        desk.customer.barrier();
        for way in BOTH {
            assert_eq!(desk.world.times(&format!("note {way:?}")), 1);
        }
    }
}

fn a_request_that_came_while_the_provider_was_down_is_served() {
    let mut desk = Desk::unlimited();
    desk.provider.process.kill();
    let ids = BOTH.map(|way| (way, desk.customer.post(way, &request("note", &json!({ "tag": format!("{way:?}") })))));
    desk.kill_and_restart(&UNLIMITED);
    for (way, id) in ids {
        assert_eq!(desk.customer.answer(way, &id).said(), "noted");
        assert_eq!(desk.world.times(&format!("note {way:?}")), 1);
    }
}

fn an_answer_that_reached_no_relay_is_sent_after_the_restart() {
    let mut desk = Desk::unlimited();
    let id = desk.customer.post(Way::Message, &gate("unsent"));
    desk.world.wait_for_effect("gate unsent");
    desk.relay.stop();
    desk.world.open_gate("g");
    desk.world.wait_until_finished("gate unsent");
    std::thread::sleep(Duration::from_millis(300));
    desk.provider.process.kill();
    desk.relay.come_back();
    desk.kill_and_restart(&UNLIMITED);
    let keys = desk.customer.keys.clone();
    let customer = torture::nostr_side::messenger::Messenger::with_keys(&desk.relay.url(), &desk.provider.pubkey, keys);
    let body = customer.answer(Way::Message, &id).body();
    // Either the result had been recorded, or nobody knows; it is never run again.
    let known = body["content"][0]["text"] == "through";
    assert!(known || body["error"]["code"] == "outcome_unknown", "{body:#}");
    assert_eq!(desk.world.times("gate unsent"), 1);
}

fn a_repeat_ten_seconds_later_gets_the_same_answer_also_after_a_restart() {
    let mut desk = Desk::unlimited();
    let customer = &desk.customer;
    let message =
        customer.finish(Way::Message, &customer.draft(Way::Message, &request("note", &json!({ "tag": "m" }))));
    let sealed = customer.draft(Way::Sealed, &request("note", &json!({ "tag": "s" })));
    desk.relay.publish(&message.1);
    let first = customer.answer(Way::Message, &message.0).event;
    let id = customer.post_draft(Way::Sealed, &sealed);
    let first_sealed = customer.answer(Way::Sealed, &id).event;
    desk.inject(&message.1);
    customer.post_draft(Way::Sealed, &sealed);
    customer.barrier();
    assert_eq!(customer.answers(&id).len(), 1, "a repeat at once gets nothing");
    desk.kill_and_restart(&UNLIMITED);
    let customer = &desk.customer;
    let sent = || {
        let published = desk.relay.published();
        let me = customer.pubkey();
        let wraps = published.iter().filter(|event| event.kind == WRAP && event.has_tag("p", &me)).count();
        (published.iter().filter(|event| event.id == first.id).count(), wraps)
    };
    let before = sent();
    until("both answers are sent again", PATIENCE, || {
        desk.inject(&message.1);
        customer.post_draft(Way::Sealed, &sealed);
        std::thread::sleep(Duration::from_millis(250));
        let now = sent();
        now.0 > before.0 && now.1 > before.1
    });
    assert_eq!((desk.world.times("note m"), desk.world.times("note s")), (1, 1));
    assert!(customer.answers(&message.0).iter().all(|answer| answer.event == first), "the very same answer");
    let again = customer.answers(&id);
    assert!(again.iter().all(|answer| answer.way == Way::Sealed && answer.event == first_sealed), "{again:#?}");
}

fn a_call_that_runs_at_a_clean_stop_is_answered() {
    let mut desk = Desk::unlimited();
    let ids = BOTH.map(|way| (way, desk.customer.post(way, &gate(&format!("{way:?}")))));
    for way in BOTH {
        desk.world.wait_for_effect(&format!("gate {way:?}"));
    }
    desk.provider.process.signal(rustix::process::Signal::TERM);
    desk.world.open_gate("g");
    assert!(desk.provider.process.end().success());
    if ids.iter().any(|(_, id)| desk.customer.answers(id).is_empty()) {
        // Stopped before the tool was done: then the next start says so.
        desk.kill_and_restart(&UNLIMITED);
    }
    for (way, id) in ids {
        desk.customer.answer(way, &id);
        assert_eq!(desk.world.times(&format!("gate {way:?}")), 1);
    }
}
