//! The one strict JSON reader: checks text and finds the places in it, without building a tree.
//!
//! Everything that passes through Rialto stays the bytes it was. What we need from a message is *where* its id, its
//! method or its tool name stand, so that these can be read or replaced; the rest is only checked. Stricter than the
//! grammar in one point: nesting deeper than [`MAX_DEPTH`] is refused, so that recursive readers behind us are safe. Half
//! a surrogate pair, which the grammar allows and Unicode does not, is a question of its own: [`has_lone_surrogate`].
//!
//! All functions expect UTF-8; [`crate::message::parse`] checks that once for the whole message.

use std::borrow::Cow;
use std::ops::Range;

/// The depth at which `serde_json` also stops.
pub const MAX_DEPTH: u32 = 127;

/// Why text is not acceptable JSON, and at which byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {at}")]
pub struct Flaw {
    pub at: usize,
    pub kind: FlawKind,
}

/// The kinds of [`Flaw`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlawKind {
    #[error("unexpected character")]
    Unexpected,
    #[error("unexpected end")]
    End,
    #[error("control character in a string")]
    Control,
    #[error("bad escape in a string")]
    Escape,
    #[error("malformed number")]
    Number,
    #[error("nested too deeply")]
    Depth,
    #[error("text after the value")]
    Trailing,
    #[error("not an object")]
    NotObject,
    #[error("key given twice")]
    Duplicate,
}

fn flaw<T>(at: usize, kind: FlawKind) -> Result<T, Flaw> {
    Err(Flaw { at, kind })
}

/// Checks that `text` is exactly one JSON value, with white space around it at most, and says where that value is.
pub fn check(text: &[u8]) -> Result<Range<usize>, Flaw> {
    let start = skip_space(text, 0);
    let end = value_end(text, start)?;
    let rest = skip_space(text, end);
    if rest != text.len() {
        return flaw(rest, FlawKind::Trailing);
    }
    Ok(start..end)
}

/// The first byte at or after `at` that is not white space.
pub fn skip_space(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = text.get(at) {
        at += 1;
    }
    at
}

/// The end of the value that starts at `start`. Iterative: the open brackets are bits of one integer.
pub fn value_end(text: &[u8], start: usize) -> Result<usize, Flaw> {
    // Bit i tells whether the i-th open bracket is an object.
    let mut objects: u128 = 0;
    let mut depth: u32 = 0;
    let mut at = start;
    loop {
        // Here a value is expected.
        at = skip_space(text, at);
        match text.get(at) {
            None => return flaw(at, FlawKind::End),
            Some(b'"') => at = string_end(text, at)?,
            Some(b'-' | b'0'..=b'9') => at = number_end(text, at)?,
            Some(b't') => at = literal_end(text, at, b"true")?,
            Some(b'f') => at = literal_end(text, at, b"false")?,
            Some(b'n') => at = literal_end(text, at, b"null")?,
            Some(bracket @ (b'{' | b'[')) => {
                let is_object = *bracket == b'{';
                let inner = skip_space(text, at + 1);
                let close = if is_object { b'}' } else { b']' };
                if text.get(inner) == Some(&close) {
                    at = inner + 1;
                } else {
                    if depth == MAX_DEPTH {
                        return flaw(at, FlawKind::Depth);
                    }
                    objects = (objects << 1) | u128::from(is_object);
                    depth += 1;
                    at = if is_object { read_key(text, inner)?.1 } else { inner };
                    continue;
                }
            }
            Some(_) => return flaw(at, FlawKind::Unexpected),
        }
        // Here a value has ended: close brackets until a comma asks for the next one.
        loop {
            if depth == 0 {
                return Ok(at);
            }
            at = skip_space(text, at);
            let in_object = objects & 1 == 1;
            match text.get(at) {
                Some(b',') => {
                    at = if in_object { read_key(text, skip_space(text, at + 1))?.1 } else { at + 1 };
                    break;
                }
                Some(b'}') if in_object => {}
                Some(b']') if !in_object => {}
                None => return flaw(at, FlawKind::End),
                Some(_) => return flaw(at, FlawKind::Unexpected),
            }
            at += 1;
            objects >>= 1;
            depth -= 1;
        }
    }
}

/// Reads `"key" :` from `at` and returns where the key ends and where the value may start.
fn read_key(text: &[u8], at: usize) -> Result<(usize, usize), Flaw> {
    match text.get(at) {
        Some(b'"') => {}
        None => return flaw(at, FlawKind::End),
        Some(_) => return flaw(at, FlawKind::Unexpected),
    }
    let end = string_end(text, at)?;
    let colon = skip_space(text, end);
    match text.get(colon) {
        Some(b':') => Ok((end, colon + 1)),
        None => flaw(colon, FlawKind::End),
        Some(_) => flaw(colon, FlawKind::Unexpected),
    }
}

fn literal_end(text: &[u8], at: usize, word: &[u8]) -> Result<usize, Flaw> {
    let rest = &text[at..];
    if rest.starts_with(word) {
        Ok(at + word.len())
    } else if word.starts_with(rest) {
        flaw(text.len(), FlawKind::End)
    } else {
        flaw(at, FlawKind::Unexpected)
    }
}

/// The end (after the closing quote) of the string whose opening quote is at `at`.
fn string_end(text: &[u8], at: usize) -> Result<usize, Flaw> {
    let mut at = at + 1;
    loop {
        at = plain_run_end(text, at);
        match text.get(at) {
            None => return flaw(at, FlawKind::End),
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at = escape_end(text, at)?,
            Some(_) => return flaw(at, FlawKind::Control),
        }
    }
}

/// Skips bytes that mean themselves inside a string: all but the quote, the backslash and control characters.
fn plain_run_end(text: &[u8], mut at: usize) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES * 0x80;
    // Eight bytes at a time: a byte below 0x20 (or equal to zero after the exclusive-or) borrows into its high bit.
    while let Some(chunk) = text.get(at..at + 8).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok()) {
        let word = u64::from_le_bytes(chunk);
        let quote = word ^ (ONES * u64::from(b'"'));
        let backslash = word ^ (ONES * u64::from(b'\\'));
        let stop = (quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash)
            | (word.wrapping_sub(ONES * 0x20) & !word);
        let stop = stop & HIGHS;
        if stop != 0 {
            // The lowest marked byte is always a true hit; higher marks may be echoes of its borrow.
            return at + (stop.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while let Some(byte) = text.get(at) {
        if *byte < 0x20 || *byte == b'"' || *byte == b'\\' {
            break;
        }
        at += 1;
    }
    at
}

fn escape_end(text: &[u8], at: usize) -> Result<usize, Flaw> {
    match text.get(at + 1) {
        None => flaw(at + 1, FlawKind::End),
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => hex4(text, at + 2).map(|_| at + 6),
        Some(_) => flaw(at, FlawKind::Escape),
    }
}

fn hex4(text: &[u8], at: usize) -> Result<u32, Flaw> {
    let Some(digits) = text.get(at..at + 4) else { return flaw(text.len(), FlawKind::End) };
    let mut value = 0;
    for digit in digits {
        let Some(digit) = char::from(*digit).to_digit(16) else { return flaw(at, FlawKind::Escape) };
        value = value * 16 + digit;
    }
    Ok(value)
}

/// Whether a string in this JSON text escapes half a surrogate pair, which stands for no character.
pub fn has_lone_surrogate(text: &[u8]) -> bool {
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &text[at..]) {
        at += found;
        if text.get(at + 1) != Some(&b'u') {
            at = (at + 2).min(text.len());
            continue;
        }
        match hex4(text, at + 2) {
            Ok(0xD800..=0xDBFF) => match text.get(at + 6..at + 8) {
                Some(b"\\u") if matches!(hex4(text, at + 8), Ok(0xDC00..=0xDFFF)) => at += 12,
                _ => return true,
            },
            Ok(0xDC00..=0xDFFF) => return true,
            _ => at += 6,
        }
        at = at.min(text.len());
    }
    false
}

fn number_end(text: &[u8], mut at: usize) -> Result<usize, Flaw> {
    let digits = |mut at: usize| -> Result<usize, Flaw> {
        let first = at;
        while text.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        if at == first { flaw(at, FlawKind::Number) } else { Ok(at) }
    };
    if text.get(at) == Some(&b'-') {
        at += 1;
    }
    at = if text.get(at) == Some(&b'0') { at + 1 } else { digits(at)? };
    if text.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if let Some(b'e' | b'E') = text.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = text.get(at) {
            at += 1;
        }
        at = digits(at)?;
    }
    Ok(at)
}

/// One member of an object: its key as written (without quotes) and the place of its value.
#[derive(Debug, Clone)]
pub struct Member<'a> {
    pub key: &'a [u8],
    pub value: Range<usize>,
    has_escape: bool,
}

impl<'a> Member<'a> {
    /// What the key means.
    pub fn name(&self) -> Cow<'a, str> {
        match unescape_if(self.key, self.has_escape) {
            Some(name) => Cow::Owned(name),
            None => String::from_utf8_lossy(self.key),
        }
    }

    /// Whether some reader could take the key for `key`: those that ignore case, for example.
    pub fn resembles(&self, key: &str) -> bool {
        if self.has_escape {
            return self.name().eq_ignore_ascii_case(key);
        }
        self.key.eq_ignore_ascii_case(key.as_bytes())
    }

    /// Compares the key by its meaning, so that an escaped spelling is the same key.
    pub fn is(&self, key: &str) -> bool {
        self.key == key.as_bytes() || (self.has_escape && unescape(self.key).as_deref() == Some(key))
    }
}

/// Walks over the members of the object that `text` holds; the object is checked as the walk goes on.
#[derive(Debug)]
pub struct Members<'a> {
    text: &'a [u8],
    state: Walk,
    /// The key that was read last, whatever became of its value.
    last_key: &'a [u8],
}

#[derive(Debug)]
enum Walk {
    Start,
    After(usize),
    Done(usize),
    Failed,
}

impl<'a> Members<'a> {
    pub fn of(text: &'a [u8]) -> Self {
        Self { text, state: Walk::Start, last_key: b"" }
    }

    /// The key whose value could not be read, after an error.
    pub fn last_key(&self) -> &'a [u8] {
        self.last_key
    }

    /// Where the object ended, once all members have been seen.
    pub fn end(&self) -> Option<usize> {
        if let Walk::Done(end) = self.state { Some(end) } else { None }
    }

    fn step(&mut self) -> Result<Option<Member<'a>>, Flaw> {
        let text = self.text;
        let key = match self.state {
            Walk::Done(_) | Walk::Failed => return Ok(None),
            Walk::Start => {
                let open = skip_space(text, 0);
                match text.get(open) {
                    Some(b'{') => {}
                    None => return flaw(open, FlawKind::End),
                    Some(_) => return flaw(open, FlawKind::NotObject),
                }
                let first = skip_space(text, open + 1);
                if text.get(first) == Some(&b'}') {
                    self.state = Walk::Done(first + 1);
                    return Ok(None);
                }
                first
            }
            Walk::After(end) => {
                let next = skip_space(text, end);
                match text.get(next) {
                    Some(b',') => skip_space(text, next + 1),
                    Some(b'}') => {
                        self.state = Walk::Done(next + 1);
                        return Ok(None);
                    }
                    None => return flaw(next, FlawKind::End),
                    Some(_) => return flaw(next, FlawKind::Unexpected),
                }
            }
        };
        let (key_end, after_colon) = read_key(text, key)?;
        let key = &text[key + 1..key_end - 1];
        self.last_key = key;
        let start = skip_space(text, after_colon);
        let end = value_end(text, start)?;
        self.state = Walk::After(end);
        Ok(Some(Member { key, value: start..end, has_escape: key.contains(&b'\\') }))
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Result<Member<'a>, Flaw>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.state = Walk::Failed;
        }
        step.transpose()
    }
}

/// Finds the values of the given keys in an object. A key that stands twice is an error: readers disagree about which
/// one counts, and a policy must not be led to the other.
pub fn find<const N: usize>(object: &[u8], keys: [&str; N]) -> Result<[Option<Range<usize>>; N], Flaw> {
    let mut found = [const { None }; N];
    for member in Members::of(object) {
        let member = member?;
        for (key, place) in keys.iter().zip(found.iter_mut()) {
            if member.is(key) && place.replace(member.value.clone()).is_some() {
                return flaw(member.value.start, FlawKind::Duplicate);
            }
        }
    }
    Ok(found)
}

/// The value of one key of an object, if `object` is one and has it exactly once.
pub fn get<'a>(object: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let [place] = find(object, [key]).ok()?;
    place.map(|place| &object[place])
}

/// The places of the elements of an array; nothing if `array` is not one.
pub fn elements(array: &[u8]) -> Result<Vec<Range<usize>>, Flaw> {
    let mut places = Vec::new();
    let open = skip_space(array, 0);
    if array.get(open) != Some(&b'[') {
        return flaw(open, FlawKind::Unexpected);
    }
    let mut at = skip_space(array, open + 1);
    if array.get(at) == Some(&b']') {
        return Ok(places);
    }
    loop {
        let end = value_end(array, at)?;
        places.push(at..end);
        at = skip_space(array, end);
        match array.get(at) {
            Some(b',') => at = skip_space(array, at + 1),
            Some(b']') => return Ok(places),
            None => return flaw(at, FlawKind::End),
            Some(_) => return flaw(at, FlawKind::Unexpected),
        }
    }
}

/// The meaning of a string value as written, quotes included; `None` if the value is not a string.
pub fn string(value: &[u8]) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if inner.contains(&b'\\') {
        return unescape(inner).map(Cow::Owned);
    }
    std::str::from_utf8(inner).ok().map(Cow::Borrowed)
}

/// The string value of one key of an object.
pub fn get_string<'a>(object: &'a [u8], key: &str) -> Option<Cow<'a, str>> {
    string(get(object, key)?)
}

fn unescape_if(inner: &[u8], has_escape: bool) -> Option<String> {
    has_escape.then(|| unescape(inner)).flatten()
}

fn unescape(inner: &[u8]) -> Option<String> {
    let mut quoted = Vec::with_capacity(inner.len() + 2);
    quoted.push(b'"');
    quoted.extend_from_slice(inner);
    quoted.push(b'"');
    serde_json::from_slice(&quoted).ok()
}

/// Writes `text` as a JSON string.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut plain = 0;
    let bytes = text.as_bytes();
    loop {
        let stop = plain_run_end(bytes, plain);
        out.extend_from_slice(&bytes[plain..stop]);
        let Some(byte) = bytes.get(stop) else { break };
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            other => out.extend_from_slice(format!("\\u{other:04x}").as_bytes()),
        }
        plain = stop + 1;
    }
    out.push(b'"');
}

/// `text` as a JSON string.
pub fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    out
}

/// Copies `text`, with some places replaced. The places are in order and do not overlap.
pub fn splice(out: &mut Vec<u8>, text: &[u8], edits: &[(Range<usize>, &[u8])]) {
    let mut at = 0;
    for (place, replacement) in edits {
        out.extend_from_slice(&text[at..place.start]);
        out.extend_from_slice(replacement);
        at = place.end;
    }
    out.extend_from_slice(&text[at..]);
}

/// Appends one member to members written as `"key":value,"key":value`. The key is JSON text, without its quotes.
pub fn push_member(members: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    if !members.is_empty() {
        members.push(b',');
    }
    members.push(b'"');
    members.extend_from_slice(key);
    members.extend_from_slice(b"\":");
    members.extend_from_slice(value);
}

/// The object with more members put at its front; `members` is written as `"key":value,"key":value`.
pub fn with_members(object: &[u8], members: &[u8]) -> Vec<u8> {
    let open = skip_space(object, 0);
    let is_empty = object.get(skip_space(object, open + 1)) == Some(&b'}');
    let mut out = Vec::with_capacity(object.len() + members.len() + 1);
    out.extend_from_slice(&object[..=open]);
    out.extend_from_slice(members);
    if !is_empty && !members.is_empty() {
        out.push(b',');
    }
    out.extend_from_slice(&object[open + 1..]);
    out
}

/// The object without some of its members.
pub fn without_members(object: &[u8], keys: &[&str]) -> Vec<u8> {
    let mut members = Vec::new();
    for member in Members::of(object).map_while(Result::ok) {
        if !keys.iter().any(|key| member.is(key)) {
            push_member(&mut members, member.key, &object[member.value]);
        }
    }
    [b"{".as_slice(), &members, b"}"].concat()
}

/// The object with more members in its `_meta`, which is made if it is not there.
pub fn with_meta(object: &[u8], members: &[u8]) -> Vec<u8> {
    match find(object, ["_meta"]) {
        Ok([Some(place)]) if object[place.start] == b'{' => {
            let meta = with_members(&object[place.clone()], members);
            let mut out = Vec::with_capacity(object.len() + members.len() + 1);
            splice(&mut out, object, &[(place, &meta)]);
            out
        }
        _ => {
            let mut meta = b"\"_meta\":{".to_vec();
            meta.extend_from_slice(members);
            meta.push(b'}');
            with_members(object, &meta)
        }
    }
}

#[cfg(test)]
mod tests;
