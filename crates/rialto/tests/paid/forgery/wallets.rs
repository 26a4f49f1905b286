//! Wallets that err or lie, and those who speak in the name of one.

use nostr::key::Keys;
use rialto_payment::invoice::Invoice;
use serde_json::json;

use super::crowd::{CUSTOMERS, Crowd, PRICE, TRIES, note};
use torture::market::{Market, PROVIDER};
use torture::nostr_side::PATIENCE;
use torture::nostr_side::client::Client;
use torture::nostr_side::customer::Customer;
use torture::nostr_side::event::{Draft, Event};
use torture::nostr_side::log::{Log, until};
use torture::nostr_side::sealed;
use torture::stage::runner::{Case, case};

pub(super) const CASES: &[Case] = &[
    case!(an_invoice_over_nothing_is_not_passed_on),
    case!(an_invoice_in_the_wrong_unit_is_not_passed_on),
    case!(a_payment_that_is_told_many_times_is_one_payment),
    case!(an_invoice_is_for_one_call),
    case!(what_a_stranger_says_in_a_wallets_name_is_no_payment),
    case!(what_the_wallet_does_not_confirm_is_no_payment),
];

/// More than there are requests.
const ALWAYS: &str = "times=1000000";

fn fault(crowd: &Crowd, text: &str) {
    crowd.market.bank.faults().add(text.parse().unwrap());
}

/// What a wallet says by itself of payments.
const NOTICE: u32 = 23197;
const WALLET_ANSWER: u32 = 23195;
const WALLET_REQUEST: u32 = 23194;

/// Hears everything of some kinds that goes over the relay.
fn listen(crowd: &Crowd, kinds: &[u32]) -> (Client, Log<Event>) {
    let heard: Log<Event> = Log::default();
    let kept = heard.clone();
    let link = Client::connect(&crowd.market.relay, move |_, event| kept.push(event));
    link.subscribe("heard", &[json!({ "kinds": kinds })]);
    (link, heard)
}

/// A wallet that makes invoices with these two faults by turns: nobody ever sees one of them.
fn unquotable(case: &str, faults: [&str; 2]) {
    let crowd = Crowd::new(Market::holding(), &[]);
    for effect in faults {
        fault(&crowd, &format!("account={PROVIDER} method=make_hold_invoice times={} {effect}", TRIES / 2));
    }
    crowd.each(TRIES, |index, number| {
        let customer = &crowd.customers[index];
        let id = customer.post(&customer.draft("execute-tool", &note(&format!("unpaid-{number}"))));
        let answers = customer.answers(&id);
        assert_eq!((answers.error().as_str(), answers.statuses()), ("busy", vec!["error"]), "{answers:#?}");
    });
    let (paid, unserved) = crowd.pay_some("paid");
    crowd.report(case, &paid, unserved);
}

fn an_invoice_over_nothing_is_not_passed_on() {
    unquotable("invoice over nothing", ["no-amount", "zero-amount"]);
}

fn an_invoice_in_the_wrong_unit_is_not_passed_on() {
    unquotable("invoice in the wrong unit", ["thousandfold", "thousandth"]);
}

fn a_payment_that_is_told_many_times_is_one_payment() {
    let crowd = Crowd::new(Market::holding(), &[]);
    let (link, notices) = listen(&crowd, &[NOTICE]);
    for method in ["lookup_invoice", "settle_hold_invoice", "pay_invoice"] {
        fault(&crowd, &format!("method={method} {ALWAYS} twice"));
    }
    let jobs = crowd.quotes("paid", TRIES);
    let mut unserved = crowd.pay(&jobs);
    let told = notices.look(<[Event]>::to_vec);
    assert!(told.len() >= 2 * TRIES, "each is told twice: {}", told.len());
    for _ in 0..3 {
        told.iter().for_each(|notice| link.send(&json!(["EVENT", notice])));
    }
    link.publish(&told[0]);
    crowd.customers.iter().for_each(Customer::barrier);
    let after = crowd.quotes("after", CUSTOMERS);
    unserved += crowd.pay(&after);
    let earned = PRICE * (TRIES + CUSTOMERS) as u64;
    crowd.market.wait_for_balances(earned, earned);
    let all = [jobs, after].concat();
    crowd.report("payment told many times", &all, unserved);
}

fn an_invoice_is_for_one_call() {
    let crowd = Crowd::new(Market::plain(), &[]);
    let jobs = crowd.quotes("paid-first", CUSTOMERS);
    let again = |name: &str| {
        fault(&crowd, &format!("account={PROVIDER} method=make_invoice times={} same-invoice", TRIES / 2));
        crowd.each(TRIES / 2, |index, number| {
            let customer = &crowd.customers[index];
            let id = customer.post(&customer.draft("execute-tool", &note(&format!("unpaid-{name}-{number}"))));
            let answers = customer.answers(&id);
            assert_eq!((answers.error().as_str(), answers.statuses()), ("busy", vec!["error"]), "{answers:#?}");
        });
    };
    again("before");
    let mut unserved = crowd.pay(&jobs);
    // Now the wallet says of it that it is paid, which it is, for another call.
    again("after");
    let (mut paid, more) = crowd.pay_some("paid");
    unserved += more;
    paid.extend(jobs);
    crowd.report("one invoice for two calls", &paid, unserved);
}

fn what_a_stranger_says_in_a_wallets_name_is_no_payment() {
    let crowd = Crowd::new(Market::plain(), &[]);
    let (link, requests) = listen(&crowd, &[WALLET_REQUEST]);
    fault(&crowd, &format!("account={PROVIDER} method=lookup_invoice {ALWAYS} stranger-settles"));
    let jobs = crowd.quotes("unpaid", TRIES);
    // Who asks the wallet can be seen on the relay, and told what was not asked.
    let asked = requests.look(<[Event]>::to_vec);
    let client = asked.iter().find(|event| !event.pubkey.is_empty()).unwrap();
    let stranger = Keys::generate();
    for job in &jobs {
        let hash = job.invoice.parse::<Invoice>().unwrap().hash.to_string();
        let paid = json!({ "type": "incoming", "state": "settled", "payment_hash": hash, "amount": PRICE * 1000,
            "settled_at": 1, "invoice": job.invoice });
        let notice = json!({ "notification_type": "payment_received", "notification": paid }).to_string();
        let answer = json!({ "result_type": "lookup_invoice", "error": null, "result": paid }).to_string();
        for (kind, text) in [(NOTICE, notice), (WALLET_ANSWER, answer)] {
            let hidden = sealed::encrypt(&stranger, &client.pubkey, &text);
            let draft = Draft::new(kind, hidden).tag(&["p", &client.pubkey]).tag(&["e", &client.id]);
            link.publish(&draft.sign(&stranger));
        }
    }
    let (paid, unserved) = crowd.pay_some("paid");
    crowd.all_wait(&jobs);
    crowd.report("wallet's answer by a stranger", &paid, unserved);
}

fn what_the_wallet_does_not_confirm_is_no_payment() {
    let crowd = Crowd::new(Market::plain(), &[]);
    let (_link, notices) = listen(&crowd, &[NOTICE]);
    fault(&crowd, &format!("account={PROVIDER} method=lookup_invoice {ALWAYS} unsettled"));
    let jobs = crowd.quotes("job", TRIES);
    crowd.each_of(&jobs, |_, job| crowd.market.pay(&job.invoice).unwrap());
    until("the wallet says that it was paid", PATIENCE, || notices.look(<[Event]>::len) >= TRIES);
    crowd.customers.iter().for_each(Customer::barrier);
    crowd.all_wait(&jobs);
    assert_eq!(crowd.market.world.effects(), [""; 0], "it ran before the wallet had confirmed it");
    // Once it confirms them, they are served.
    crowd.market.bank.faults().clear();
    let unserved = crowd.unserved(&jobs);
    crowd.report("told, but not confirmed", &jobs, unserved);
}
