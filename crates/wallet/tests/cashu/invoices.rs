//! Lightning in both directions, through the mint.

use super::mint::Mint;
use super::peers::Peers;
use super::scene::{Ours, eventually, mint, refused, sat};
use rialto_payment::invoice::Invoice;
use rialto_payment::secret::PaymentHash;
use rialto_payment::wallet::{Abilities, Error, Order, Payment, Standing, Wallet as _};

async fn invoice(ours: &Ours, amount: u64) -> Invoice {
    let order = Order { amount: sat(amount), memo: "a call".into(), expiry: 600 };
    ours.wallet().make(&order).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invoice_is_settled_when_its_coins_are_here() {
    let Some(mint) = mint() else { return };
    let mut ours = Ours::at(&mint.url).await;
    assert_eq!(ours.wallet().abilities().await, Ok(Abilities { hold: false, pay: true }));
    let invoice = invoice(&ours, 42).await;
    assert_eq!((invoice.amount, invoice.description.as_deref()), (Some(sat(42)), Some("a call")));
    assert_eq!(ours.wallet().look_up(invoice.hash).await, Ok(Standing::Open));
    assert_eq!(ours.wallet().look_up(PaymentHash([7; 32])).await, Ok(Standing::Missing));
    ours.restart().await;
    mint.pay(&invoice.text);
    let settled = Standing::Settled { amount: sat(42) };
    eventually(|| async { ours.wallet().look_up(invoice.hash).await == Ok(settled) }).await;
    assert_eq!(ours.balance().await, 42);
    ours.restart().await;
    assert_eq!((ours.balance().await, ours.wallet().look_up(invoice.hash).await), (42, Ok(settled)));
    let order = Order { amount: sat(2_000_000), memo: String::new(), expiry: 600 };
    assert_eq!(ours.wallet().make(&order).await, refused("the wallet would hold more than 1000000 sat"));
    let unsupported = Err(Error::Unsupported("mints do not hold payments"));
    assert_eq!(ours.wallet().cancel(invoice.hash).await, unsupported);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_mint_that_answers_makes_the_invoice() {
    let Some(mint) = mint() else { return };
    let ours = Ours::with(&["http://127.0.0.1:9", &mint.url], sat(1000)).await;
    let invoice = invoice(&ours, 5).await;
    mint.pay(&invoice.text);
    let settled = Standing::Settled { amount: sat(5) };
    eventually(|| async { ours.wallet().look_up(invoice.hash).await == Ok(settled) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paying_twice_moves_money_once() {
    let Some(mint) = mint() else { return };
    let (mut ours, theirs) = (Ours::at(&mint.url).await, Ours::at(&mint.url).await);
    ours.fund(mint, 200).await;
    let invoice = invoice(&theirs, 100).await;
    assert_eq!(ours.wallet().look_up_payment(invoice.hash).await, Ok(Payment::Not));
    let dear = ours.wallet().pay(&invoice, sat(0)).await;
    assert!(matches!(dear, Err(Error::Refused(_))), "{dear:?}");
    assert_eq!(ours.balance().await, 200);
    let (receipt, other) = tokio::join!(ours.wallet().pay(&invoice, sat(10)), ours.wallet().pay(&invoice, sat(10)));
    assert!(matches!(other, Err(Error::Unknown(_))), "{other:?}");
    let receipt = receipt.unwrap();
    assert!(receipt.fee <= sat(10), "{}", receipt.fee);
    let left = ours.balance().await;
    assert_eq!(left, 100 - receipt.fee.sat_rounded_down());
    assert_eq!(ours.wallet().pay(&invoice, sat(10)).await.map(|receipt| receipt.fee), Ok(receipt.fee));
    ours.restart().await;
    let known = ours.wallet().look_up_payment(invoice.hash).await;
    assert!(matches!(&known, Ok(Payment::Paid(known)) if known.fee == receipt.fee), "{known:?}");
    assert_eq!(ours.wallet().pay(&invoice, sat(10)).await.map(|receipt| receipt.fee), Ok(receipt.fee));
    assert_eq!(ours.balance().await, left);
    let settled = Standing::Settled { amount: sat(100) };
    eventually(|| async { theirs.wallet().look_up(invoice.hash).await == Ok(settled) }).await;
    let too_much = super::invoices::invoice(&theirs, 500).await;
    assert_eq!(ours.wallet().pay(&too_much, sat(10)).await, Err(Error::Insufficient));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_counts_as_pending_until_its_end_is_known() {
    let Some(peers) = Peers::installed() else { return };
    let Some(elsewhere) = mint() else { return };
    let mint = Mint::start(&peers.mint(), &["--manual"]);
    let (mut ours, theirs) = (Ours::at(&mint.url).await, Ours::at(&elsewhere.url).await);
    ours.fund(&mint, 500).await;

    mint.outgoing("FAILED");
    let failing = invoice(&theirs, 100).await;
    let answer = ours.wallet().pay(&failing, sat(10)).await;
    assert!(matches!(answer, Err(Error::Refused(_) | Error::Unreachable(_))), "{answer:?}");
    assert_eq!(ours.wallet().look_up_payment(failing.hash).await, Ok(Payment::Not));
    assert_eq!(ours.balance().await, 500, "its coins are back");

    mint.outgoing("PENDING");
    let pending = invoice(&theirs, 100).await;
    {
        let pay = ours.wallet().pay(&pending, sat(10));
        let waiting =
            eventually(|| async { ours.wallet().look_up_payment(pending.hash).await == Ok(Payment::Pending) });
        tokio::select! {
            paid = pay => panic!("nobody has paid: {paid:?}"),
            () = waiting => {}
        }
    }
    assert!(ours.balance().await < 400, "its coins are set aside");
    ours.restart().await;
    assert_eq!(ours.wallet().look_up_payment(pending.hash).await, Ok(Payment::Pending));
    let again = ours.wallet().pay(&pending, sat(10)).await;
    assert!(matches!(again, Err(Error::Unknown(_))), "{again:?}");

    mint.outgoing("SETTLED");
    let receipt = ours.wallet().pay(&pending, sat(10)).await.unwrap();
    let left = ours.balance().await;
    assert_eq!(left, 400 - receipt.fee.sat_rounded_down());
}
