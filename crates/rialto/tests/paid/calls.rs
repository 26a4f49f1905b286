//! One call after the other: what is asked for, what is paid, who has it in the end.

use rialto_ledger::ledger::Ledger as _;
use rialto_ledger::sqlite::Sqlite;
use serde_json::json;

use torture::market::{BALANCE, CUSTOMER, Market, PROVIDER, invoice};
use torture::nostr_side::log::until;
use torture::nostr_side::messenger::{self, Messenger};
use torture::nostr_side::{PATIENCE, runtime};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_call_runs_when_its_money_is_held_and_is_answered_when_it_is_taken),
    case!(a_call_runs_when_an_ordinary_invoice_is_paid),
    case!(what_is_held_goes_back_if_the_call_fails),
    case!(what_is_paid_is_credited_if_the_call_fails_and_pays_the_next),
    case!(arguments_that_do_not_fit_cost_nothing),
    case!(a_quote_that_is_not_paid_runs_out),
    case!(a_quote_can_be_cancelled_and_not_be_paid_any_more),
    case!(a_paid_call_that_runs_is_not_cancelled),
    case!(prices_by_size_with_free_calls_and_discounts),
    case!(prices_are_shown_wherever_tools_are),
    case!(a_call_by_message_is_paid),
    case!(a_batch_costs_the_sum),
    case!(a_provider_that_was_killed_goes_on_with_its_quotes),
    case!(a_price_needs_a_wallet),
    case!(where_nothing_is_sold_no_wallet_is_asked),
];

fn note(tag: &str) -> serde_json::Value {
    json!({ "name": "note", "parameters": { "tag": tag, "text": "done" } })
}

fn a_call_runs_when_its_money_is_held_and_is_answered_when_it_is_taken() {
    let market = Market::holding();
    let provider = market.serve(&["--price", "note=5"]);
    let customer = market.customer(&provider);
    let id = customer.post(&customer.draft("execute-tool", &note("paid")));
    let demand = customer.wait_for_status(&id, "payment-required");
    let invoice = invoice(&demand, 5);
    customer.barrier();
    assert_eq!(market.world.times("note paid"), 0, "it ran unpaid");
    market.pay(&invoice).unwrap();
    let answers = customer.answers(&id);
    assert_eq!(answers.text(), "done");
    assert_eq!(answers.statuses(), ["payment-required", "processing", "success"]);
    assert_eq!(market.earned_and_spent(), (5, 5), "taken before it was answered");
    assert_eq!(market.world.times("note paid"), 1);
    assert!(market.pay(&invoice).is_ok(), "the wallet knows that it has paid this");
    assert_eq!(market.earned_and_spent(), (5, 5));
    // What costs nothing still does.
    assert_eq!(customer.call("meta", &json!({})).statuses(), ["processing", "success"]);
}

fn a_call_runs_when_an_ordinary_invoice_is_paid() {
    let market = Market::plain();
    let provider = market.serve(&["--price", "*=7"]);
    let customer = market.customer(&provider);
    let id = customer.post_sealed(&customer.draft("execute-tool", &note("plain")));
    let demand = customer.wait_for_status(&id, "payment-required");
    market.pay(&invoice(&demand, 7)).unwrap();
    let answers = customer.answers(&id);
    assert_eq!(answers.text(), "done");
    assert!(answers.0.iter().all(|received| received.sealed), "not even the invoice is public");
    assert_eq!(market.earned_and_spent(), (7, 7));
}

fn what_is_held_goes_back_if_the_call_fails() {
    let market = Market::holding();
    let mut provider = market.serve(&["--price", "*=5", "--timeout-secs", "2"]);
    let customer = market.customer(&provider);
    for (tool, code) in
        [("crash", "upstream_unavailable"), ("broken", "tool_error"), ("sulk", "tool_error"), ("hang", "timeout")]
    {
        let id =
            customer.post(&customer.draft("execute-tool", &json!({ "name": tool, "parameters": { "tag": tool } })));
        let demand = customer.wait_for_status(&id, "payment-required");
        let paying = market.begin_to_pay(&invoice(&demand, 5));
        assert_eq!(customer.answers(&id).error(), code, "{tool}");
        assert!(runtime().block_on(paying).unwrap().is_err(), "{tool}: the payment came back");
        market.wait_for_balances(0, 0);
    }
    // The answers were on their way before the money was, and are not sent for ever.
    provider.process.stop();
    let ledger = Sqlite::open(&market.ledger_directory(&provider.pubkey)).unwrap();
    assert_eq!(runtime().block_on(ledger.status()).unwrap().unsent, 0);
}

fn what_is_paid_is_credited_if_the_call_fails_and_pays_the_next() {
    let market = Market::plain();
    let provider = market.serve(&["--price", "*=5", "--price", "note=8"]);
    let customer = market.customer(&provider);
    let id = customer.post(&customer.draft("execute-tool", &json!({ "name": "broken", "parameters": {} })));
    market.pay(&invoice(&customer.wait_for_status(&id, "payment-required"), 5)).unwrap();
    let answers = customer.answers(&id);
    assert_eq!(answers.error(), "tool_error");
    assert_eq!(market.earned_and_spent(), (5, 5));
    // Five are credit; three are missing.
    let id = customer.post(&customer.draft("execute-tool", &note("credited")));
    market.pay(&invoice(&customer.wait_for_status(&id, "payment-required"), 3)).unwrap();
    assert_eq!(customer.answers(&id).text(), "done");
    assert_eq!(market.earned_and_spent(), (8, 8));
    // And nobody else can use what is not theirs.
    let other = market.customer(&provider);
    let id = other.post(&other.draft("execute-tool", &note("other")));
    invoice(&other.wait_for_status(&id, "payment-required"), 8);
}

fn arguments_that_do_not_fit_cost_nothing() {
    let market = Market::holding();
    let provider = market.serve(&["--price", "*=5"]);
    let customer = market.customer(&provider);
    for (content, code) in [
        (json!({ "name": "note", "parameters": { "text": 7 } }), "invalid_input"),
        (json!({ "name": "nothing", "parameters": {} }), "unknown_tool"),
        (json!({ "name": "note" }), "invalid_input"),
    ] {
        let answers = customer.ask("execute-tool", &content);
        assert_eq!(answers.error(), code);
        assert!(!answers.statuses().contains(&"payment-required"), "{answers:?}");
    }
}

fn a_quote_that_is_not_paid_runs_out() {
    let market = Market::holding();
    let provider = market.serve(&["--price", "*=5", "--quote-secs", "1"]);
    let customer = market.customer(&provider);
    let id = customer.post(&customer.draft("execute-tool", &note("unpaid")));
    let demand = customer.wait_for_status(&id, "payment-required");
    assert_eq!(customer.answers(&id).error(), "payment_expired");
    assert!(market.pay(demand.tag("invoice")).is_err(), "it cannot be paid any more");
    assert_eq!((market.world.times("note unpaid"), market.earned_and_spent()), (0, (0, 0)));
}

fn a_quote_can_be_cancelled_and_not_be_paid_any_more() {
    let market = Market::holding();
    let provider = market.serve(&["--price", "*=5"]);
    let customer = market.customer(&provider);
    let id = customer.post(&customer.draft("execute-tool", &note("cancelled")));
    let demand = customer.wait_for_status(&id, "payment-required");
    let cancel = customer.post(&customer.draft("cancel-execution", &json!("")).tag(&["e", &id]));
    assert_eq!(customer.answers(&cancel).body()["cancelled"], true);
    assert_eq!(customer.answers(&id).error(), "cancelled");
    until("the invoice is closed", PATIENCE, || market.pay(demand.tag("invoice")).is_err());
    assert_eq!((market.world.times("note cancelled"), market.earned_and_spent()), (0, (0, 0)));
}

fn a_paid_call_that_runs_is_not_cancelled() {
    let market = Market::holding();
    let provider = market.serve(&["--price", "*=5"]);
    let customer = market.customer(&provider);
    let id = customer
        .post(&customer.draft("execute-tool", &json!({ "name": "gate", "parameters": { "name": "g", "tag": "on" } })));
    let paying = market.begin_to_pay(&invoice(&customer.wait_for_status(&id, "payment-required"), 5));
    market.world.wait_for_effect("gate on");
    let cancel = customer.post(&customer.draft("cancel-execution", &json!("")).tag(&["e", &id]));
    assert_eq!(customer.answers(&cancel).body()["cancelled"], false, "its effects are not for nothing");
    market.world.open_gate("g");
    customer.answers(&id).text();
    runtime().block_on(paying).unwrap().unwrap();
    assert_eq!(market.earned_and_spent(), (5, 5));
}

fn prices_by_size_with_free_calls_and_discounts() {
    let market = Market::holding();
    let friend = nostr::key::Keys::generate();
    let prices = market.world.path().join("prices.toml");
    let text = format!(
        "[tools]\nnote = {{ sat = 2, sat_per_kb = 3, first_free = 2 }}\n[discounts]\n{} = 50\n",
        friend.public_key().to_hex()
    );
    std::fs::write(&prices, text).unwrap();
    let provider = market.serve(&["--prices", prices.to_str().unwrap()]);
    let customer = market.customer(&provider);
    for _ in 0..2 {
        assert_eq!(customer.call("note", &json!({ "text": "free" })).text(), "free");
    }
    let id = customer.post(&customer.draft("execute-tool", &note("third")));
    invoice(&customer.wait_for_status(&id, "payment-required"), 5);
    let long = json!({ "name": "note", "parameters": { "text": "x".repeat(2500) } });
    let id = customer.post(&customer.draft("execute-tool", &long));
    invoice(&customer.wait_for_status(&id, "payment-required"), 11);
    let friend = torture::nostr_side::customer::Customer::with_keys(&market.relay, &provider.pubkey, friend);
    for _ in 0..2 {
        friend.call("note", &json!({})).text();
    }
    let id = friend.post(&friend.draft("execute-tool", &long));
    invoice(&friend.wait_for_status(&id, "payment-required"), 6);
}

fn prices_are_shown_wherever_tools_are() {
    let market = Market::holding();
    let provider = market.serve(&["--price", "note=5"]);
    let customer = market.customer(&provider);
    let price = |tools: &serde_json::Value, key: &str| {
        let tools = tools.as_array().unwrap();
        let find = |name: &str| tools.iter().find(|tool| tool[key] == name).unwrap()["_meta"]["rialto/price"].clone();
        (find("note"), find("meta"))
    };
    let listed = customer.ask("list-tools", &json!("")).body();
    assert_eq!(price(&listed["tools"], "name"), (json!({ "sat": 5 }), json!(null)));
    let stored = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = stored.clone();
    let link =
        torture::nostr_side::client::Client::connect(&market.relay, move |_, event| kept.lock().unwrap().push(event));
    link.subscribe("all", &[json!({ "kinds": [31990, 30200] })]);
    let stored = stored.lock().unwrap();
    let of = |kind: u32| stored.iter().find(|event| event.kind == kind).unwrap();
    assert_eq!(price(&of(31990).body()["tools"], "name").0["sat"], 5);
    assert_eq!(price(&of(30200).body()["tools"], "tool_name").0["sat"], 5);
    assert!(of(31990).tags("t").contains(&["note".to_owned(), "5".to_owned(), "sats".to_owned()].as_slice()));
}

fn a_call_by_message_is_paid() {
    let market = Market::holding();
    let provider = market.serve(&["--price", "*=5"]);
    let customer = Messenger::new(&market.relay, &provider.pubkey);
    for (way, tag) in [(messenger::Way::Message, "plain"), (messenger::Way::Sealed, "sealed")] {
        let before = market.earned_and_spent().0;
        let id = customer.post(way, &messenger::request("note", &json!({ "tag": tag, "text": "by message" })));
        let demand = customer.answer(way, &id).body()["error"].clone();
        assert_eq!((&demand["code"], &demand["amount_sat"]), (&json!("payment_required"), &json!(5)), "{demand}");
        market.pay(demand["invoice"].as_str().unwrap()).unwrap();
        until("the result", PATIENCE, || customer.answers(&id).len() == 2);
        assert_eq!(customer.answers(&id)[1].said(), "by message");
        assert_eq!((market.world.times(&format!("note {tag}")), market.earned_and_spent().0), (1, before + 5));
    }
}

fn a_batch_costs_the_sum() {
    let market = Market::holding();
    let provider = market.serve(&["--price", "note=5", "--price", "meta=2"]);
    let customer = market.customer(&provider);
    let calls = json!({ "calls": [
        { "name": "note", "parameters": { "tag": "one" } },
        { "name": "meta", "parameters": {} },
        { "name": "note", "parameters": { "tag": "two" } },
    ] });
    let id = customer.post(&customer.draft("batch-execute", &calls));
    market.pay(&invoice(&customer.wait_for_status(&id, "payment-required"), 12)).unwrap();
    assert_eq!(customer.answers(&id).body()["results"].as_array().unwrap().len(), 3);
    assert_eq!(market.earned_and_spent(), (12, 12));
}

fn a_provider_that_was_killed_goes_on_with_its_quotes() {
    let market = Market::holding();
    let flags = ["--price", "*=5"];
    let mut provider = market.serve(&flags);
    let customer = market.customer(&provider);
    let id = customer.post(&customer.draft("execute-tool", &note("later")));
    let invoice = invoice(&customer.wait_for_status(&id, "payment-required"), 5);
    provider.process.kill();
    let paying = market.begin_to_pay(&invoice);
    let _again = market.serve(&flags);
    assert_eq!(customer.answers(&id).text(), "done");
    runtime().block_on(paying).unwrap().unwrap();
    assert_eq!((market.world.times("note later"), market.earned_and_spent()), (1, (5, 5)));
    assert_eq!(market.sat(PROVIDER) + market.sat(CUSTOMER), 2 * BALANCE);
}

fn a_price_needs_a_wallet() {
    let market = Market::holding();
    let mut process =
        market.world.rialto("poor", &["serve", "--price", "note=5", "--relay", &market.relay, "--", "true"]);
    assert!(!process.end().success());
    let said = process.told();
    assert!(said.contains("no wallet") && said.contains("rialto wallet connect"), "{said}");
}

fn where_nothing_is_sold_no_wallet_is_asked() {
    let market = Market::holding();
    // Nobody listens there; a wallet that is asked is waited for.
    let key = "b889ff5b1513b641e2a139f661a661364979c5beee91842f8f0ef42ab558e9d4";
    let nowhere = format!("nostr+walletconnect://{key}?relay=ws://127.0.0.1:9&secret={key}");
    let path = market.world.path().join("wallet");
    std::fs::write(&path, nowhere).unwrap();
    let provider = market.serve(&[]);
    let customer = market.customer(&provider);
    assert_eq!(customer.call("note", &json!({ "text": "free" })).text(), "free");
    assert!(!provider.process.told().contains("wallet"), "{}", provider.process.told());
    let wallet = format!("file:{}", path.display());
    let arguments = ["serve", "--price", "note=5", "--wallet", &wallet, "--relay", &market.relay, "--", "true"];
    let mut process = market.world.rialto("seller", &arguments);
    assert!(!process.end().success());
    assert!(process.told().contains("the wallet does not answer"), "{}", process.told());
}
