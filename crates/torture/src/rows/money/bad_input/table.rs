//! Texts that are wrong, one for each way and each wire, with what must be answered. Where the protocol pages say something else
//! than the table of the scoreboard, the pages decide.

use serde_json::json;

/// What an MCP host is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Local {
    /// There is no such thing as this mistake there.
    No,
    /// An error with this number.
    Number(i64),
    /// A tool result with `isError`.
    Result,
}

/// One mistake. A text that is absent cannot be written on that wire.
pub(super) struct Text {
    pub(super) number: u8,
    pub(super) what: &'static str,
    /// The `c` tag; none for a request without one.
    pub(super) command: Option<&'static str>,
    pub(super) job: Option<String>,
    pub(super) message: Option<String>,
    /// What a customer is told over both.
    pub(super) code: &'static str,
    /// Where in the arguments the mistake is, if that must be told.
    pub(super) pointer: Option<&'static str>,
    /// A line to an MCP server; the answer.
    pub(super) line: Option<String>,
    pub(super) local: Local,
    /// Whether it can be sealed: NIP-44 ends at 64 KiB.
    pub(super) fits_into_a_seal: bool,
    /// Whether the gateway must find it; names and arguments are read by the server behind it.
    pub(super) is_for_the_gateway: bool,
}

impl Text {
    fn new(number: u8, what: &'static str, code: &'static str) -> Self {
        Self {
            number,
            what,
            command: Some("execute-tool"),
            job: None,
            message: None,
            code,
            pointer: None,
            line: None,
            local: Local::No,
            fits_into_a_seal: true,
            is_for_the_gateway: !matches!(number, 13 | 15..=18),
        }
    }

    fn job(self, text: impl Into<String>) -> Self {
        Self { job: Some(text.into()), ..self }
    }

    fn message(self, text: impl Into<String>) -> Self {
        Self { message: Some(text.into()), ..self }
    }

    fn line(self, text: impl Into<String>, local: Local) -> Self {
        Self { line: Some(text.into()), local, ..self }
    }

    /// The same call with a mistake in its arguments, over every wire.
    fn arguments(number: u8, what: &'static str, tool: &str, arguments: &str, pointer: Option<&'static str>) -> Self {
        let call = format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
        let text = Self::new(number, what, "invalid_input")
            .job(format!(r#"{{"name":"{tool}","parameters":{arguments}}}"#))
            .message(format!(r#"{{"tool_name":"{tool}","arguments":{arguments}}}"#))
            .line(calling(&call), Local::Result);
        Self { pointer, ..text }
    }
}

/// A call, as an MCP host writes it. The id is put in when it is sent.
fn calling(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{params}}}"#)
}

/// Lines of this length are more than a server reads.
const TOO_LONG: usize = 16 * 1024 * 1024 + 1;

/// All of them; `with_long_lines` also those whose length makes them slow.
pub(super) fn texts(with_long_lines: bool) -> Vec<Text> {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let long = "x".repeat(128 * 1024 + 1);
    let long_line =
        |length: usize| calling(&json!({ "name": "note", "arguments": { "text": "x".repeat(length) } }).to_string());
    let mut texts = vec![
        Text::new(5, "no JSON", "invalid_request")
            .job("no JSON")
            .message("{no JSON")
            .line("no JSON", Local::Number(-32700)),
        Text::new(5, "half of it", "invalid_request")
            .job(r#"{"name":"note","parameters":{}"#)
            .message(r#"{"tool_name":"note","arguments":{}"#)
            .line(r#"{"jsonrpc":"2.0","id":ID,"method":"ping""#, Local::Number(-32700)),
        Text::new(6, "a number", "invalid_request").job("7").line("7", Local::Number(-32600)),
        Text::new(6, "a list", "invalid_request").job("[7]").message("[7]").line("[]", Local::Number(-32600)),
        Text::new(7, "a key twice", "invalid_request")
            .job(r#"{"name":"note","name":"nap","parameters":{}}"#)
            .message(r#"{"tool_name":"note","tool_name":"nap","arguments":{}}"#)
            .line(r#"{"jsonrpc":"2.0","id":ID,"method":"ping","method":"tools/list"}"#, Local::Number(-32600)),
        Text::new(7, "a key of the arguments twice", "invalid_request")
            .job(r#"{"name":"note","parameters":{"text":"a","text":"b"}}"#)
            .message(r#"{"tool_name":"note","arguments":{"text":"a","text":"b"}}"#)
            .line(calling(r#"{"name":"note","arguments":{"text":"a","text":"b"}}"#), Local::Result),
        Text::new(8, "nested too deep", "invalid_request")
            .job(format!(r#"{{"name":"note","parameters":{{"text":{}}}}}"#, nested(70)))
            .message(format!(r#"{{"tool_name":"note","arguments":{{"text":{}}}}}"#, nested(70)))
            .line(
                calling(&format!(r#"{{"name":"note","arguments":{{"text":{}}}}}"#, nested(130))),
                Local::Number(-32700),
            ),
        Text {
            fits_into_a_seal: false,
            ..Text::new(9, "too long", "too_large")
                .job(json!({ "name": "note", "parameters": { "text": long } }).to_string())
                .message(json!({ "tool_name": "note", "arguments": { "text": long } }).to_string())
        },
        Text {
            command: None,
            ..Text::new(10, "no command", "invalid_request").job(r#"{"name":"note","parameters":{}}"#)
        },
        Text { command: Some("frobnicate"), ..Text::new(11, "an unknown command", "unknown_command").job("{}") }
            .line(r#"{"jsonrpc":"2.0","id":ID,"method":"frobnicate"}"#, Local::Number(-32601)),
        Text::new(12, "no name", "invalid_input")
            .job(r#"{"parameters":{}}"#)
            .message(r#"{"arguments":{}}"#)
            .line(calling(r#"{"arguments":{}}"#), Local::Number(-32602)),
        Text::new(12, "a name that is a number", "invalid_input")
            .job(r#"{"name":7,"parameters":{}}"#)
            .message(r#"{"tool_name":7,"arguments":{}}"#)
            .line(calling(r#"{"name":7,"arguments":{}}"#), Local::Number(-32602)),
        Text::new(13, "an unknown tool", "unknown_tool")
            .job(r#"{"name":"no_such_tool","parameters":{}}"#)
            .message(r#"{"tool_name":"no_such_tool","arguments":{}}"#)
            .line(calling(r#"{"name":"no_such_tool","arguments":{}}"#), Local::Number(-32602)),
        // An MCP host may leave them out.
        Text::new(15, "no arguments", "invalid_input").job(r#"{"name":"note"}"#).message(r#"{"tool_name":"note"}"#),
        Text::new(15, "arguments that are a text", "invalid_input")
            .job(r#"{"name":"note","parameters":"{}"}"#)
            .message(r#"{"tool_name":"note","arguments":"{}"}"#)
            .line(calling(r#"{"name":"note","arguments":"{}"}"#), Local::Number(-32602)),
        Text::arguments(16, "a property is missing", "strict", "{}", Some("/city")),
        Text::arguments(17, "a wrong type", "strict", r#"{"city":7}"#, Some("/city")),
        Text::arguments(17, "not in the list", "strict", r#"{"city":"Rome","unit":"K"}"#, Some("/unit")),
        Text::arguments(17, "not of the pattern", "strict", r#"{"city":"Rome","code":"rm"}"#, Some("/code")),
        Text::arguments(17, "inside of another", "strict", r#"{"city":"Rome","at":{"lat":"n"}}"#, Some("/at/lat")),
        Text::arguments(18, "a property more", "strict", r#"{"city":"Rome","extra":1}"#, None),
    ];
    for timeout in ["-1", "0", "1.5", "\"1000\"", "null", "-1e300"] {
        let job = format!(r#"{{"name":"note","parameters":{{}},"timeout":{timeout}}}"#);
        texts.push(Text::new(19, "a time that is none", "invalid_input").job(job));
    }
    for timeout in ["NaN", "Infinity"] {
        let job = format!(r#"{{"name":"note","parameters":{{}},"timeout":{timeout}}}"#);
        texts.push(Text::new(19, "a time that is no JSON", "invalid_request").job(job));
    }
    if with_long_lines {
        let line = long_line(TOO_LONG);
        texts.push(Text::new(9, "a line that is too long", "").line(line, Local::Number(-32600)));
    }
    texts
}
