//! Bodies that are no messages: each is answered with a JSON-RPC error and the right status, and ends nothing.

use torture::stage::Stage;
use torture::stage::door::{Door, SESSION_VERSIONS, request, stateless};
use torture::stage::runner::{Case, case};
use torture::stage::wire::Ask;

pub(crate) const CASES: &[Case] =
    &[case!(every_kind_in_every_version), case!(before_anything_is_known), case!(a_connection_survives_them)];

/// Bodies, the code that each gets, and the id that can be read from it.
const BODIES: [(&[u8], i64, Option<&str>); 17] = [
    (b"", -32700, None),
    (b"  \r\n", -32700, None),
    (b"nonsense", -32700, None),
    (b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"", -32700, None),
    (b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}{}", -32700, None),
    (b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"pi\xffng\"}", -32700, None),
    (b"\xff\xfe{\x00}\x00", -32700, None),
    (b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\",\"params\":{\"a\":\"\\ud800\"}}", -32700, None),
    (b"{'jsonrpc':'2.0'}", -32700, None),
    (b"42", -32600, None),
    (b"null", -32600, None),
    (b"\"ping\"", -32600, None),
    (b"{}", -32600, None),
    (b"{\"jsonrpc\":\"1.0\",\"id\":5,\"method\":\"ping\"}", -32600, Some("5")),
    (b"{\"id\":\"five\",\"method\":\"ping\"}", -32600, Some("\"five\"")),
    (b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":7}", -32600, Some("5")),
    (b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", -32600, None),
];

fn every_kind_in_every_version() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    for version in SESSION_VERSIONS.into_iter().chain(["2026-07-28"]) {
        let session = (version != "2026-07-28").then(|| door.session(version));
        for (place, (body, code, id)) in BODIES.iter().enumerate() {
            let ask = match &session {
                Some(session) => session.post(body),
                None => Ask::post(body).with("MCP-Protocol-Version", version).with("Mcp-Method", "ping"),
            };
            let answer = door.ask(&ask);
            assert_eq!((answer.status(), answer.code()), (400, *code), "{version} {place}: {}", answer.text());
            // An id that cannot be known is null, and from 2025-11-25 on is left out.
            let expected = id.or((version < "2025-11-25").then_some("null"));
            assert_eq!(answer.message().find(&["id"]).as_deref(), expected, "{version} {place}: {}", answer.text());
        }
        if let Some(session) = session {
            assert_eq!(session.ask("5", "ping", "{}").raw(&["result"]), "{}");
            // An answer that is none is never answered.
            session.tell(r#"{"jsonrpc":"2.0","id":77,"result":{},"error":{}}"#);
        }
    }
}

fn before_anything_is_known() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    for (place, (body, code, id)) in BODIES.iter().enumerate() {
        let answer = door.ask(&Ask::post(body));
        assert_eq!((answer.status(), answer.code()), (400, *code), "{place}: {}", answer.text());
        // A client that does not say which version it speaks is taken for one of 2025-03-26.
        assert_eq!(answer.message().id(), id.unwrap_or("null"), "{place}: {}", answer.text());
        assert!(answer.head.header("mcp-session-id").is_none());
    }
}

fn a_connection_survives_them() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let session = door.session("2025-06-18");
    let mut wire = door.connect();
    for (place, (body, code, _)) in BODIES.iter().enumerate() {
        wire.send(&door.signed(&session.post(body)).bytes());
        assert_eq!(wire.next_answer().unwrap().code(), *code, "{place}");
        wire.send(&door.signed(&session.post(request(&format!("\"p{place}\""), "ping", "{}"))).bytes());
        assert_eq!(wire.next_answer().unwrap().message().raw(&["result"]), "{}");
        wire.send(&door.signed(&stateless("1", "tools/list", "")).bytes());
        assert_eq!(wire.next_answer().unwrap().status(), 200);
    }
}
