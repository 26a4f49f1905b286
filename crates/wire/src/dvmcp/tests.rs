//! What one end writes, the other reads; what strangers write is understood or refused with the right word.

use super::announcement::{self, MAX_BYTES, Offer};
use super::answer::{self, Answer, Outcome, Progress, Status, Writer};
use super::content;
use super::request::{self, OpenJobs};
use super::{Command, REQUEST};
use crate::failure::{Code, Failure};
use crate::request::{Address, Body, Reading, distinguish};
use nostr::prelude::{Event, Keys, Kind, PublicKey, Signature, Tag, Timestamp, UnsignedEvent};
use rialto_payment::secret::Secret;
use serde_json::{Value, json};
use std::borrow::Cow;

fn key() -> PublicKey {
    Keys::generate().public_key()
}

fn with_id(mut event: UnsignedEvent) -> UnsignedEvent {
    event.id = Some(event.compute_id());
    event
}

fn event(tags: &[&[&str]], content: &str) -> UnsignedEvent {
    let tags: Vec<Tag> = tags.iter().map(|tag| Tag::parse(tag.iter().copied()).unwrap()).collect();
    with_id(UnsignedEvent::new(key(), Timestamp::from(100), REQUEST, tags, content))
}

/// Reads a request with this command and content; gives the body or the error's code.
fn read(command: &str, content: &str) -> Result<Body, &'static str> {
    let me = key();
    match request::read(&event(&[&["c", command], &["p", &me.to_hex()]], content), &me, OpenJobs::Ignored) {
        Reading::Request(request) => Ok(request.body),
        Reading::Refused { failure, .. } => Err(failure.code.as_str()),
        Reading::NotOurs => Err("not ours"),
    }
}

#[test]
fn bad_content_gets_the_right_word() {
    let deep = format!("{{\"name\":\"a\",\"parameters\":{}{}}}", "[".repeat(100), "]".repeat(100));
    let long = format!("{{\"name\":\"a\",\"parameters\":{{\"x\":\"{}\"}}}}", "x".repeat(140_000));
    let many = format!("{{\"calls\":[{}]}}", vec![r#"{"name":"a","parameters":{}}"#; 33].join(","));
    let cases = [
        ("execute-tool", "not json", "invalid_request"),
        ("execute-tool", "", "invalid_request"),
        ("execute-tool", "[1]", "invalid_request"),
        ("execute-tool", "\"just text\"", "invalid_request"),
        ("execute-tool", r#"{"name":"safe","name":"evil","parameters":{}}"#, "invalid_request"),
        ("execute-tool", &deep, "invalid_request"),
        ("execute-tool", &long, "too_large"),
        ("execute-tool", r#"{"parameters":{}}"#, "invalid_input"),
        ("execute-tool", r#"{"name":1,"parameters":{}}"#, "invalid_input"),
        ("execute-tool", r#"{"name":"a"}"#, "invalid_input"),
        ("execute-tool", r#"{"name":"a","parameters":[]}"#, "invalid_input"),
        ("execute-tool", r#"{"name":"a","parameters":{},"timeout":-1}"#, "invalid_input"),
        ("execute-tool", r#"{"name":"a","parameters":{},"timeout":0}"#, "invalid_input"),
        ("execute-tool", r#"{"name":"a","parameters":{},"timeout":1.5}"#, "invalid_input"),
        ("execute-tool", r#"{"name":"a","parameters":{},"timeout":"5"}"#, "invalid_input"),
        ("execute-tool", r#"{"name":"a","parameters":{},"timeout":null}"#, "invalid_input"),
        ("execute-tool", r#"{"name":"a","parameters":{},"metadata":{"_meta":1}}"#, "invalid_input"),
        ("list-tools", r#"{"cursor":1}"#, "invalid_input"),
        ("read-resource", "{}", "invalid_input"),
        ("execute-prompt", r#"{"name":"a","parameters":1}"#, "invalid_input"),
        ("complete", r#"{"ref":{}}"#, "invalid_input"),
        ("cancel-execution", "", "invalid_input"),
        ("pay-execution", r#"{"request":"7","token":"cashuBo2"}"#, "invalid_input"),
        ("pay-execution", &format!(r#"{{"request":"{}","token":"lnbc1"}}"#, "7".repeat(64)), "invalid_input"),
        ("pay-execution", &format!(r#"{{"request":"{}"}}"#, "7".repeat(64)), "invalid_input"),
        ("batch-execute", r#"{"calls":[]}"#, "invalid_input"),
        ("batch-execute", r#"{"calls":[1]}"#, "invalid_input"),
        ("batch-execute", &many, "invalid_input"),
        ("dance", "{}", "unknown_command"),
        ("list-tools-response", "{}", "not ours"),
    ];
    for (command, content, code) in cases {
        assert_eq!(read(command, content).unwrap_err(), code, "{command} {}", &content[..content.len().min(60)]);
    }
}

#[test]
fn good_content_is_understood_in_every_form() {
    let text = r#"{"name":"add","parameters":{"a":0.10,"b":1e2},"timeout":500,"metadata":{"_meta":{"x":1}}}"#;
    for content in [text.to_owned(), serde_json::to_string(text).unwrap(), text.replace("parameters", "arguments")] {
        let Ok(Body::Execute(execution)) = read("execute-tool", &content) else { panic!("{content}") };
        assert_eq!(execution.name, "add");
        assert_eq!(execution.arguments, r#"{"a":0.10,"b":1e2}"#, "numbers stay as they were written");
        assert_eq!(execution.timeout.unwrap().as_millis(), 500);
        assert_eq!(execution.meta.as_deref(), Some("{\"x\":1}"));
    }
    assert_eq!(read("list-tools", "").unwrap(), Body::List { cursor: None });
    assert_eq!(read("list-tools", "{}").unwrap(), Body::List { cursor: None });
    assert_eq!(read("list-prompts", r#"{"cursor":"7"}"#).unwrap(), Body::List { cursor: Some("7".into()) });
    assert_eq!(read("read-resource", r#"{"uri":"a:b"}"#).unwrap(), Body::Read { uri: "a:b".into() });
    let Ok(Body::Batch(calls)) =
        read("batch-execute", r#"{"calls":[{"name":"a","parameters":{}},{"name":"b","parameters":{}}]}"#)
    else {
        panic!("no batch")
    };
    assert_eq!(calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn a_completion_passes_on_what_it_is_and_nothing_else() {
    let content = r#"{"_meta":{"progressToken":1},"argument":{"name":"a"},"ref":{"type":"ref/prompt"},"x":1}"#;
    let Ok(Body::Complete { params }) = read("complete", content) else { panic!("not read") };
    assert_eq!(params, r#"{"ref":{"type":"ref/prompt"},"argument":{"name":"a"}}"#);
}

#[test]
fn a_pointer_of_any_length_does_not_make_the_answer_long() {
    let failure = Failure::new(Code::InvalidInput, "no").at("/x".repeat(60_000));
    assert!(answer::failed(&failure).len() < 500);
}

#[test]
fn only_requests_to_us_are_ours() {
    let me = key();
    let (mine, other) = (me.to_hex(), key().to_hex());
    let run = r#"{"name":"a","parameters":{}}"#;
    let check = |tags: &[&[&str]], content: &str, open: OpenJobs, expected: bool| {
        let is_ours = request::read(&event(tags, content), &me, open) != Reading::NotOurs;
        assert_eq!(is_ours, expected, "{tags:?}");
    };
    check(&[&["c", "execute-tool"], &["p", &mine]], run, OpenJobs::Ignored, true);
    check(&[&["c", "execute-tool"], &["p", &other]], run, OpenJobs::Ignored, false);
    check(&[&["c", "execute-tool"], &["p", &other], &["p", &mine]], run, OpenJobs::Ignored, true);
    check(&[&["c", "execute-tool"]], run, OpenJobs::Ignored, false);
    check(&[&["c", "execute-tool"]], run, OpenJobs::Taken, true);
    check(&[&["c", "pay-execution"]], "{}", OpenJobs::Taken, false);
    check(&[&["c", "list-tools"]], "", OpenJobs::Ignored, true);
    check(&[&["c", "list-tools"], &["p", &other]], "", OpenJobs::Ignored, false);
    check(&[&["p", &mine]], run, OpenJobs::Ignored, true);
    check(&[&["p", "zz"], &["c", "list-tools"]], "", OpenJobs::Ignored, false);
}

#[test]
fn every_request_that_we_write_we_read() {
    let (provider, customer) = (key(), key());
    for command in Command::ALL {
        let content = match command {
            Command::ExecuteTool => r#"{"name":"a","parameters":{}}"#,
            Command::BatchExecute => r#"{"calls":[{"name":"a","parameters":{}}]}"#,
            Command::ReadResource => r#"{"uri":"a"}"#,
            Command::ExecutePrompt => r#"{"name":"a"}"#,
            Command::Complete => r#"{"ref":{},"argument":{}}"#,
            _ => "",
        };
        let now = Timestamp::from(5);
        let target = with_id(event(&[&["c", "x"]], "")).id.unwrap();
        let written = match command {
            Command::CancelExecution => request::write_cancel(target, provider, customer, now),
            Command::PayExecution => {
                let content = content::payment(target, &Secret::new("cashuBo2"));
                request::write(command, Some(provider), content, customer, now)
            }
            _ => request::write(command, Some(provider), content.to_owned(), customer, now),
        };
        let Reading::Request(request) = request::read(&with_id(written), &provider, OpenJobs::Ignored) else {
            panic!("{command:?} is not read")
        };
        assert_eq!(request.address.command, Some(command));
        assert_eq!(request.address.customer, customer);
    }
}

#[test]
fn contents_that_we_write_we_read() {
    let execute = content::Execute {
        name: "a\"b",
        arguments: br#"{"n":0.30}"#,
        timeout: Some(std::time::Duration::from_secs(2)),
        progress: true,
        meta: Some(br#"{"x":1}"#),
    };
    let (me, customer) = (key(), key());
    let mut request = request::write(Command::ExecuteTool, Some(me), execute.write(), customer, Timestamp::from(5));
    distinguish(&mut request, "1");
    let Reading::Request(request) = request::read(&with_id(request), &me, OpenJobs::Ignored) else { panic!() };
    assert!(request.progress && request.parts);
    let Body::Execute(execution) = request.body else { panic!() };
    assert_eq!((execution.name.as_str(), execution.arguments.as_str()), ("a\"b", r#"{"n":0.30}"#));
    assert_eq!(execution.timeout.unwrap().as_millis(), 2000);
    assert_eq!(execution.meta.as_deref(), Some("{\"x\":1}"));
    assert_eq!(read("read-resource", &content::read("a:b")).unwrap(), Body::Read { uri: "a:b".into() });
    let prompt = Body::Prompt { name: "p".into(), arguments: Some("{\"k\":\"v\"}".into()) };
    assert_eq!(read("execute-prompt", &content::prompt("p", Some(b"{\"k\":\"v\"}"))).unwrap(), prompt);
}

#[test]
fn a_payment_names_its_request_and_does_not_show_its_token() {
    let target = event(&[], "").id.unwrap();
    let token = Secret::new("cashuBo2FteBtodHRw-_=");
    let paid = read("pay-execution", &content::payment(target, &token)).unwrap();
    assert!(!format!("{paid:?}").contains("cashu"), "{paid:?}");
    assert_eq!(paid, Body::Pay { target, token });
}

#[test]
fn a_demand_names_mints() {
    let request = event(&[&["c", "x"]], "").id.unwrap().to_hex();
    let long = format!("https://{}", "m".repeat(600));
    let tags = [
        &["e", &request][..],
        &["status", "payment-required", "5 sat"],
        &["amount", "5", "lnbc50n1x"],
        &["mint", "https://mint.example"],
        &["mint", &long],
        &["mint", "https://other.example/a b"],
        &["mint"],
        &["mint", "https://third.example"],
    ];
    let mut demand = event(&tags, "");
    demand.kind = Kind::Custom(7000);
    let Some((_, Answer::Feedback(feedback))) = answer::read(&demand) else { panic!() };
    assert_eq!(feedback.mints, ["https://mint.example", "https://third.example"]);
    assert_eq!(feedback.invoice.as_deref(), Some("lnbc50n1x"));
}

#[test]
fn equal_requests_have_different_ids() {
    let (me, customer) = (key(), key());
    let id = |salt: &str| {
        let mut request = request::write(Command::ListTools, Some(me), String::new(), customer, Timestamp::from(5));
        distinguish(&mut request, salt);
        request.compute_id()
    };
    assert_ne!(id("1"), id("2"));
}

#[test]
fn a_response_with_the_kind_of_requests_is_a_response() {
    let request = event(&[&["c", "x"]], "").id.unwrap().to_hex();
    let literal = event(&[&["c", "list-tools-response"], &["e", &request]], "{\"tools\":[]}");
    assert!(matches!(answer::read(&literal), Some((_, Answer::Response { .. }))));
    assert_eq!(answer::read(&event(&[&["c", "list-tools"], &["e", &request]], "")), None);
}

#[test]
fn demands_for_payment_are_read_in_both_forms() {
    let request = event(&[&["c", "x"]], "").id.unwrap().to_hex();
    for tags in
        [vec![vec!["amount", "21", "lnbc210n1"]], vec![vec!["amount", "21", "sats"], vec!["invoice", "lnbc210n1"]]]
    {
        let mut all = vec![vec!["status", "payment-required", "pay"], vec!["e", request.as_str()]];
        all.extend(tags);
        let tags: Vec<Tag> = all.into_iter().map(|tag| Tag::parse(tag).unwrap()).collect();
        let event = UnsignedEvent::new(key(), Timestamp::from(1), Kind::from(7000), tags, "");
        let Some((_, Answer::Feedback(feedback))) = answer::read(&event) else { panic!() };
        assert_eq!(feedback.status, Status::PaymentRequired);
        assert_eq!((feedback.amount.as_deref(), feedback.invoice.as_deref()), (Some("21"), Some("lnbc210n1")));
    }
}

fn writer() -> (Writer, Address) {
    let (provider, customer) = (key(), key());
    let request = event(&[&["c", "execute-tool"]], "").id.unwrap();
    let address = Address { request, customer, command: Some(Command::ExecuteTool) };
    (Writer { provider, relay: Some("wss://r".into()), now: Timestamp::from(9) }, address)
}

fn tags(event: &UnsignedEvent) -> Vec<Vec<String>> {
    event.tags.iter().map(|tag| tag.as_slice().to_vec()).collect()
}

#[test]
fn answers_have_the_tags_of_the_protocol() {
    let (writer, address) = writer();
    let (id, customer) = (address.request.to_hex(), address.customer.to_hex());
    let about = json!([["e", id, "wss://r"], ["p", customer]]);
    let check = |event: UnsignedEvent, kind: u16, first: Value, last: Value, content: &str| {
        let all: Vec<Value> =
            [&first, &about, &last].into_iter().flat_map(|part| part.as_array().unwrap().clone()).collect();
        assert_eq!(event.kind, Kind::from(kind));
        assert_eq!(json!(tags(&event)), Value::Array(all));
        assert_eq!(event.content, content);
    };
    check(writer.feedback(&address, &Progress::Begun), 7000, json!([["status", "processing"]]), json!([]), "");
    check(writer.feedback(&address, &Progress::Succeeded), 7000, json!([["status", "success"]]), json!([]), "");
    let step = Progress::Step { params: "{\"progress\":1}", words: Cow::Borrowed("one") };
    check(
        writer.feedback(&address, &step),
        7000,
        json!([["status", "processing", "one"]]),
        json!([]),
        "{\"progress\":1}",
    );
    let [feedback, response] = writer.failure(&address, &Failure::new(Code::InvalidInput, "`a` is missing").at("/a"));
    check(feedback, 7000, json!([["status", "error", "invalid_input: `a` is missing"]]), json!([]), "");
    let content: Value = serde_json::from_str(&response.content).unwrap();
    assert_eq!(content["isError"], true);
    assert_eq!(
        content["metadata"]["error"],
        json!({ "code": "invalid_input", "message": "`a` is missing", "pointer": "/a" })
    );
    let success = writer.response(&address, Outcome::Success, "{}");
    check(success, 6910, json!([["c", "execute-tool-response"]]), json!([["status", "success"]]), "{}");
}

#[test]
fn answers_are_read_as_they_were_written() {
    let (writer, address) = writer();
    let Some((id, Answer::Feedback(feedback))) = answer::read(&writer.feedback(&address, &Progress::Begun)) else {
        panic!()
    };
    assert_eq!((id, feedback.status), (address.request, Status::Processing));
    let response = answer::read(&writer.response(&address, Outcome::Error, "x"));
    let expected = Answer::Response { content: "x".into(), outcome: Some(Outcome::Error) };
    assert_eq!(response, Some((address.request, expected)));
    let text = "ä\"\\\n".repeat(1000);
    let parts = writer.parts(&address, Outcome::Success, &text, 700);
    assert!(parts.len() > 9);
    let mut whole = String::new();
    for (index, part) in parts.iter().enumerate() {
        assert!(serde_json::to_string(&part.content).unwrap().len() <= 700);
        let Some((_, Answer::Part { number, of, digest, content })) = answer::read(part) else { panic!() };
        assert_eq!((number, of), (index + 1, parts.len()));
        assert_eq!(digest, answer::digest(&text));
        whole.push_str(&content);
    }
    assert_eq!(whole, text);
}

#[test]
fn a_result_loses_nothing_and_gains_what_is_missing() {
    let result = br#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"n":0.30},"future":[1]}"#;
    let content = answer::completed(result, 0.5);
    assert!(content.contains("\"structuredContent\":{\"n\":0.30},\"future\":[1]"), "{content}");
    let value: Value = serde_json::from_str(&content).unwrap();
    assert_eq!(value["isError"], false);
    assert_eq!(value["metadata"], json!({ "processing_time": 0.5 }));
    let server = br#"{"content":[],"isError":false,"metadata":{"cost":2}}"#;
    let value: Value = serde_json::from_str(&answer::completed(server, 1.5)).unwrap();
    assert_eq!(value["metadata"], json!({ "processing_time": 1.5, "cost": 2 }));
    let own = br#"{"isError":true,"metadata":1,"content":[{"type":"text","text":"no"}]}"#;
    assert_eq!(answer::completed(own, 1.0).as_bytes(), own);
    assert_eq!(answer::complaint(own).as_deref(), Some("no"));
    assert_eq!(answer::complaint(result), None);
}

fn signed(unsigned: UnsignedEvent) -> Event {
    let id = unsigned.compute_id();
    let signature = Signature::from_byte_array([1; 64]);
    Event::new(id, unsigned.pubkey, unsigned.created_at, unsigned.kind, unsigned.tags, unsigned.content, signature)
}

/// An offer of `count` tools with descriptions of this length.
fn tools(count: usize, length: usize) -> Vec<Vec<u8>> {
    let tool = |index: usize| json!({ "name": format!("tool_{index}"), "description": "d".repeat(length), "inputSchema": { "type": "object" } });
    (0..count).map(|index| tool(index).to_string().into_bytes()).collect()
}

#[test]
fn announcements_stay_small_and_say_what_they_can() {
    for (count, length, has_schemas) in [(3, 10, true), (300, 50, false), (300, 5000, false), (20_000, 10, false)] {
        let tools = tools(count, length);
        let relays = ["wss://a".to_owned()];
        let offer = Offer {
            id: "weather",
            name: "Weather",
            about: "Forecasts",
            tools: &tools,
            resources: &[],
            templates: &[],
            prompts: &[],
            relays: &relays,
            mints: &[],
        };
        let event = signed(offer.write(key(), Timestamp::from(3)));
        assert!(event.as_json().len() < MAX_BYTES * 2, "{count} tools: {} bytes", event.as_json().len());
        let service = announcement::read(&event).unwrap();
        assert_eq!((service.id.as_str(), service.name.as_str(), service.sealed), ("weather", "Weather", true));
        assert!(!service.tools.is_empty());
        assert_eq!(service.tools[0].contains("inputSchema"), has_schemas, "{count} tools");
        if count <= 300 {
            assert_eq!(service.tools.len(), count);
        }
    }
}

#[test]
fn lists_come_in_pages() {
    let tools = tools(100, 500);
    let (mut start, mut names, mut pages) = (0, Vec::new(), 0);
    loop {
        let text = announcement::page("tools", &tools, start, 10_000);
        assert!(serde_json::to_string(&text).unwrap().len() <= 10_000);
        let page: Value = serde_json::from_str(&text).unwrap();
        names.extend(page["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        pages += 1;
        match page.get("nextCursor") {
            Some(cursor) => start = cursor.as_str().unwrap().parse().unwrap(),
            None => break,
        }
    }
    assert_eq!(names.len(), 100);
    assert!(pages > 4);
}

#[test]
fn items_of_types_that_mcp_does_not_have_become_resources() {
    let content =
        json!({ "content": [{ "type": "image/svg+xml", "text": "<svg/>" }, { "type": "text", "text": "x" }] });
    let repaired = answer::repaired(content);
    assert_eq!(repaired["content"][0]["type"], "resource");
    assert_eq!(repaired["content"][0]["resource"]["mimeType"], "image/svg+xml");
    assert_eq!(repaired["content"][1], json!({ "type": "text", "text": "x" }));
}
