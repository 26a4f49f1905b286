//! Manifests: what a provider writes of its tools, and a customer reads.

use super::{CONTENT_SCHEMA, MANIFEST};
use crate::service::{Service, TOPIC, Wire, is_sealed, price, topics};
use crate::tags::{tag, value};
use crate::{size, strict};
use nostr::prelude::{Event, PublicKey, Tag, Timestamp, UnsignedEvent};
use rialto_mcp::json;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashSet;

/// The version that is written. Others are read as if they were this one.
const VERSION: &str = "0.1";

/// The longest content that is written, with the tags that name its tools: the whole fits into what relays take.
pub const MAX_WRITTEN: usize = 48 * 1024;

/// What a tag has beside its value.
const TAG: usize = 8;

/// The longest content that is read.
pub const MAX_READ: usize = 256 * 1024;

/// Tools of one manifest that are read.
pub const MAX_TOOLS: usize = 2000;

/// What is described. Tools are complete definitions, as JSON texts.
#[derive(Debug, Clone, Copy)]
pub struct Offer<'a> {
    /// The `d` tag: never changes for a service.
    pub id: &'a str,
    pub name: &'a str,
    pub about: &'a str,
    pub tools: &'a [Vec<u8>],
    pub relays: &'a [String],
}

impl Offer<'_> {
    /// As many manifests as the tools need, none longer than `limit`, and the names of those that fit into none.
    pub fn write(&self, limit: usize, me: PublicKey, now: Timestamp) -> (Vec<UnsignedEvent>, Vec<String>) {
        let head = size::quoted(&self.content(&[]));
        let (mut pages, mut page, mut length) = (Vec::new(), Vec::new(), head);
        let mut left_out = Vec::new();
        for tool in self.tools {
            let Some(name) = json::get_string(tool, "name") else { continue };
            let text = written(tool);
            // It is also named in a tag.
            let cost = size::quoted(&text) + size::quoted(&name) + TAG;
            if head + cost > limit {
                left_out.push(name.into_owned());
                continue;
            }
            if length + cost > limit {
                pages.push(std::mem::take(&mut page));
                length = head;
            }
            length += cost;
            page.push((name.into_owned(), text));
        }
        if !page.is_empty() {
            pages.push(page);
        }
        let events = pages.iter().enumerate().map(|(index, page)| self.event(index, page, me, now)).collect();
        (events, left_out)
    }

    fn event(&self, index: usize, page: &[(String, String)], me: PublicKey, now: Timestamp) -> UnsignedEvent {
        let id = if index == 0 { self.id.to_owned() } else { format!("{}#{}", self.id, index + 1) };
        let mut tags = vec![tag("d", [&id])];
        tags.extend(topics(page.iter().map(|(name, text)| (Cow::Borrowed(name.as_str()), price(text.as_bytes())))));
        tags.push(tag("encryption", ["nip04 nip59"]));
        tags.push(Tag::custom("relays", self.relays.iter()));
        let tools: Vec<&str> = page.iter().map(|(_, text)| text.as_str()).collect();
        UnsignedEvent::new(me, now, MANIFEST, tags, self.content(&tools))
    }

    fn content(&self, tools: &[&str]) -> String {
        let quoted = |text: &str| String::from_utf8_lossy(&json::quoted(text)).into_owned();
        format!(
            "{{\"mcp_version\":\"{VERSION}\",\"name\":{},\"description\":{},\"tools\":[{}]}}",
            quoted(self.name),
            quoted(self.about),
            tools.join(",")
        )
    }
}

/// A manifest without tools in the place of one: who listens hears of manifests, not of withdrawals.
pub fn emptied(manifest: &Event, now: Timestamp) -> Option<UnsignedEvent> {
    let service = read(manifest)?;
    let offer = Offer { id: &service.id, name: &service.name, about: &service.about, tools: &[], relays: &[] };
    Some(offer.event(0, &[], manifest.pubkey, now))
}

/// How the parts of a definition are called here, and there.
const NAMES: [(&str, &str); 4] = [
    ("tool_name", "name"),
    ("description", "description"),
    ("input_schema", "inputSchema"),
    ("output_schema", "outputSchema"),
];

/// A definition as it stands in a manifest. What has no other name here keeps its own.
fn written(tool: &[u8]) -> String {
    let mut members = Vec::new();
    for (here, there) in NAMES {
        let missing: &[u8] = match here {
            "input_schema" => b"{\"type\":\"object\"}",
            "output_schema" => CONTENT_SCHEMA.as_bytes(),
            _ => b"\"\"",
        };
        let given = json::get(tool, there).filter(|value| *value != b"null");
        json::push_member(&mut members, here.as_bytes(), given.unwrap_or(missing));
    }
    let rest = json::without_members(tool, &NAMES.map(|(here, _)| here));
    let rest = json::without_members(&rest, &NAMES.map(|(_, there)| there));
    text(json::with_members(&rest, &members))
}

fn text(bytes: Vec<u8>) -> String {
    // Made of texts that have been checked to be UTF-8.
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Reads a manifest that has passed the gate, as far as it can be used; `None` if it is something else.
pub fn read(event: &Event) -> Option<Service> {
    if event.kind != MANIFEST {
        return None;
    }
    let id = value(&event.tags, "d").unwrap_or_default().to_owned();
    let mut service = Service {
        wire: Wire::Manifest,
        provider: event.pubkey,
        name: id.clone(),
        id,
        about: String::new(),
        tools: Vec::new(),
        sealed: is_sealed(&event.tags),
        flaws: Vec::new(),
        announced: event.created_at,
        event: event.id,
    };
    let content = event.content.as_bytes();
    let found = if content.len() > MAX_READ {
        Err(format!("the manifest is {} bytes long, of which at most {MAX_READ} are read", content.len()))
    } else {
        let keys = ["mcp_version", "name", "description", "tools"];
        json::find(content, keys).map_err(|flaw| format!("the manifest cannot be read: {flaw}"))
    };
    let [version, name, about, tools] = match found {
        Ok(found) => found.map(|place| place.map(|place| &content[place])),
        // Many things have this kind. Only what says that it is a manifest is worth a word.
        Err(flaw) => {
            let is_named = event.tags.iter().any(|tag| tag.kind() == "t" && tag.content() == Some(TOPIC));
            service.flaws.push(flaw);
            return is_named.then_some(service);
        }
    };
    let (version, name) = (version?, json::string(name?)?);
    let places = json::elements(tools?).ok()?;
    if json::string(version).as_deref() != Some(VERSION) {
        service.flaws.push(format!("the version is not {VERSION}; the manifest is read as if it were"));
    }
    if !name.trim().is_empty() {
        service.name = name.into_owned();
    }
    match about.and_then(json::string) {
        Some(about) => service.about = about.into_owned(),
        None => service.flaws.push("the manifest has no description".to_owned()),
    }
    if places.len() > MAX_TOOLS {
        service.flaws.push(format!("there are {} tools, of which the first {MAX_TOOLS} are read", places.len()));
    }
    let mut names = HashSet::new();
    for (index, place) in places.into_iter().take(MAX_TOOLS).enumerate() {
        let text = String::from_utf8_lossy(&tools?[place]);
        let mut flaws = Vec::new();
        match tool(&text, index, &mut flaws) {
            Ok((name, _)) if !names.insert(name.clone()) => {
                service.flaws.push(format!("tool `{name}` stands twice; the first counts"));
                continue;
            }
            Ok((_, definition)) => service.tools.push(definition),
            Err(flaw) => flaws.push(flaw),
        }
        service.flaws.extend(flaws);
    }
    Some(service)
}

/// The name of a tool, and its MCP definition.
fn tool(text: &str, index: usize, flaws: &mut Vec<String>) -> Result<(String, String), String> {
    let value = strict::parse(text).map_err(|error| format!("tool {} cannot be read: {error}", index + 1))?;
    let name = value.get("tool_name").and_then(Value::as_str).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| format!("tool {} has no `tool_name`", index + 1))?;
    let object = text.as_bytes();
    let mut members = Vec::new();
    for (here, there) in NAMES {
        let written = json::get(object, here);
        let is_right = |value: &Value| if here.ends_with("_schema") { value.is_object() } else { value.is_string() };
        match value.get(here) {
            // What every result looks like says nothing of this tool.
            Some(schema) if here == "output_schema" && is_content(schema) => {}
            Some(value) if here.ends_with("_schema") && is_right(value) => {
                match (value.get("type"), written.unwrap_or_default()) {
                    (Some(kind), written) if kind == "object" => {
                        json::push_member(&mut members, there.as_bytes(), written);
                    }
                    // Arguments and answers are objects, whether it is said or not.
                    (None, written) => {
                        let typed = json::with_members(written, b"\"type\":\"object\"");
                        json::push_member(&mut members, there.as_bytes(), &typed);
                    }
                    (Some(_), _) if here == "input_schema" => {
                        return Err(format!("tool `{name}` cannot be used: its `{here}` is not of an object"));
                    }
                    (Some(_), _) => {
                        flaws.push(format!(
                            "answers of tool `{name}` are not checked: its `{here}` is not of an object"
                        ));
                    }
                }
            }
            Some(value) if is_right(value) => {
                json::push_member(&mut members, there.as_bytes(), written.unwrap_or_default());
            }
            None | Some(Value::Null) => {
                flaws.push(format!("tool `{name}` has no `{here}`"));
                if here == "input_schema" {
                    json::push_member(&mut members, there.as_bytes(), b"{\"type\":\"object\"}");
                }
            }
            Some(_) if here == "description" => flaws.push(format!("the description of tool `{name}` is no text")),
            Some(_) => return Err(format!("tool `{name}` cannot be used: its `{here}` is no object")),
        }
    }
    let rest = json::without_members(object, &NAMES.map(|(here, _)| here));
    let rest = json::without_members(&rest, &NAMES.map(|(_, there)| there));
    Ok((name.to_owned(), self::text(json::with_members(&rest, &members))))
}

fn is_content(schema: &Value) -> bool {
    serde_json::from_str::<Value>(CONTENT_SCHEMA).is_ok_and(|content| content == *schema)
}
