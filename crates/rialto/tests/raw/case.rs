//! Cases as data: what is sent, and what must come of it.
//!
//! A case is lines to send and the messages to expect, as partial JSON: members that are not named may be there, arrays
//! must have the same length. Short forms keep a row on a line: `$J` is the `jsonrpc` member, `$META` the `_meta` member
//! of a stateless client that can do nothing, `$ASKABLE` that of one whose user can be asked. `"<absent>"` stands for a
//! member that must not be there.

use serde_json::{Value, json};

use crate::wire::{Subject, Wire};

/// The versions that begin with `initialize`.
pub(crate) const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Those of them that still write `"id":null`.
pub(crate) const EARLY: [&str; 3] = ["2024-11-05", "2025-03-26", "2025-06-18"];

/// How a case begins.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Opening {
    /// Not at all: the first line is the first of the case.
    Nothing,
    /// With a handshake, once for each of these versions.
    Handshake(&'static [&'static str]),
    /// With one stateless request.
    Stateless,
}

/// One row: a name, the lines to send, the messages to expect in any order.
pub(crate) type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Writes the short forms out.
pub(crate) fn expand(text: &str) -> String {
    let meta = |capabilities: &str| {
        format!(
            r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{capabilities},"io.modelcontextprotocol/clientInfo":{{"name":"raw","version":"1"}}}}"#
        )
    };
    text.replace("$J", r#""jsonrpc":"2.0""#)
        .replace("$META", &meta("{}"))
        .replace("$ASKABLE", &meta(r#"{"elicitation":{"form":{}}}"#))
}

/// An expectation.
pub(crate) fn pattern(text: &str) -> Value {
    serde_json::from_str(&expand(text)).unwrap_or_else(|error| panic!("{error} in the pattern {text}"))
}

/// Whether `got` has all that `pattern` names.
pub(crate) fn fits(pattern: &Value, got: &Value) -> bool {
    match (pattern, got) {
        (Value::Object(pattern), Value::Object(got)) => pattern.iter().all(|(key, pattern)| {
            let is_absent = pattern == "<absent>";
            got.get(key).map_or(is_absent, |got| !is_absent && fits(pattern, got))
        }),
        (Value::Array(pattern), Value::Array(got)) => {
            pattern.len() == got.len() && pattern.iter().zip(got).all(|(pattern, got)| fits(pattern, got))
        }
        _ => pattern == got,
    }
}

/// Fails unless `got` fits.
pub(crate) fn assert_fits(got: &Value, expected: &str) {
    assert!(fits(&pattern(expected), got), "\nexpected {expected}\ngot      {got}\n");
}

impl Wire {
    /// Sends a line with its short forms written out.
    pub(crate) fn say(&mut self, line: &str) {
        self.send(expand(line));
    }

    /// Sends these lines in one write, so that they are read together however busy the machine is.
    pub(crate) fn say_all(&mut self, lines: &[&str]) {
        self.send_bytes(lines.iter().map(|line| expand(line) + "\n").collect::<String>());
    }

    /// The next message must be this one.
    pub(crate) fn expect(&mut self, expected: &str) -> Value {
        let got = self.next();
        assert_fits(&got, expected);
        got
    }

    /// The next messages must be these, in any order.
    pub(crate) fn expect_all(&mut self, expected: &[&str]) {
        let mut open: Vec<_> = expected.iter().map(|text| pattern(text)).collect();
        while !open.is_empty() {
            let got = self.next();
            let place = open.iter().position(|pattern| fits(pattern, &got));
            let place = place.unwrap_or_else(|| panic!("\nnot expected: {got}\nstill open: {open:#?}\n"));
            open.swap_remove(place);
        }
    }

    fn open(&mut self, opening: Opening, version: &str) {
        match opening {
            Opening::Nothing => {}
            Opening::Handshake(_) => assert_eq!(self.initialize(version, &json!({}))["protocolVersion"], version),
            Opening::Stateless => {
                self.say(r#"{$J,"id":"opening","method":"server/discover","params":{$META}}"#);
                self.expect(r#"{"id":"opening","result":{"resultType":"complete"}}"#);
            }
        }
    }
}

/// Runs every row against both subjects, each in a process of its own. Nothing may come but what is expected, and at the
/// end of input the process must end well.
pub(crate) fn run(opening: Opening, rows: &[Row]) {
    let versions = if let Opening::Handshake(versions) = opening { versions } else { &["2026-07-28"] };
    for (name, lines, expected) in rows {
        for subject in Subject::BOTH {
            for version in versions {
                let mut wire = Wire::start(subject);
                wire.remark(name);
                wire.open(opening, version);
                wire.say_all(lines);
                wire.expect_all(expected);
                wire.finish();
            }
        }
    }
}

#[test]
fn patterns_tell_differences() {
    let got = json!({"id": 1, "result": {"list": [{"a": 1, "b": 2}], "n": null}});
    for (text, expected) in [
        (r#"{"id":1}"#, true),
        (r#"{"result":{"list":[{"a":1}]}}"#, true),
        (r#"{"error":"<absent>"}"#, true),
        (r#"{"result":{"n":null}}"#, true),
        (r#"{"id":2}"#, false),
        (r#"{"id":"1"}"#, false),
        (r#"{"id":"<absent>"}"#, false),
        (r#"{"error":null}"#, false),
        (r#"{"result":{"n":"<absent>"}}"#, false),
        (r#"{"result":{"list":[]}}"#, false),
        (r#"{"result":{"list":[{"a":1},{}]}}"#, false),
        (r#"[{"id":1}]"#, false),
    ] {
        assert_eq!(fits(&pattern(text), &got), expected, "{text}");
    }
}
