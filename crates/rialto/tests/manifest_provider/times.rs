//! Requests from another time.

use serde_json::json;

use torture::nostr_side::desk::Desk;
use torture::nostr_side::event::now;
use torture::nostr_side::messenger::{BOTH, Way, request};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(stale_requests_of_one_key_are_answered_once),
    case!(a_request_that_was_served_does_not_run_again_when_it_is_old),
];

fn note(tag: &str) -> String {
    request("note", &json!({ "tag": tag }))
}

fn stale_requests_of_one_key_are_answered_once() {
    let desk = Desk::unlimited();
    for number in 0..20 {
        let draft = desk.customer.draft(Way::Message, &note("old")).at(now() - 4000 - number);
        desk.inject(&desk.customer.finish(Way::Message, &draft).1);
    }
    // What is chat is not even told so.
    let chat = desk.another_customer();
    desk.inject(&chat.finish(Way::Message, &chat.draft(Way::Message, "hello").at(now() - 4000)).1);
    desk.another_customer().barrier();
    assert_eq!(desk.customer.everything().len(), 1, "{:#?}", desk.customer.everything());
    assert!(chat.everything().is_empty(), "{:#?}", chat.everything());
    assert!(desk.world.effects().is_empty());
}

fn a_request_that_was_served_does_not_run_again_when_it_is_old() {
    let desk = Desk::unlimited();
    for way in BOTH {
        // It is served now, and leaves the window in a second or two.
        let draft = desk.customer.draft(way, &note("edge")).at(now() - 15 * 60 + 3);
        let (id, event) = desk.customer.finish(way, &draft);
        desk.relay.publish(&event);
        assert_eq!(desk.customer.answer(way, &id).said(), "noted", "{way:?}");
        std::thread::sleep(std::time::Duration::from_millis(4500));
        for _ in 0..5 {
            desk.inject(&event);
        }
        desk.another_customer().barrier();
        assert_eq!(desk.customer.answers(&id).len(), 1, "{way:?}: {:#?}", desk.customer.answers(&id));
    }
    assert_eq!(desk.world.times("note edge"), 2);
}
