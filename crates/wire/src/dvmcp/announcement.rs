//! Announcements (kind 31990), the relay list that goes with them, and their withdrawal.

use super::{ANNOUNCEMENT, REQUEST};
use crate::service::{PRICE, Service, Wire, is_sealed, price, topics};
use crate::size;
use crate::tags::{tag, value};
use nostr::prelude::{Event, PublicKey, Tag, Timestamp, UnsignedEvent};
use rialto_mcp::json;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The size up to which an announcement has complete definitions, and beyond which it does not grow.
pub const MAX_BYTES: usize = 32 * 1024;

/// What is announced. Lists are of complete definitions, as JSON texts.
#[derive(Debug, Clone, Copy)]
pub struct Offer<'a> {
    /// The `d` tag: never changes for a service.
    pub id: &'a str,
    pub name: &'a str,
    pub about: &'a str,
    pub tools: &'a [Vec<u8>],
    pub resources: &'a [Vec<u8>],
    pub templates: &'a [Vec<u8>],
    pub prompts: &'a [Vec<u8>],
    pub relays: &'a [String],
    /// Mints whose tokens are taken.
    pub mints: &'a [String],
}

impl Offer<'_> {
    pub fn write(&self, me: PublicKey, now: Timestamp) -> UnsignedEvent {
        let mut tags =
            vec![tag("d", [self.id]), tag("k", [&REQUEST.as_u16().to_string()]), tag("capabilities", ["mcp-1.0"])];
        tags.extend(topics(self.tools.iter().filter_map(|tool| Some((json::get_string(tool, "name")?, price(tool))))));
        tags.push(tag("encryption", ["nip59"]));
        tags.push(Tag::custom("relays", self.relays.iter()));
        tags.extend(self.mints.iter().map(|mint| tag("mint", [mint])));
        UnsignedEvent::new(me, now, ANNOUNCEMENT, tags, self.content())
    }

    fn content(&self) -> String {
        let whole = self.with(|text| serde_json::from_slice(text).unwrap_or_default(), true);
        // In the event it stands inside a string, with quotes escaped.
        let size = size::quoted;
        if size(&whole) <= MAX_BYTES {
            return whole;
        }
        for (length, with_others) in [(500, true), (120, true), (120, false), (40, false)] {
            let content = self.with(|text| brief(text, length), with_others);
            if size(&content) <= MAX_BYTES {
                return content;
            }
        }
        // Thousands of tools: as many as fit; the complete list can be asked for.
        let mut count = self.tools.len();
        loop {
            count = count * 3 / 4;
            let fewer = Offer { tools: &self.tools[..count], ..*self };
            let content = fewer.with(|text| brief(text, 0), false);
            if size(&content) <= MAX_BYTES || count == 0 {
                return content;
            }
        }
    }

    fn with(&self, form: impl Fn(&[u8]) -> Value, others: bool) -> String {
        let list = |items: &[Vec<u8>]| Value::Array(items.iter().map(|item| form(item)).collect());
        let mut content = Map::new();
        content.insert("name".into(), self.name.into());
        content.insert("about".into(), self.about.into());
        content.insert("tools".into(), list(self.tools));
        let more = [("resources", self.resources), ("resourceTemplates", self.templates), ("prompts", self.prompts)];
        for (key, items) in more.into_iter().filter(|(_, items)| others && !items.is_empty()) {
            content.insert(key.into(), list(items));
        }
        Value::Object(content).to_string()
    }
}

/// A definition without its schema, and with a description of at most `length` characters.
fn brief(text: &[u8], length: usize) -> Value {
    let whole: Map<String, Value> = serde_json::from_slice(text).unwrap_or_default();
    let mut kept = Map::new();
    for key in ["name", "uri", "uriTemplate"] {
        if let Some(value) = whole.get(key) {
            kept.insert(key.into(), value.clone());
        }
    }
    if let Some(price) = whole.get("_meta").and_then(|meta| meta.get(PRICE)) {
        kept.insert("_meta".into(), json!({ PRICE: price }));
    }
    let description = whole.get("description").and_then(Value::as_str).unwrap_or_default();
    let short: String = description.chars().take(length).collect();
    let short = if short.len() < description.len() { format!("{short}…") } else { short };
    kept.insert("description".into(), short.into());
    Value::Object(kept)
}

/// Reads an announcement that has passed the gate; `None` if it announces no MCP service.
pub fn read(event: &Event) -> Option<Service> {
    let takes_requests =
        event.tags.iter().any(|tag| tag.kind() == "k" && tag.content() == Some(&REQUEST.as_u16().to_string()));
    if event.kind != ANNOUNCEMENT || !takes_requests {
        return None;
    }
    let content = match serde_json::from_str(&event.content).ok()? {
        Value::Object(_) => Cow::Borrowed(event.content.as_bytes()),
        // Some wrap the object in a string once more.
        Value::String(inner) => {
            serde_json::from_str::<Map<String, Value>>(&inner).ok()?;
            Cow::Owned(inner.into_bytes())
        }
        _ => return None,
    };
    let text = |key: &str| json::get_string(&content, key).unwrap_or_default().into_owned();
    let tools = json::get(&content, "tools").unwrap_or(b"[]");
    let tools = json::elements(tools).unwrap_or_default().into_iter().map(|place| &tools[place]);
    let tools = tools.filter(|tool| json::get_string(tool, "name").is_some());
    let id = value(&event.tags, "d").unwrap_or_default().to_owned();
    let name = text("name");
    Some(Service {
        wire: Wire::Dvmcp,
        provider: event.pubkey,
        name: if name.is_empty() { id.clone() } else { name },
        id,
        about: text("about"),
        tools: tools.map(|tool| String::from_utf8_lossy(tool).into_owned()).collect(),
        sealed: is_sealed(&event.tags),
        flaws: Vec::new(),
        announced: event.created_at,
        event: event.id,
    })
}

/// The content of `list-…` requests with this cursor.
pub fn list_content(cursor: Option<&str>) -> String {
    cursor.map(|cursor| json!({ "cursor": cursor }).to_string()).unwrap_or_default()
}

/// One page of a list: as many items from `start` on as fit into `limit` bytes of JSON string, at least one.
pub fn page(key: &str, items: &[Vec<u8>], start: usize, limit: usize) -> String {
    let mut out = format!("{{\"{key}\":[").into_bytes();
    let mut size = out.len() + 64;
    let mut next = start;
    for item in items.iter().skip(start) {
        // Quotes, backslashes and control characters take more room inside a string.
        let cost =
            item.len() + 1 + item.iter().filter(|byte| matches!(**byte, b'"' | b'\\' | b'\n' | b'\r' | b'\t')).count();
        if next > start && size + cost > limit {
            break;
        }
        if next > start {
            out.push(b',');
        }
        out.extend_from_slice(item);
        size += cost;
        next += 1;
    }
    out.push(b']');
    if next < items.len() {
        out.extend_from_slice(format!(",\"nextCursor\":\"{next}\"").as_bytes());
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
