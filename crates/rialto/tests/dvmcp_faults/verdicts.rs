//! What relays say to an event or a subscription, and what comes of it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use torture::nostr_side::customer::Customer;
use torture::nostr_side::event::Event;
use torture::nostr_side::fake_relay::{FakeRelay, Verdict};
use torture::nostr_side::world::World;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_refusal_by_one_relay_does_not_stop_another),
    case!(a_duplicate_counts_as_taken),
    case!(a_rate_limit_is_waited_out),
    case!(an_error_of_the_relay_is_tried_again),
    case!(a_relay_that_hangs_up_on_an_answer_gets_it_again),
    case!(a_relay_that_demands_authentication_gets_it),
    case!(authentication_demanded_only_for_events_is_given),
    case!(a_relay_that_refuses_subscriptions_is_left_in_peace),
    case!(a_relay_that_delivers_everything_four_times_runs_nothing_twice),
    case!(a_slow_relay_delays_only_itself),
];

fn is_answer(event: &Event) -> bool {
    [6910, 7000].contains(&event.kind)
}

/// A provider on a good relay and one that treats answers in this way; a call must get through the good one.
fn beside_a_good_relay(verdict: Verdict) -> (FakeRelay, String) {
    let (good, bad) = (FakeRelay::start(), FakeRelay::start());
    let what = format!("{verdict:?}");
    bad.judge(move |_, _| verdict.clone());
    let world = World::new();
    let provider = world.serve(&[&bad.url(), &good.url()], &[]);
    let customer = Customer::new(&good.url(), &provider.pubkey);
    let begun = Instant::now();
    let answers = customer.call("note", &json!({ "text": "through", "tag": "one" }));
    assert_eq!(answers.text(), "through", "{what}");
    assert!(begun.elapsed() < Duration::from_secs(6), "{what}: it took {:?}", begun.elapsed());
    assert_eq!(world.effects(), ["note one"], "{what}");
    (bad, answers.response().id.clone())
}

fn a_refusal_by_one_relay_does_not_stop_another() {
    let reasons = [
        "pow: difficulty 40 wanted",
        "blocked: not you",
        "restricted: members only",
        "mute: nobody listens",
        "invalid: I do not like it",
        "rate-limited: slow down",
        "error: disk full",
        "auth-required: who are you",
        "no prefix at all",
        "",
    ];
    for reason in reasons {
        beside_a_good_relay(Verdict::Refuse(reason));
    }
    beside_a_good_relay(Verdict::Ignore);
    beside_a_good_relay(Verdict::HangUp);
}

fn a_duplicate_counts_as_taken() {
    let relay = FakeRelay::start();
    relay.judge(|_, _| Verdict::Duplicate);
    let world = World::new();
    let provider = world.serve(&[&relay.url()], &[]);
    let customer = Customer::new(&relay.url(), &provider.pubkey);
    let id = customer.call("note", &json!({})).response().id.clone();
    customer.call("note", &json!({}));
    let sent = relay.published().iter().filter(|event| event.id == id).count();
    assert_eq!(sent, 1, "what the relay has is not sent again");
}

/// One relay, which treats the first answers in this way, and takes all that come later.
fn refused_at_first(verdict: Verdict, times: usize) {
    let relay = FakeRelay::start();
    let left = AtomicUsize::new(times);
    let is_first = move || left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok();
    relay.judge(move |event, _| if is_answer(event) && is_first() { verdict.clone() } else { Verdict::Accept });
    let world = World::new();
    let provider = world.serve(&[&relay.url()], &[]);
    let customer = Customer::new(&relay.url(), &provider.pubkey);
    let id = customer.post(&customer.draft("execute-tool", &json!({ "name": "note", "parameters": { "tag": "one" } })));
    for status in ["processing", "success"] {
        customer.wait_for_status(&id, status);
    }
    assert_eq!(customer.answers(&id).text(), "noted");
    let ids: Vec<String> = relay.published().into_iter().filter(is_answer).map(|event| event.id).collect();
    let distinct: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), 3, "what is sent again is the same event");
    assert!(ids.len() >= 3 + times, "{} were sent", ids.len());
    assert_eq!(world.effects(), ["note one"]);
}

fn a_rate_limit_is_waited_out() {
    refused_at_first(Verdict::Refuse("rate-limited: slow down"), 2);
}

fn an_error_of_the_relay_is_tried_again() {
    refused_at_first(Verdict::Refuse("error: try again"), 1);
}

fn a_relay_that_hangs_up_on_an_answer_gets_it_again() {
    refused_at_first(Verdict::HangUp, 1);
}

fn a_relay_that_demands_authentication_gets_it() {
    let relay = FakeRelay::start();
    let world = World::new();
    // The customer is there before, as it does not authenticate itself.
    relay.rules(|rules| rules.wants_auth = true);
    let provider = world.serve(&[&relay.url()], &[]);
    let heard = relay.wait_for_frame("authentication", |heard| heard.frame[0] == "AUTH");
    let auth = Event::parse(&heard.frame[1]);
    assert_eq!((auth.problem(), &auth.pubkey), (None, &provider.pubkey));
    assert_eq!(auth.kind, 22242);
    assert_eq!(auth.tag("challenge"), "prove it");
    assert_eq!(auth.tag("relay").trim_end_matches('/'), relay.url());
    relay.rules(|rules| rules.wants_auth = false);
    let customer = Customer::new(&relay.url(), &provider.pubkey);
    assert_eq!(customer.call("note", &json!({ "text": "in" })).text(), "in");
}

fn authentication_demanded_only_for_events_is_given() {
    let relay = FakeRelay::start();
    let world = World::new();
    let provider = world.serve(&[&relay.url()], &[]);
    let customer = Customer::new(&relay.url(), &provider.pubkey);
    relay.judge(|event, before| {
        if is_answer(event) && before == 0 { Verdict::Refuse("auth-required: who are you") } else { Verdict::Accept }
    });
    // Without a challenge there is nothing to answer with; the relay has to be asked again all the same.
    let answers = customer.call("note", &json!({ "text": "in" }));
    assert_eq!(answers.text(), "in");
}

fn a_relay_that_refuses_subscriptions_is_left_in_peace() {
    let (good, bad) = (FakeRelay::start(), FakeRelay::start());
    bad.rules(|rules| rules.closes = Some("restricted: members only"));
    let world = World::new();
    let provider = world.serve(&[&bad.url(), &good.url()], &[]);
    let customer = Customer::new(&good.url(), &provider.pubkey);
    for _ in 0..10 {
        customer.call("note", &json!({}));
    }
    let asked = bad.heard().iter().filter(|heard| heard.frame[0] == "REQ").count();
    assert!(asked <= 10, "it was asked {asked} times");
}

fn a_relay_that_delivers_everything_four_times_runs_nothing_twice() {
    let relay = FakeRelay::start();
    let world = World::new();
    let provider = world.serve(&[&relay.url()], &["--rate-per-key", "0"]);
    let customer = Customer::new(&relay.url(), &provider.pubkey);
    relay.rules(|rules| rules.copies = 4);
    for round in 0..5 {
        let tag = round.to_string();
        let call = json!({ "name": "note", "parameters": { "tag": tag } });
        let id = customer.post(&customer.draft("execute-tool", &call));
        customer.wait(&id, "the response", |event| event.kind == 6910);
        let id = customer.post_sealed(&customer.draft("execute-tool", &call));
        customer.wait(&id, "the sealed response", |event| event.kind == 6910);
        assert_eq!(world.times(&format!("note {round}")), 2);
    }
    let mut ids: Vec<String> = relay.published().into_iter().filter(|event| event.kind == 6910).map(|e| e.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 5, "one plain response to each plain request");
}

fn a_slow_relay_delays_only_itself() {
    let (good, slow) = (FakeRelay::start(), FakeRelay::start());
    slow.rules(|rules| rules.delay = Duration::from_secs(2));
    let world = World::new();
    let provider = world.serve(&[&slow.url(), &good.url()], &[]);
    let customer = Customer::new(&good.url(), &provider.pubkey);
    let event =
        customer.draft("execute-tool", &json!({ "name": "note", "parameters": { "tag": "one" } })).sign(&customer.keys);
    let begun = Instant::now();
    slow.publish(&event);
    good.publish(&event);
    customer.answers(&event.id);
    assert!(begun.elapsed() < Duration::from_millis(1900), "it took {:?}", begun.elapsed());
    // The slow copy is on its way; a later request behind it shows that it has arrived.
    let later = customer.draft("list-tools", &json!("")).sign(&customer.keys);
    slow.publish(&later);
    slow.wait_for_event("the answer to the later request", |answer| answer.has_tag("e", &later.id));
    assert_eq!(world.effects(), ["note one"]);
}
