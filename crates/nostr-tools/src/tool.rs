//! What a tool is: a file that says everything about it, and does it.

use crate::failure::Failure;
use crate::session::Session;
use crate::shape::{Shape, without_nulls};
use rialto_hub::schema::Schema;
use rialto_mcp::call::Call;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How far a tool has come in the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Stable,
    Experimental,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Status::Stable => "stable",
            Status::Experimental => "experimental",
        }
    }
}

/// What a tool does to the world, for hosts that ask before they let it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Only calculates.
    Calculates,
    /// Reads what is on this machine.
    ReadsHere,
    /// Reads from relays or the web.
    ReadsThere,
    /// Changes what is on this machine.
    ChangesHere,
    /// The same, and what was there before is gone.
    ReplacesHere,
    /// Lends the key's name to something, without publishing it.
    Signs,
    /// Publishes something new.
    Publishes,
    /// Publishes something that takes the place of something else, or takes it away.
    Replaces,
}

impl Effect {
    /// Whether it only reads.
    pub fn is_reading(self) -> bool {
        matches!(self, Effect::Calculates | Effect::ReadsHere | Effect::ReadsThere)
    }

    /// Whether it only reads, and asks nobody else.
    pub fn is_local_reading(self) -> bool {
        matches!(self, Effect::Calculates | Effect::ReadsHere)
    }

    /// Whether it publishes.
    pub fn is_publishing(self) -> bool {
        matches!(self, Effect::Publishes | Effect::Replaces)
    }

    /// What hosts are told. What is as they assume anyway is left out, but for what they ask their users about.
    fn annotations(self) -> Value {
        let is_open = matches!(self, Effect::ReadsThere | Effect::Publishes | Effect::Replaces);
        let mut hints = match self.is_reading() {
            true => json!({ "readOnlyHint": true }),
            false => json!({ "destructiveHint": matches!(self, Effect::ReplacesHere | Effect::Replaces) }),
        };
        if matches!(self, Effect::ReplacesHere | Effect::Replaces) {
            hints["idempotentHint"] = true.into();
        }
        if !is_open {
            hints["openWorldHint"] = false.into();
        }
        hints
    }
}

/// Everything about a tool but its code.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// Its place in the list.
    pub place: u16,
    pub name: &'static str,
    pub title: &'static str,
    pub status: Status,
    /// The NIPs that it follows.
    pub nips: &'static [u8],
    /// What it does, for the model that may call it.
    pub summary: &'static str,
    pub effect: Effect,
    /// Arguments for an example.
    pub example: &'static str,
}

/// A tool.
pub(crate) trait Tool {
    const ABOUT: About;

    type Input: Shape + DeserializeOwned + Send;
    type Output: Shape + Serialize + Send;

    fn run(input: Self::Input, turn: &Turn<'_>) -> impl Future<Output = Result<Self::Output, Failure>> + Send;
}

/// One call of a tool.
pub(crate) struct Turn<'a> {
    pub(crate) session: &'a Session,
    pub(crate) call: &'a Call,
    /// How often progress was told.
    steps: AtomicU32,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(session: &'a Session, call: &'a Call) -> Self {
        Self { session, call, steps: AtomicU32::new(0) }
    }

    /// Tells the client how far we are. The number only ever grows; what it counts is in the words.
    pub(crate) async fn progress(&self, words: &str) {
        let step = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
        self.call.progress(f64::from(step), None, Some(words)).await;
    }
}

type Running<'a> = Pin<Box<dyn Future<Output = Result<Value, Failure>> + Send + 'a>>;

/// A tool among others.
pub struct Entry {
    pub about: About,
    pub input: Value,
    pub output: Value,
    checks: Option<Arc<Schema>>,
    run: for<'a> fn(Value, &'a Turn<'a>) -> Running<'a>,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("name", &self.about.name).finish_non_exhaustive()
    }
}

impl Entry {
    pub(crate) fn of<T: Tool>() -> Self {
        let input = T::Input::schema();
        Self {
            about: T::ABOUT,
            // Ours are never refused; a test sees to that.
            checks: Schema::compile(input.to_string().as_bytes()).ok().map(Arc::new),
            input,
            output: T::Output::schema(),
            run: |arguments, turn| {
                Box::pin(async move {
                    let input =
                        serde_json::from_value(arguments).map_err(|error| Failure::invalid(error.to_string()))?;
                    let output = T::run(input, turn).await?;
                    let mut output =
                        serde_json::to_value(output).map_err(|error| Failure::internal(error.to_string()))?;
                    without_nulls(&mut output, &T::Output::schema());
                    Ok(output)
                })
            },
        }
    }

    /// The definition that clients get. Models pay for every byte of it before they have done anything, so results are
    /// described in brief; the registry has the whole.
    pub fn definition(&self) -> Value {
        let About { name, title, summary, effect, .. } = self.about;
        json!({
            "name": name,
            "title": title,
            "description": summary,
            "inputSchema": self.input,
            "outputSchema": brief(&self.output),
            "annotations": effect.annotations(),
        })
    }

    /// Checks the arguments, and takes away what stands for nothing.
    pub(crate) fn check(&self, arguments: &mut Value) -> Result<(), Failure> {
        without_nulls(arguments, &self.input);
        match &self.checks {
            Some(schema) => schema.check(arguments).map_err(|misfit| {
                let missing = missing(&self.input, arguments, &misfit.pointer).map(|name| format!("/{name}"));
                Failure::invalid(misfit.message).at(misfit.pointer + &missing.unwrap_or_default())
            }),
            None => Ok(()),
        }
    }

    /// Does what is asked, with arguments that were checked.
    pub(crate) async fn run(&self, arguments: Value, turn: &Turn<'_>) -> Result<Value, Failure> {
        (self.run)(arguments, turn).await
    }
}

/// The first member that the object at `pointer` must have and has not: a fault is where something is missing, too.
fn missing<'a>(schema: &'a Value, value: &Value, pointer: &str) -> Option<&'a str> {
    let value = value.pointer(pointer)?.as_object()?;
    let schema = pointer.split('/').skip(1).try_fold(schema, |schema, step| match schema.get("items") {
        Some(items) => Some(items),
        None => schema.get("properties")?.get(step),
    })?;
    let required = schema.get("required")?.as_array()?.iter().filter_map(Value::as_str);
    required.into_iter().find(|name| !value.contains_key(*name))
}

/// The members of a result and their types, without words and without what is inside of them.
fn brief(schema: &Value) -> Value {
    let kind = |schema: &Value| match schema.get("type") {
        Some(kind) => json!({ "type": kind }),
        None => json!({}),
    };
    let mut short = kind(schema);
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        short["properties"] = properties.iter().map(|(name, schema)| (name.clone(), kind(schema))).collect();
    }
    if let Some(required) = schema.get("required") {
        short["required"] = required.clone();
    }
    short
}
