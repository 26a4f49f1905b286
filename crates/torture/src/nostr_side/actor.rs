//! The MCP server behind the provider: it writes down every execution, and has a tool for every way of going wrong.
//!
//! The test binary starts itself a second time in this role, as a child of `rialto serve`.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use super::{harm, weather};

/// The first argument that selects this role; the directory follows.
pub const ACTOR: &str = "actor";
/// In this file is one line for each execution: the tool, and the argument `tag` if there is one.
pub const EFFECTS: &str = "effects";
/// The same, and before each line the milliseconds since 1970.
pub const TIMES: &str = "times";
/// In this file are the calls of `gate` that have been answered.
pub const FINISHED: &str = "finished";
/// In this file is the process that was started last.
pub const PID: &str = "pid";

/// Nothing that a broken test leaves behind lives longer.
const LIFETIME: Duration = Duration::from_secs(170);

/// Plays the role if this process was started for it.
pub fn play_if_asked() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [role, directory, options @ ..] = arguments.as_slice()
        && role == ACTOR
    {
        play(Path::new(directory), options);
    }
}

struct Actor {
    directory: PathBuf,
    /// How many further tools it has, and how long their descriptions are.
    many: (usize, usize),
    /// Whether it knows the weather.
    weather: bool,
    /// Whether it does harm.
    harm: bool,
    /// A file with further tools: their names, and their schemas.
    schemas: Option<PathBuf>,
    /// How long the names of the further tools are at least.
    names: usize,
    /// How long the description of one tool more is.
    giant: Option<usize>,
    /// Ids of calls that were cancelled.
    cancelled: Mutex<Vec<Value>>,
    /// Answers to questions of ours.
    answered: Mutex<Vec<Value>>,
}

fn play(directory: &Path, options: &[String]) -> ! {
    if directory.join(harm::STILLBORN).exists() {
        exit(4);
    }
    std::thread::spawn(|| {
        std::thread::sleep(LIFETIME);
        exit(70);
    });
    // Renamed into place, so that nobody reads half of it.
    let new = directory.join(format!("pid-{}", std::process::id()));
    fs::write(&new, std::process::id().to_string()).and_then(|()| fs::rename(&new, directory.join(PID))).unwrap();
    let option = |name: &str| -> Option<usize> {
        options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
    };
    let many = (option("many").unwrap_or(0), option("words").unwrap_or(20));
    let (cancelled, answered) = (Mutex::default(), Mutex::default());
    let has = |name: &str| options.iter().any(|option| option == name);
    let (weather, harm) = (has(weather::WEATHER), has(harm::HARM));
    let schemas = options.iter().find_map(|option| option.strip_prefix("schemas=")).map(PathBuf::from);
    let (directory, giant, names) = (directory.to_owned(), option("giant"), option("names").unwrap_or(0));
    let actor = Arc::new(Actor { directory, many, weather, harm, schemas, names, giant, cancelled, answered });
    for line in BufReader::new(std::io::stdin()).lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        if message.get("method").is_none() {
            actor.answered.lock().unwrap().push(message);
        } else if message["method"] == "notifications/cancelled" {
            actor.cancelled.lock().unwrap().push(message["params"]["requestId"].clone());
        } else if message.get("id").is_some() {
            let actor = actor.clone();
            std::thread::spawn(move || actor.answer(&message));
        }
    }
    exit(0);
}

/// Writes down that a tool has run, and when.
pub fn write_down(directory: &Path, effect: &str) {
    let since = UNIX_EPOCH.elapsed().unwrap().as_millis();
    note(directory, TIMES, &format!("{since} {effect}"));
    note(directory, EFFECTS, effect);
}

fn note(directory: &Path, file: &str, line: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(directory.join(file)).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn say(message: &Value) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{message}").and_then(|()| out.flush()).is_err() {
        exit(0);
    }
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

impl Actor {
    fn answer(&self, request: &Value) {
        let params = &request["params"];
        let result = match request["method"].as_str().unwrap_or_default() {
            "initialize" => Ok(json!({
                "protocolVersion": "2025-06-18",
                "capabilities": { "tools": { "listChanged": true }, "resources": {}, "prompts": {}, "completions": {} },
                "serverInfo": { "name": "actor", "version": "1" }
            })),
            "ping" => Ok(json!({})),
            "tools/list" => Ok(json!({ "tools": self.tools() })),
            "tools/call" => match self.call(&request["id"], params) {
                Some(result) => result,
                None => return,
            },
            "resources/list" => Ok(json!({ "resources": [
                { "uri": "note://one", "name": "one", "description": "The first note", "mimeType": "text/plain" }
            ] })),
            "resources/templates/list" => Ok(json!({ "resourceTemplates": [
                { "uriTemplate": "note://{number}", "name": "any", "description": "Any note" }
            ] })),
            "resources/read" => match params["uri"].as_str() {
                Some(uri @ ("note://one" | "note://two")) => Ok(
                    json!({ "contents": [{ "uri": uri, "mimeType": "text/plain", "text": format!("this is {uri}") }] }),
                ),
                _ => Err(json!({ "code": -32002, "message": "no such note" })),
            },
            "prompts/list" => Ok(json!({ "prompts": [
                { "name": "greet", "description": "A greeting", "arguments": [{ "name": "who", "required": true }] }
            ] })),
            "prompts/get" if params["name"] != "greet" => {
                Err(json!({ "code": -32602, "message": format!("Unknown prompt: {}", params["name"]) }))
            }
            "prompts/get" => Ok(json!({ "description": "A greeting", "messages": [
                { "role": "user", "content": { "type": "text", "text": format!("Hello {}", params["arguments"]["who"]) } }
            ] })),
            "completion/complete" => Ok(json!({ "completion": {
                "values": [format!("{}da", params["argument"]["value"].as_str().unwrap_or_default())], "total": 1, "hasMore": false
            } })),
            other => Err(json!({ "code": -32601, "message": format!("Method not found: {other}") })),
        };
        say(&match result {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }),
        });
    }

    fn tools(&self) -> Vec<Value> {
        let tag = json!({ "type": "string", "description": "Stands in the list of effects" });
        let tool = |name: &str, description: &str, properties: Value| {
            let mut properties = properties;
            properties["tag"] = tag.clone();
            json!({ "name": name, "description": description, "inputSchema": { "type": "object", "properties": properties } })
        };
        let mut tools = vec![
            tool("note", "Writes a note and gives its text back", json!({ "text": { "type": "string" } })),
            tool("nap", "Sleeps", json!({ "ms": { "type": "integer" } })),
            tool("gate", "Waits until the gate is open", json!({ "name": { "type": "string" } })),
            tool("crash", "Dies during the call", json!({})),
            tool("hang", "Never answers", json!({})),
            tool("large", "Gives a long text", json!({ "size": { "type": "integer" } })),
            tool("steps", "Reports progress", json!({ "count": { "type": "integer" }, "ms": { "type": "integer" } })),
            tool("sulk", "Says that it failed", json!({})),
            tool("broken", "Answers with a protocol error", json!({})),
            tool("grow", "Gets a new tool", json!({ "name": { "type": "string" } })),
            tool("shrink", "Loses its further tools", json!({})),
            tool("ask", "Asks the model of its caller", json!({})),
            tool("meta", "Gives back the `_meta` of the call", json!({})),
            tool("rich", "Gives every field of a result", json!({})),
            json!({ "name": "strict", "description": "Has a strict schema", "inputSchema": {
                "type": "object",
                "properties": {
                    "city": { "type": "string", "minLength": 2 },
                    "unit": { "type": "string", "enum": ["C", "F"] },
                    "days": { "type": "integer", "minimum": 1, "maximum": 9 },
                    "code": { "type": "string", "pattern": "^[A-Z]{2}$" },
                    "at": { "type": "object", "properties": { "lat": { "type": "number" } } }
                },
                "required": ["city"],
                "additionalProperties": false
            } }),
        ];
        if self.weather {
            tools.push(weather::definition());
        }
        if self.harm {
            tools.extend(harm::definitions());
        }
        if let Some(schemas) = &self.schemas {
            let schemas: Map<String, Value> = serde_json::from_str(&fs::read_to_string(schemas).unwrap()).unwrap();
            tools.extend(schemas.into_iter().map(|(name, schema)| json!({ "name": name, "inputSchema": schema })));
        }
        if let Some(length) = self.giant {
            tools.push(tool("giant", &"x".repeat(length), json!({})));
        }
        if let Ok(name) = fs::read_to_string(self.directory.join("grown")) {
            tools.push(tool(&name, "Grown at run time", json!({})));
        }
        let is_shrunk = self.directory.join("shrunk").exists();
        for number in (0..self.many.0).filter(|_| !is_shrunk) {
            let description = format!("Tool number {number}:{}", " with many words".repeat(self.many.1 / 3));
            let name = format!("many_{number:03}");
            let name = format!("{name}{}", "x".repeat(self.names.saturating_sub(name.len())));
            tools.push(tool(&name, &description, json!({ "value": { "type": "string" } })));
        }
        tools
    }

    /// Runs a tool; nothing is answered when it gives nothing.
    fn call(&self, id: &Value, params: &Value) -> Option<Result<Value, Value>> {
        let arguments = &params["arguments"];
        let name = params["name"].as_str().unwrap_or_default();
        let effect = match arguments["tag"].as_str() {
            Some(tag) => format!("{name} {tag}"),
            None => name.to_owned(),
        };
        write_down(&self.directory, &effect);
        if let Some(answer) = self.harm.then(|| harm::answer(name, id, params)).flatten() {
            return answer.map(Ok);
        }
        let number = |key: &str| arguments[key].as_u64().unwrap_or(0);
        Some(Ok(match name {
            "note" => text(arguments["text"].as_str().unwrap_or("noted")),
            "nap" => {
                std::thread::sleep(Duration::from_millis(number("ms")));
                text("slept")
            }
            "gate" => return self.gate(id, &effect, arguments["name"].as_str().unwrap_or_default()).map(Ok),
            "crash" => exit(3),
            "get_forecast" => weather::answer(arguments).unwrap_or_else(|| exit(3)),
            "hang" => return None,
            "large" => text(&"x".repeat(usize::try_from(number("size")).unwrap())),
            "steps" => {
                let token = &params["_meta"]["progressToken"];
                for step in (1..=number("count")).filter(|_| !token.is_null()) {
                    say(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {
                        "progressToken": token, "progress": step, "total": number("count"), "message": format!("step {step}")
                    } }));
                    std::thread::sleep(Duration::from_millis(number("ms")));
                }
                text("done")
            }
            "sulk" => {
                json!({ "content": [{ "type": "text", "text": "I do not want to" }], "isError": true, "mood": "bad" })
            }
            "broken" => return Some(Err(json!({ "code": -32603, "message": "something broke" }))),
            "grow" => {
                fs::write(self.directory.join("grown"), arguments["name"].as_str().unwrap_or("grown")).unwrap();
                say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
                text("grown")
            }
            "shrink" => {
                fs::write(self.directory.join("shrunk"), "").unwrap();
                say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
                text("shrunk")
            }
            "ask" => {
                say(&json!({ "jsonrpc": "2.0", "id": "question", "method": "sampling/createMessage", "params": {
                    "messages": [{ "role": "user", "content": { "type": "text", "text": "?" } }], "maxTokens": 1
                } }));
                text(&self.reply().to_string())
            }
            "meta" => text(&params["_meta"].to_string()),
            "rich" => json!({
                "content": [
                    { "type": "text", "text": "Zürich “18 °C” \u{1f324}\n" },
                    { "type": "image", "data": "aGVsbG8=", "mimeType": "image/png" },
                    { "type": "resource", "resource": { "uri": "note://one", "mimeType": "text/plain", "text": "inside" } },
                    { "type": "image/svg+xml", "text": "<svg/>" }
                ],
                "structuredContent": { "degrees": 18.5, "exact": 9_007_199_254_740_993_u64, "nothing": null },
                "metadata": { "token_count": 150 },
                "_meta": { "of": "the result" }
            }),
            other => text(&format!("this is {other}")),
        }))
    }

    /// Waits until the gate opens, or the call is cancelled.
    fn gate(&self, id: &Value, effect: &str, name: &str) -> Option<Value> {
        loop {
            if self.directory.join(format!("gate-{name}")).exists() {
                note(&self.directory, FINISHED, effect);
                return Some(text("through"));
            }
            if self.cancelled.lock().unwrap().contains(id) {
                note(&self.directory, EFFECTS, &format!("cancelled {effect}"));
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the answer to our question.
    fn reply(&self) -> Value {
        loop {
            if let Some(answer) = self.answered.lock().unwrap().pop() {
                return answer;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
