//! Calls between a client and a server that speak different eras.
//!
//! Up to 2025-11-25 a server that needs something from the user, the model or the file system sends a request of its own
//! while a call is running. From 2026-07-28 on it ends the call with an `input_required` result instead, and the client
//! calls again with the answers. Both can be had from the other: for an older client we put the questions and call
//! again; for a newer client we end its call, keep the older server's call waiting, and go on when the client is back.

use crate::hub::Hub;
use crate::link::Link;
use crate::upstream::{needed_capability, unsupported};
use memchr::memmem::Finder;
use rialto_mcp::call::Call;
use rialto_mcp::client::meta_members;
use rialto_mcp::error::{Error, Kind};
use rialto_mcp::json;
use rialto_mcp::message::{Edit, Request, Response};
use rialto_mcp::pending::Fault;
use rialto_mcp::reply::Answer;
use rialto_mcp::version::meta;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How often a newer server may ask again within one call of an older client.
const MAX_ROUNDS: usize = 16;

/// How long a newer client may take to come back with answers.
const HELD_FOR: Duration = Duration::from_secs(600);

/// Calls that are kept waiting at once; each is a call that the server behind us has open as well.
const MAX_HELD: usize = 1024;

/// A question of an older server during a newer client's call.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) request: Request,
    pub(crate) answer: oneshot::Sender<Answer>,
}

/// Calls whose clients have been sent away to find answers.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<HashMap<String, Held>>);

#[derive(Debug)]
struct Held {
    /// Where the call is running. Its server may no longer be offered by now.
    link: Arc<Link>,
    running: Running,
    asks: mpsc::Receiver<Ask>,
    /// Questions that have not been answered, by the key under which the client knows them.
    open: Vec<(String, Ask)>,
    next_key: u32,
    since: Instant,
}

/// A call that goes on by itself; dropping it cancels it at the server.
#[derive(Debug)]
struct Running(JoinHandle<Result<Response, Fault>>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The server has forgotten the session, and did not look at the call: it can be made again in the next one.
#[derive(Debug)]
pub(crate) struct Forgotten;

/// Passes a call on over `link`, with `edits` in its params, and brings back the answer.
pub(crate) async fn forward(hub: &Hub, link: &Arc<Link>, call: &Call, edits: &[Edit<'_>]) -> Result<Answer, Forgotten> {
    match (call.version().is_modern(), link.is_modern()) {
        (false, true) => Ok(Box::pin(to_modern(hub, link, call, edits)).await),
        (true, false) => Box::pin(to_legacy(hub, link, call, edits)).await,
        _ => {
            let _entered = link.enter(call, None);
            let patience = link.source.patience();
            let outcome = link.client.forward(&call.request, edits, patience, call.asker()).await;
            if let Err(Fault::SessionGone) = outcome {
                return Err(Forgotten);
            }
            Ok(answer(outcome, link, call.method()))
        }
    }
}

fn answer(outcome: Result<Response, Fault>, link: &Link, method: &str) -> Answer {
    match outcome {
        Ok(response) => Answer::Response(response),
        Err(fault) => Answer::Error(unanswered(&link.source.plan.name, method, &fault)),
    }
}

/// The error for a request that a server did not answer.
pub(crate) fn unanswered(server: &str, method: &str, fault: &Fault) -> Error {
    let kind = match fault {
        _ if method == "tools/call" => Kind::ToolFailed,
        Fault::Timeout(_) => Kind::Timeout,
        _ => Kind::Unavailable,
    };
    let message = match fault {
        Fault::Closed(reason) => reason.to_string(),
        other => format!("server `{server}`: {other}"),
    };
    Error::new(kind, message).with("server", server).because(fault)
}

/// An older client's call to a newer server.
async fn to_modern(hub: &Hub, link: &Arc<Link>, call: &Call, edits: &[Edit<'_>]) -> Answer {
    let _entered = link.enter(call, None);
    let mut params = Vec::new();
    json::splice(&mut params, call.params(), edits);
    let mut members = meta_members(&call.profile);
    if let Some(level) = hub.level_of(&call.peer).filter(|_| link.can("logging")) {
        json::push_member(&mut members, meta::LOG_LEVEL.as_bytes(), &level);
    }
    // A client of either era may have put these keys there for reasons of its own; no key may stand twice.
    let params = json::with_meta(&without_envelope(&params), &members);
    let mut again = params.clone();
    for _ in 0..MAX_ROUNDS {
        let patience = link.source.patience();
        let response = match link.client.request_for(call.method(), &again, patience, call.asker()).await {
            Ok(response) => response,
            Err(fault) => return Answer::Error(unanswered(&link.source.plan.name, call.method(), &fault)),
        };
        let Some(result) = response.result() else { return Answer::Response(response) };
        if json::get_string(result, "resultType").as_deref() != Some("input_required") {
            return Answer::Response(response);
        }
        let mut members = Vec::new();
        if let Some(asked) = json::get(result, "inputRequests") {
            match put_questions(call, asked).await {
                Ok(answers) => members.extend_from_slice(&answers),
                Err(error) => return Answer::Error(error),
            }
        }
        if let Some(state) = json::get(result, "requestState") {
            if !members.is_empty() {
                members.push(b',');
            }
            members.extend_from_slice(b"\"requestState\":");
            members.extend_from_slice(state);
        }
        again = json::with_members(&params, &members);
    }
    Answer::Error(Error::new(Kind::ToolFailed, format!("the server asked for input {MAX_ROUNDS} times without an end")))
}

/// Puts a newer server's questions to an older client; gives `"inputResponses":{…}`.
async fn put_questions(call: &Call, asked: &[u8]) -> Result<Vec<u8>, Error> {
    let mut answers = Vec::new();
    for member in json::Members::of(asked).map_while(Result::ok) {
        let question = &asked[member.value.clone()];
        let method = json::get_string(question, "method").unwrap_or_default();
        if let Some(capability) = needed_capability(&method)
            && !call.profile.can(capability)
        {
            return Err(unsupported(&method, &format!("the client does not support {capability}")));
        }
        let params = json::get(question, "params").unwrap_or_default();
        let failed = |why: &str| Error::new(Kind::ToolFailed, format!("{method} was not answered: {why}"));
        let response = call.ask(&method, params).await.map_err(|fault| failed(&fault.to_string()))?;
        let Some(result) = response.result() else {
            let why = response.error().and_then(|error| json::get_string(error, "message"));
            return Err(failed(why.as_deref().unwrap_or("it was refused")));
        };
        json::push_member(&mut answers, member.key, result);
    }
    Ok([b"\"inputResponses\":{".as_slice(), &answers, b"}"].concat())
}

/// Goes on with a newer client's call that was sent away to find answers; `None` if this is no such call.
pub(crate) async fn resume(hub: &Hub, call: &Call) -> Option<Answer> {
    static STATE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("requestState"));
    STATE.find(call.params())?;
    let state = json::get_string(call.params(), "requestState")?;
    let mut held = hub.waiting.take(&state)?;
    held.accept(json::get(call.params(), "inputResponses").unwrap_or(b"{}"));
    let link = held.link.clone();
    let answered = go_on(hub, held, call.method()).await;
    Some(answered.unwrap_or_else(|Forgotten| answer(Err(Fault::SessionGone), &link, call.method())))
}

/// A newer client's call to an older server.
async fn to_legacy(hub: &Hub, link: &Arc<Link>, call: &Call, edits: &[Edit<'_>]) -> Result<Answer, Forgotten> {
    // Those that we gave are taken before a server is looked for.
    if json::get(call.params(), "requestState").is_some_and(|state| state != b"null") {
        return Ok(Answer::Error(Error::invalid_params("`requestState` is unknown or has expired")));
    }
    go_on(hub, begin(link, call, edits), call.method()).await
}

fn begin(link: &Arc<Link>, call: &Call, edits: &[Edit<'_>]) -> Held {
    let (send, asks) = mpsc::channel(16);
    let mut params = Vec::new();
    json::splice(&mut params, call.params(), edits);
    let params = without_envelope(&params);
    let (at, call) = (link.clone(), call.clone());
    let running = tokio::spawn(async move {
        let _entered = at.enter(&call, Some(send));
        at.client.request_for(call.method(), &params, at.source.patience(), call.asker()).await
    });
    Held { link: link.clone(), running: Running(running), asks, open: Vec::new(), next_key: 1, since: Instant::now() }
}

/// Params without what makes a request stateless. A server that was introduced to with `initialize` may refuse it.
fn without_envelope(params: &[u8]) -> Vec<u8> {
    const ENVELOPE: [&str; 4] = [meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES, meta::CLIENT_INFO, meta::LOG_LEVEL];
    let Ok([Some(place)]) = json::find(params, ["_meta"]) else { return params.to_vec() };
    let rest = json::without_members(&params[place.clone()], &ENVELOPE);
    if rest == b"{}" {
        return json::without_members(params, &["_meta"]);
    }
    let mut out = Vec::with_capacity(params.len());
    json::splice(&mut out, params, &[(place, &rest)]);
    out
}

async fn go_on(hub: &Hub, mut held: Held, method: &str) -> Result<Answer, Forgotten> {
    if held.open.is_empty() {
        tokio::select! {
            biased;
            outcome = &mut held.running.0 => {
                let closed = |_| Err(Fault::Closed("the call was dropped".into()));
                let outcome = outcome.unwrap_or_else(closed);
                // Before it has asked anything, nothing was done.
                if let (Err(Fault::SessionGone), 1) = (&outcome, held.next_key) {
                    return Err(Forgotten);
                }
                return Ok(answer(outcome, &held.link, method));
            }
            Some(ask) = held.asks.recv() => held.put(ask),
        }
    }
    while let Ok(ask) = held.asks.try_recv() {
        held.put(ask);
    }
    let questions = held.questions();
    let Ok(state) = hub.waiting.put(held) else {
        return Ok(Answer::Error(Error::new(Kind::Busy, "too many calls are waiting for input")));
    };
    let mut result = b"{\"resultType\":\"input_required\",\"inputRequests\":".to_vec();
    result.extend_from_slice(&questions);
    result.extend_from_slice(format!(",\"requestState\":\"{state}\"}}").as_bytes());
    Ok(Answer::Result(result))
}

impl Held {
    fn put(&mut self, ask: Ask) {
        self.open.push((format!("input-{}", self.next_key), ask));
        self.next_key += 1;
    }

    /// Hands the client's answers to the server. What it left out stays open and is asked again.
    fn accept(&mut self, responses: &[u8]) {
        for (key, ask) in std::mem::take(&mut self.open) {
            match json::get(responses, &key) {
                Some(response) => {
                    let _ = ask.answer.send(Answer::Result(response.to_vec()));
                }
                None => self.open.push((key, ask)),
            }
        }
    }

    fn questions(&self) -> Vec<u8> {
        let mut out = vec![b'{'];
        for (place, (key, ask)) in self.open.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            json::write_string(&mut out, key);
            out.extend_from_slice(b":{\"method\":");
            json::write_string(&mut out, ask.request.method());
            out.extend_from_slice(b",\"params\":");
            out.extend_from_slice(ask.request.params());
            out.push(b'}');
        }
        out.push(b'}');
        out
    }
}

impl Waiting {
    /// Keeps a call; gives the state by which its client gets it back. Nobody can guess it.
    fn put(&self, mut held: Held) -> Result<String, ()> {
        let mut random = [0_u8; 16];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).map_err(|_| ())?;
        let state: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        held.since = Instant::now();
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|_, other| other.since.elapsed() < HELD_FOR);
        if waiting.len() >= MAX_HELD {
            return Err(());
        }
        waiting.insert(state.clone(), held);
        Ok(state)
    }

    fn take(&self, state: &str) -> Option<Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(state)
    }
}
