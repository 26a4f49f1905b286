//! Envelopes: what is accepted, how the rest is called, and that passing on changes nothing else.

use super::{Incoming, Message, Problem, SalvageKind, parse, salvage, salvage_end};
use bytes::Bytes;
use proptest::prelude::{Just, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};

/// A one-line picture of how a line was read.
fn picture(line: &[u8]) -> String {
    fn one(member: &Result<Message, super::Malformed>) -> String {
        match member {
            Ok(Message::Request(request)) => {
                format!(
                    "request {} {} {}",
                    String::from_utf8_lossy(request.id.as_json()),
                    request.method(),
                    String::from_utf8_lossy(request.params())
                )
            }
            Ok(Message::Notification(note)) => format!("notification {}", note.method()),
            Ok(Message::Response(response)) => {
                let id =
                    response.id.as_ref().map_or("-".into(), |id| String::from_utf8_lossy(id.as_json()).into_owned());
                format!("{} {id}", if response.result().is_some() { "result" } else { "error" })
            }
            Err(malformed) => {
                let id = malformed.id.as_ref().map(|id| String::from_utf8_lossy(id.as_json()).into_owned());
                format!("{:?} {}", malformed.problem, id.unwrap_or("-".into()))
            }
        }
    }
    match parse(Bytes::copy_from_slice(line)) {
        Incoming::Single(member) => one(&member),
        Incoming::Batch(members) => members.iter().map(one).collect::<Vec<_>>().join(" | "),
    }
}

#[test]
fn reads_and_names() {
    let cases: &[(&str, &str)] = &[
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1 ping {}"),
        (r#" {"id":"a","params":{"x":1} ,"method":"m","jsonrpc":"2.0","more":[]} "#, r#"request "a" m {"x":1}"#),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#, "request 1 ping {}"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools\/call"}"#, "request 1 tools/call {}"),
        (r#"{"jsonrpc":"2.0","id":99999999999999999999999,"method":"m"}"#, "request 99999999999999999999999 m {}"),
        (r#"{"jsonrpc":"2.0","method":"n"}"#, "notification n"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "result 1"),
        (r#"{"jsonrpc":"2.0","id":1,"error":{}}"#, "error 1"),
        (r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, "error -"),
        (r#"{"jsonrpc":"2.0","error":{}}"#, "error -"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, "Response 1"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#, "result 1"),
        (r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{}}"#, "error 1"),
        (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "result 1"),
        (r#"{"jsonrpc":"2.0","result":{}}"#, "Response -"),
        (r#"{"id":1,"result":{}}"#, "Response 1"),
        ("not json", "Syntax -"),
        (r#"{"jsonrpc":"2.0","id":1"#, "Syntax -"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m"} x"#, "Syntax -"),
        (r#"{"foo":1}"#, "Envelope -"),
        ("42", "Envelope -"),
        ("\"text\"", "Envelope -"),
        (r#"{"jsonrpc":"2.0","id":1,"method":1}"#, "Envelope 1"),
        (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, "Envelope 1"),
        (r#"{"id":1,"method":"m"}"#, "Envelope 1"),
        (r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#, "Envelope 1"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, "Envelope -"),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, "Envelope -"),
        (r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#, "Envelope -"),
        (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, "Envelope -"),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#, "Envelope -"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","\u006dethod":"n"}"#, "Envelope -"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","Params":{}}"#, "Envelope -"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","M\u0065thod":"n"}"#, "Envelope -"),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\r\"method\":\"m\",\n\"params\":{\r\n}}", "request 1 m {  }"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#, "Envelope 1"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":"x"}"#, "Envelope 1"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#, "Envelope 1"),
        (r#"{"jsonrpc":"2.0","id":1}"#, "Envelope 1"),
        ("[]", "Envelope -"),
        ("[1,2]", "Envelope - | Envelope -"),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"m"},7,{"jsonrpc":"2.0","method":"n"}]"#,
            "request 1 m {} | Envelope - | notification n",
        ),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"m"},"#, "Syntax -"),
    ];
    for (line, expected) in cases {
        assert_eq!(picture(line.as_bytes()), *expected, "{line}");
    }
    assert_eq!(picture(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}"), "Syntax -");
}

#[test]
fn the_beginning_of_a_message_tells_something() {
    let picture = |text: &'static str| {
        let found = salvage(&Bytes::from_static(text.as_bytes()));
        (found.id.map(|id| String::from_utf8_lossy(id.as_json()).into_owned()).unwrap_or_default(), found.kind)
    };
    for (text, id, kind) in [
        (r#"{"jsonrpc":"2.0","id":"q","method":"m","params":{"a":"xxxx"#, "\"q\"", SalvageKind::Request),
        (r#"{"jsonrpc":"2.0","params":{"a":"xxxx"#, "", SalvageKind::Request),
        (r#"{"id":nu"#, "", SalvageKind::Unknown),
        (r#"{"id":123"#, "", SalvageKind::Unknown),
        (r#"{"id":123,"#, "123", SalvageKind::Unknown),
        (r#"{"id":1,"result":{"#, "1", SalvageKind::Response),
        (r#"{"result":{},"id":1,"#, "1", SalvageKind::Response),
        ("nothing of the kind", "", SalvageKind::Unknown),
    ] {
        assert_eq!(picture(text), (id.to_owned(), kind), "{text}");
    }
}

#[test]
fn the_end_of_a_message_tells_something() {
    for (text, id) in [
        (r#"xxx"}]},"jsonrpc":"2.0","id":17}"#, Some("17")),
        (r#"xxx"}]},"id": "a b" , "jsonrpc":"2.0" } "#, Some("\"a b\"")),
        (r#"xxx"}]},"user":{"id":17}}"#, None),
        (r#"xxx"}]},"id":17,"more":1}"#, None),
        (r#"xxx"}]},"id":1.5}"#, None),
        ("nothing", None),
    ] {
        let found = salvage_end(text.as_bytes()).map(|id| String::from_utf8_lossy(id.as_json()).into_owned());
        assert_eq!(found.as_deref(), id, "{text}");
    }
}

#[test]
fn problems_of_responses_are_told_apart() {
    let Incoming::Single(Err(malformed)) = parse(Bytes::from_static(br#"{"jsonrpc":"2.0","id":[],"error":{}}"#)) else {
        panic!("must be malformed")
    };
    assert_eq!(malformed.problem, Problem::Response);
}

#[test]
fn a_result_can_be_exchanged_wherever_it_stands() {
    for text in
        [r#"{"jsonrpc":"2.0","id":1,"result":{"a":1},"x":2}"#, r#"{"result":{"a":1},"jsonrpc":"2.0","x":2,"id":1}"#]
    {
        let Incoming::Single(Ok(Message::Response(response))) = parse(Bytes::from_static(text.as_bytes())) else {
            panic!("must be a response")
        };
        let other = response.with_result(br#"{"longer":"result"}"#);
        assert_eq!(other.result(), Some(br#"{"longer":"result"}"#.as_slice()));
        let mut out = Vec::new();
        other.write(&mut out, &crate::id::Id::number(77));
        let expected = text.replace(r#"{"a":1}"#, r#"{"longer":"result"}"#).replace(r#""id":1"#, r#""id":77"#);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

/// Members of an envelope in any order, with unknown ones between and white space around.
fn any_request() -> impl Strategy<Value = (String, String)> {
    let space = prop::sample::select(vec!["", " ", "\t", "  "]);
    let number = prop_oneof![
        Just("1.50".to_owned()),
        Just("0.30".into()),
        Just("1E+2".into()),
        any::<i64>().prop_map(|n| n.to_string())
    ];
    let params =
        number.prop_map(|number| format!("\"params\":{{\"n\":{number},\"z\":1,\"a\":{{\"deep\":[{number}]}}}}"));
    let id = prop_oneof![any::<i64>().prop_map(|n| n.to_string()), "[a-z]{0,6}".prop_map(|t| format!("\"{t}\""))];
    let unknown = "[a-z]{7,9}".prop_map(|key| format!("\"{key}\":[null,\"\\u00e9\"]"));
    (id, params, unknown, space, any::<u64>()).prop_map(|(id, params, unknown, space, seed)| {
        let mut members =
            [format!("\"id\":{space}{id}"), params, unknown, "\"jsonrpc\":\"2.0\"".into(), "\"method\":\"x/y\"".into()];
        let count = members.len();
        let mut seed = seed;
        for place in (1..count).rev() {
            members.swap(place, (seed % (place as u64 + 1)) as usize);
            seed /= count as u64;
        }
        (format!("{{{space}{}{space}}}", members.join(&format!("{space},"))), id)
    })
}

proptest! {
    #[test]
    fn passing_on_changes_the_id_only((line, id) in any_request()) {
        let Incoming::Single(Ok(Message::Request(request))) = parse(Bytes::from(line.clone())) else {
            panic!("must be a request: {line}")
        };
        let mut same = Vec::new();
        request.write(&mut same, id.as_bytes(), &[]);
        prop_assert_eq!(String::from_utf8(same).unwrap(), line.clone());

        let place = crate::json::find(request.params(), ["z"]).unwrap()[0].clone().unwrap();
        let mut edited = Vec::new();
        request.write(&mut edited, b"\"new id\"", &[(place, b"[2]")]);
        let edited = String::from_utf8(edited).unwrap();
        prop_assert_eq!(edited.replace("\"new id\"", &id).replace("\"z\":[2]", "\"z\":1"), line);
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        picture(&bytes);
        salvage(&Bytes::from(bytes));
    }
}

#[test]
fn line_breaks_are_for_between_tokens() {
    let sound = "{\n \"jsonrpc\":\"2.0\",\r\n\"method\":\"m\"\n}";
    let Incoming::Single(Ok(Message::Notification(note))) = parse(sound.into()) else { panic!("must be read") };
    assert!(!note.as_json().contains(&b'\n') && !note.as_json().contains(&b'\r'));
    for broken in ["{\"jsonrpc\":\"2.0\",\"method\":\"a\nb\"}", "{\"jsonrpc\":\"2.0\",\"method\":\"a\rb\"}"] {
        let Incoming::Single(Err(malformed)) = parse(broken.into()) else { panic!("{broken:?} is no JSON") };
        assert_eq!(malformed.problem, Problem::Syntax);
    }
}
