//! JSON-RPC envelopes around payloads that stay as they are.
//!
//! A message owns its text and knows where its parts stand in it. Passing it on means copying that text with the id, and
//! perhaps a name, replaced ([`Request::write`]): fields nobody knows, the spelling of numbers and the order of keys
//! survive because nobody touched them.

use crate::id::Id;
use crate::json::{self, Flaw, Members};
use crate::version::Version;
use bytes::Bytes;
use std::ops::Range;

/// A replacement inside a message's text.
pub type Edit<'a> = (Range<usize>, &'a [u8]);

/// What one line (or one HTTP body) held.
#[derive(Debug, Clone)]
pub enum Incoming {
    Single(Result<Message, Malformed>),
    /// An array with at least one member.
    Batch(Vec<Result<Message, Malformed>>),
}

/// One well-formed message.
#[derive(Debug, Clone)]
pub enum Message {
    Request(Request),
    Notification(Notification),
    Response(Response),
}

/// Something that is no message, and how to answer it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    pub problem: Problem,
    pub reason: String,
    pub id: Option<Id>,
}

/// What is wrong with something [`Malformed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// Not JSON at all.
    Syntax,
    /// JSON, but not an envelope.
    Envelope,
    /// Meant as a response. It must not be answered: two peers could answer each other for ever.
    Response,
}

/// A request: it has an id and is answered.
#[derive(Debug, Clone)]
pub struct Request {
    text: Bytes,
    pub id: Id,
    id_place: Range<usize>,
    method: Bytes,
    params: Option<Range<usize>>,
}

/// A notification: no id, no answer.
#[derive(Debug, Clone)]
pub struct Notification {
    text: Bytes,
    method: Bytes,
    params: Option<Range<usize>>,
}

/// The answer to a request.
#[derive(Debug, Clone)]
pub struct Response {
    text: Bytes,
    /// Absent when the peer could not read the id of what it answers.
    pub id: Option<Id>,
    id_place: Option<Range<usize>>,
    outcome: Range<usize>,
    is_error: bool,
}

impl Request {
    pub fn method(&self) -> &str {
        text(&self.method)
    }

    /// The params object, or `{}` where there is none.
    pub fn params(&self) -> &[u8] {
        params(&self.text, self.params.as_ref())
    }

    /// Where the params start in the message's text; absent if it has none.
    fn params_start(&self) -> Option<usize> {
        self.params.as_ref().map(|place| place.start)
    }

    /// Writes the message with another id and with `edits` (in order of place, counted from the start of the params).
    /// Where the message has no params, `edits` must be empty.
    pub fn write(&self, out: &mut Vec<u8>, id: &[u8], edits: &[Edit<'_>]) {
        let start = self.params_start().unwrap_or(0);
        let place = &self.id_place;
        // The params lie before or behind the id as a whole, and so do the edits.
        let before_id = start < place.start;
        let mut at = 0;
        let mut replace = |place: Range<usize>, with: &[u8]| {
            out.extend_from_slice(&self.text[at..place.start]);
            out.extend_from_slice(with);
            at = place.end;
        };
        if !before_id {
            replace(place.clone(), id);
        }
        for (edit, with) in edits {
            replace(edit.start + start..edit.end + start, with);
        }
        if before_id {
            replace(place.clone(), id);
        }
        out.extend_from_slice(&self.text[at..]);
    }
}

impl Notification {
    pub fn method(&self) -> &str {
        text(&self.method)
    }

    /// The params object, or `{}` where there is none.
    pub fn params(&self) -> &[u8] {
        params(&self.text, self.params.as_ref())
    }

    /// The whole message.
    pub fn as_json(&self) -> &[u8] {
        &self.text
    }

    /// Writes the message with `edits`, counted from the start of the params (which must be there if there are any).
    pub fn write(&self, out: &mut Vec<u8>, edits: &[Edit<'_>]) {
        let start = self.params.as_ref().map_or(0, |place| place.start);
        let moved: Vec<_> = edits.iter().map(|(place, with)| (place.start + start..place.end + start, *with)).collect();
        json::splice(out, &self.text, &moved);
    }
}

impl Response {
    /// The result as it was sent, if it is one.
    pub fn result(&self) -> Option<&[u8]> {
        (!self.is_error).then(|| &self.text[self.outcome.clone()])
    }

    /// The error object as it was sent, if it is one.
    pub fn error(&self) -> Option<&[u8]> {
        self.is_error.then(|| &self.text[self.outcome.clone()])
    }

    /// The response with another result; everything around it stays.
    #[must_use]
    pub fn with_result(&self, result: &[u8]) -> Self {
        let mut text = Vec::with_capacity(self.text.len() + result.len());
        json::splice(&mut text, &self.text, &[(self.outcome.clone(), result)]);
        let grown = text.len() as isize - self.text.len() as isize;
        let moved = |place: Range<usize>| {
            let by = if place.start > self.outcome.start { grown } else { 0 };
            place.start.wrapping_add_signed(by)..place.end.wrapping_add_signed(by)
        };
        Self {
            id: self.id.clone(),
            id_place: self.id_place.clone().map(moved),
            outcome: self.outcome.start..self.outcome.start + result.len(),
            is_error: self.is_error,
            text: Bytes::from(text),
        }
    }

    /// Writes the message with another id.
    pub fn write(&self, out: &mut Vec<u8>, id: &Id) {
        match &self.id_place {
            Some(place) => json::splice(out, &self.text, &[(place.clone(), id.as_json())]),
            None => {
                let mut member = b"\"id\":".to_vec();
                member.extend_from_slice(id.as_json());
                out.extend_from_slice(&json::with_members(&self.text, &member));
            }
        }
    }
}

fn text(bytes: &[u8]) -> &str {
    // The whole message was checked to be UTF-8, and the parts are cut at quotes.
    std::str::from_utf8(bytes).unwrap_or_default()
}

fn params<'a>(text: &'a [u8], place: Option<&Range<usize>>) -> &'a [u8] {
    place.map_or(b"{}", |place| &text[place.clone()])
}

/// Reads one message or batch.
///
/// Raw carriage returns and line feeds, which JSON allows between tokens, become spaces: some peers take either for the end
/// of a line, and would read one message that we pass on as several.
pub fn parse(line: Bytes) -> Incoming {
    let line = if memchr::memchr2(b'\r', b'\n', &line).is_some() {
        // Within a string they are as wrong as any other control character, and no space must take their place.
        if let Err(flaw) = json::check(&line) {
            return Incoming::Single(Err(syntax(&flaw)));
        }
        without_breaks(&line)
    } else {
        line
    };
    if let Err(error) = std::str::from_utf8(&line) {
        let reason = format!("not UTF-8 at byte {}", error.valid_up_to());
        return Incoming::Single(Err(Malformed { problem: Problem::Syntax, reason, id: None }));
    }
    let start = json::skip_space(&line, 0);
    match line.get(start) {
        Some(b'{') => Incoming::Single(parse_object(line)),
        Some(b'[') => parse_batch(&line),
        _ => Incoming::Single(Err(parse_other(&line))),
    }
}

fn without_breaks(line: &[u8]) -> Bytes {
    line.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }).collect()
}

fn syntax(flaw: &Flaw) -> Malformed {
    Malformed { problem: Problem::Syntax, reason: flaw.to_string(), id: None }
}

fn parse_other(line: &[u8]) -> Malformed {
    match json::check(line) {
        Err(flaw) => syntax(&flaw),
        Ok(_) => envelope("a message must be an object".into(), None),
    }
}

fn envelope(reason: String, id: Option<Id>) -> Malformed {
    Malformed { problem: Problem::Envelope, reason, id }
}

fn parse_batch(line: &Bytes) -> Incoming {
    let places = match json::check(line).and_then(|_| json::elements(line)) {
        Ok(places) => places,
        Err(flaw) => return Incoming::Single(Err(syntax(&flaw))),
    };
    if places.is_empty() {
        return Incoming::Single(Err(envelope("a batch must not be empty".into(), None)));
    }
    let member = |place: Range<usize>| {
        let text = line.slice(place);
        if text.first() == Some(&b'{') { parse_object(text) } else { Err(parse_other(&text)) }
    };
    Incoming::Batch(places.into_iter().map(member).collect())
}

/// The parts of an envelope as they were found.
#[derive(Default)]
struct Parts {
    jsonrpc: Option<Range<usize>>,
    id: Option<Range<usize>>,
    method: Option<Range<usize>>,
    params: Option<Range<usize>>,
    result: Option<Range<usize>>,
    error: Option<Range<usize>>,
    repeated: Option<&'static str>,
}

impl Parts {
    fn find(text: &[u8]) -> Result<Self, Flaw> {
        let mut parts = Self::default();
        let mut members = Members::of(text);
        for member in members.by_ref() {
            let member = member?;
            let fields = [
                ("jsonrpc", &mut parts.jsonrpc),
                ("id", &mut parts.id),
                ("method", &mut parts.method),
                ("params", &mut parts.params),
                ("result", &mut parts.result),
                ("error", &mut parts.error),
            ];
            for (name, field) in fields {
                if member.is(name) {
                    if field.replace(member.value.clone()).is_some() {
                        parts.repeated = Some(name);
                    }
                    break;
                }
                // Some readers ignore case: what we see must be what they see.
                if member.resembles(name) {
                    parts.repeated = Some(name);
                }
            }
        }
        let end = members.end().unwrap_or(0);
        let rest = json::skip_space(text, end);
        if rest != text.len() {
            return Err(Flaw { at: rest, kind: json::FlawKind::Trailing });
        }
        Ok(parts)
    }
}

fn parse_object(text: Bytes) -> Result<Message, Malformed> {
    let parts = Parts::find(&text).map_err(|flaw| syntax(&flaw))?;
    let id = parts.id.clone().and_then(|place| Id::read(text.slice(place)));
    let is_response = parts.method.is_none() && (parts.result.is_some() || parts.error.is_some());
    let bad = |reason: &str| {
        let problem = if is_response { Problem::Response } else { Problem::Envelope };
        Malformed { problem, reason: reason.to_owned(), id: id.clone() }
    };
    if let Some(name) = parts.repeated {
        return Err(Malformed { id: None, ..bad(&format!("`{name}` is given twice, or in another spelling")) });
    }
    if parts.jsonrpc.and_then(|place| json::string(&text[place])).as_deref() != Some("2.0") {
        return Err(bad("`jsonrpc` must be \"2.0\""));
    }
    if is_response {
        return parse_response(text.clone(), parts.id, parts.result, parts.error, id.clone()).map_err(bad);
    }
    let Some(method) = parts.method else { return Err(bad("`method` is missing")) };
    let Some(name) = json::string(&text[method.clone()]) else { return Err(bad("`method` must be a string")) };
    if parts.result.is_some() || parts.error.is_some() {
        return Err(bad("a message is either a request or a response"));
    }
    let method = match name {
        std::borrow::Cow::Borrowed(_) => text.slice(method.start + 1..method.end - 1),
        std::borrow::Cow::Owned(name) => Bytes::from(name.into_bytes()),
    };
    let params = match parts.params {
        Some(place) if text[place.start] == b'{' => Some(place),
        // Some clients write `null` for no params.
        Some(place) if text[place.start] == b'n' => None,
        Some(_) => return Err(bad("`params` must be an object")),
        None => None,
    };
    match (parts.id, id) {
        (None, _) => Ok(Message::Notification(Notification { text, method, params })),
        (Some(id_place), Some(id)) => Ok(Message::Request(Request { text, id, id_place, method, params })),
        (Some(_), None) => Err(envelope("`id` must be a string or an integer".into(), None)),
    }
}

fn parse_response(
    text: Bytes,
    id_place: Option<Range<usize>>,
    result: Option<Range<usize>>,
    error: Option<Range<usize>>,
    id: Option<Id>,
) -> Result<Message, &'static str> {
    // Many libraries write the one that is not there as `null`.
    let is_null = |place: &Range<usize>| text[place.start] == b'n';
    let (outcome, is_error) = match (result, error) {
        (Some(result), None) => (result, false),
        (None, Some(error)) => (error, true),
        (Some(result), Some(error)) if is_null(&error) => (result, false),
        (Some(result), Some(error)) if is_null(&result) => (error, true),
        _ => return Err("a response has either a result or an error"),
    };
    if id.is_none() {
        let is_null = id_place.as_ref().is_none_or(|place| text[place.start] == b'n');
        if !is_error || !is_null {
            return Err("`id` must be a string or an integer");
        }
    }
    Ok(Message::Response(Response { text, id, id_place, outcome, is_error }))
}

/// What can be told of a message of which only the beginning is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvage {
    pub id: Option<Id>,
    pub kind: SalvageKind,
    /// It says that it is JSON-RPC, so it is no log line.
    pub is_rpc: bool,
}

/// What a message seems to be by its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SalvageKind {
    Request,
    Response,
    Unknown,
}

/// Reads the beginning of a message that was too long to be kept.
pub fn salvage(beginning: &Bytes) -> Salvage {
    let mut found = Salvage { id: None, kind: SalvageKind::Unknown, is_rpc: false };
    let mut members = Members::of(beginning);
    loop {
        let member = match members.next() {
            // A value that ends where our knowledge ends may go on.
            Some(Ok(member)) if member.value.end < beginning.len() => member,
            _ => break,
        };
        if member.is("id") {
            found.id = Id::read(beginning.slice(member.value.clone()));
        } else if member.is("jsonrpc") {
            found.is_rpc = true;
        } else if let Some(kind) = kind_of(member.key) {
            found.kind = kind;
        }
    }
    if found.kind == SalvageKind::Unknown {
        found.kind = kind_of(members.last_key()).unwrap_or(SalvageKind::Unknown);
    }
    found
}

/// The id at the very end of a message whose beginning does not have it, as some libraries write it:
/// `…,"id":7}` or `…,"jsonrpc":"2.0","id":7}` or `…,"id":7,"jsonrpc":"2.0"}`.
pub fn salvage_end(ending: &[u8]) -> Option<Id> {
    let at = memchr::memmem::rfind(ending, b"\"id\"")?;
    let colon = json::skip_space(ending, at + 4);
    if ending.get(colon) != Some(&b':') {
        return None;
    }
    let start = json::skip_space(ending, colon + 1);
    let end = json::value_end(ending, start).ok()?;
    let rest: Vec<u8> = ending[end..].iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let is_last = rest == b"}" || rest == b",\"jsonrpc\":\"2.0\"}";
    is_last.then(|| Id::read(Bytes::copy_from_slice(&ending[start..end]))).flatten()
}

fn kind_of(key: &[u8]) -> Option<SalvageKind> {
    match key {
        b"method" | b"params" => Some(SalvageKind::Request),
        b"result" | b"error" => Some(SalvageKind::Response),
        _ => None,
    }
}

/// Writes a response with a result.
pub fn write_result(out: &mut Vec<u8>, id: &Id, result: &[u8]) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.as_json());
    out.extend_from_slice(b",\"result\":");
    out.extend_from_slice(result);
    out.push(b'}');
}

/// Writes a response with an error. Without an id it says `null`, which newer versions no longer allow: there the key is
/// left out.
pub fn write_error(out: &mut Vec<u8>, id: Option<&Id>, error: &[u8], version: Version) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",");
    match id {
        Some(id) => {
            out.extend_from_slice(b"\"id\":");
            out.extend_from_slice(id.as_json());
            out.push(b',');
        }
        None if version <= Version::V2025_06_18 => out.extend_from_slice(b"\"id\":null,"),
        None => {}
    }
    out.extend_from_slice(b"\"error\":");
    out.extend_from_slice(error);
    out.push(b'}');
}

/// Writes a request, without params if `params` is empty.
pub fn write_request(out: &mut Vec<u8>, id: &[u8], method: &str, params: &[u8]) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id);
    write_method(out, method, params);
}

/// Writes a notification, without params if `params` is empty.
pub fn write_notification(out: &mut Vec<u8>, method: &str, params: &[u8]) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    write_method(out, method, params);
}

fn write_method(out: &mut Vec<u8>, method: &str, params: &[u8]) {
    out.extend_from_slice(b",\"method\":");
    json::write_string(out, method);
    if !params.is_empty() {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests;
