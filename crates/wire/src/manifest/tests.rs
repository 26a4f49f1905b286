//! What one end writes, the other reads; what strangers write is read as far as it can be used.

use super::answer::{self, Answer};
use super::description::{self, MAX_READ, MAX_TOOLS, MAX_WRITTEN, Offer};
use super::{CONTENT_SCHEMA, MANIFEST, MESSAGE, request};
use crate::failure::{Code, Failure};
use crate::request::{Address, Body, Command, Reading};
use nostr::prelude::{Event, EventId, Keys, Kind, PublicKey, Signature, Tag, Timestamp, UnsignedEvent};
use rialto_payment::secret::Secret;
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::from_secs(1000);

fn key() -> PublicKey {
    Keys::generate().public_key()
}

/// As if it had passed the gate.
fn passed(event: UnsignedEvent) -> Event {
    let id = event.compute_id();
    let UnsignedEvent { pubkey, created_at, kind, tags, content, .. } = event;
    Event::new(id, pubkey, created_at, kind, tags, content, Signature::from_byte_array([0; 64]))
}

fn manifest(content: &str, tags: &[&[&str]]) -> Event {
    let tags = tags.iter().map(|tag| Tag::parse(tag.iter().copied()).unwrap());
    passed(UnsignedEvent::new(key(), NOW, MANIFEST, tags, content))
}

fn message(text: &str, me: PublicKey) -> UnsignedEvent {
    let mut event = request::write(me, text.into(), false, key(), NOW);
    event.id = Some(event.compute_id());
    event
}

fn weather() -> Vec<u8> {
    json!({
        "name": "get_forecast", "title": "Forecast", "description": "The weather in a city.",
        "inputSchema": { "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] },
        "outputSchema": { "type": "object", "properties": { "forecast": { "type": "string" } } },
        "annotations": { "readOnlyHint": true },
    })
    .to_string()
    .into_bytes()
}

fn offer<'a>(tools: &'a [Vec<u8>], relays: &'a [String]) -> Offer<'a> {
    Offer { id: "weather", name: "weather", about: "Forecasts", tools, relays }
}

#[test]
fn a_manifest_has_the_required_fields_and_comes_back_as_it_was() {
    let plain = br#"{"name":"plain","description":null,"inputSchema":{"type":"object"},"outputSchema":null}"#.to_vec();
    let (tools, relays) = ([weather(), plain], ["wss://a".to_owned()]);
    let (events, left_out) = offer(&tools, &relays).write(MAX_WRITTEN, key(), NOW);
    assert!(left_out.is_empty());
    let [event] = events.as_slice() else { panic!("{} manifests", events.len()) };
    let tags: Vec<&[String]> = event.tags.iter().map(Tag::as_slice).collect();
    let expected: [&[&str]; 6] = [
        &["d", "weather"],
        &["t", "mcp"],
        &["t", "get_forecast"],
        &["t", "plain"],
        &["encryption", "nip04 nip59"],
        &["relays", "wss://a"],
    ];
    assert_eq!(tags, expected);
    let content: Value = serde_json::from_str(&event.content).unwrap();
    assert_eq!(
        (&content["mcp_version"], &content["name"], &content["description"]),
        (&json!("0.1"), &json!("weather"), &json!("Forecasts"))
    );
    assert_eq!(content["tools"][0]["tool_name"], "get_forecast");
    assert_eq!(content["tools"][0]["annotations"]["readOnlyHint"], true);
    assert!(content["tools"][0].get("name").is_none() && content["tools"][0].get("inputSchema").is_none());
    assert_eq!(content["tools"][1]["description"], "");
    assert_eq!(content["tools"][1]["output_schema"], serde_json::from_str::<Value>(CONTENT_SCHEMA).unwrap());
    let service = description::read(&passed(event.clone())).unwrap();
    assert_eq!((service.name.as_str(), service.sealed, service.flaws.len()), ("weather", true, 0));
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(read(&service.tools[0]), serde_json::from_slice::<Value>(&weather()).unwrap());
    assert_eq!(
        read(&service.tools[1]),
        json!({ "name": "plain", "description": "", "inputSchema": { "type": "object" } })
    );
}

#[test]
fn many_tools_take_several_manifests_and_none_is_lost() {
    let tool = |number: usize, length: usize| {
        let text = json!({ "name": format!("tool{number}"), "description": "\"".repeat(length), "inputSchema": { "type": "object" } });
        text.to_string().into_bytes()
    };
    let mut tools: Vec<Vec<u8>> = (0..200).map(|number| tool(number, 300)).collect();
    tools.insert(50, tool(999, MAX_WRITTEN));
    let (events, left_out) = offer(&tools, &[]).write(MAX_WRITTEN, key(), NOW);
    assert_eq!(left_out, ["tool999"]);
    assert!(events.len() > 1);
    let mut names = Vec::new();
    let (shorter, _) = offer(&tools, &[]).write(MAX_WRITTEN / 4, key(), NOW);
    assert!(shorter.len() > events.len());
    for (index, event) in events.into_iter().enumerate() {
        assert!(event.as_json().len() <= MAX_WRITTEN + 1024);
        let service = description::read(&passed(event)).unwrap();
        assert_eq!(service.name, "weather");
        assert_eq!(service.id, if index == 0 { "weather".to_owned() } else { format!("weather#{}", index + 1) });
        assert_eq!(service.flaws, Vec::<String>::new());
        names.extend(service.tools.iter().map(|tool| serde_json::from_str::<Value>(tool).unwrap()["name"].clone()));
    }
    assert_eq!(names, (0..200).map(|number| json!(format!("tool{number}"))).collect::<Vec<_>>());
    assert!(offer(&[], &[]).write(MAX_WRITTEN, key(), NOW).0.is_empty(), "a manifest has at least one tool");
}

#[test]
fn other_things_of_this_kind_are_no_manifests() {
    for content in ["", "hello", "[]", "{}", r#"{"name":"a","tools":[]}"#, r#"{"mcp_version":"0.1","tools":[]}"#] {
        assert_eq!(description::read(&manifest(content, &[])), None, "{content}");
    }
    let ill = [r#"{"mcp_version":"0.1","name":1,"tools":[]}"#, r#"{"mcp_version":"0.1","name":"a","tools":{}}"#];
    assert!(ill.iter().all(|content| description::read(&manifest(content, &[])).is_none()));
    let mut other = manifest(r#"{"mcp_version":"0.1","name":"a","tools":[]}"#, &[]);
    assert!(description::read(&other).is_some());
    other.kind = Kind::TextNote;
    assert_eq!(description::read(&other), None);
    // One that says that it is a manifest is told about, if it cannot be read.
    let broken = description::read(&manifest(
        r#"{"mcp_version":"0.1","name":"a","name":"b","tools":[]}"#,
        &[&["t", "mcp"], &["d", "x"]],
    ));
    assert_eq!(broken.as_ref().map(|service| (service.name.as_str(), service.flaws.len())), Some(("x", 1)));
    let long = format!(r#"{{"mcp_version":"0.1","name":"a","description":"{}","tools":[]}}"#, "d".repeat(MAX_READ));
    let long = description::read(&manifest(&long, &[&["t", "mcp"]])).unwrap();
    assert!(long.flaws[0].contains("bytes long") && long.tools.is_empty(), "{:?}", long.flaws);
}

#[test]
fn what_strangers_write_is_read_as_far_as_it_can_be_used() {
    let deep = format!("{}1{}", "[".repeat(70), "]".repeat(70));
    let content = format!(
        r#"{{"mcp_version":"7","name":"  ","x":1,"tools":[
            {{"tool_name":"good","description":"d","input_schema":{{"type":"object"}},"output_schema":{{"type":"object","z":1.10}},"more":[1]}},
            {{"tool_name":"bare"}},
            {{"tool_name":"good","description":"again","input_schema":{{}},"output_schema":{{}}}},
            {{"tool_name":"untyped","description":"","input_schema":{{"required":["a"]}},"output_schema":{{}}}},
            {{"tool_name":"list","description":"","input_schema":{{"type":"array"}},"output_schema":{{}}}},
            {{"tool_name":"text","description":"","input_schema":{{}},"output_schema":{{"type":"string"}}}},
            {{"tool_name":"ill","description":7,"input_schema":"no","output_schema":{{}}}},
            {{"tool_name":"twice","tool_name":"twice","description":""}},
            {{"tool_name":"deep","description":"","input_schema":{{"a":{deep}}},"output_schema":{{}}}},
            {{"name":"other"}}, 7, null]}}"#
    );
    let service = description::read(&manifest(&content, &[])).unwrap();
    assert_eq!((service.id.as_str(), service.name.as_str(), service.sealed), ("", "", false));
    let tools: Vec<&str> = service.tools.iter().map(String::as_str).collect();
    assert_eq!(
        tools,
        [
            r#"{"name":"good","description":"d","inputSchema":{"type":"object"},"outputSchema":{"type":"object","z":1.10},"more":[1]}"#,
            r#"{"name":"bare","inputSchema":{"type":"object"}}"#,
            r#"{"name":"untyped","description":"","inputSchema":{"type":"object","required":["a"]},"outputSchema":{"type":"object"}}"#,
            r#"{"name":"text","description":"","inputSchema":{"type":"object"}}"#,
        ]
    );
    let flaws = service.flaws.join("\n");
    for words in [
        "the version is not 0.1",
        "no description",
        "`bare` has no `input_schema`",
        "`good` stands twice",
        "`list` cannot be used",
        "answers of tool `text` are not checked",
        "the description of tool `ill` is no text",
        "`ill` cannot be used",
        "tool 8 cannot be read: a key stands twice",
        "tool 9 cannot be read: nested too deeply",
        "tool 10 has no `tool_name`",
        "tool 11",
        "tool 12",
    ] {
        assert!(flaws.contains(words), "{words} in\n{flaws}");
    }
    let many: Vec<String> = (0..MAX_TOOLS + 10).map(|number| format!(r#"{{"tool_name":"t{number}"}}"#)).collect();
    let many = format!(r#"{{"mcp_version":"0.1","name":"a","description":"","tools":[{}]}}"#, many.join(","));
    assert_eq!(description::read(&manifest(&many, &[])).unwrap().tools.len(), MAX_TOOLS);
}

#[test]
fn requests_are_understood_refused_or_left_alone() {
    let me = key();
    let read = |text: &str| request::read(&message(text, me), &me);
    let text = request::text("get\"x", br#"{ "city": "Ven\u00e9ce", "n": 1.10 }"#);
    assert_eq!(text, r#"{"tool_name":"get\"x","arguments":{ "city": "Ven\u00e9ce", "n": 1.10 }}"#);
    let Reading::Request(understood) = read(&text) else { panic!() };
    assert_eq!(understood.address.command, Some(Command::ExecuteTool));
    let Body::Execute(execution) = understood.body else { panic!() };
    assert_eq!((execution.name.as_str(), execution.value["city"].as_str()), ("get\"x", Some("Venéce")));
    assert_eq!(execution.arguments, r#"{ "city": "Ven\u00e9ce", "n": 1.10 }"#, "as it was written");
    assert!(matches!(read(" \n{\"action\":\"call_tool\",\"tool_name\":\"a\",\"arguments\":{}}"), Reading::Request(_)));
    let refused = |text: &str| match read(text) {
        Reading::Refused { failure, .. } => (failure.code, failure.message),
        other => panic!("{text}: {other:?}"),
    };
    for (text, code, words) in [
        ("{", Code::InvalidRequest, "JSON"),
        ("[]", Code::InvalidRequest, "no object"),
        (r#"{"tool_name":"a","tool_name":"b","arguments":{}}"#, Code::InvalidRequest, "twice"),
        ("{}", Code::InvalidInput, "`tool_name` is missing"),
        (r#"{"tool_name":7,"arguments":{}}"#, Code::InvalidInput, "`tool_name` must be a string"),
        (r#"{"tool_name":"a"}"#, Code::InvalidInput, "`arguments` is missing"),
        (r#"{"tool_name":"a","arguments":[]}"#, Code::InvalidInput, "`arguments` must be an object"),
        (r#"{"tool_name":"a","arguments":null}"#, Code::InvalidInput, "`arguments` must be an object"),
    ] {
        let (found, message) = refused(text);
        assert!(found == code && message.contains(words), "{text}: {found:?} {message}");
    }
    let long = format!("{{\"tool_name\":\"a\",\"arguments\":{{\"x\":\"{}\"}}}}", "x".repeat(request::MAX_TEXT));
    assert_eq!(refused(&long).0, Code::TooLarge);
    let deep = format!("{{\"tool_name\":\"a\",\"arguments\":{{\"x\":{}{}}}}}", "[".repeat(64), "]".repeat(64));
    assert_eq!(refused(&deep).0, Code::InvalidRequest);
    for chat in ["", "hello", "\"{}\"", "lnbc1", r#"{"error":{}}"#, r#"{"content":[]}"#] {
        assert_eq!(read(chat), Reading::NotOurs, "{chat}");
    }
    let good = || message(r#"{"tool_name":"a","arguments":{}}"#, me);
    let mut answer = good();
    answer.tags.push(Tag::event(EventId::from_byte_array([1; 32])));
    assert_eq!(request::read(&answer, &me), Reading::NotOurs, "it answers something");
    assert_eq!(request::read(&good(), &key()), Reading::NotOurs, "for somebody else");
    assert_eq!(request::read(&UnsignedEvent { pubkey: me, ..good() }, &me), Reading::NotOurs, "our own");
    assert_eq!(request::read(&UnsignedEvent { kind: Kind::TextNote, ..good() }, &me), Reading::NotOurs);
    assert_eq!(request::read(&UnsignedEvent { id: None, ..good() }, &me), Reading::NotOurs);
}

#[test]
fn a_payment_by_message_is_no_call() {
    let me = key();
    let target = EventId::from_byte_array([7; 32]);
    let token = Secret::new("cashuBo2");
    let Reading::Request(paid) = request::read(&message(&request::payment(target, &token), me), &me) else { panic!() };
    assert_eq!((paid.address.command, paid.body), (Some(Command::PayExecution), Body::Pay { target, token }));
    let id = target.to_hex();
    for bad in [
        r#"{"payment":7}"#.to_owned(),
        r#"{"payment":{"request":"7","token":"cashuBo2"}}"#.to_owned(),
        format!(r#"{{"payment":{{"request":"{id}","token":"lnbc1"}}}}"#),
        format!(r#"{{"payment":{{"request":"{id}","token":"cashuB\u0000"}}}}"#),
    ] {
        let refused = request::read(&message(&bad, me), &me);
        assert!(
            matches!(&refused, Reading::Refused { failure, .. } if failure.code == Code::InvalidInput),
            "{bad}: {refused:?}"
        );
    }
}

#[test]
fn results_take_the_form_that_was_promised() {
    let given = |result: &str, is_structured: bool| {
        answer::given(result.as_bytes(), is_structured).map_err(|failure| failure.code)
    };
    let both = r#"{"content":[{"type":"text","text":"18"}],"structuredContent":{"n":1.10},"_meta":{}}"#;
    assert_eq!(given(both, true).unwrap(), r#"{"n":1.10}"#, "as the server wrote it");
    assert_eq!(given(both, false).unwrap(), both);
    assert_eq!(given(r#"{"content":[{"type":"text","text":"{\"n\":1}"}]}"#, true).unwrap(), r#"{"n":1}"#);
    assert_eq!(given(r#"{"content":[{"type":"text","text":"18"}]}"#, true), Err(Code::InternalError));
    assert_eq!(
        given(r#"{"structuredContent":{"n":1}}"#, false).unwrap(),
        r#"{"content":[{"text":"{\"n\":1}","type":"text"}],"structuredContent":{"n":1}}"#
    );
}

#[test]
fn answers_are_for_their_customer_and_about_their_request() {
    let (me, customer) = (key(), key());
    let request = EventId::from_byte_array([7; 32]);
    let address = Address { request, customer, command: None };
    let event = answer::write(&address, "{}".into(), false, me, NOW);
    assert_eq!(event.kind, MESSAGE);
    let tags: Vec<&[String]> = event.tags.iter().map(Tag::as_slice).collect();
    assert_eq!(tags, [["p", &customer.to_hex()], ["e", &request.to_hex()]]);
    assert_eq!(answer::read(&event, &customer), Some((Some(request), "{}")));
    assert_eq!(answer::read(&event, &me), None);
    assert_eq!(
        answer::read(&answer::write(&address, "{}".into(), true, me, NOW), &customer),
        Some((Some(request), "{}"))
    );
    let unnamed = UnsignedEvent::new(me, NOW, MESSAGE, [Tag::public_key(customer)], "{}");
    assert_eq!(answer::read(&unnamed, &customer), Some((None, "{}")));
    let ill = UnsignedEvent::new(me, NOW, MESSAGE, [Tag::public_key(customer), Tag::parse(["e", "x"]).unwrap()], "{}");
    assert_eq!(answer::read(&ill, &customer), None);
}

#[test]
fn what_an_answer_says() {
    let result = |text: &str, is_structured: bool| match Answer::read(text, is_structured) {
        Answer::Result(result) => result,
        other => panic!("{text}: {other:?}"),
    };
    let content = r#"{"content":[{"type":"text","text":"x"}],"future":1.10}"#;
    assert_eq!(result(content, false), content);
    assert_eq!(
        result(r#"{"forecast":1.10}"#, true),
        r#"{"content":[{"text":"{\"forecast\":1.10}","type":"text"}],"structuredContent":{"forecast":1.10}}"#
    );
    assert_eq!(result(r#"{"forecast":1}"#, false), result(r#"{"forecast":1}"#, true));
    assert!(result(r#"{"error":"none"}"#, true).contains("structuredContent"), "a tool's own member");
    let no_error = r#"{"content":[{"type":"text","text":"x"}],"error":null}"#;
    assert_eq!(result(no_error, false), no_error);
    assert_eq!(result("hello", false), r#"{"content":[{"text":"hello","type":"text"}]}"#);
    let failure = Failure::new(Code::InvalidInput, "`city` is missing").at("/city");
    let told = answer::failed(&failure);
    assert_eq!(told, r#"{"error":{"code":"invalid_input","message":"`city` is missing","pointer":"/city"}}"#);
    for is_structured in [true, false] {
        let expected = Answer::Failed {
            code: "invalid_input".into(),
            message: failure.message.clone(),
            pointer: Some("/city".into()),
        };
        assert_eq!(Answer::read(&told, is_structured), expected);
    }
    assert!(
        matches!(Answer::read(r#"{"error":"no money"}"#, false), Answer::Failed { message, .. } if message == "no money")
    );
    let no = answer::complained("no", br#"{"content":[{"type":"text","text":"no, and why"}],"isError":true}"#);
    assert_eq!(
        no,
        r#"{"error":{"code":"tool_error","message":"no","content":[{"type":"text","text":"no, and why"}]}}"#
    );
    assert_eq!(result(&no, true), r#"{"content":[{"text":"no, and why","type":"text"}],"isError":true}"#);
    let asked = r#"{"error":{"code":"payment_required","message":"pay","amount_sat":21,"invoice":"lnbc210n1"}}"#;
    let expected = Answer::Payment {
        amount: Some("21".into()),
        invoice: Some("lnbc210n1".into()),
        mints: vec![],
        words: "pay".into(),
    };
    assert_eq!(Answer::read(asked, true), expected);
    let with_mints = asked.replace("\"lnbc210n1\"", "\"lnbc210n1\",\"mints\":[\"https://a\",7,\"https://b\"]");
    assert!(
        matches!(Answer::read(&with_mints, true), Answer::Payment { mints, .. } if mints == ["https://a", "https://b"])
    );
    let invoice = format!("lnbc{}", "1".repeat(60));
    assert!(
        matches!(Answer::read(&format!(" {invoice}\n"), true), Answer::Payment { invoice: Some(found), .. } if found == invoice)
    );
    for bad in ["{", r#"{"a":1,"a":2}"#] {
        assert!(matches!(Answer::read(bad, false), Answer::Unusable(_)), "{bad}");
    }
    assert!(matches!(Answer::read("hello", true), Answer::Unusable(_)));
}
