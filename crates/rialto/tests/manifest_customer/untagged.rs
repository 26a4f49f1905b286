//! Providers that send no `e`: one call is open at a time, and the answer is what comes next.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::market::{Market, SEALED, ends_with, fails};
use torture::nostr_side::event::now;
use torture::nostr_side::process::Process;
use torture::nostr_side::shop::{Order, Shop};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(an_answer_without_e_is_taken_by_the_only_call),
    case!(an_older_answer_without_e_is_not_taken),
    case!(an_answer_that_was_there_before_the_request_is_not_taken),
    case!(an_error_without_e_ends_the_call),
    case!(calls_of_a_host_are_made_one_after_the_other),
    case!(calls_of_several_processes_are_made_one_after_the_other),
    case!(the_answer_of_a_killed_process_is_not_taken_by_the_next),
    case!(a_process_that_gave_up_does_not_leave_its_answer_to_the_next),
    case!(a_provider_that_is_known_to_use_e_is_called_again_at_once),
    case!(a_call_that_was_given_up_does_not_leave_its_answer_to_the_next),
];

fn an_answer_without_e_is_taken_by_the_only_call() {
    for encryption in ["", SEALED] {
        let mut market = Market::new(encryption);
        for city in ["Venice", "Rome"] {
            let call = market.call("forecast", &[&format!("city={city}")]);
            let order = market.shop.order();
            market.shop.say_untagged(&order, &json!({ "forecast": format!("Sunny in {city}") }), now());
            ends_with(call, &format!("Sunny in {city}"));
            // Times are whole seconds.
            std::thread::sleep(Duration::from_millis(1100));
        }
    }
}

fn an_older_answer_without_e_is_not_taken() {
    for encryption in ["", SEALED] {
        let mut market = Market::new(encryption);
        let (call, order) = market.ask(&[]);
        for age in [1, 60, 3600] {
            let at = order.event.created_at - age;
            market.shop.say_untagged(&order, &json!({ "forecast": "a lie" }), at);
        }
        market.shop.say_untagged(&order, &json!({ "forecast": "the truth" }), order.event.created_at);
        ends_with(call, "the truth");
    }
}

fn an_answer_that_was_there_before_the_request_is_not_taken() {
    for encryption in ["", SEALED] {
        let mut market = Market::new(encryption);
        // The clock of the provider is a little ahead, and one call follows another at once, as in a script.
        let (call, order) = market.ask(&[]);
        market.shop.say_untagged(&order, &json!({ "forecast": "Sunny in Venice" }), now() + 3);
        ends_with(call, "Sunny in Venice");
        let call = market.call("forecast", &["city=Rome"]);
        let order = market.shop.order();
        market.shop.say_untagged(&order, &json!({ "forecast": "Sunny in Rome" }), now() + 3);
        ends_with(call, "Sunny in Rome");
    }
}

fn an_error_without_e_ends_the_call() {
    for encryption in ["", SEALED] {
        let mut market = Market::new(encryption);
        let (call, order) = market.ask(&[]);
        let error = json!({ "error": { "code": "upstream_unavailable", "message": "it is raining" } });
        market.shop.say_untagged(&order, &error, now());
        let (code, told) = fails(call);
        assert_eq!(code, 4, "{told}");
        assert!(told.contains("it is raining"), "{told}");
    }
}

fn calls_of_a_host_are_made_one_after_the_other() {
    for encryption in ["", SEALED] {
        let market = Market::new(encryption);
        let mut host = market.host(&[]);
        let mut shop = market.shop;
        host.begin();
        host.ask("tools/list", &json!({}));
        let ids: Vec<(u64, String)> = (0..5)
            .map(|number| {
                let city = format!("city {number}");
                (host.call("forecast", &json!({ "city": city })), city)
            })
            .collect();
        for _ in 0..5 {
            let order = shop.order();
            let early: Option<Order> = shop.order_within(Duration::from_millis(400));
            assert!(early.is_none(), "two calls are open at once: {early:?}");
            let city = order.body()["arguments"]["city"].as_str().unwrap().to_owned();
            shop.say_untagged(&order, &json!({ "forecast": format!("Sunny in {city}") }), now());
        }
        for (id, city) in ids {
            let answer = host.answer(id);
            assert_eq!(answer["result"]["structuredContent"]["forecast"], format!("Sunny in {city}"), "{answer}");
        }
    }
}

fn a_call_that_was_given_up_does_not_leave_its_answer_to_the_next() {
    let market = Market::new("");
    let mut host = market.host(&[]);
    let mut shop = market.shop;
    host.begin();
    host.ask("tools/list", &json!({}));
    // Its first answer shows that this one sends no `e`.
    let first = host.call("forecast", &json!({ "city": "Rome" }));
    let order = shop.order();
    shop.say_untagged(&order, &json!({ "forecast": "Sunny" }), now());
    assert_eq!(host.answer(first)["result"]["structuredContent"]["forecast"], "Sunny");
    let given_up = host.call("forecast", &json!({ "city": "Venice" }));
    let late = shop.order();
    host.notify("notifications/cancelled", &json!({ "requestId": given_up, "reason": "enough" }));
    std::thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    let next = host.call("forecast", &json!({ "city": "Paris" }));
    std::thread::sleep(Duration::from_millis(300));
    shop.say_untagged(&late, &json!({ "forecast": "of Venice" }), now());
    let answer = host.answer(next);
    assert!(begun.elapsed() < Duration::from_secs(10), "it fails at once, not after {:?}", begun.elapsed());
    assert!(answer.get("error").is_some() || answer["result"]["isError"] == true, "{answer}");
    assert!(!answer.to_string().contains("of Venice"), "{answer}");
}

fn calls_of_several_processes_are_made_one_after_the_other() {
    for encryption in ["", SEALED] {
        let mut market = Market::new(encryption);
        let calls: Vec<(String, Process)> = (0..4)
            .map(|number| {
                let city = format!("city {number}");
                let call = market.call("forecast", &[&format!("city={city}"), "--timeout-secs", "60"]);
                (city, call)
            })
            .collect();
        for _ in 0..4 {
            let order = market.shop.order();
            let early = market.shop.order_within(Duration::from_millis(400));
            assert!(early.is_none(), "two calls are open at once: {early:?}");
            let city = order.body()["arguments"]["city"].as_str().unwrap().to_owned();
            market.shop.say_untagged(&order, &json!({ "forecast": format!("Sunny in {city}") }), now());
        }
        for (city, call) in calls {
            ends_with(call, &format!("Sunny in {city}"));
        }
    }
}

/// A call after one that was not answered: it may fail, but not wait long, and not take the answer of the other.
#[track_caller]
fn next_is_not_confused(market: &mut Market, late: &Order) {
    let begun = Instant::now();
    let mut next = market.call("forecast", &["city=Paris", "--timeout-secs", "5"]);
    if let Some(order) = market.shop.order_within(Duration::from_millis(1500)) {
        panic!("it was sent, and nothing can tell its answer from the one before: {order:?}");
    }
    market.shop.say_untagged(late, &json!({ "forecast": "of Venice" }), now());
    assert!(!next.end().success(), "{}", next.told());
    assert!(!next.told().contains("of Venice"), "{}", next.told());
    assert!(begun.elapsed() < Duration::from_secs(15), "it took {:?}", begun.elapsed());
}

fn the_answer_of_a_killed_process_is_not_taken_by_the_next() {
    for encryption in ["", SEALED] {
        let mut market = Market::new(encryption);
        let (mut call, late) = market.ask(&[]);
        call.kill();
        next_is_not_confused(&mut market, &late);
    }
}

fn a_process_that_gave_up_does_not_leave_its_answer_to_the_next() {
    for encryption in ["", SEALED] {
        let mut market = Market::new(encryption);
        let (call, late) = market.ask(&["--timeout-secs", "1"]);
        let (code, told) = fails(call);
        assert_eq!(code, 7, "{told}");
        next_is_not_confused(&mut market, &late);
        // Another provider has nothing to do with it.
        let mut other = Shop::new(&market.relay, encryption);
        let npub = other.npub();
        let call = market.run(&["call", &npub, "forecast", "city=Rome"]);
        let order = other.order();
        other.say(&order, &json!({ "forecast": "of Rome" }));
        ends_with(call, "of Rome");
    }
}

fn a_provider_that_is_known_to_use_e_is_called_again_at_once() {
    for encryption in ["", SEALED] {
        let mut market = Market::new(encryption);
        let (call, order) = market.ask(&[]);
        market.shop.say(&order, &json!({ "forecast": "first" }));
        ends_with(call, "first");
        // One that takes too long, one that is killed; and calls that do not have to wait for each other.
        let (call, late) = market.ask(&["--timeout-secs", "1"]);
        fails(call);
        let (mut killed, _) = market.ask(&[]);
        killed.kill();
        let (one, first) = market.ask(&[]);
        let (two, second) = market.ask(&[]);
        market.shop.say(&late, &json!({ "forecast": "a lie" }));
        market.shop.say(&second, &json!({ "forecast": "for two" }));
        market.shop.say(&first, &json!({ "forecast": "for one" }));
        ends_with(two, "for two");
        ends_with(one, "for one");
    }
}
