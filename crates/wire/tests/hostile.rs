//! Whatever strangers write, reading it never panics. Seeded, so that a failure can be repeated.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use nostr::prelude::{Event, EventId, Keys, Kind, PublicKey, Signature, Tag, Timestamp, UnsignedEvent};
use rialto_wire::dvmcp::announcement::{self, Offer};
use rialto_wire::dvmcp::answer::{self, Outcome, Writer};
use rialto_wire::dvmcp::request::{self, OpenJobs};
use rialto_wire::failure::Code;
use rialto_wire::request::{Address, Command, expiration};
use rialto_wire::{manifest, service, strict};

/// Enough randomness for a test.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    /// A JSON text, mostly valid, of the shapes that requests and answers have.
    fn json(&mut self, depth: usize) -> String {
        const KEYS: [&str; 21] = [
            "name",
            "parameters",
            "arguments",
            "timeout",
            "metadata",
            "_meta",
            "calls",
            "uri",
            "cursor",
            "ref",
            "argument",
            "\\u006eame",
            "tools",
            "progress",
            "parts",
            "tool_name",
            "mcp_version",
            "input_schema",
            "output_schema",
            "error",
            "content",
        ];
        const LEAVES: [&str; 16] = [
            "null",
            "true",
            "false",
            "0",
            "-1",
            "1.5",
            "1e308",
            "1e999",
            "18446744073709551615",
            "184467440737095516160",
            "\"\"",
            "\"x\"",
            "\"\\ud800\"",
            "\"\u{fffd}\\n\\u0000\"",
            "\"é\"",
            "\"{\\\"name\\\":\\\"a\\\"}\"",
        ];
        let count = self.below(4);
        match if depth == 0 { 2 } else { self.below(3) } {
            0 => {
                let member = |noise: &mut Self| format!("\"{}\":{}", noise.pick(&KEYS), noise.json(depth - 1));
                format!("{{{}}}", (0..count).map(|_| member(self)).collect::<Vec<_>>().join(","))
            }
            1 => format!("[{}]", (0..count).map(|_| self.json(depth - 1)).collect::<Vec<_>>().join(",")),
            _ => self.pick(&LEAVES).to_owned(),
        }
    }

    /// The text with a few characters changed, doubled, lost or cut off.
    fn mutated(&mut self, text: &str) -> String {
        let mut characters: Vec<char> = text.chars().collect();
        for _ in 0..self.below(4) {
            if characters.is_empty() {
                break;
            }
            let at = self.below(characters.len());
            match self.below(4) {
                0 => {
                    characters[at] =
                        self.pick(&["\"", "\\", "{", "}", "[", ",", "\0", "é", "9"]).chars().next().unwrap();
                }
                1 => characters.insert(at, characters[at]),
                2 => drop(characters.remove(at)),
                _ => characters.truncate(at),
            }
        }
        characters.into_iter().collect()
    }

    fn tags(&mut self, me: &PublicKey) -> Vec<Tag> {
        let (key, long) = (me.to_hex(), "9".repeat(400));
        let names = ["c", "p", "e", "status", "part", "amount", "invoice", "expiration", "d", "k", "relays", "t", ""];
        let id = EventId::from_byte_array([7; 32]).to_hex();
        let mut values: Vec<&str> = Command::ALL.iter().map(|command| command.name()).collect();
        values.extend([
            &key,
            &id,
            &long,
            "",
            "1",
            "0",
            "256",
            "-1",
            "18446744073709551615",
            "success",
            "error",
            "5910",
        ]);
        values.extend(["payment-required", "list-tools-response", "lnbc1", "é", "nip59"]);
        let tag = |noise: &mut Self| {
            let mut parts = vec![noise.pick(&names)];
            parts.extend((0..noise.below(4)).map(|_| noise.pick(&values)));
            Tag::parse(parts).unwrap()
        };
        (0..self.below(6)).map(|_| tag(self)).collect()
    }

    fn event(&mut self, kind: u16, me: &PublicKey, author: &PublicKey, content: &str) -> UnsignedEvent {
        let created_at = *self.pick(&[&0, &1, &u64::MAX, &(i64::MAX as u64), &1_700_000_000]);
        let mut tags = self.tags(me);
        if self.below(2) == 0 {
            tags.push(Tag::public_key(*me));
            let command = Command::ALL[self.below(Command::ALL.len())];
            tags.insert(0, Tag::parse(["c", command.name()]).unwrap());
        }
        let mut event = UnsignedEvent::new(*author, Timestamp::from(created_at), Kind::from(kind), tags, content);
        event.id = Some(event.compute_id());
        event
    }
}

/// Reads one event in every way that there is.
fn read_all(event: &UnsignedEvent, me: &PublicKey) {
    for open in [OpenJobs::Taken, OpenJobs::Ignored] {
        let _ = request::read(event, me, open);
    }
    let _ = (expiration(event), request::is_addressed(event), answer::read(event));
    let _ = (manifest::request::read(event, me), manifest::answer::read(event, me));
    for is_structured in [true, false] {
        let _ = manifest::answer::Answer::read(&event.content, is_structured);
        let _ = manifest::answer::given(event.content.as_bytes(), is_structured);
    }
    let id = event.id.unwrap();
    let UnsignedEvent { pubkey, created_at, kind, tags, content, .. } = event.clone();
    let _ =
        service::read(&Event::new(id, pubkey, created_at, kind, tags, content, Signature::from_byte_array([1; 64])));
    if let Ok(value) = strict::parse(&event.content) {
        // Whatever a server answers is known to be an object before it comes this far.
        let completed = value.is_object().then(|| answer::completed(event.content.trim().as_bytes(), 0.1));
        assert!(completed.is_none_or(|text| serde_json::from_str::<serde_json::Value>(&text).is_ok()));
        let _ = (answer::read_failure(&value), answer::repaired(value));
    }
    let _ = answer::complaint(event.content.as_bytes());
}

#[test]
fn random_events_are_read_without_a_panic() {
    let (me, author) = (Keys::generate().public_key(), Keys::generate().public_key());
    let mut noise = Noise(0x1234_5678_9abc_def1);
    for _ in 0..6_000 {
        let kind = *noise.pick(&[&5910, &6910, &7000, &31990, &1]);
        let content = noise.json(4);
        let content = noise.mutated(&content);
        read_all(&noise.event(kind, &me, &author, &content), &me);
    }
}

#[test]
fn mutated_good_events_are_read_without_a_panic() {
    let (me, author) = (Keys::generate().public_key(), Keys::generate().public_key());
    let good = [
        (
            5910,
            r#"{"name":"add","parameters":{"a":1},"timeout":18446744073709551615,"metadata":{"_meta":{"x":1},"progress":true}}"#,
        ),
        (5910, r#"{"calls":[{"name":"a","parameters":{}},{"name":"b","arguments":{"é":"\u00e9"}}]}"#),
        (5910, r#""{\"name\":\"a\",\"parameters\":{}}""#),
        (5910, r#"{"ref":{"type":"ref/prompt"},"argument":{"name":"a","value":""},"context":{}}"#),
        (
            6910,
            r#"{"content":[{"type":"image/svg+xml","text":"x"}],"isError":true,"metadata":{"error":{"code":"x","message":"y"}}}"#,
        ),
        (7000, r#"{"progress":1}"#),
        (31990, r#"{"name":"x","about":"y","tools":[{"name":"a","inputSchema":{}}],"resources":[{"uri":"a:b"}]}"#),
    ];
    let mut noise = Noise(0xfeed_beef_cafe_0001);
    for _ in 0..1_000 {
        for (kind, text) in good {
            let content = noise.mutated(text);
            read_all(&noise.event(kind, &me, &author, &content), &me);
        }
    }
}

#[test]
fn whatever_servers_offer_is_announced_and_paged_without_a_panic() {
    let (me, relays) = (Keys::generate().public_key(), ["wss://a".to_owned()]);
    let mut noise = Noise(0xabcd_ef01_2345_6789);
    for round in 0..300 {
        let tools: Vec<Vec<u8>> = (0..noise.below(9)).map(|_| noise.json(4).into_bytes()).collect();
        let offer = Offer {
            id: "x",
            name: "x",
            about: "",
            tools: &tools,
            resources: &tools,
            templates: &tools,
            prompts: &tools,
            relays: &relays,
            mints: &[],
        };
        let _ = offer.write(me, Timestamp::from(round));
        for start in [0, 1, 8, usize::MAX] {
            let _ = announcement::page("tools", &tools, start, noise.below(100));
        }
    }
}

#[test]
fn pieces_of_any_text_make_the_whole() {
    let (me, mut noise) = (Keys::generate().public_key(), Noise(77));
    let address = Address { request: EventId::from_byte_array([1; 32]), customer: me, command: None };
    let writer = Writer { provider: me, relay: None, now: Timestamp::from(1) };
    for _ in 0..300 {
        let text = noise.json(5).repeat(noise.below(30));
        let limit = noise.below(300);
        let parts = writer.parts(&address, Outcome::Success, &text, limit);
        assert_eq!(parts.iter().map(|part| part.content.as_str()).collect::<String>(), text);
    }
    assert!(Code::ALL.iter().all(|code| code.as_str().is_ascii()));
}
