//! A web server of somebody on this machine: their name (NIP-05) and how to pay them (LNURL).

use std::sync::Arc;

use nostr::types::url::Url;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::invoice::invoice;
use torture::nostr_side::runtime;

/// Whose it is.
struct Owner {
    address: String,
    /// Who `bob` is.
    bob: String,
    /// Who signs receipts of zaps.
    wallet: String,
}

/// Starts one; gives its address.
pub(crate) fn start(bob: String, wallet: String) -> String {
    let listener = runtime().block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let owner = Arc::new(Owner { address: address.clone(), bob, wallet });
    runtime().spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, owner.clone()));
        }
    });
    address
}

async fn serve(mut stream: TcpStream, owner: Arc<Owner>) {
    let mut request = Vec::new();
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read_buf(&mut request).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
    let text = String::from_utf8_lossy(&request).into_owned();
    let target = text.split(' ').nth(1).unwrap_or_default();
    let body = owner.answer(target).to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
}

impl Owner {
    fn answer(&self, target: &str) -> Value {
        let url = Url::parse(&format!("http://{}{target}", self.address)).unwrap();
        let asked = |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
        match url.path() {
            "/.well-known/nostr.json" => json!({ "names": { "bob": self.bob } }),
            "/.well-known/lnurlp/bob" => json!({
                "tag": "payRequest", "callback": format!("http://{}/pay", self.address), "minSendable": 1000,
                "maxSendable": 1_000_000, "metadata": "[]", "allowsNostr": true, "nostrPubkey": self.wallet,
            }),
            "/pay" => {
                let amount = asked("amount").unwrap_or_default().parse().unwrap_or_default();
                json!({ "pr": invoice(amount, &asked("nostr").unwrap_or_default()) })
            }
            path => json!({ "message": format!("there is no {path}") }),
        }
    }
}
