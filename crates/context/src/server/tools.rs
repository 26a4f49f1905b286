//! The tools: their names and schemas, what they are asked, and how an answer is put into a result.

use super::{Offer, Options};
use crate::error::{Error, Kind};
use crate::library::Library;
use crate::reply::{Layout, json as to_json};
use crate::resident::Interrupt;
use rialto_mcp::json;
use rialto_mcp::version::Version;
use serde_json::{Value, json};

/// How tools are called when they are listed. Both spellings are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// `context.resolve`, as version 0 has it.
    Dotted,
    /// `context_resolve`, for hosts that allow no dots.
    Underscore,
}

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Resolve,
    ListCaches,
    InspectCache,
    Search,
}

/// A tool with its arguments.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Task {
    Resolve(Question),
    ListCaches,
    InspectCache(String),
    Search(Question),
}

/// What is asked of a cache.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    cache: String,
    query: String,
    budget: i64,
}

impl Tool {
    const ALL: [Tool; 4] = [Tool::Resolve, Tool::ListCaches, Tool::InspectCache, Tool::Search];

    fn offered(offer: Offer) -> &'static [Tool] {
        match offer {
            Offer::Full => &Self::ALL,
            Offer::V0 => &Self::ALL[..3],
        }
    }

    pub(super) fn named(name: &str, offer: Offer) -> Option<Self> {
        let is_called = |tool: &&Self| [Names::Dotted, Names::Underscore].iter().any(|names| tool.name(*names) == name);
        Self::offered(offer).iter().find(is_called).copied()
    }

    fn name(self, names: Names) -> String {
        let own = match self {
            Tool::Resolve => "resolve",
            Tool::ListCaches => "list_caches",
            Tool::InspectCache => "inspect_cache",
            Tool::Search => "search",
        };
        match names {
            Names::Dotted => format!("context.{own}"),
            Names::Underscore => format!("context_{own}"),
        }
    }

    fn title(self) -> &'static str {
        match self {
            Tool::Resolve => "Resolve context",
            Tool::ListCaches => "List context caches",
            Tool::InspectCache => "Inspect a context cache",
            Tool::Search => "Search a context cache",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Tool::Resolve => {
                "Select whole documents of a cache for a query, within a budget of tokens (four bytes each). The same cache, \
                 query and budget always give the same answer."
            }
            Tool::ListCaches => "List the caches that can be asked.",
            Tool::InspectCache => "Tell what a cache says about itself: version, number of documents, size.",
            Tool::Search => {
                "Find the sections of a cache that fit a query best (BM25), within a budget of tokens, with headings and line \
                 numbers. The same cache, query and budget always give the same answer."
            }
        }
    }

    fn input_schema(self) -> Value {
        let cache = json!({ "type": "string", "description": "The name of the cache" });
        let query = json!({ "type": "string", "description": "What the documents should be about" });
        let budget =
            json!({ "type": "integer", "minimum": 0, "description": "How many tokens they may have together" });
        match self {
            Tool::Resolve | Tool::Search => json!({
                "type": "object",
                "properties": { "cache": cache, "query": query, "budget": budget },
                "required": ["cache", "query", "budget"],
            }),
            Tool::ListCaches => json!({ "type": "object", "properties": {} }),
            Tool::InspectCache => {
                json!({ "type": "object", "properties": { "cache": cache }, "required": ["cache"] })
            }
        }
    }

    fn output_schema(self) -> Value {
        match self {
            Tool::Resolve => object(&[
                (
                    "documents",
                    array(object(&[
                        ("id", string()),
                        ("version", string()),
                        ("content", string()),
                        ("score", json!({ "type": "number", "minimum": 0 })),
                        ("tokens", count()),
                        (
                            "why",
                            object(&[
                                ("query_terms", array(string())),
                                ("term_matches", count()),
                                ("total_words", count()),
                            ]),
                        ),
                    ])),
                ),
                (
                    "selection",
                    object(&[
                        ("query", string()),
                        ("budget", count()),
                        ("tokens_used", count()),
                        ("documents_considered", count()),
                        ("documents_selected", count()),
                        ("documents_excluded_by_budget", count()),
                    ]),
                ),
            ]),
            Tool::ListCaches => {
                let cache = object(&[("path", string()), ("has_manifest", json!({ "type": "boolean" }))]);
                object(&[("caches", array(cache))])
            }
            Tool::InspectCache => object(&[
                ("cache_version", string()),
                ("document_count", count()),
                ("total_bytes", count()),
                ("valid", json!({ "type": "boolean" })),
            ]),
            Tool::Search => object(&[
                (
                    "results",
                    array(object(&[
                        ("id", string()),
                        ("version", string()),
                        ("lines", object(&[("first", count()), ("last", count())])),
                        ("headings", array(string())),
                        ("content", string()),
                        ("score", count()),
                        ("tokens", count()),
                        (
                            "why",
                            object(&[
                                (
                                    "terms",
                                    array(object(&[
                                        ("term", string()),
                                        ("count", count()),
                                        ("chunks", count()),
                                        ("score", count()),
                                    ])),
                                ),
                                ("chunk_terms", count()),
                            ]),
                        ),
                    ])),
                ),
                (
                    "selection",
                    object(&[
                        ("query", string()),
                        ("budget", count()),
                        ("tokens_used", count()),
                        ("chunks_considered", count()),
                        ("chunks_matched", count()),
                        ("chunks_selected", count()),
                        ("chunks_excluded_by_budget", count()),
                    ]),
                ),
                (
                    "ranking",
                    object(&[
                        ("name", string()),
                        ("version", count()),
                        ("k1", string()),
                        ("b", string()),
                        ("unit", string()),
                        ("unicode", string()),
                        ("chunks", count()),
                        ("chunk_terms", count()),
                    ]),
                ),
                ("cache_version", string()),
                ("index_version", string()),
            ]),
        }
    }

    /// Reads the arguments. Each that is missing or of the wrong type has an error of its own; what nobody asked for is left
    /// alone.
    pub(super) fn task(self, arguments: &[u8]) -> Result<Task, Error> {
        let text = |key: &str| json::get(arguments, key).and_then(json::string).map(|text| text.into_owned());
        let cache = || text("cache").ok_or(Error::new(Kind::CacheMissing));
        let question = || {
            let query = text("query").ok_or(Error::new(Kind::InvalidQuery))?;
            let budget = json::get(arguments, "budget").and_then(|value| serde_json::from_slice::<i64>(value).ok());
            let budget = budget.filter(|budget| *budget >= 0).ok_or(Error::new(Kind::InvalidBudget))?;
            Ok::<_, Error>(Question { cache: cache()?, query, budget })
        };
        Ok(match self {
            Tool::Resolve => Task::Resolve(question()?),
            Tool::ListCaches => Task::ListCaches,
            Tool::InspectCache => Task::InspectCache(cache()?),
            Tool::Search => Task::Search(question()?),
        })
    }
}

fn string() -> Value {
    json!({ "type": "string" })
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn array(items: Value) -> Value {
    Value::Object([("type".to_owned(), "array".into()), ("items".to_owned(), items)].into_iter().collect())
}

/// An object that has all of these.
fn object(fields: &[(&str, Value)]) -> Value {
    let properties: serde_json::Map<String, Value> =
        fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    let required: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

impl Task {
    /// The text of the answer, with the newline that `context.resolve` ends with.
    pub(super) fn run(&self, library: &Library, interrupt: &Interrupt) -> Result<String, Error> {
        match self {
            Task::Resolve(Question { cache, query, budget }) => {
                let mut text = to_json(&library.resolve(cache, query, *budget, interrupt)?, Layout::Compact)?;
                text.push('\n');
                Ok(text)
            }
            Task::ListCaches => to_json(&library.list()?, Layout::Compact),
            Task::InspectCache(cache) => to_json(&library.inspect(cache)?, Layout::Compact),
            Task::Search(Question { cache, query, budget }) => {
                to_json(&library.search(cache, query, *budget, interrupt)?, Layout::Compact)
            }
        }
    }
}

/// Whether clients of this version know structured content.
pub(super) fn is_structured(version: Version) -> bool {
    version >= Version::V2025_06_18
}

/// What the model is told about the server.
pub(super) fn instructions(names: Names) -> String {
    let name = |tool: Tool| tool.name(names);
    format!(
        "Call `{}` for the names of the caches, then `{}` for the sections that fit a question best, or `{}` for whole documents.",
        name(Tool::ListCaches),
        name(Tool::Search),
        name(Tool::Resolve),
    )
}

/// The answer to `tools/list`.
pub(super) fn list(options: Options, version: Version) -> Vec<u8> {
    let describe = |tool: &Tool| {
        let mut description = json!({
            "name": tool.name(options.names),
            "description": tool.description(),
            "inputSchema": tool.input_schema(),
        });
        if options.offer == Offer::Full && version >= Version::V2025_03_26 {
            description["annotations"] = json!({
                "title": tool.title(),
                "readOnlyHint": true,
                "destructiveHint": false,
                "idempotentHint": true,
                "openWorldHint": false,
            });
        }
        if options.offer == Offer::Full && is_structured(version) {
            description["title"] = tool.title().into();
            description["outputSchema"] = tool.output_schema();
        }
        description
    };
    let tools: Vec<Value> = Tool::offered(options.offer).iter().map(describe).collect();
    json!({ "tools": tools }).to_string().into_bytes()
}

/// A result; its members are in the order of version 0.
pub(super) fn success(text: &str, is_structured: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 * text.len() + text.len() / 8 + 96);
    out.extend_from_slice(b"{\"content\":[{\"text\":");
    json::write_string(&mut out, text);
    out.extend_from_slice(b",\"type\":\"text\"}]");
    if is_structured {
        out.extend_from_slice(b",\"structuredContent\":");
        out.extend_from_slice(text.trim_end().as_bytes());
    }
    out.push(b'}');
    out
}

/// A result that says no, in every version in the same words.
pub(super) fn refusal(error: &Error) -> Vec<u8> {
    let mut out = b"{\"content\":[{\"text\":".to_vec();
    json::write_string(&mut out, &error.text());
    out.extend_from_slice(b",\"type\":\"text\"}],\"isError\":true}");
    out
}

#[cfg(test)]
mod tests {
    use super::{Offer, Question, Task, Tool, refusal, success};
    use crate::error::{Error, Kind};

    #[test]
    fn arguments_are_typed() {
        let task = |text: &str| Tool::Resolve.task(text.as_bytes()).map_err(|error| error.kind);
        let good = r#"{"cache":"c","query":"q","budget":3}"#;
        let question = Question { cache: "c".into(), query: "q".into(), budget: 3 };
        assert_eq!(task(good), Ok(Task::Resolve(question)));
        assert!(task(r#"{"extra":[],"cache":"c","query":"q","budget":9223372036854775807}"#).is_ok());
        for budget in ["-1", "1.5", "\"10\"", "1e3", "1.0", "9223372036854775808", "null", "true", "[1]", "-0"] {
            assert_eq!(task(&good.replace('3', budget)), Err(Kind::InvalidBudget), "{budget}");
        }
        for value in ["null", "3", "[]", "{}", "true"] {
            assert_eq!(task(&good.replace("\"q\"", value)), Err(Kind::InvalidQuery), "{value}");
            assert_eq!(task(&good.replace("\"c\"", value)), Err(Kind::CacheMissing), "{value}");
        }
        assert_eq!(task(r#"{"cache":"c","query":"q"}"#), Err(Kind::InvalidBudget));
        assert_eq!(task(r#"{"cache":"c","budget":1}"#), Err(Kind::InvalidQuery));
        assert_eq!(task(r#"{"query":"q","budget":1}"#), Err(Kind::CacheMissing));
        // The budget is looked at before the cache.
        assert_eq!(task(r#"{"query":"q","budget":-1}"#), Err(Kind::InvalidBudget));
        for arguments in ["{}", "[]", "null", "3"] {
            assert_eq!(task(arguments), Err(Kind::InvalidQuery), "{arguments}");
            assert_eq!(Tool::InspectCache.task(arguments.as_bytes()).unwrap_err().kind, Kind::CacheMissing);
            assert!(Tool::ListCaches.task(arguments.as_bytes()).is_ok());
        }
    }

    #[test]
    fn both_spellings_are_understood() {
        for (name, offer, expected) in [
            ("context.resolve", Offer::V0, Some(Tool::Resolve)),
            ("context_resolve", Offer::V0, Some(Tool::Resolve)),
            ("context_list_caches", Offer::Full, Some(Tool::ListCaches)),
            ("context.search", Offer::Full, Some(Tool::Search)),
            ("context.search", Offer::V0, None),
            ("context.list.caches", Offer::Full, None),
            ("health", Offer::V0, None),
            ("resolve", Offer::Full, None),
        ] {
            assert_eq!(Tool::named(name, offer), expected, "{name}");
        }
    }

    #[test]
    fn results() {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        assert_eq!(text(success("{\"a\":1}\n", false)), r#"{"content":[{"text":"{\"a\":1}\n","type":"text"}]}"#);
        assert_eq!(
            text(success("{\"a\":1}\n", true)),
            r#"{"content":[{"text":"{\"a\":1}\n","type":"text"}],"structuredContent":{"a":1}}"#
        );
        assert_eq!(
            text(refusal(&Error::new(Kind::Io))),
            r#"{"content":[{"text":"{\"error\":{\"code\":\"io_error\",\"message\":\"I/O error occurred\"}}\n","type":"text"}],"isError":true}"#
        );
    }
}
