//! Our connector for LND against a server that answers as LND's documentation of its REST interface says.
//!
//! **No LND runs here**: it is not to be had without a network. What is shown is that we ask what is documented, read what
//! is documented, and believe no more of it than can be checked; not that a node of today answers like that.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "lnd/node.rs"]
mod node;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use node::{Node, Reply, Then, lines, reply};
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::secret::{PaymentHash, Preimage, Secret};
use rialto_payment::wallet::{Abilities, Error, Order, Payment, Receipt, Standing, Wallet};
use rialto_wallet::reference;
use rialto_wallet::testing::sign_invoice;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto};

fn sat(sat: u64) -> Msat {
    Msat::from_sat(sat).unwrap()
}

fn order() -> Order {
    Order { amount: sat(10), memo: "a call".to_owned(), expiry: 600 }
}

fn preimage() -> Preimage {
    Preimage::new([6; 32])
}

fn hash() -> PaymentHash {
    preimage().hash()
}

fn invoice_over(amount: Msat, hash: PaymentHash) -> String {
    sign_invoice(&Order { amount, ..order() }, hash).unwrap()
}

fn invoice() -> Invoice {
    invoice_over(sat(10), hash()).parse().unwrap()
}

fn refused(code: u64, message: &str) -> Reply {
    reply(500, json!({ "code": code, "message": message, "details": [] }))
}

async fn open() -> (Node, Arc<dyn Wallet>) {
    let node = Node::start(None).await;
    let address = format!("lnd+http://{}?macaroon=0201abcd", node.address);
    let wallet = reference::open(&Secret::new(address)).unwrap().wallet();
    (node, wallet)
}

#[tokio::test]
async fn invoices_are_asked_for_as_documented_and_checked() {
    let (node, wallet) = open().await;
    let made = |text: String| reply(200, json!({ "r_hash": "", "payment_request": text, "add_index": "1" }));
    node.will([made(invoice_over(sat(10), hash())), made(invoice_over(sat(10), hash()))]);
    assert_eq!(wallet.make(&order()).await.unwrap().hash, hash());
    assert_eq!(wallet.hold(&order(), hash()).await.unwrap().amount, Some(sat(10)));
    let asked = node.asked();
    let wanted = json!({ "memo": "a call", "value_msat": "10000", "expiry": "600" });
    assert_eq!((asked[0].line.as_str(), &asked[0].body), ("POST /v1/invoices", &wanted));
    assert_eq!(asked[0].macaroon.as_deref(), Some("0201abcd"));
    let mut wanted = wanted;
    wanted["hash"] = json!(STANDARD.encode(hash().0));
    assert_eq!((asked[1].line.as_str(), &asked[1].body), ("POST /v2/invoices/hodl", &wanted));

    let other = invoice_over(sat(10), PaymentHash([1; 32]));
    node.will([made(invoice_over(sat(11), hash())), made("nonsense".to_owned()), reply(200, json!({})), made(other)]);
    for _ in 0..3 {
        assert!(matches!(wallet.make(&order()).await, Err(Error::Malformed(_))));
    }
    assert!(matches!(wallet.hold(&order(), hash()).await, Err(Error::Malformed(_))));
    node.will([refused(2, "permission denied")]);
    assert_eq!(wallet.make(&order()).await, Err(Error::Refused("permission denied".to_owned())));
}

#[tokio::test]
async fn an_invoice_is_where_its_state_says() {
    let (node, wallet) = open().await;
    let state = |state: &str| reply(200, json!({ "state": state, "value_msat": "10000", "amt_paid_msat": "10500" }));
    let paid = Msat::new(10_500).unwrap();
    for (answer, standing) in [
        (state("OPEN"), Standing::Open),
        (state("ACCEPTED"), Standing::Held { amount: paid }),
        (state("SETTLED"), Standing::Settled { amount: paid }),
        (state("CANCELED"), Standing::Over),
        (reply(404, json!({ "code": 5, "message": "there are no existing invoices" })), Standing::Missing),
        (refused(2, "unable to locate invoice"), Standing::Missing),
    ] {
        node.will([answer]);
        assert_eq!(wallet.look_up(hash()).await, Ok(standing));
    }
    let line = format!("GET /v2/invoices/lookup?payment_hash={}", URL_SAFE.encode(hash().0));
    assert!(node.asked().iter().all(|asked| asked.line == line));
    for (answer, check) in [
        (state("ELSEWHERE"), (|error| matches!(error, Error::Malformed(_))) as fn(&Error) -> bool),
        (refused(2, "permission denied"), |error| matches!(error, Error::Refused(_))),
        (Reply { status: 502, lines: Vec::new(), then: Then::End }, |error| matches!(error, Error::Unknown(_))),
    ] {
        node.will([answer]);
        let error = wallet.look_up(hash()).await.unwrap_err();
        assert!(check(&error), "{error:?}");
    }
}

#[tokio::test]
async fn held_money_is_decided_about_once() {
    let (node, wallet) = open().await;
    let state = |state: &str| reply(200, json!({ "state": state, "amt_paid_msat": "10000" }));
    node.will([reply(200, json!({})), reply(200, json!({}))]);
    wallet.settle(&preimage()).await.unwrap();
    wallet.cancel(hash()).await.unwrap();
    let asked = node.asked();
    assert_eq!(asked[0].line, "POST /v2/invoices/settle");
    assert_eq!(asked[0].body, json!({ "preimage": STANDARD.encode(preimage().reveal()) }));
    assert_eq!(asked[1].line, "POST /v2/invoices/cancel");
    assert_eq!(asked[1].body, json!({ "payment_hash": STANDARD.encode(hash().0) }));
    node.will([refused(2, "invoice already settled"), state("SETTLED")]);
    wallet.settle(&preimage()).await.unwrap();
    node.will([refused(2, "invoice already canceled"), state("CANCELED")]);
    wallet.cancel(hash()).await.unwrap();
    node.will([
        refused(2, "invoice still open"),
        state("OPEN"),
        refused(2, "invoice already settled"),
        state("SETTLED"),
    ]);
    assert!(matches!(wallet.settle(&preimage()).await, Err(Error::Refused(_))));
    assert!(matches!(wallet.cancel(hash()).await, Err(Error::Refused(_))));
}

fn told(status: &str, more: &Value) -> Value {
    let mut result = json!({ "payment_hash": hash().to_string(), "status": status, "fee_msat": "1500" });
    for (key, value) in more.as_object().unwrap() {
        result[key] = value.clone();
    }
    json!({ "result": result })
}

#[tokio::test]
async fn a_payment_ends_as_the_node_says_in_the_end() {
    let (node, wallet) = open().await;
    let right = json!({ "payment_preimage": preimage().reveal_hex() });
    let receipt = Receipt { preimage: Some(preimage()), fee: Msat::new(1500).unwrap() };
    let in_flight = told("IN_FLIGHT", &json!({ "payment_preimage": "0".repeat(64) }));
    node.will([lines([in_flight.clone(), told("SUCCEEDED", &right)])]);
    assert_eq!(wallet.pay(&invoice(), sat(3)).await, Ok(receipt.clone()));
    let asked = node.asked();
    assert_eq!(asked[0].line, "POST /v2/router/send");
    assert_eq!(asked[0].body["payment_request"], json!(invoice().text));
    assert_eq!(asked[0].body["fee_limit_msat"], json!("3000"));

    // Paid before: it is refused, and looked up.
    node.will([refused(6, "invoice is already paid"), lines([told("SUCCEEDED", &right)])]);
    assert_eq!(wallet.pay(&invoice(), sat(3)).await, Ok(receipt.clone()));
    assert_eq!(node.asked()[1].line, format!("GET /v2/router/track/{}", URL_SAFE.encode(hash().0)));
    // The same, said on the stream.
    let error = json!({ "error": { "code": 6, "message": "payment is in transition" } });
    node.will([lines([error]), Reply { then: Then::Silence, ..lines([in_flight.clone()]) }]);
    assert!(matches!(wallet.pay(&invoice(), sat(3)).await, Err(Error::Unknown(_))));

    let failed = |reason: &str| lines([told("FAILED", &json!({ "failure_reason": reason }))]);
    node.will([failed("FAILURE_REASON_INSUFFICIENT_BALANCE"), failed("FAILURE_REASON_NO_ROUTE")]);
    assert_eq!(wallet.pay(&invoice(), sat(3)).await, Err(Error::Insufficient));
    assert!(matches!(wallet.pay(&invoice(), sat(3)).await, Err(Error::Refused(_))));
    // Refused, and nothing known of it.
    node.will([refused(2, "invoice expired"), reply(404, json!({ "code": 5, "message": "payment isn't initiated" }))]);
    assert_eq!(wallet.pay(&invoice(), sat(3)).await, Err(Error::Refused("invoice expired".to_owned())));
    // Cut off in the middle, or before any answer, or wrong: it may have been paid.
    node.will([lines([in_flight])]);
    assert!(matches!(wallet.pay(&invoice(), sat(3)).await, Err(Error::Unknown(_))));
    assert!(matches!(wallet.pay(&invoice(), sat(3)).await, Err(Error::Unknown(_))), "with nothing to say");
    node.will([lines([told("SUCCEEDED", &json!({ "payment_preimage": "11".repeat(32) }))])]);
    assert!(wallet.pay(&invoice(), sat(3)).await.unwrap_err().is_unknown());
}

#[tokio::test]
async fn a_payment_is_looked_up_without_waiting_for_its_end() {
    let (node, wallet) = open().await;
    let right = json!({ "payment_preimage": preimage().reveal_hex() });
    let receipt = Receipt { preimage: Some(preimage()), fee: Msat::new(1500).unwrap() };
    let missing = json!({ "error": { "code": 5, "message": "payment isn't initiated" } });
    for (answer, payment) in [
        (Reply { then: Then::Silence, ..lines([told("IN_FLIGHT", &json!({}))]) }, Payment::Pending),
        (Reply { then: Then::Silence, ..lines([told("INITIATED", &json!({}))]) }, Payment::Pending),
        (lines([told("SUCCEEDED", &right)]), Payment::Paid(receipt)),
        (lines([told("FAILED", &json!({}))]), Payment::Not),
        (lines([missing]), Payment::Not),
    ] {
        node.will([answer]);
        assert_eq!(wallet.look_up_payment(hash()).await, Ok(payment));
    }
}

#[tokio::test]
async fn what_there_is_and_what_one_may_do() {
    let (node, wallet) = open().await;
    let balance = json!({ "balance": "5", "local_balance": { "sat": "5", "msat": "5001" } });
    node.will([reply(200, balance.clone()), reply(200, balance), refused(2, "permission denied")]);
    assert_eq!(wallet.balance().await, Ok(Msat::new(5001).unwrap()));
    assert_eq!(wallet.abilities().await, Ok(Abilities { hold: true, pay: true }));
    assert_eq!(wallet.abilities().await, Ok(Abilities { hold: true, pay: false }), "with a macaroon for invoices");
    let address = node.address;
    drop(node);
    let gone = reference::open(&Secret::new(format!("lnd+http://{address}?macaroon=00"))).unwrap().wallet();
    let closed = async { while !matches!(gone.pay(&invoice(), sat(1)).await, Err(Error::Unreachable(_))) {} };
    tokio::time::timeout(std::time::Duration::from_secs(60), closed).await.expect("nobody listens any more");
}

/// The certificate is like those that LND makes: signed by itself, and that of an authority by what it says.
#[tokio::test]
async fn only_the_node_with_the_certificate_that_was_named_is_asked() {
    let file = |name: &str| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/lnd").join(name);
    let certificate = CertificateDer::from_pem_file(file("tls.cert")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("tls.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let node = Node::start(Some(TlsAcceptor::from(Arc::new(config)))).await;
    let macaroon = std::env::temp_dir().join(format!("rialto-macaroon-{}", std::process::id()));
    std::fs::write(&macaroon, [2, 1, 0xab]).unwrap();
    let open = |cert: &str| {
        let address = format!("lnd+https://{}?macaroon=file:{}{cert}", node.address, macaroon.display());
        reference::open(&Secret::new(address)).unwrap().wallet()
    };
    node.will([reply(200, json!({ "local_balance": { "msat": "7" } }))]);
    let named = open(&format!("&cert=file:{}", file("tls.cert").display()));
    assert_eq!(named.balance().await, Ok(Msat::new(7).unwrap()));
    assert_eq!(node.asked()[0].macaroon.as_deref(), Some("0201ab"));
    for cert in [String::new(), format!("&cert=file:{}", file("other.cert").display())] {
        assert!(matches!(open(&cert).balance().await, Err(Error::Unreachable(_))), "{cert}");
    }
    assert!(node.asked().is_empty(), "the macaroon was shown to nobody else");
    std::fs::remove_file(macaroon).unwrap();
}
