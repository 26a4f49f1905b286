//! Everything that one service offers, in full: tools, resources, templates of resources, and prompts.

use crate::error::Error;
use crate::remote::Remote;
use crate::text;
use rialto_mcp::json;
use rialto_mcp::pending::Patience;
use rialto_wire::dvmcp::announcement::list_content;
use rialto_wire::request::Command;
use rialto_wire::service::Wire;
use serde_json::Value;
use std::collections::HashSet;
use std::time::Duration;

/// How long a provider has for each page of a list.
pub const PATIENCE: Patience = Patience { silence: Duration::from_secs(15), total: Duration::from_secs(60) };

/// Less for the other lists: providers of the first hour do not know these commands and keep silent.
const LESSER: Patience = Patience { silence: Duration::from_secs(3), total: Duration::from_secs(30) };

/// What one list may hold.
const MAX_ITEMS: usize = 10_000;
const MAX_BYTES: usize = 8 * 1024 * 1024;
const MAX_PAGES: usize = 500;

/// One tool, resource, template or prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Its name, or its URI.
    pub name: String,
    /// The definition as the provider gave it. What a pin is made of.
    pub original: Value,
    /// The definition as it may be shown to a model, as JSON text.
    pub shown: Vec<u8>,
}

impl Item {
    /// `None` if it has no name that can be shown.
    pub fn read(text: &[u8], key: &str) -> Option<Self> {
        let original: Value = serde_json::from_slice(text).ok()?;
        let name = original.get(key)?.as_str()?.to_owned();
        let is_name = if key == "name" { text::is_plain_name(&name) } else { text::visible(&name) == name };
        if !is_name {
            return None;
        }
        // What needs no cleaning stays as it was written, to the last digit.
        let shown = text::cleaned(&original).map_or_else(|| text.to_vec(), |clean| clean.to_string().into_bytes());
        Some(Self { name, original, shown })
    }

    pub fn description(&self) -> &str {
        self.original.get("description").and_then(Value::as_str).unwrap_or_default()
    }
}

/// What a service offers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalogue {
    pub tools: Vec<Item>,
    pub resources: Vec<Item>,
    pub templates: Vec<Item>,
    pub prompts: Vec<Item>,
}

impl Catalogue {
    /// Asks for everything. Only the tools must be told.
    pub async fn fetch(remote: &Remote) -> Result<Self, Error> {
        let (tools, others) = tokio::join!(Self::tools(remote), Self::others(remote));
        Ok(Self { tools: tools?, ..others })
    }

    /// Asks for everything but the tools. What a provider does not know or does not tell, it does not have.
    pub async fn others(remote: &Remote) -> Self {
        if remote.way().wire == Wire::Manifest {
            return Self::default();
        }
        let (resources, templates, prompts) = tokio::join!(
            list(remote, Command::ListResources, "resources", "uri", LESSER),
            list(remote, Command::ListResourceTemplates, "resourceTemplates", "uriTemplate", LESSER),
            list(remote, Command::ListPrompts, "prompts", "name", LESSER),
        );
        Self {
            tools: Vec::new(),
            resources: resources.unwrap_or_default(),
            templates: templates.unwrap_or_default(),
            prompts: prompts.unwrap_or_default(),
        }
    }

    /// Asks for the tools alone.
    pub async fn tools(remote: &Remote) -> Result<Vec<Item>, Error> {
        if remote.way().wire == Wire::Manifest {
            // They are told already.
            let has_manifest = remote.wires().contains(&Wire::Manifest);
            return if has_manifest { Ok(remote.directory().tools.clone()) } else { Err(Error::NoManifest) };
        }
        list(remote, Command::ListTools, "tools", "name", PATIENCE).await
    }
}

/// A whole list, page by page.
async fn list(
    remote: &Remote,
    command: Command,
    key: &str,
    name: &str,
    patience: Patience,
) -> Result<Vec<Item>, Error> {
    let (mut items, mut names, mut bytes) = (Vec::new(), HashSet::new(), 0);
    let mut cursor: Option<String> = None;
    let mut cursors = HashSet::new();
    for _ in 0..MAX_PAGES {
        let content = list_content(cursor.as_deref());
        let reply = remote.begin(command, content, patience)?.finish().await?.into_result()?;
        for text in reply.list(key)? {
            bytes += text.len();
            if items.len() >= MAX_ITEMS || bytes > MAX_BYTES {
                return Ok(items);
            }
            // Of two with one name the first counts: a later one could pose as it.
            let item = Item::read(text, name);
            items.extend(item.filter(|item| names.insert(item.name.clone())));
        }
        cursor = json::get_string(reply.content.as_bytes(), "nextCursor").map(|cursor| cursor.into_owned());
        match &cursor {
            Some(next) if cursors.insert(next.clone()) => {}
            // The end, or a provider that leads us in circles.
            _ => break,
        }
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::Item;

    #[test]
    fn definitions_stay_as_written_unless_they_must_change() {
        let text = br#"{ "name":"a", "inputSchema":{"z":1.0,"a":2} }"#;
        assert_eq!(Item::read(text, "name").unwrap().shown, text);
        let dirty = "{\"name\":\"a\",\"description\":\"x\u{202e}y\"}";
        let item = Item::read(dirty.as_bytes(), "name").unwrap();
        assert_eq!(item.shown, br#"{"description":"xy","name":"a"}"#);
        assert_eq!(item.description(), "x\u{202e}y", "the original is what is pinned");
    }

    #[test]
    fn names_that_cannot_be_shown_are_left_out() {
        for text in [r#"{"name":""}"#, r#"{"name":"a\nb"}"#, "{\"name\":\"a\u{200b}\"}", r#"{"name":1}"#, "[]", "{"] {
            assert_eq!(Item::read(text.as_bytes(), "name"), None, "{text}");
        }
    }
}
