//! Wallets that err or lie, and those who speak in the name of one.

use nostr::key::Keys;
use rialto_payment::invoice::Invoice;
use serde_json::json;

use super::super::crowd::{CUSTOMERS, Count, Crowd, PRICE, note};
use crate::market::{Market, PROVIDER};
use crate::nostr_side::PATIENCE;
use crate::nostr_side::client::Client;
use crate::nostr_side::customer::Customer;
use crate::nostr_side::event::{Draft, Event};
use crate::nostr_side::log::{Log, until};
use crate::nostr_side::sealed;

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
fn unquotable(tries: usize, faults: [&str; 2]) -> Count {
    let crowd = Crowd::new(Market::holding(), &[]);
    for effect in faults {
        fault(&crowd, &format!("account={PROVIDER} method=make_hold_invoice times={} {effect}", tries / 2));
    }
    crowd.each(tries, |index, number| {
        let customer = &crowd.customers[index];
        let id = customer.post(&customer.draft("execute-tool", &note(&format!("unpaid-{number}"))));
        let answers = customer.answers(&id);
        assert_eq!((answers.error().as_str(), answers.statuses()), ("busy", vec!["error"]), "{answers:#?}");
    });
    let (paid, unserved) = crowd.pay_some("paid");
    crowd.count(&paid, unserved)
}

pub(super) fn an_invoice_over_nothing(tries: usize) -> Count {
    unquotable(tries, ["no-amount", "zero-amount"])
}

pub(super) fn an_invoice_in_the_wrong_unit(tries: usize) -> Count {
    unquotable(tries, ["thousandfold", "thousandth"])
}

pub(super) fn a_payment_told_many_times(tries: usize) -> Count {
    let crowd = Crowd::new(Market::holding(), &[]);
    let (link, notices) = listen(&crowd, &[NOTICE]);
    for method in ["lookup_invoice", "settle_hold_invoice", "pay_invoice"] {
        fault(&crowd, &format!("method={method} {ALWAYS} twice"));
    }
    let jobs = crowd.quotes("paid", tries);
    let mut unserved = crowd.pay(&jobs);
    let told = notices.look(<[Event]>::to_vec);
    assert!(told.len() >= 2 * tries, "each is told twice: {}", told.len());
    for _ in 0..3 {
        told.iter().for_each(|notice| link.send(&json!(["EVENT", notice])));
    }
    link.publish(&told[0]);
    crowd.customers.iter().for_each(Customer::barrier);
    let after = crowd.quotes("after", CUSTOMERS);
    unserved += crowd.pay(&after);
    let earned = PRICE * (tries + CUSTOMERS) as u64;
    crowd.market.wait_for_balances(earned, earned);
    let all = [jobs, after].concat();
    crowd.count(&all, unserved)
}

pub(super) fn one_invoice_for_two_calls(tries: usize) -> Count {
    let crowd = Crowd::new(Market::plain(), &[]);
    let jobs = crowd.quotes("paid-first", CUSTOMERS);
    let again = |name: &str| {
        fault(&crowd, &format!("account={PROVIDER} method=make_invoice times={} same-invoice", tries / 2));
        crowd.each(tries / 2, |index, number| {
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
    crowd.count(&paid, unserved)
}

pub(super) fn a_wallets_answer_by_a_stranger(tries: usize) -> Count {
    let crowd = Crowd::new(Market::plain(), &[]);
    let (link, requests) = listen(&crowd, &[WALLET_REQUEST]);
    fault(&crowd, &format!("account={PROVIDER} method=lookup_invoice {ALWAYS} stranger-settles"));
    let jobs = crowd.quotes("unpaid", tries);
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
    crowd.count(&paid, unserved)
}

pub(super) fn told_but_not_confirmed(tries: usize) -> Count {
    let crowd = Crowd::new(Market::plain(), &[]);
    let (_link, notices) = listen(&crowd, &[NOTICE]);
    fault(&crowd, &format!("account={PROVIDER} method=lookup_invoice {ALWAYS} unsettled"));
    let jobs = crowd.quotes("job", tries);
    crowd.each_of(&jobs, |_, job| crowd.market.pay(&job.invoice).unwrap());
    until("the wallet says that it was paid", PATIENCE, || notices.look(<[Event]>::len) >= tries);
    crowd.customers.iter().for_each(Customer::barrier);
    crowd.all_wait(&jobs);
    assert_eq!(crowd.market.world.effects(), [""; 0], "it ran before the wallet had confirmed it");
    // Once it confirms them, they are served.
    crowd.market.bank.faults().clear();
    let unserved = crowd.unserved(&jobs);
    crowd.count(&jobs, unserved)
}
