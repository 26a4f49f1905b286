//! Which answer is believed.

use nostr::key::Keys;
use serde_json::{Value, json};

use crate::market::{Market, SEALED, ends_with, fails, output};
use torture::nostr_side::event::{Draft, Event, hex_key, now, sign};
use torture::nostr_side::message;
use torture::nostr_side::process::Process;
use torture::nostr_side::sealed::{self, SEAL, seal, wrap};
use torture::nostr_side::shop::{Order, Route};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(answers_of_strangers_are_ignored),
    case!(answers_to_others_are_ignored),
    case!(answers_to_other_requests_are_ignored),
    case!(forged_and_damaged_answers_are_ignored),
    case!(a_sealed_request_is_not_answered_by_kind_4),
    case!(forged_seals_are_ignored),
    case!(chat_of_the_provider_is_no_answer),
    case!(a_second_answer_changes_nothing),
    case!(an_answer_that_does_not_fit_the_output_schema_is_refused),
    case!(an_answer_that_is_nonsense_ends_the_call_with_words),
    case!(results_of_either_form_are_printed),
    case!(a_call_outlives_its_connection),
    case!(a_provider_whose_clock_is_wrong_is_understood),
    case!(a_relay_that_delivers_everything_four_times_answers_once),
    case!(several_calls_at_once_get_their_own_answers),
    case!(a_call_goes_over_our_relay_with_authentication),
];

fn truth() -> Value {
    json!({ "forecast": "the truth" })
}

const LIE: &str = r#"{"forecast":"a lie"}"#;

/// Each of the two forms, with a call that waits for its answer.
#[track_caller]
fn in_both_forms(check: impl Fn(&mut Market, Process, Order)) {
    for (encryption, route) in [("", Route::Message), (SEALED, Route::SealedMessage)] {
        let mut market = Market::new(encryption);
        let (call, order) = market.ask(&[]);
        assert_eq!(order.route, route);
        check(&mut market, call, order);
    }
}

/// Gives an event to the customer, whatever it has subscribed to.
fn inject(market: &Market, order: &Order, event: &Event) {
    market.relay.inject(&order.event.pubkey, &event.json());
}

fn answers_of_strangers_are_ignored() {
    in_both_forms(|market, call, order| {
        let (customer, id) = (&order.event.pubkey, &order.event.id);
        for tags in [&[&["p", customer.as_str()][..], &["e", id.as_str()]][..], &[&["p", customer]]] {
            for at in [now(), now() + 10] {
                let lie = market.shop.letter(&Keys::generate(), &order, LIE, tags, at);
                market.relay.publish(&lie);
                inject(market, &order, &lie);
            }
        }
        market.shop.say(&order, &truth());
        ends_with(call, "the truth");
    });
}

fn answers_to_others_are_ignored() {
    in_both_forms(|market, call, order| {
        let other = hex_key(&Keys::generate());
        let keys = market.shop.keys.clone();
        for tags in [&[&["p", other.as_str()][..], &["e", order.event.id.as_str()]][..], &[&["p", &other]], &[]] {
            inject(market, &order, &market.shop.letter(&keys, &order, LIE, tags, now()));
        }
        market.shop.say(&order, &truth());
        ends_with(call, "the truth");
    });
}

fn answers_to_other_requests_are_ignored() {
    in_both_forms(|market, call, order| {
        let (customer, other) = (&order.event.pubkey, "ab".repeat(32));
        let keys = market.shop.keys.clone();
        for at in [now(), now() + 5] {
            let tags: [&[&str]; 2] = [&["p", customer], &["e", &other]];
            market.relay.publish(&market.shop.letter(&keys, &order, LIE, &tags, at));
        }
        market.shop.say(&order, &truth());
        ends_with(call, "the truth");
    });
}

fn forged_and_damaged_answers_are_ignored() {
    let mut market = Market::new("");
    let (call, order) = market.ask(&[]);
    let (customer, keys) = (order.event.pubkey.clone(), market.shop.keys.clone());
    let tags: [&[&str]; 2] = [&["p", &customer], &["e", &order.event.id]];
    let good = market.shop.letter(&keys, &order, LIE, &tags, now());
    let changed = |change: &dyn Fn(&mut Event)| {
        let mut event = good.clone();
        change(&mut event);
        event
    };
    let other = message::encrypt(&keys, &customer, LIE);
    for event in [
        changed(&|event| event.sig = "0".repeat(128)),
        changed(&|event| event.id = "0".repeat(64)),
        changed(&|event| event.content.clone_from(&other)),
        changed(&|event| event.created_at += 1),
        changed(&|event| *event = sign(event.clone(), &Keys::generate())),
    ] {
        inject(&market, &order, &event);
    }
    // By the provider itself, but nobody can read it.
    for content in ["no ciphertext", "", "AAAA?iv=AAAA", &good.content.replace("?iv=", "?vi="), LIE] {
        let draft = Draft::new(4, content).tag(&["p", &customer]).tag(&["e", &order.event.id]);
        market.relay.publish(&draft.sign(&keys));
    }
    market.shop.say(&order, &truth());
    ends_with(call, "the truth");
}

fn a_sealed_request_is_not_answered_by_kind_4() {
    let mut market = Market::new(SEALED);
    let (call, order) = market.ask(&[]);
    assert_eq!(order.route, Route::SealedMessage);
    let lie = message::draft(&market.shop.keys, &order.event.pubkey, LIE).tag(&["e", &order.event.id]);
    let lie = lie.sign(&market.shop.keys);
    market.relay.publish(&lie);
    inject(&market, &order, &lie);
    // Nor by a chat message in the open.
    let open = Draft::new(14, LIE).tag(&["p", &order.event.pubkey]).tag(&["e", &order.event.id]);
    inject(&market, &order, &open.sign(&market.shop.keys));
    market.shop.say(&order, &truth());
    ends_with(call, "the truth");
}

fn forged_seals_are_ignored() {
    let mut market = Market::new(SEALED);
    let (call, order) = market.ask(&[]);
    let (customer, keys) = (&order.event.pubkey, &market.shop.keys);
    let draft = Draft::new(14, LIE).tag(&["p", customer]).tag(&["e", &order.event.id]);
    let rumor = draft.unsigned(&hex_key(keys)).json();
    let thief = Keys::generate();
    let mut unsigned = seal(keys, customer, SEAL, &rumor);
    unsigned.sig = "0".repeat(128);
    let mut renamed = seal(&thief, customer, SEAL, &rumor);
    renamed.pubkey = hex_key(keys);
    for text in [
        seal(&thief, customer, SEAL, &rumor).json(),
        seal(keys, customer, 4, &rumor).json(),
        unsigned.json(),
        sign(renamed, &thief).json(),
        rumor.clone(),
        wrap(customer, &seal(keys, customer, SEAL, &rumor).json()).json(),
    ] {
        market.relay.publish(&wrap(customer, &text));
    }
    let other_kind = Draft::new(15, LIE).tag(&["p", customer]).tag(&["e", &order.event.id]);
    market.relay.publish(&sealed::send(keys, customer, &other_kind).1);
    market.shop.say(&order, &truth());
    ends_with(call, "the truth");
}

fn chat_of_the_provider_is_no_answer() {
    in_both_forms(|market, call, order| {
        let keys = market.shop.keys.clone();
        let tags: [&[&str]; 1] = [&["p", &order.event.pubkey]];
        for text in ["one moment, please", "hello", "", "7", "\"a lie\""] {
            market.relay.publish(&market.shop.letter(&keys, &order, text, &tags, now()));
        }
        market.shop.say(&order, &truth());
        ends_with(call, "the truth");
    });
}

fn a_second_answer_changes_nothing() {
    in_both_forms(|market, call, order| {
        market.shop.say(&order, &truth());
        market.shop.say_text(&order, LIE);
        market.shop.say_text(&order, r#"{"error":{"code":"timeout","message":"a lie"}}"#);
        ends_with(call, "the truth");
    });
}

fn an_answer_that_does_not_fit_the_output_schema_is_refused() {
    for body in [json!({ "forecast": 7 }), json!({}), json!({ "outlook": "a lie" }), json!({ "forecast": null })] {
        in_both_forms(|market, call, order| {
            market.shop.say(&order, &body);
            let (_, told) = fails(call);
            assert!(told.contains("forecast"), "{body}: it says where: {told}");
            assert!(!told.contains("a lie"), "{told}");
        });
    }
}

fn an_answer_that_is_nonsense_ends_the_call_with_words() {
    for text in ["{", "[]", "7", "{\"forecast\":\"a\",\"forecast\":\"b\"}", "{\"error\":7}", "Sunny", ""] {
        let mut market = Market::new("");
        let (call, order) = market.ask(&["--timeout-secs", "20"]);
        let begun = std::time::Instant::now();
        market.shop.say_text(&order, text);
        let (_, told) = fails(call);
        assert!(begun.elapsed().as_secs() < 15, "{text:?}: it took {:?}", begun.elapsed());
        assert!(told.contains("error"), "{text:?}: {told}");
    }
}

fn results_of_either_form_are_printed() {
    for (encryption, flags) in [("", &[][..]), (SEALED, &[]), ("", &["--json"]), (SEALED, &["--json"])] {
        let mut market = Market::new(encryption);
        let (call, order) = market.ask(flags);
        market.shop.say(&order, &json!({ "forecast": "Zürich “18 °C”", "extra": [1] }));
        let text = output(call);
        assert!(text.contains("Zürich “18 °C”"), "{text}");
        if !flags.is_empty() {
            let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            assert!(value.to_string().contains("Zürich"), "{value}");
        }
        let call = market.call("say", flags);
        let order = market.shop.order();
        market.shop.say(&order, &json!({ "content": [{ "type": "text", "text": "well said" }] }));
        let text = output(call);
        if flags.is_empty() {
            assert_eq!(text, "well said");
        } else {
            let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            assert_eq!(value["content"], json!([{ "type": "text", "text": "well said" }]));
        }
    }
}

fn a_call_outlives_its_connection() {
    in_both_forms(|market, call, order| {
        // The answer is stored while the customer is not connected.
        market.relay.stop();
        market.shop.say(&order, &truth());
        market.relay.come_back();
        ends_with(call, "the truth");
    });
}

fn a_provider_whose_clock_is_wrong_is_understood() {
    for offset in [-60, 60, 300] {
        in_both_forms(|market, call, order| {
            let tags: [&[&str]; 2] = [&["p", &order.event.pubkey], &["e", &order.event.id]];
            let keys = market.shop.keys.clone();
            let late = market.shop.letter(&keys, &order, &truth().to_string(), &tags, now() + offset);
            market.relay.publish(&late);
            let mut call = call;
            assert!(call.end().success(), "{offset} s, {:?}: {}", order.route, call.told());
            ends_with(call, "the truth");
        });
    }
}

fn a_relay_that_delivers_everything_four_times_answers_once() {
    in_both_forms(|market, call, order| {
        market.relay.rules(|rules| rules.copies = 4);
        market.shop.say(&order, &truth());
        assert_eq!(output(call).matches("the truth").count(), 1);
        let me = market.shop.pubkey();
        let sent = market.relay.published().into_iter().filter(|event| event.has_tag("p", &me)).count();
        assert_eq!(sent, 1, "a request is sent once");
    });
}

fn several_calls_at_once_get_their_own_answers() {
    for encryption in ["", SEALED] {
        let mut market = Market::new(encryption);
        // Once alone, so that there is one key for all.
        let (call, order) = market.ask(&[]);
        market.shop.say(&order, &truth());
        ends_with(call, "the truth");
        let cities: Vec<String> = (0..6).map(|number| format!("city {number}")).collect();
        let calls: Vec<Process> =
            cities.iter().map(|city| market.call("forecast", &[&format!("city={city}")])).collect();
        let mut orders: Vec<Order> = cities.iter().map(|_| market.shop.order()).collect();
        orders.reverse();
        for order in &orders {
            let city = order.body()["arguments"]["city"].as_str().unwrap().to_owned();
            market.shop.say(order, &json!({ "forecast": format!("Sunny in {city}") }));
        }
        for (call, city) in calls.into_iter().zip(&cities) {
            ends_with(call, &format!("Sunny in {city}"));
        }
    }
}

fn a_call_goes_over_our_relay_with_authentication() {
    let world = torture::nostr_side::world::World::new();
    let relay = world.rialto("relay", &["relay", "--listen", "127.0.0.1:0", "--require-auth", "--json"]);
    let url = relay.json_line("url")["url"].as_str().unwrap().to_owned();
    let provider = world.serve_actor(&[&url], &[], &["weather"]);
    let npub = provider.ready["npub"].as_str().unwrap();
    for flags in [&["--wire", "manifest"][..], &["--wire", "manifest", "--plain"]] {
        let fixed = ["call", npub, "get_forecast", "city=Venice", "--relay", &url];
        ends_with(world.rialto("customer", &[&fixed[..], flags].concat()), "Sunny in Venice");
    }
}
