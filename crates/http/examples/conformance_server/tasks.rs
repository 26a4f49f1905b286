//! The tasks extension: tools whose result is fetched later, and may need something from the client in between.

use super::asking::{self, Question};
use super::clock;
use super::fixture::{Fixture, text, text_of};
use super::seal::Seal;
use rialto_mcp::call::Call;
use rialto_mcp::error::{Error, Kind};
use rialto_mcp::json;
use rialto_mcp::reply::Answer;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;

pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// How long a task can be asked for, counted from its creation. Longer than anything here runs.
const LIFE: Duration = Duration::from_secs(600);

/// How often a client should ask.
const POLL: Duration = Duration::from_millis(100);

/// More at once are refused.
const MOST: usize = 1000;

/// The longest that `slow_compute` computes.
const LONGEST: f64 = 300.0;

const TOOLS: [&str; 7] = [
    "greet",
    "slow_compute",
    "failing_job",
    "protocol_error_job",
    "confirm_delete",
    "multi_input",
    "test_tool_with_task",
];

pub(crate) fn has(tool: &str) -> bool {
    TOOLS.contains(&tool)
}

/// All tasks.
pub(crate) struct Tasks {
    seal: Arc<Seal>,
    table: Mutex<HashMap<String, Task>>,
}

struct Task {
    state: State,
    created: String,
    updated: String,
    born: Instant,
    work: Option<AbortHandle>,
}

enum State {
    Working,
    /// What is still to be asked, what was answered, and what to make of it.
    Waiting(Vec<Question>, Map<String, Value>, fn(&Map<String, Value>) -> Value),
    Completed(Value),
    Failed(Value),
    Cancelled,
}

impl State {
    fn name(&self) -> &'static str {
        match self {
            State::Working => "working",
            State::Waiting(..) => "input_required",
            State::Completed(_) => "completed",
            State::Failed(_) => "failed",
            State::Cancelled => "cancelled",
        }
    }

    fn is_final(&self) -> bool {
        matches!(self, State::Completed(_) | State::Failed(_) | State::Cancelled)
    }
}

impl Task {
    fn new(state: State) -> Self {
        let now = clock::now();
        Self { state, created: now.clone(), updated: now, born: Instant::now(), work: None }
    }

    fn set(&mut self, state: State) {
        self.state = state;
        self.updated = clock::now();
    }

    fn envelope(&self, id: &str) -> Value {
        json!({
            "taskId": id,
            "status": self.state.name(),
            "createdAt": self.created,
            "lastUpdatedAt": self.updated,
            "ttlMs": LIFE.as_millis() as u64,
            "pollIntervalMs": POLL.as_millis() as u64,
        })
    }

    fn detailed(&self, id: &str) -> Value {
        let mut task = self.envelope(id);
        match &self.state {
            State::Completed(result) => task["result"] = result.clone(),
            State::Failed(error) => task["error"] = error.clone(),
            State::Waiting(open, ..) => {
                let open = open.iter().map(|question| (question.key.to_owned(), question.request.clone()));
                task["inputRequests"] = open.collect::<Map<_, _>>().into();
            }
            State::Working | State::Cancelled => {}
        }
        task
    }
}

impl Tasks {
    pub(crate) fn new(seal: Arc<Seal>) -> Self {
        Self { seal, table: Mutex::default() }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<String, Task>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `tasks/get`, `tasks/update` or `tasks/cancel`.
    pub(crate) fn request(&self, call: &Call, params: &Value) -> Result<Value, Error> {
        if !is_declared(call) {
            return Err(refuse());
        }
        let id = text_of(params, "taskId")?;
        let mut table = self.table();
        let known = table.get_mut(id).filter(|task| task.born.elapsed() < LIFE);
        let task = known.ok_or_else(|| Error::invalid_params(format!("Unknown task: {id}")).with("taskId", id))?;
        match call.method() {
            "tasks/get" => return Ok(task.detailed(id)),
            "tasks/cancel" if !task.state.is_final() => {
                task.work.take().inspect(AbortHandle::abort);
                task.set(State::Cancelled);
            }
            "tasks/update" => take_answers(task, &params["inputResponses"]),
            _ => {}
        }
        Ok(json!({}))
    }

    /// Keeps a task under a new name, which is known before anybody hears of it.
    fn add(&self, task: Task) -> Result<String, Error> {
        let id = self.seal.name().map_err(|_| Error::new(Kind::Internal, "There is no randomness"))?;
        let mut table = self.table();
        table.retain(|_, task| task.born.elapsed() < LIFE);
        if table.len() >= MOST {
            return Err(Error::new(Kind::Busy, format!("{MOST} tasks are kept already")));
        }
        table.insert(id.clone(), task);
        Ok(id)
    }

    fn handle(&self, id: &str) -> Value {
        let mut handle = self.table().get(id).map_or(Value::Null, |task| task.envelope(id));
        handle["resultType"] = "task".into();
        handle
    }
}

/// Notes what the client answered; when nothing is open any more, the task is done.
fn take_answers(task: &mut Task, responses: &Value) {
    let State::Waiting(open, answers, finish) = &mut task.state else { return };
    for (key, answer) in responses.as_object().into_iter().flatten() {
        if let Some(place) = open.iter().position(|question| question.key == key && question.fits(answer)) {
            open.remove(place);
            answers.insert(key.clone(), answer.clone());
        }
    }
    if open.is_empty() {
        let result = finish(answers);
        task.set(State::Completed(result));
    }
}

/// Whether the client can deal with tasks.
fn is_declared(call: &Call) -> bool {
    let extensions = json::get(&call.profile.capabilities, "extensions");
    call.version().is_modern() && extensions.and_then(|extensions| json::get(extensions, EXTENSION)).is_some()
}

fn refuse() -> Error {
    Error::new(Kind::ClientCapabilityMissing, format!("The client has not declared `{EXTENSION}`"))
        .with("requiredCapabilities", json!({ "extensions": { EXTENSION: {} } }))
}

pub(crate) async fn call(fixture: &Fixture, call: &Call, params: &Value, tool: &str) -> Result<Value, Answer> {
    let arguments = &params["arguments"];
    let failure = || Error::new(Kind::Internal, "The job broke down");
    match tool {
        "greet" => Ok(text(&format!("Hello, {}!", arguments["name"].as_str().unwrap_or("World")))),
        "slow_compute" => {
            let seconds = arguments["seconds"].as_f64().unwrap_or(0.0).clamp(0.0, LONGEST);
            let label = arguments["label"].as_str().unwrap_or("result").to_owned();
            let work = async move {
                tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
                State::Completed(text(&format!("Computed {label} in {seconds} s.")))
            };
            if seconds > 0.0 && is_declared(call) {
                return start(fixture, work);
            }
            match work.await {
                State::Completed(result) => Ok(result),
                _ => Err(Answer::Error(failure())),
            }
        }
        "failing_job" | "test_tool_with_task" if !is_declared(call) => Err(Answer::Error(refuse())),
        "failing_job" => start(fixture, async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let mut result = text("The job could not be done.");
            result["isError"] = true.into();
            State::Completed(result)
        }),
        "protocol_error_job" if is_declared(call) => {
            let error = failure();
            start(fixture, async move { State::Failed(json!({ "code": -32603, "message": error.message })) })
        }
        "protocol_error_job" => Err(Answer::Error(failure())),
        "confirm_delete" => wait_or_ask(fixture, call, params, &["delete"], confirmed).await,
        "multi_input" => wait_or_ask(fixture, call, params, &["first", "second"], named).await,
        "test_tool_with_task" => {
            let answer = asking::ask(call, params, Question::new("user_name")).await?;
            let name = asking::field(&answer, "name").to_owned();
            start(fixture, async move { State::Completed(text(&format!("Hello, {name}!"))) })
        }
        _ => Err(Answer::Error(Error::invalid_params(format!("Unknown tool: {tool}")))),
    }
}

fn confirmed(answers: &Map<String, Value>) -> Value {
    let is_sure = answers.get("delete").is_some_and(|answer| answer["content"]["confirm"] == true);
    text(if is_sure { "It is deleted." } else { "It stays." })
}

fn named(answers: &Map<String, Value>) -> Value {
    let names: Vec<_> = answers.values().map(|answer| asking::field(answer, "name")).collect();
    text(&format!("Names: {}", names.join(", ")))
}

/// Does the work in a task of its own.
fn start(fixture: &Fixture, work: impl Future<Output = State> + Send + 'static) -> Result<Value, Answer> {
    let id = fixture.tasks.add(Task::new(State::Working)).map_err(Answer::Error)?;
    let handle = fixture.tasks.handle(&id);
    let (tasks, name) = (fixture.tasks.clone(), id.clone());
    let running = tokio::spawn(async move {
        let state = work.await;
        if let Some(task) = tasks.table().get_mut(&name) {
            task.set(state);
        }
    });
    if let Some(task) = fixture.tasks.table().get_mut(&id) {
        task.work = Some(running.abort_handle());
    }
    Ok(handle)
}

/// A task that waits for answers or, where the client knows no tasks, the questions themselves.
async fn wait_or_ask(
    fixture: &Fixture,
    call: &Call,
    params: &Value,
    keys: &[&'static str],
    finish: fn(&Map<String, Value>) -> Value,
) -> Result<Value, Answer> {
    let questions = keys.iter().map(|key| Question::new(key));
    if !is_declared(call) {
        let mut answers = Map::new();
        for question in questions {
            answers.insert(question.key.to_owned(), asking::ask(call, params, question).await?);
        }
        return Ok(finish(&answers));
    }
    let state = State::Waiting(questions.collect(), Map::new(), finish);
    let id = fixture.tasks.add(Task::new(state)).map_err(Answer::Error)?;
    Ok(fixture.tasks.handle(&id))
}
