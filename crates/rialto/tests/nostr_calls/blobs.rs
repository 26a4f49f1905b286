//! Files that are uploaded: from where they may come, to which servers they go, and what is believed of those.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nostr::nips::nip19::ToBech32 as _;
use serde_json::{Value, json};

use super::blossom::{Blossom, Manner, hash};
use super::stage::{Stage, User};
use crate::VERSION;
use torture::nostr_side::client::Client;
use torture::nostr_side::event::{Draft, hex_key};
use torture::nostr_side::host::Host;
use torture::nostr_side::world::World;

const TOOL: &str = "nostr_blobs_upload";

fn upload(host: &mut Host, arguments: &Value) -> Value {
    let id = host.call(TOOL, arguments);
    host.answer(id)
}

#[test]
fn a_file_goes_to_the_servers_of_its_owner() {
    let world = World::new();
    let (_relay, url) = world.relay();
    let stage = Stage::new(&url, User::Somebody);
    let servers = [Manner::Honest, Manner::Honest, Manner::NoMirror].map(Blossom::start);
    let list = servers.iter().fold(Draft::new(10063, ""), |list, server| list.tag(&["server", &server.url()]));
    assert!(Client::connect(&url, |_, _| {}).publish(&list.sign(&stage.me)).0);
    let folder = stage.world.home("pictures");
    // Larger than what one read from a socket brings.
    let picture: Vec<u8> = (0..300_000u32).map(|number| number.to_le_bytes()[0] ^ number.to_le_bytes()[1]).collect();
    fs::write(folder.join("cat.png"), &picture).unwrap();
    let mut host = stage.serve_with(VERSION, &["--files", folder.to_str().unwrap()]);
    let answer = upload(&mut host, &json!({ "path": "cat.png", "content_type": "image/png", "mirror": true }));
    let output = &answer["result"]["structuredContent"];
    let name = hash(&picture);
    assert_eq!((&output["sha256"], &output["size"]), (&json!(name), &json!(picture.len())), "{answer}");
    assert_eq!(output["url"], format!("{}/{name}", servers[0].url()));
    let copies: Vec<&str> =
        output["copies"].as_array().unwrap().iter().map(|copy| copy["server"].as_str().unwrap()).collect();
    assert_eq!(copies, servers.each_ref().map(Blossom::url));
    for (server, way) in servers.iter().zip(["/upload", "/mirror", "/upload"]) {
        let [blob] = server.blobs.look(<[_]>::to_vec).try_into().unwrap();
        assert!(blob.bytes == picture, "{way}");
        assert_eq!((blob.way.as_str(), blob.owner), (way, hex_key(&stage.me)));
        assert_eq!(blob.content_type, if way == "/mirror" { "application/json" } else { "image/png" });
    }
    let again = upload(&mut host, &json!({ "path": folder.join("cat.png") }));
    let copies = &again["result"]["structuredContent"]["copies"];
    assert_eq!(copies.as_array().unwrap().len(), 1, "one server is enough unless all are wanted: {again}");
}

#[test]
fn servers_that_lie_or_refuse_or_are_inside_do_not_count() {
    let stage = Stage::new("ws://127.0.0.1:9", User::Somebody);
    let mut host = stage.serve(VERSION);
    let bad = [Manner::Lying, Manner::Astray, Manner::Full].map(|manner| Blossom::start(manner).url());
    let mut servers = bad.to_vec();
    servers.extend(["https://10.0.0.1".to_owned(), "https://[::1]".to_owned(), "http://127.0.0.1:9".to_owned()]);
    let arguments = |servers: &[String]| json!({ "data": STANDARD.encode("hello"), "servers": servers });
    let refused = upload(&mut host, &arguments(&servers));
    assert_eq!((&refused["error"]["code"], &refused["error"]["data"]["reason"]), (&json!(-32603), &json!("servers")));
    let honest = Blossom::start(Manner::Honest);
    servers.push(honest.url());
    let answer = upload(&mut host, &arguments(&servers));
    let output = &answer["result"]["structuredContent"];
    assert_eq!(
        output["copies"],
        json!([{ "server": honest.url(), "url": format!("{}/{}", honest.url(), hash(b"hello")) }])
    );
    let words = ["the hash differs", "not that of the file", "413 the disk is full", "private", "private", "refused"];
    for (server, words) in servers.iter().zip(words) {
        for failed in [&refused["error"]["data"]["failed"], &output["failed"]] {
            assert!(failed[server].as_str().is_some_and(|why| why.contains(words)), "{server}: {failed}");
        }
    }
}

#[test]
fn only_what_the_operator_has_opened_is_sent_and_never_a_key() {
    let stage = Stage::new("ws://127.0.0.1:9", User::Somebody);
    let server = Blossom::start(Manner::Honest);
    let folder = stage.world.home("open");
    let nsec = stage.me.secret_key().to_bech32().unwrap();
    fs::write(folder.join("backup.txt"), format!("my key is {nsec}")).unwrap();
    fs::write(folder.join("../secret.txt"), "x").unwrap();
    let encoded = STANDARD.encode(stage.me.secret_key().to_secret_hex());
    let open = ["--files", folder.to_str().unwrap()];
    let cases: [(&[&str], Value, &str, &str); 10] = [
        (&[], json!({ "path": "backup.txt" }), "not_allowed", "/path"),
        (&open, json!({ "path": "backup.txt" }), "not_allowed", "/path"),
        (&open, json!({ "path": "../secret.txt" }), "not_allowed", "/path"),
        (&open, json!({ "path": "/etc/hostname" }), "not_allowed", "/path"),
        (&open, json!({ "path": "none" }), "invalid_input", "/path"),
        (&open, json!({ "path": "none", "data": "aGk=" }), "invalid_input", "/data"),
        (&[], json!({ "data": encoded }), "not_allowed", "/data"),
        (&[], json!({ "data": "%%%" }), "invalid_input", "/data"),
        (&[], json!({ "data": "aGk=", "content_type": "text\r\nx: y/z" }), "invalid_input", "/content_type"),
        (&["--allow-kind", "1"], json!({ "data": "aGk=" }), "not_allowed", ""),
    ];
    for (flags, mut arguments, reason, pointer) in cases {
        arguments["servers"] = json!([server.url()]);
        let answer = upload(&mut stage.serve_with(VERSION, flags), &arguments);
        let data = &answer["error"]["data"];
        assert_eq!(data["reason"], reason, "{arguments}: {answer}");
        assert_eq!(data["pointer"].as_str().unwrap_or_default(), pointer, "{arguments}: {answer}");
        assert!(!answer.to_string().contains(&nsec));
    }
    for bad in ["ftp://x.example", "http://x.example", "https://x.example/path", "https://me:pw@x.example", "x"] {
        let arguments = json!({ "data": "aGk=", "servers": [bad] });
        let answer = upload(&mut stage.serve(VERSION), &arguments);
        assert_eq!(answer["error"]["data"]["pointer"], "/servers/0", "{bad}: {answer}");
    }
    assert_eq!(server.blobs.look(<[_]>::len), 0, "nothing has left this machine");
    let log = stage.world.rialto("user", &["nostr", "log", "--json"]).output();
    assert!(log.contains(TOOL) && !log.contains(&encoded), "{log}");
}
