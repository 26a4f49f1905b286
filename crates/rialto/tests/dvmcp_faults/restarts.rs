//! Providers that are killed, and what they know when they are back.

use std::time::Duration;

use nostr::key::Keys;
use rustix::process::Signal;
use serde_json::json;

use torture::nostr_side::PATIENCE;
use torture::nostr_side::customer::Customer;
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::log::until;
use torture::nostr_side::random::Random;
use torture::nostr_side::world::World;
use torture::stage::runner::{Case, case};
use torture::stage::{is_alive, kill};

pub(crate) const CASES: &[Case] = &[
    case!(a_call_that_ran_when_the_provider_was_killed_has_an_unknown_outcome),
    case!(a_sealed_call_that_ran_when_the_provider_was_killed_is_answered_sealed),
    case!(a_request_that_came_while_the_provider_was_down_is_served),
    case!(a_backlog_of_three_hundred_requests_is_served),
    case!(a_finished_call_is_not_run_again_after_a_restart),
    case!(a_call_that_runs_at_a_clean_stop_is_answered),
    case!(an_answer_that_reached_no_relay_before_the_end_is_sent_after_the_restart),
    case!(a_provider_that_is_stopped_leaves_no_server_behind),
    case!(a_second_provider_with_the_same_state_is_refused),
    case!(twenty_kills_at_any_time_run_nothing_twice),
];

fn gate(tag: &str) -> serde_json::Value {
    json!({ "name": "gate", "parameters": { "name": "g", "tag": tag } })
}

fn a_call_that_ran_when_the_provider_was_killed_has_an_unknown_outcome() {
    let relay = FakeRelay::start();
    let world = World::new();
    let mut provider = world.serve(&[&relay.url()], &[]);
    let customer = Customer::new(&relay.url(), &provider.pubkey);
    let id = customer.post(&customer.draft("execute-tool", &gate("killed")));
    world.wait_for_effect("gate killed");
    provider.process.kill();
    world.open_gate("g");
    let again = world.serve(&[&relay.url()], &[]);
    assert_eq!(again.pubkey, provider.pubkey);
    let answers = customer.answers(&id);
    assert_eq!(answers.error(), "outcome_unknown");
    customer.barrier();
    assert_eq!(world.times("gate killed"), 1, "it was run again");
    assert_eq!(customer.call("note", &json!({ "text": "on" })).text(), "on");
}

fn a_sealed_call_that_ran_when_the_provider_was_killed_is_answered_sealed() {
    let relay = FakeRelay::start();
    let world = World::new();
    let mut provider = world.serve(&[&relay.url()], &[]);
    let customer = Customer::new(&relay.url(), &provider.pubkey);
    let id = customer.post_sealed(&customer.draft("execute-tool", &gate("sealed")));
    world.wait_for_effect("gate sealed");
    provider.process.kill();
    let _again = world.serve(&[&relay.url()], &[]);
    let answers = customer.answers(&id);
    assert_eq!(answers.error(), "outcome_unknown");
    assert!(answers.0.iter().all(|received| received.sealed));
    assert_eq!(world.times("gate sealed"), 1);
}

fn a_request_that_came_while_the_provider_was_down_is_served() {
    let relay = FakeRelay::start();
    let world = World::new();
    let mut provider = world.serve(&[&relay.url()], &[]);
    let customer = Customer::new(&relay.url(), &provider.pubkey);
    provider.process.kill();
    let plain =
        customer.post(&customer.draft("execute-tool", &json!({ "name": "note", "parameters": { "tag": "plain" } })));
    let sealed = customer
        .post_sealed(&customer.draft("execute-tool", &json!({ "name": "note", "parameters": { "tag": "sealed" } })));
    let _again = world.serve(&[&relay.url()], &[]);
    assert_eq!(customer.answers(&plain).text(), "noted");
    assert_eq!(customer.answers(&sealed).text(), "noted");
    assert_eq!((world.times("note plain"), world.times("note sealed")), (1, 1));
}

fn a_backlog_of_three_hundred_requests_is_served() {
    const CUSTOMERS: usize = 15;
    const EACH: usize = 20;
    let relay = FakeRelay::start();
    let world = World::new();
    let mut provider = world.serve(&[&relay.url()], &[]);
    let customer = Customer::new(&relay.url(), &provider.pubkey);
    provider.process.stop();
    let mut ids = Vec::new();
    for _ in 0..CUSTOMERS {
        let keys = Keys::generate();
        for _ in 0..EACH {
            let call = json!({ "name": "note", "parameters": { "tag": ids.len().to_string() } });
            let event = customer.draft("execute-tool", &call).sign(&keys);
            relay.publish(&event);
            ids.push(event.id);
        }
    }
    let _again = world.serve(&[&relay.url()], &[]);
    for (number, id) in ids.iter().enumerate() {
        let answer = customer.wait(id, &format!("answer {number}"), |event| event.kind == 6910);
        assert_eq!(answer.body()["isError"], false, "{number}: {}", answer.content);
    }
    assert_eq!(world.effects().len(), ids.len());
}

fn a_finished_call_is_not_run_again_after_a_restart() {
    let relay = FakeRelay::start();
    let world = World::new();
    let mut provider = world.serve(&[&relay.url()], &[]);
    let customer = Customer::new(&relay.url(), &provider.pubkey);
    customer.call("note", &json!({ "tag": "plain" }));
    customer.ask_sealed("execute-tool", &json!({ "name": "note", "parameters": { "tag": "sealed" } }));
    for hard in [true, false] {
        if hard {
            provider.process.kill();
        } else {
            provider.process.stop();
        }
        // The relay still has both requests and gives them to every new subscription.
        provider = world.serve(&[&relay.url()], &[]);
        customer.barrier();
        customer.ask_sealed("list-tools", &json!(""));
        assert_eq!((world.times("note plain"), world.times("note sealed")), (1, 1));
    }
}

fn a_call_that_runs_at_a_clean_stop_is_answered() {
    let relay = FakeRelay::start();
    let world = World::new();
    let mut provider = world.serve(&[&relay.url()], &[]);
    let customer = Customer::new(&relay.url(), &provider.pubkey);
    let id = customer.post(&customer.draft("execute-tool", &gate("stop")));
    world.wait_for_effect("gate stop");
    provider.process.signal(Signal::TERM);
    world.open_gate("g");
    let status = provider.process.end();
    assert!(status.success(), "{status}");
    if customer.so_far(&id).responses().is_empty() {
        // Stopped before the tool was done: then the next start says so.
        let _again = world.serve(&[&relay.url()], &[]);
        assert_eq!(customer.answers(&id).error(), "outcome_unknown");
    } else {
        customer.answers(&id);
    }
    assert_eq!(world.times("gate stop"), 1);
}

fn an_answer_that_reached_no_relay_before_the_end_is_sent_after_the_restart() {
    let relay = FakeRelay::start();
    let world = World::new();
    let mut provider = world.serve(&[&relay.url()], &[]);
    let customer = Customer::new(&relay.url(), &provider.pubkey);
    let id = customer.post(&customer.draft("execute-tool", &gate("unsent")));
    world.wait_for_effect("gate unsent");
    relay.stop();
    world.open_gate("g");
    world.wait_until_finished("gate unsent");
    provider.process.kill();
    relay.come_back();
    let _again = world.serve(&[&relay.url()], &[]);
    let answer = relay.wait_for_event("the answer", |event| event.kind == 6910 && event.has_tag("e", &id));
    let body = answer.body();
    // Either the result had been recorded, or nobody knows; it is never run again.
    let known = body["content"][0]["text"] == "through";
    assert!(known || body["metadata"]["error"]["code"] == "outcome_unknown", "{body:#}");
    assert_eq!(world.times("gate unsent"), 1);
}

fn a_provider_that_is_stopped_leaves_no_server_behind() {
    let relay = FakeRelay::start();
    let world = World::new();
    for hard in [false, true] {
        let mut provider = world.serve(&[&relay.url()], &[]);
        let pid = world.actor_pid();
        assert!(is_alive(pid));
        if hard {
            kill(provider.process.pid(), Signal::KILL);
            provider.process.end();
        } else {
            provider.process.stop();
        }
        until("its server is gone", PATIENCE, || !is_alive(pid));
    }
}

fn a_second_provider_with_the_same_state_is_refused() {
    let relay = FakeRelay::start();
    let world = World::new();
    let provider = world.serve(&[&relay.url()], &["--name", "one"]);
    // Two of them would each run every request, under whatever name.
    let program = std::env::current_exe().unwrap();
    let server = [program.to_str().unwrap(), torture::nostr_side::actor::ACTOR, world.path().to_str().unwrap()];
    let url = relay.url();
    for name in ["one", "two"] {
        let arguments = [&["serve", "--json", "--name", name, "--relay", &url, "--"], &server[..]].concat();
        let mut second = world.rialto("provider", &arguments);
        let status = second.end();
        assert!(!status.success(), "{name}: {}", second.told());
    }
    let customer = Customer::new(&relay.url(), &provider.pubkey);
    customer.call("note", &json!({ "tag": "once" }));
    assert_eq!(world.times("note once"), 1);
}

fn twenty_kills_at_any_time_run_nothing_twice() {
    const KILLS: usize = 20;
    const EACH: usize = 3;
    let relay = FakeRelay::start();
    let world = World::new();
    let mut provider = world.serve(&[&relay.url()], &["--rate-per-key", "0"]);
    let customer = Customer::new(&relay.url(), &provider.pubkey);
    let mut ids = Vec::new();
    let mut random = Random::new(20);
    for round in 0..KILLS {
        for number in 0..EACH {
            let call = json!({ "name": "note", "parameters": { "tag": format!("{round}.{number}") } });
            ids.push(customer.post(&customer.draft("execute-tool", &call)));
        }
        // How far it gets differs from round to round: anywhere, begun, or answered.
        if round % 3 == 0 {
            std::thread::sleep(Duration::from_micros(random.next() % 20_000));
        }
        if round % 3 == 1 {
            world.wait_for_effect(&format!("note {round}.0"));
        }
        if round % 3 == 2 {
            customer.answers(ids.last().unwrap());
        }
        provider.process.kill();
        provider = world.serve(&[&relay.url()], &["--rate-per-key", "0"]);
    }
    for id in &ids {
        let body = customer.answers(id).responses()[0].body();
        let code = &body["metadata"]["error"]["code"];
        assert!(body["isError"] == false || code == "outcome_unknown", "{body:#}");
    }
    for round in 0..KILLS {
        for number in 0..EACH {
            let times = world.times(&format!("note {round}.{number}"));
            assert!(times <= 1, "{round}.{number} was run {times} times");
        }
    }
}
