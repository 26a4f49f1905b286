//! Our connector for Nostr Wallet Connect against a wallet service over a real relay, when all goes well and when it does
//! not. What was paid is checked on both sides, by what the network in memory holds and not by what anybody says.
//!
//! The service was written for these tests: its answers have the shapes of the text of NIP-47, not those of one wallet.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "nwc/stage.rs"]
mod stage;

use rialto_payment::secret::Preimage;
use rialto_payment::wallet::{Abilities, Error, Order, Payment, Receipt, Standing, Wallet as _};
use rialto_relay::embedded;
use rialto_wallet::nwc::{Nwc, Patience};
use rialto_wallet::testing::{Course, Style};
use stage::{BUYER, LONG, SELLER, Stage, options, order, sat};
use std::sync::Arc;
use std::time::Duration;

type Tested = tokio::task::JoinHandle<Result<Receipt, Error>>;

fn pay(stage: &Stage, invoice: &rialto_payment::invoice::Invoice) -> Tested {
    let (buyer, invoice) = (stage.buyer.clone(), invoice.clone());
    tokio::spawn(async move { buyer.pay(&invoice, sat(10)).await })
}

#[tokio::test(flavor = "multi_thread")]
async fn money_goes_from_one_to_the_other_with_every_kind_of_wallet() {
    let old = Style { only_nip04: true, no_hold: true, no_state: true, only_lists_payments: true, no_addressee: true };
    for style in [
        Style::default(),
        Style { only_nip04: true, ..Style::default() },
        Style { no_state: true, ..Style::default() },
        Style { only_lists_payments: true, ..Style::default() },
        Style { no_addressee: true, ..Style::default() },
        old,
    ] {
        let stage = Stage::with(options(style, style), embedded::Options::default()).await;
        let abilities = stage.seller.abilities().await.unwrap();
        assert_eq!(abilities, Abilities { hold: !style.no_hold, pay: true }, "{style:?}");
        let invoice = stage.invoice(100).await;
        assert_eq!(invoice.description.as_deref(), Some("a call"));
        assert_eq!(invoice.expires - invoice.made, 600);
        assert_eq!(stage.seller.look_up(invoice.hash).await, Ok(Standing::Open));
        assert_eq!(stage.buyer.look_up_payment(invoice.hash).await, Ok(Payment::Not));
        let receipt = stage.buyer.pay(&invoice, sat(10)).await.unwrap();
        assert_eq!((receipt.fee, receipt.preimage.as_ref().unwrap().hash()), (sat(1), invoice.hash));
        assert_eq!(stage.seller.look_up(invoice.hash).await, Ok(Standing::Settled { amount: sat(100) }));
        assert_eq!(stage.buyer.look_up_payment(invoice.hash).await, Ok(Payment::Paid(receipt.clone())), "{style:?}");
        // The wallet refuses to pay it again; it is paid all the same.
        assert_eq!(stage.buyer.pay(&invoice, sat(10)).await, Ok(receipt));
        assert_eq!(stage.balances(), (1100, 899));
        assert_eq!(stage.buyer.balance().await, Ok(sat(899)));
        assert_eq!(stage.seller.look_up_payment(invoice.hash).await, Ok(Payment::Not), "what came in did not go out");
        assert_eq!(stage.buyer.look_up(Preimage::new([1; 32]).hash()).await, Ok(Standing::Missing));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn held_money_is_taken_or_given_back() {
    let stage = Stage::plain().await;
    for settles in [true, false] {
        let before = stage.balances();
        let preimage = Preimage::generate().unwrap();
        let mut hints = stage.seller.hints().unwrap();
        let invoice = stage.seller.hold(&order(50), preimage.hash()).await.unwrap();
        let payment = pay(&stage, &invoice);
        stage.until(invoice.hash, Standing::Held { amount: sat(50) }).await;
        let hint = tokio::time::timeout(LONG, hints.recv()).await.expect("the wallet tells of it").unwrap();
        assert_eq!(hint, invoice.hash);
        assert_eq!(stage.balances(), (before.0, before.1 - 51), "it is with neither");
        assert_eq!(stage.buyer.look_up_payment(invoice.hash).await, Ok(Payment::Pending));
        // Each of them twice.
        if settles {
            stage.seller.settle(&preimage).await.unwrap();
            stage.seller.settle(&preimage).await.unwrap();
            assert!(matches!(stage.seller.cancel(invoice.hash).await, Err(Error::Refused(_))));
            let receipt = Receipt { preimage: Some(preimage), fee: sat(1) };
            assert_eq!(payment.await.unwrap(), Ok(receipt));
            assert_eq!(stage.balances(), (before.0 + 50, before.1 - 51));
        } else {
            stage.seller.cancel(invoice.hash).await.unwrap();
            stage.seller.cancel(invoice.hash).await.unwrap();
            assert!(matches!(stage.seller.settle(&preimage).await, Err(Error::Refused(_))));
            assert!(matches!(payment.await.unwrap(), Err(Error::Refused(_))));
            assert_eq!(stage.seller.look_up(invoice.hash).await, Ok(Standing::Over));
            assert_eq!(stage.buyer.look_up_payment(invoice.hash).await, Ok(Payment::Not));
            assert_eq!(stage.balances(), before);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_forged_or_sent_twice_changes_nothing() {
    let stage = Stage::plain().await;
    let mut paid = 0;
    let all = "stranger+other-request+other-addressee+wrong-type+twice";
    // What is for others is brought to us only as long as nothing is known of the wallet, so that it has to be the first.
    for fault in ["other-addressee", "stranger", "other-request", "wrong-type", "twice", all] {
        // Each of these says first that it failed.
        for method in ["make_invoice", "pay_invoice", "lookup_invoice"] {
            stage.fault(&format!("method={method} {fault}"));
        }
        let invoice = stage.invoice(10).await;
        let receipt = stage.buyer.pay(&invoice, sat(10)).await.expect(fault);
        assert_eq!(receipt.preimage.unwrap().hash(), invoice.hash, "{fault}");
        assert_eq!(stage.seller.look_up(invoice.hash).await, Ok(Standing::Settled { amount: sat(10) }), "{fault}");
        paid += 1;
        assert_eq!(stage.balances(), (1000 + 10 * paid, 1000 - 11 * paid), "{fault}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_forged_answers_are_no_answer() {
    let stage = Stage::plain().await;
    for fault in ["stranger+lose", "other-request+lose", "wrong-type+lose", "garbage"] {
        stage.fault(&format!("method=get_balance {fault}"));
        assert!(matches!(stage.hasty(BUYER).balance().await, Err(Error::Unknown(_))), "{fault}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invoice_that_was_not_asked_for_is_not_believed() {
    let stage = Stage::plain().await;
    let hash = Preimage::new([5; 32]).hash();
    stage.fault("method=make_invoice wrong-amount");
    assert!(matches!(stage.seller.make(&order(10)).await, Err(Error::Malformed(_))));
    stage.fault("method=make_hold_invoice wrong-amount");
    assert!(matches!(stage.seller.hold(&order(10), Preimage::new([4; 32]).hash()).await, Err(Error::Malformed(_))));
    stage.fault("method=make_hold_invoice wrong-hash");
    assert!(matches!(stage.seller.hold(&order(10), hash).await, Err(Error::Malformed(_))));
    assert!(stage.seller.hold(&order(10), hash).await.is_ok(), "an honest one is");
    let invoice = stage.invoice(10).await;
    stage.fault("method=pay_invoice wrong-preimage");
    let error = stage.buyer.pay(&invoice, sat(10)).await.unwrap_err();
    assert!(matches!(error, Error::Malformed(_)) && error.is_unknown(), "{error}");
    // It was paid, and the look-up says so.
    assert!(matches!(stage.buyer.look_up_payment(invoice.hash).await, Ok(Payment::Paid(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_without_an_answer_is_looked_up() {
    let stage = Stage::plain().await;
    let hasty = stage.hasty(BUYER);
    for fault in ["lose", "delay:600000"] {
        let before = stage.balances();
        let invoice = stage.invoice(20).await;
        stage.fault(&format!("method=pay_invoice {fault}"));
        assert!(matches!(hasty.pay(&invoice, sat(10)).await, Err(Error::Unknown(_))), "{fault}");
        stage.until_payment(invoice.hash, Course::Paid).await;
        let Ok(Payment::Paid(receipt)) = stage.buyer.look_up_payment(invoice.hash).await else { panic!("{fault}") };
        assert_eq!(receipt.preimage.unwrap().hash(), invoice.hash);
        assert_eq!(stage.balances(), (before.0 + 20, before.1 - 21), "paid once: {fault}");
    }
    // One that never reached the wallet may reach it yet, and so is not called off by whoever asked for it.
    let invoice = stage.invoice(20).await;
    stage.fault("method=pay_invoice ignore");
    assert!(matches!(hasty.pay(&invoice, sat(10)).await, Err(Error::Unknown(_))));
    // The wallet may be slow to answer this as well.
    let patient = look_up_patiently(&hasty, invoice.hash).await;
    assert_eq!(patient, Payment::Pending);
    assert_eq!(stage.buyer.look_up_payment(invoice.hash).await, Ok(Payment::Not), "as the wallet sees it");
}

async fn look_up_patiently(wallet: &Nwc, hash: rialto_payment::secret::PaymentHash) -> Payment {
    loop {
        match wallet.look_up_payment(hash).await {
            Err(Error::Unknown(_)) => {}
            other => return other.unwrap(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_is_stuck_ends_as_the_network_ends_it() {
    let stage = Stage::plain().await;
    for arrives in [true, false] {
        let before = stage.balances();
        let invoice = stage.invoice(20).await;
        stage.fault("method=pay_invoice stick");
        assert!(matches!(stage.hasty(BUYER).pay(&invoice, sat(10)).await, Err(Error::Unknown(_))));
        stage.until_payment(invoice.hash, Course::Pending).await;
        assert_eq!(stage.buyer.look_up_payment(invoice.hash).await, Ok(Payment::Pending));
        // Asked again while it is on its way, it is not known either.
        assert!(matches!(stage.buyer.pay(&invoice, sat(10)).await, Err(Error::Unknown(_))));
        stage.wallet.resolve(invoice.hash, arrives);
        let payment = stage.buyer.look_up_payment(invoice.hash).await.unwrap();
        assert_eq!(matches!(payment, Payment::Paid(_)), arrives, "{payment:?}");
        assert_eq!(stage.balances(), if arrives { (before.0 + 20, before.1 - 21) } else { before });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_wallet_says_instead_of_a_result() {
    let stage = Stage::plain().await;
    let invoice = stage.invoice(10).await;
    type Check = fn(&Error) -> bool;
    let refused: Check = |error| matches!(error, Error::Refused(_));
    let cases: [(&str, Check); 8] = [
        ("INSUFFICIENT_BALANCE", |error| *error == Error::Insufficient),
        ("NOT_IMPLEMENTED", |error| matches!(error, Error::Unsupported(_))),
        ("RESTRICTED", refused),
        ("UNAUTHORIZED", refused),
        ("QUOTA_EXCEEDED", refused),
        ("RATE_LIMITED", refused),
        ("PAYMENT_FAILED", refused),
        ("SOMETHING_NEW", refused),
    ];
    for (code, is_right) in cases {
        stage.fault(&format!("method=pay_invoice fail:{code}"));
        let error = stage.buyer.pay(&invoice, sat(10)).await.unwrap_err();
        assert!(is_right(&error), "{code}: {error:?}");
    }
    // Neither what is not known nor what cannot be told is a no.
    stage.fault("method=pay_invoice fail:INTERNAL");
    stage.fault("account=1 method=lookup_invoice fail:INTERNAL");
    assert!(matches!(stage.buyer.pay(&invoice, sat(10)).await, Err(Error::Unknown(_))));
    let dear = stage.invoice(1000).await;
    assert_eq!(stage.buyer.pay(&dear, sat(10)).await, Err(Error::Insufficient), "the fee is on top");
    assert_eq!(stage.balances(), (1000, 1000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wallet_that_cannot_hold_says_so() {
    let style = Style { no_hold: true, ..Style::default() };
    let stage = Stage::with(options(style, style), embedded::Options::default()).await;
    let hash = Preimage::new([5; 32]).hash();
    assert!(matches!(stage.seller.hold(&order(10), hash).await, Err(Error::Unsupported(_))));
    // Without an answer to the question, what it says to everybody counts.
    stage.fault("method=get_info fail:RESTRICTED");
    assert_eq!(stage.seller.abilities().await, Ok(Abilities { hold: false, pay: true }));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invoice_expires_and_what_is_held_comes_back_in_the_end() {
    let mut world = options(Style::default(), Style::default());
    world.hold_limit = Some(Duration::from_millis(200));
    let stage = Stage::with(world, embedded::Options::default()).await;
    let late = stage.seller.make(&Order { expiry: 1, ..order(10) }).await.unwrap();
    stage.until(late.hash, Standing::Over).await;
    assert!(matches!(stage.buyer.pay(&late, sat(10)).await, Err(Error::Refused(_))));
    let preimage = Preimage::generate().unwrap();
    let held = stage.seller.hold(&order(10), preimage.hash()).await.unwrap();
    assert!(matches!(pay(&stage, &held).await.unwrap(), Err(Error::Refused(_))));
    assert_eq!(stage.seller.look_up(held.hash).await, Ok(Standing::Over));
    assert!(matches!(stage.seller.settle(&preimage).await, Err(Error::Refused(_))));
    assert_eq!(stage.balances(), (1000, 1000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_goes_and_comes_back_costs_nobody_anything() {
    let Stage { relay, wallet, seller, .. } = Stage::plain().await;
    // The answer to a payment may be lost with the connection, and is not waited for long.
    let patience = Patience { pay: Duration::from_secs(5), other: LONG };
    let buyer = Arc::new(Nwc::open(&wallet.uri(BUYER).unwrap(), patience).unwrap());
    let preimage = Preimage::generate().unwrap();
    let invoice = seller.hold(&order(50), preimage.hash()).await.unwrap();
    let payment = {
        let (buyer, invoice) = (buyer.clone(), invoice.clone());
        tokio::spawn(async move { buyer.pay(&invoice, sat(10)).await })
    };
    let held = async { while seller.look_up(invoice.hash).await != Ok(Standing::Held { amount: sat(50) }) {} };
    tokio::time::timeout(LONG, held).await.expect("the money is held");
    let listen = relay.address();
    relay.stop().await;
    // Asked while nobody is there.
    let settled = {
        let (seller, preimage) = (seller.clone(), preimage.clone());
        tokio::spawn(async move { seller.settle(&preimage).await })
    };
    let relay = embedded::Relay::start(embedded::Options { listen, ..Default::default() }).await.unwrap();
    // An answer may have been lost with the connection; then asking again does no harm.
    if let Err(error) = settled.await.unwrap() {
        assert!(error.is_temporary(), "{error}");
        let again = async { while seller.settle(&preimage).await.is_err() {} };
        tokio::time::timeout(LONG, again).await.expect("it settles");
    }
    match payment.await.unwrap() {
        Ok(receipt) => assert_eq!(receipt.preimage, Some(preimage)),
        Err(error) => {
            assert!(error.is_unknown(), "{error}");
            assert!(matches!(buyer.look_up_payment(invoice.hash).await, Ok(Payment::Paid(_))));
        }
    }
    let of = |account| wallet.balance(account).unwrap();
    assert_eq!((of(SELLER), of(BUYER), wallet.total()), (sat(1050), sat(949), sat(2000)));
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_no_relay_takes_was_not_made() {
    let limits = embedded::Limits { max_event_bytes: 2000, ..Default::default() };
    let relay = embedded::Options { limits, ..Default::default() };
    let stage = Stage::with(options(Style::default(), Style::default()), relay).await;
    let order = Order { memo: "x".repeat(2500), ..order(10) };
    assert!(matches!(stage.seller.make(&order).await, Err(Error::Unreachable(_))));
    // And where no relay is at all.
    let uri = stage.wallet.uri(BUYER).unwrap();
    stage.relay.stop().await;
    let nobody = Nwc::open(&uri, Patience { pay: LONG, other: LONG }).unwrap();
    let error = nobody.balance().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)) && !error.is_unknown(), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_secret_shows() {
    let stage = Stage::plain().await;
    let uri = stage.wallet.uri(BUYER).unwrap();
    let secret = uri.reveal().split("secret=").nth(1).unwrap();
    let shown = format!("{:?} {} {:?}", stage.buyer, stage.buyer.name(), uri);
    assert!(!shown.contains(secret) && shown.contains(&stage.relay.url()), "{shown}");
}
