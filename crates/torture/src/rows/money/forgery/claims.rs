//! What customers say of payments: none of it is one.

use nostr::key::Keys;
use rialto_payment::amount::Msat;
use rialto_payment::secret::Preimage;
use rialto_payment::wallet::Order;
use rialto_wallet::testing::sign_invoice;
use serde_json::json;

use super::super::crowd::{CUSTOMERS, Count, Crowd, Job, PRICE, note};
use crate::market::Market;
use crate::nostr_side::customer::{Customer, FEEDBACK, RESPONSE};
use crate::nostr_side::event::{Draft, hex_key};
use crate::nostr_side::sealed;

/// Which of several variants a number has: every customer tries each, and a few tries have all.
fn turn(number: usize, variants: usize) -> usize {
    (number + number / CUSTOMERS) % variants
}

/// The receipt of NIP-57 for a call, as the wallet of whoever was paid would write it.
fn receipt(customer: &Customer, job: &Job, invoice: &str, preimage: &str) -> Draft {
    let msat = (PRICE * 1000).to_string();
    let provider = customer.provider.as_str();
    let wish = Draft::new(9734, "").tag(&["p", provider]).tag(&["e", &job.id]).tag(&["amount", &msat]);
    Draft::new(9735, "")
        .tag(&["p", provider])
        .tag(&["P", &customer.pubkey()])
        .tag(&["e", &job.id])
        .tag(&["bolt11", invoice])
        .tag(&["preimage", preimage])
        .tag(&["description", &wish.sign(&customer.keys).json()])
}

/// Says something to the provider, by turns in the open and sealed.
fn tell(customer: &Customer, signer: &Keys, draft: &Draft, number: usize) {
    let event = match number % 2 {
        0 => draft.sign(signer),
        _ => sealed::send(signer, &customer.provider, draft).1,
    };
    let (taken, why) = customer.link.publish(&event);
    assert!(taken, "the relay refused a forgery: {why}");
}

/// Receipts for calls that wait; afterwards others are paid in earnest.
fn receipts(tries: usize, forge: &(dyn Fn(&Customer, &Job) + Sync)) -> Count {
    let crowd = Crowd::new(Market::plain(), &[]);
    let jobs = crowd.quotes("unpaid", tries);
    crowd.each_of(&jobs, forge);
    let (paid, unserved) = crowd.pay_some("paid");
    crowd.all_wait(&jobs);
    let earned = PRICE * paid.len() as u64;
    crowd.market.wait_for_balances(earned, earned);
    crowd.count(&paid, unserved)
}

pub(super) fn receipt_by_the_customer(tries: usize) -> Count {
    receipts(tries, &|customer, job| {
        let draft = receipt(customer, job, &job.invoice, &"7".repeat(64));
        tell(customer, &customer.keys, &draft, job.number);
    })
}

pub(super) fn receipt_by_a_stranger(tries: usize) -> Count {
    receipts(tries, &|customer, job| {
        let draft = receipt(customer, job, &job.invoice, &"7".repeat(64));
        tell(customer, &Keys::generate(), &draft, job.number);
    })
}

pub(super) fn receipt_for_another_invoice(tries: usize) -> Count {
    receipts(tries, &|customer, job| {
        let preimage = Preimage::generate().unwrap();
        let order = Order { amount: Msat::from_sat(PRICE).unwrap(), memo: job.id.clone(), expiry: 600 };
        let other = sign_invoice(&order, preimage.hash()).unwrap();
        let draft = receipt(customer, job, &other, &preimage.reveal_hex());
        tell(customer, &customer.keys, &draft, job.number);
    })
}

pub(super) fn another_calls_payment(tries: usize) -> Count {
    let crowd = Crowd::new(Market::plain(), &[]);
    let first = crowd.quotes("paid-before", CUSTOMERS);
    let preimages = crowd.each_of(&first, |_, job| {
        let receipt = crowd.market.pay(&job.invoice).unwrap();
        receipt.preimage.unwrap().reveal_hex()
    });
    let mut unserved = crowd.unserved(&first);
    let jobs = crowd.quotes("unpaid", tries);
    crowd.each_of(&jobs, |customer, job| {
        let (paid, preimage) = (&first[job.customer], &preimages[job.customer]);
        let neighbour = &jobs[(job.number + 1) % tries];
        assert_ne!(neighbour.customer, job.customer);
        let offer = |request: &str, token: &str| {
            let content = json!({ "request": request, "token": token });
            customer.ask_sealed("pay-execution", &content).error()
        };
        match turn(job.number, 5) {
            // The proof of a payment, which is real, but was for something else.
            0 => tell(customer, &customer.keys, &receipt(customer, job, &paid.invoice, preimage), job.number),
            1 => assert_eq!(offer(&job.id, preimage), "invalid_input"),
            // For a call of somebody else, and for one that was done.
            2 => assert_eq!(offer(&neighbour.id, "cashuBo2"), "payment_refused"),
            3 => assert_eq!(offer(&paid.id, "cashuBo2"), "payment_refused"),
            _ => {
                let draft = customer.draft("execute-tool", &note("unpaid-again"));
                let draft = draft.tag(&["e", &paid.id]).tag(&["invoice", &paid.invoice]).tag(&["preimage", preimage]);
                let id = customer.post(&draft);
                assert_ne!(customer.wait_for_status(&id, "payment-required").tag("invoice"), paid.invoice);
            }
        }
    });
    let (mut paid, more) = crowd.pay_some("paid");
    unserved += more;
    paid.extend(first);
    crowd.all_wait(&jobs);
    crowd.count(&paid, unserved)
}

/// Whatever a customer can write into a request, or beside it.
pub(super) fn what_a_customer_says(tries: usize) -> Count {
    let crowd = Crowd::new(Market::holding(), &[]);
    let preimage = Preimage::generate().unwrap();
    let order = Order { amount: Msat::from_sat(PRICE).unwrap(), memo: String::new(), expiry: 600 };
    let (invoice, preimage) = (sign_invoice(&order, preimage.hash()).unwrap(), preimage.reveal_hex());
    let msat = (PRICE * 1000).to_string();
    let ids = crowd.each(tries, |index, number| {
        let customer = &crowd.customers[index];
        let tag = format!("unpaid-{number}");
        let mut content = note(&tag);
        let turn = turn(number, 10);
        if turn == 0 {
            content["metadata"] = json!({ "paid": true, "amount": PRICE, "preimage": preimage });
        }
        let draft = customer.draft("execute-tool", &content);
        let draft = match turn {
            1 => draft.tag(&["preimage", &preimage]),
            2 => draft.tag(&["amount", &msat, &invoice]),
            3 => draft.tag(&["invoice", &invoice]).tag(&["bolt11", &invoice]),
            4 => draft.tag(&["status", "success"]).tag(&["paid", "true"]),
            5 => draft.tag(&["bid", "0"]).tag(&["amount", "0"]).tag(&["price", "0"]),
            6 => draft.tag(&["cashu", "cashuBo2"]).tag(&["token", "cashuBo2"]),
            _ => draft,
        };
        let id = customer.post(&draft);
        customer.wait(&id, "price", |event| event.kind == FEEDBACK);
        let me = hex_key(&customer.keys);
        let about = |kind: u32, text: &str| {
            let draft = Draft::new(kind, text).tag(&["e", &id]).tag(&["p", &customer.provider]).tag(&["p", &me]);
            draft.tag(&["amount", &msat, &invoice])
        };
        match turn {
            7 => tell(customer, &customer.keys, &about(FEEDBACK, "").tag(&["status", "success"]), number),
            8 => tell(customer, &customer.keys, &about(FEEDBACK, "").tag(&["status", "payment-accepted"]), number),
            9 => {
                tell(customer, &customer.keys, &about(RESPONSE, "{\"paid\":true}").tag(&["status", "success"]), number);
            }
            _ => {}
        }
        (index, id)
    });
    let (paid, unserved) = crowd.pay_some("paid");
    for (customer, id) in ids {
        let answers = crowd.customers[customer].so_far(&id);
        let words = answers.statuses();
        assert!(words == ["payment-required"] || words == ["error"], "{answers:#?}");
    }
    crowd.count(&paid, unserved)
}
