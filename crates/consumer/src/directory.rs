//! The tools of a provider's manifests, checked: nothing has to be asked for, but nothing in there can be believed either.

use crate::catalogue::Item;
use crate::error::{Error, Failure};
use crate::text;
use rialto_hub::schema::Schema;
use rialto_mcp::json;
use rialto_wire::service::Service;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// Tools of one provider, in all its manifests.
const MAX_TOOLS: usize = 2000;

/// Bytes of their definitions, usable or not. Whoever wants to can write schemas that take seconds for each megabyte.
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// What a tool takes, and what it gives.
#[derive(Debug, Clone)]
struct Schemas {
    input: Arc<Schema>,
    output: Option<Arc<Schema>>,
}

/// What is known about the answers of a tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct Promise {
    /// Answers are objects that fit this.
    pub(crate) output: Option<Arc<Schema>>,
}

/// The tools.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    pub(crate) tools: Vec<Item>,
    schemas: HashMap<String, Schemas>,
    /// What could not be used. Quotes strangers.
    pub(crate) flaws: Vec<String>,
}

impl Directory {
    /// Puts together the manifests of one provider, those that count first. Of two tools with one name the first counts.
    pub(crate) fn new(manifests: &[Service]) -> Self {
        let (mut directory, mut bytes) = (Self::default(), 0);
        for manifest in manifests {
            directory.flaws.extend(manifest.flaws.iter().cloned());
            for definition in &manifest.tools {
                if directory.tools.len() >= MAX_TOOLS {
                    directory.flaws.push(format!("only the first {MAX_TOOLS} tools are used"));
                    return directory;
                }
                bytes += definition.len();
                if bytes > MAX_BYTES {
                    directory.flaws.push(format!("only the first {MAX_BYTES} bytes of all tools are read"));
                    return directory;
                }
                directory.add(definition);
            }
        }
        directory
    }

    fn add(&mut self, definition: &str) {
        let Some(item) = Item::read(definition.as_bytes(), "name") else {
            self.flaws.push("a tool is left out: its name cannot be shown".to_owned());
            return;
        };
        if self.schemas.contains_key(&item.name) {
            return;
        }
        let compile = |key: &str, here: &str| {
            let schema = json::get(definition.as_bytes(), key).map(Schema::compile).transpose();
            schema.map_err(|refused| format!("tool `{}` is left out: its `{here}`: {refused}", item.name))
        };
        match (compile("inputSchema", "input_schema"), compile("outputSchema", "output_schema")) {
            (Ok(input), Ok(output)) => {
                let Some(input) = input else { return };
                let schemas = Schemas { input: Arc::new(input), output: output.map(Arc::new) };
                self.schemas.insert(item.name.clone(), schemas);
                self.tools.push(item);
            }
            (Err(flaw), _) | (_, Err(flaw)) => self.flaws.push(flaw),
        }
    }

    /// Whether a tool takes these arguments, and what it gives.
    pub(crate) fn admit(&self, tool: &str, arguments: &[u8]) -> Result<Promise, Error> {
        let Some(schemas) = self.schemas.get(tool) else {
            let words = format!("there is no tool `{}`", text::name(tool));
            return Err(Error::Failed(Failure::new("unknown_tool", &words)));
        };
        let misfit = |message: String, pointer: Option<String>| {
            let message = text::limited(&text::one_line(&message), 1000);
            Error::Misfit { message, pointer: pointer.filter(|pointer| !pointer.is_empty()) }
        };
        let value: Value = serde_json::from_slice(arguments).map_err(|error| misfit(error.to_string(), None))?;
        schemas.input.check(&value).map_err(|found| misfit(found.message, Some(found.pointer)))?;
        Ok(Promise { output: schemas.output.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::{Directory, MAX_BYTES};
    use crate::error::Error;
    use nostr::prelude::{EventId, Keys, Timestamp};
    use rialto_wire::service::{Service, Wire};

    fn manifest(tools: &[&str]) -> Service {
        Service {
            wire: Wire::Manifest,
            provider: Keys::generate().public_key(),
            id: String::new(),
            name: String::new(),
            about: String::new(),
            tools: tools.iter().map(ToString::to_string).collect(),
            sealed: false,
            flaws: vec!["the manifest has no description".into()],
            announced: Timestamp::from(1),
            event: EventId::from_byte_array([0; 32]),
        }
    }

    #[test]
    fn tools_are_taken_from_all_manifests_if_they_are_safe() {
        let bomb = r#"{"name":"bomb","inputSchema":{"$ref":"http://evil.example/schema"}}"#;
        let first = manifest(&[
            r#"{"name":"a","inputSchema":{"type":"object","required":["city"]},"outputSchema":{"type":"object"}}"#,
            bomb,
            r#"{"name":"b\u200b","inputSchema":{}}"#,
        ]);
        let second = manifest(&[r#"{"name":"a","inputSchema":{}}"#, r#"{"name":"c","inputSchema":{}}"#]);
        let directory = Directory::new(&[first, second]);
        let names: Vec<&str> = directory.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["a", "c"]);
        assert_eq!(directory.flaws.len(), 4, "{:?}", directory.flaws);
        assert!(
            directory.flaws[1].starts_with("tool `bomb` is left out: its `input_schema`: "),
            "{:?}",
            directory.flaws
        );
        assert!(directory.admit("a", br#"{"city":"x"}"#).unwrap().output.is_some());
        assert!(directory.admit("c", b"{}").unwrap().output.is_none());
        let Err(Error::Misfit { message, .. }) = directory.admit("a", b"{}") else { panic!() };
        assert!(message.contains("city"), "{message}");
        let unknown = directory.admit("bomb", b"{}");
        assert!(matches!(&unknown, Err(Error::Failed(failure)) if failure.code == "unknown_tool"), "{unknown:?}");
    }

    #[test]
    fn a_provider_cannot_keep_us_reading() {
        let tool = |name: &str| {
            let words = "x".repeat(MAX_BYTES / 3);
            format!("{{\"name\":\"{name}\",\"description\":\"{words}\",\"inputSchema\":{{}}}}")
        };
        let manifests: Vec<Service> = ["a", "b", "c", "d"].iter().map(|name| manifest(&[&tool(name)])).collect();
        let directory = Directory::new(&manifests);
        assert_eq!(directory.tools.len(), 2);
        assert!(directory.flaws.last().unwrap().contains("bytes of all tools"), "{:?}", directory.flaws);
    }
}
