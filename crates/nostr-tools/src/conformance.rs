//! Whether a server keeps the rules of the registry: ours, or anybody's.
//!
//! Three rules make a server conformant: it has the canonical names, it checks what it is given against the schemas, and
//! what it gives fits them. The first is read from its list; the others are tried out. Nothing is called with arguments
//! that are right unless the tool only reads and asks nobody else.

mod definitions;
mod trial;

pub use self::definitions::portable;

use crate::tool::{Entry, Status};
use rialto_mcp::client::Client;
use rialto_mcp::pending::Patience;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;

/// How long a server may think about one call.
const PATIENCE: Patience = Patience { silence: Duration::from_secs(30), total: Duration::from_secs(60) };

/// Pages of the list that are read; a server that never ends its list is cut off here.
const MAX_PAGES: usize = 100;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// A rule is broken.
    Error,
    /// Some clients will have trouble.
    Warning,
}

/// Which rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    Names,
    Schemas,
    Input,
    Output,
}

impl Rule {
    pub fn name(self) -> &'static str {
        match self {
            Rule::Names => "names",
            Rule::Schemas => "schemas",
            Rule::Input => "input",
            Rule::Output => "output",
        }
    }
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub level: Level,
    pub rule: Rule,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    pub message: String,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Tools of the registry that the server has.
    pub tools: usize,
    /// Calls that were tried.
    pub calls: usize,
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether no rule is broken.
    pub fn is_conformant(&self) -> bool {
        self.findings.iter().all(|finding| finding.level != Level::Error)
    }

    fn add(&mut self, level: Level, rule: Rule, tool: Option<&str>, message: impl Into<String>) {
        self.findings.push(Finding { level, rule, tool: tool.map(ToOwned::to_owned), message: message.into() });
    }
}

/// Checks the server at the other end.
pub async fn check(client: &Client) -> Result<Report, String> {
    let listed = list(client).await?;
    let mut report = Report::default();
    if list(client).await? != listed {
        report.add(
            Level::Warning,
            Rule::Names,
            None,
            "the list of tools is another one each time, which defeats caches",
        );
    }
    let registry = crate::tools();
    check_names(&listed, &registry, &mut report);
    let mut seen = HashSet::new();
    for offered in &listed {
        let name = offered["name"].as_str().unwrap_or_default();
        let Some(tool) = registry.iter().find(|tool| tool.about.name == name) else { continue };
        if !seen.insert(name) {
            continue;
        }
        report.tools += 1;
        definitions::check(offered, tool, &mut report);
        trial::check(client, offered, tool, &mut report).await?;
    }
    report.findings.sort_by_key(|finding| (finding.level, finding.rule));
    Ok(report)
}

async fn list(client: &Client) -> Result<Vec<Value>, String> {
    let mut tools = Vec::new();
    let mut params = json!({});
    for _ in 0..MAX_PAGES {
        let page = ask(client, "tools/list", &params).await?;
        let page = page.map_err(|error| format!("`tools/list` is refused: {}", error["message"]))?;
        tools.extend(page["tools"].as_array().cloned().ok_or("the answer to `tools/list` has no tools")?);
        match page.get("nextCursor") {
            Some(Value::String(cursor)) => params = json!({ "cursor": cursor }),
            _ => break,
        }
    }
    Ok(tools)
}

/// Asks one thing: the result, or the error; or that there was no answer at all.
async fn ask(client: &Client, method: &str, params: &Value) -> Result<Result<Value, Value>, String> {
    let answer = client.request(method, params.to_string().as_bytes(), PATIENCE).await;
    let answer = answer.map_err(|fault| format!("`{method}` is not answered: {fault}"))?;
    let read = |text: &[u8]| serde_json::from_slice(text).unwrap_or_default();
    Ok(match answer.result() {
        Some(result) => Ok(read(result)),
        None => Err(answer.error().map(read).unwrap_or_default()),
    })
}

fn check_names(listed: &[Value], registry: &[Entry], report: &mut Report) {
    let mut seen = HashSet::new();
    for tool in listed {
        let Some(name) = tool["name"].as_str() else {
            report.add(Level::Error, Rule::Names, None, "a tool has no name");
            continue;
        };
        if !seen.insert(name) {
            report.add(Level::Error, Rule::Names, Some(name), "is listed twice");
        }
        let is_word = |word: &str| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        let words: Vec<&str> = name.split('_').collect();
        if words[0] != "nostr" || words.len() < 3 || !words.iter().all(|word| is_word(word)) {
            report.add(Level::Warning, Rule::Names, Some(name), "is no name of the form nostr_domain_verb_object");
        } else if !registry.iter().any(|tool| tool.about.name == name) {
            report.add(Level::Warning, Rule::Names, Some(name), "is not in the registry");
        }
    }
    let is_missing = |tool: &&Entry| tool.about.status == Status::Stable && !seen.contains(tool.about.name);
    for tool in registry.iter().filter(is_missing) {
        report.add(Level::Error, Rule::Names, Some(tool.about.name), "is stable and missing");
    }
}
