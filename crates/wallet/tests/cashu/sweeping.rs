//! Money leaves the mints for a Lightning address.

use super::scene::{Ours, mint, sat};
use rialto_payment::wallet::{Error, Order, Wallet as _};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// A server with names that behave differently; the money goes to a wallet.
async fn serve(theirs: Arc<Ours>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = listener.local_addr().unwrap().to_string();
    let own = place.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = vec![0; 4096];
            let length = stream.read(&mut buffer).await.unwrap_or(0);
            let request = String::from_utf8_lossy(&buffer[..length]).into_owned();
            let path = request.split(' ').nth(1).unwrap_or_default();
            let (path, query) = path.split_once('?').unwrap_or((path, ""));
            let name = path.rsplit('/').next().unwrap_or_default();
            let body = match path.starts_with("/.well-known") {
                true => offer(&own, name),
                false => {
                    let amount: u64 = query.strip_prefix("amount=").unwrap().parse().unwrap();
                    let amount = if name == "greedy" { amount / 1000 + 1 } else { amount / 1000 };
                    let order = Order { amount: sat(amount), memo: String::new(), expiry: 600 };
                    let invoice = theirs.wallet().make(&order).await.unwrap();
                    format!(r#"{{"pr":"{}","routes":[]}}"#, invoice.text)
                }
            };
            let answer =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    place
}

fn offer(place: &str, name: &str) -> String {
    let (callback, least) = match name {
        "unknown" => return r#"{"status":"ERROR","reason":"nobody has this name"}"#.into(),
        "elsewhere" => ("http://192.0.2.1/pay".to_owned(), 1000),
        "rich" => (format!("http://{place}/pay/{name}"), 1_000_000_000),
        _ => (format!("http://{place}/pay/{name}"), 1000),
    };
    format!(
        r#"{{"callback":"{callback}","minSendable":{least},"maxSendable":100000000000,"metadata":"[]","tag":"payRequest"}}"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_above_an_amount_is_paid_to_an_address() {
    let Some(mint) = mint() else { return };
    let ours = Ours::at(&mint.url).await;
    let theirs = Arc::new(Ours::at(&mint.url).await);
    ours.fund(mint, 1000).await;
    let place = serve(theirs.clone()).await;
    for (name, words) in [
        ("unknown", "nobody has this name"),
        ("elsewhere", "it sends us to an address that is not safe"),
        ("rich", "it takes 1000000 sat to 100000000 sat"),
        ("greedy", "its invoice is for another amount"),
    ] {
        let address = format!("{name}@{place}").parse().unwrap();
        let answer = ours.wallet().sweep(sat(0), &address).await;
        assert!(matches!(&answer, Err(Error::Refused(why)) if why.contains(words)), "{answer:?}");
        assert_eq!(ours.balance().await, 1000);
    }
    let address = format!("till@{place}").parse().unwrap();
    let left = ours.wallet().sweep(sat(300), &address).await.unwrap();
    assert!((sat(680)..=sat(700)).contains(&left), "{left}");
    let balance = ours.balance().await;
    assert!((300..=320).contains(&balance), "{balance}");
    assert_eq!(
        ours.wallet().sweep(sat(300), &address).await.unwrap().get() / 20_000,
        0,
        "hardly anything is left to pay"
    );
    assert!(ours.balance().await >= 300);
}
