//! Our connector at a real LNbits from PyPI, whose Lightning node is only played. What was paid is checked on both sides.

#![cfg(unix)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../rialto/tests/interop/peers.rs"]
mod peers;

use peers::Peers;
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::secret::{Preimage, Secret};
use rialto_payment::wallet::{Abilities, Error, Order, Payment, Standing, Wallet};
use rialto_wallet::reference;
use serde_json::Value;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// It imports a lot, and makes its database first.
const START: Duration = Duration::from_secs(120);

/// From the text of BOLT 11: nobody has its preimage.
const FOREIGN: &str = "lnbc2500u1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdq5xysxxatsyp3k7enxv4jsxqzpu9qrsgquk0rl77nj30yxdy8j9vdx85fkpmdla2087ne0xh8nhedh8w27kyke0lp53ut353s06fv3qfegext0eh0ymjpf39tuven09sam30g4vgpfna3rh";

struct Server {
    _child: Child,
    ready: Value,
}

impl Server {
    async fn start(peers: &Peers) -> Self {
        let command = peers.lnbits();
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the peer starts");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = tokio::time::timeout(START, lines.next_line()).await.expect("it starts in time").unwrap();
        let mut said: Value = serde_json::from_str(&line.expect("it says where it is")).unwrap();
        Self { _child: child, ready: said["ready"].take() }
    }

    fn open(&self, wallet: &str, key: &str) -> Arc<dyn Wallet> {
        let (url, key) = (self.ready["url"].as_str().unwrap(), self.ready[wallet][key].as_str().unwrap());
        reference::open(&Secret::new(format!("lnbits+{url}?key={key}"))).unwrap().wallet()
    }
}

fn sat(sat: u64) -> Msat {
    Msat::from_sat(sat).unwrap()
}

fn order(amount: Msat) -> Order {
    Order { amount, memo: "a call".to_owned(), expiry: 600 }
}

#[tokio::test(flavor = "multi_thread")]
async fn money_goes_from_one_wallet_of_lnbits_to_another() {
    let Some(peers) = Peers::installed() else { return };
    let server = Server::start(&peers).await;
    let (seller, buyer) = (server.open("seller", "invoice"), server.open("buyer", "admin"));
    assert_eq!(seller.abilities().await, Ok(Abilities { hold: false, pay: false }), "with the key to receive");
    assert_eq!(buyer.abilities().await, Ok(Abilities { hold: false, pay: true }));
    assert_eq!((seller.balance().await, buyer.balance().await), (Ok(Msat::ZERO), Ok(sat(1000))));

    let invoice = seller.make(&order(sat(21))).await.unwrap();
    assert_eq!(invoice.description.as_deref(), Some("a call"));
    assert_eq!(invoice.expires - invoice.made, 600);
    assert_eq!(seller.look_up(invoice.hash).await, Ok(Standing::Open));
    assert_eq!(buyer.look_up(invoice.hash).await, Ok(Standing::Missing), "it is not the buyer's");
    assert_eq!(buyer.look_up_payment(invoice.hash).await, Ok(Payment::Not));
    let receipt = buyer.pay(&invoice, sat(1)).await.unwrap();
    assert!(receipt.preimage.as_ref().is_none_or(|preimage| preimage.hash() == invoice.hash));
    assert_eq!(seller.look_up(invoice.hash).await, Ok(Standing::Settled { amount: sat(21) }));
    assert_eq!(buyer.look_up_payment(invoice.hash).await, Ok(Payment::Paid(receipt.clone())));
    assert_eq!(seller.look_up_payment(invoice.hash).await, Ok(Payment::Not), "what came in did not go out");
    assert_eq!(buyer.look_up(invoice.hash).await, Ok(Standing::Missing), "what went out did not come in");
    // It refuses to pay it again; it is paid all the same.
    assert_eq!(buyer.pay(&invoice, sat(1)).await, Ok(receipt));
    assert_eq!((seller.balance().await, buyer.balance().await), (Ok(sat(21)), Ok(sat(979))));

    let dear = seller.make(&order(sat(5000))).await.unwrap();
    assert_eq!(buyer.pay(&dear, sat(1)).await, Err(Error::Insufficient));
    let foreign: Invoice = FOREIGN.parse().unwrap();
    assert!(buyer.pay(&foreign, sat(1)).await.is_err());
    assert!(matches!(seller.pay(&dear, sat(1)).await, Err(Error::Refused(_))), "the key to receive pays nothing");
    assert!(matches!(seller.make(&order(Msat::new(1500).unwrap())).await, Err(Error::Unsupported(_))));
    assert!(matches!(seller.hold(&order(sat(1)), dear.hash).await, Err(Error::Unsupported(_))));
    assert_eq!(seller.look_up(Preimage::new([1; 32]).hash()).await, Ok(Standing::Missing));
    assert_eq!((seller.balance().await, buyer.balance().await), (Ok(sat(21)), Ok(sat(979))));

    let url = server.ready["url"].as_str().unwrap().to_owned();
    let stranger = reference::open(&Secret::new(format!("lnbits+{url}?key=nonsense"))).unwrap().wallet();
    assert!(matches!(stranger.balance().await, Err(Error::Refused(_))));
    assert!(matches!(stranger.make(&order(sat(1))).await, Err(Error::Refused(_))));
    drop(server);
}

#[tokio::test]
async fn a_server_that_is_not_there_was_not_asked() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let wallet = reference::open(&Secret::new(format!("lnbits+http://{address}?key=abc"))).unwrap().wallet();
    let invoice: Invoice = FOREIGN.parse().unwrap();
    assert!(matches!(wallet.pay(&invoice, sat(1)).await, Err(Error::Unreachable(_))));
    assert!(matches!(wallet.balance().await, Err(Error::Unreachable(_))));
}
