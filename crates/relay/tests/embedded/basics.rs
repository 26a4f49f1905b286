//! NIP-01: publishing, subscribing, filters, and what each range of kinds means.

use nostr::key::Keys;
use serde_json::json;

use crate::peer::{Draft, Peer, id, now, start};

#[tokio::test]
async fn what_is_published_is_found_and_delivered() {
    let relay = start().await;
    let keys = Keys::generate();
    let mut reader = Peer::connect(&relay).await;
    let mut writer = Peer::connect(&relay).await;
    let first = Draft::note("first").at(now() - 10).sign(&keys);
    writer.accept(&first).await;
    assert_eq!(reader.open("all", &[json!({})]).await, [id(&first)]);
    let second = Draft::note("second").sign(&keys);
    writer.accept(&second).await;
    assert_eq!(reader.receive("all").await, id(&second));
    reader.send(json!(["CLOSE", "all"])).await;
    reader.expect_silence().await;
    writer.accept(&Draft::note("third").sign(&keys)).await;
    reader.expect_silence().await;
    relay.stop().await;
}
