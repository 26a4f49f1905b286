//! The MCP server.

use crate::confirm::{Consent, consent};
use crate::failure::Failure;
use crate::guard::Limiter;
use crate::log::Log;
use crate::record::Record;
use crate::resources::Resources;
use crate::session::{Session, hide};
use crate::signer::page;
use crate::tool::{Entry, Turn};
use rialto_mcp::call::Call;
use rialto_mcp::error::{Error, Kind};
use rialto_mcp::json;
use rialto_mcp::peer::{Peer, Profile};
use rialto_mcp::reply::Answer;
use rialto_mcp::server::{Description, Service};
use rialto_mcp::version::Version;
use serde_json::{Value, json};
use std::sync::{Arc, PoisonError, RwLock};

const INFO: &[u8] = concat!(
    "{\"name\":\"rialto-nostr\",\"title\":\"Rialto: Nostr tools\",\"version\":\"",
    env!("CARGO_PKG_VERSION"),
    "\"}"
)
.as_bytes();

const CAPABILITIES: &str = r#"{"tools":{},"resources":{"subscribe":true}}"#;

/// The tools of one session, offered to MCP hosts.
#[derive(Debug)]
pub struct Server {
    /// One takes the place of another when the folder changes.
    session: RwLock<Arc<Session>>,
    tools: Vec<Entry>,
    /// The list as clients get it.
    list: Vec<u8>,
    limiter: Limiter,
    /// In the folder that the operator has chosen, wherever the session moves.
    log: Log,
    resources: Resources,
}

impl Server {
    pub fn new(session: Session) -> Self {
        let tools = crate::tools();
        let offered = tools.iter().filter(|tool| session.guard.offers(&tool.about));
        let definitions: Vec<Value> = offered.map(Entry::definition).collect();
        let list = json!({ "tools": definitions }).to_string().into_bytes();
        let limiter = Limiter::new(session.guard.writes_per_minute);
        let log = Log::new(session.directory());
        Self { session: RwLock::new(Arc::new(session)), tools, list, limiter, log, resources: Resources::default() }
    }

    pub(crate) fn session(&self) -> Arc<Session> {
        self.session.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn call_tool(&self, call: &Call) -> Answer {
        let name = json::get_string(call.params(), "name");
        let Some(name) = name else {
            return Answer::Error(Error::invalid_params("`name` must be given once, as a string"));
        };
        let Some(tool) = self.tools.iter().find(|tool| tool.about.name == name) else {
            return Answer::Error(Error::new(Kind::ToolNotFound, format!("Unknown tool: {name}")).with("name", &*name));
        };
        let arguments = match json::get(call.params(), "arguments") {
            None | Some(b"null") => Value::Object(serde_json::Map::new()),
            Some(text) => serde_json::from_slice(text).unwrap_or(Value::Null),
        };
        let session = self.session();
        let turn = Turn::new(&session, call);
        let secrets = match session.guard.allows_secrets {
            true => Ok(Vec::new()),
            false => session.secrets_of(&arguments),
        };
        let outcome = match &secrets {
            Ok(secrets) => self.perform(tool, arguments, secrets, &turn).await,
            Err(failure) => Err(failure.clone()),
        };
        if let Some(next) = session.take_next() {
            *self.session.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        }
        let answer = match outcome {
            Ok(Performed::Result(output)) => Answer::Result(result(&output, call.version())),
            Ok(Performed::Question(question)) => Answer::Result(question),
            Err(failure) => failure.answer(call.version()),
        };
        secrets.unwrap_or_default().into_iter().fold(answer, |answer, (_, secret)| without(answer, &secret))
    }

    /// Does what is asked if it is right, allowed, wanted and not too much, and writes that down.
    async fn perform(
        &self,
        tool: &Entry,
        mut arguments: Value,
        secrets: &[(String, String)],
        turn: &Turn<'_>,
    ) -> Result<Performed, Failure> {
        let is_writing = !tool.about.effect.is_reading();
        let mut record = Record::new(&self.log, tool, turn);
        let admitted = self.admit(tool, &mut arguments, secrets, turn).await;
        match admitted {
            Ok(Consent::Given) => {}
            Ok(Consent::Asked(question)) => return Ok(Performed::Question(question)),
            Err(failure) => return Err(record.refused(failure)),
        }
        if is_writing {
            record.begin(&arguments)?;
        }
        let outcome = attended(tool.run(arguments, turn), turn).await;
        record.end(&outcome);
        outcome.map(Performed::Result)
    }

    async fn admit(
        &self,
        tool: &Entry,
        arguments: &mut Value,
        secrets: &[(String, String)],
        turn: &Turn<'_>,
    ) -> Result<Consent, Failure> {
        let guard = &turn.session.guard;
        let about = &tool.about;
        if !guard.offers(about) {
            let words = match guard.is_read_only && !about.effect.is_reading() {
                true => "this server is read-only".to_owned(),
                false => format!("the operator does not offer {}", about.name),
            };
            return Err(Failure::denied(words));
        }
        tool.check(arguments)?;
        // Nothing that leaves this call may hold one: no file, no relay.
        if let Some((pointer, _)) = secrets.first()
            && !about.effect.is_local_reading()
        {
            return Err(guard.admit_secret().err().unwrap_or_else(|| Failure::denied("that is a secret")).at(pointer));
        }
        if about.effect.is_reading() {
            return Ok(Consent::Given);
        }
        self.limiter.check()?;
        if guard.asks_before_writing {
            match consent(turn.call, about, arguments, turn.session).await? {
                Consent::Given => {}
                asked @ Consent::Asked(_) => return Ok(asked),
            }
        }
        self.limiter.take()?;
        Ok(Consent::Given)
    }
}

/// Does something, and tells the client of pages that a remote signer wants its owner to open meanwhile.
async fn attended<T>(work: impl Future<Output = T>, turn: &Turn<'_>) -> T {
    let (work, mut pages) = page::watched(work);
    tokio::pin!(work);
    loop {
        tokio::select! {
            outcome = &mut work => return outcome,
            Some(page) = pages.recv() => turn.progress(&page::words(&page)).await,
        }
    }
}

/// An answer that does not repeat a secret which the question held.
fn without(answer: Answer, secret: &str) -> Answer {
    match answer {
        Answer::Result(text) => Answer::Result(hide(&String::from_utf8_lossy(&text), secret).into_bytes()),
        Answer::Error(mut error) => {
            error.message = hide(&error.message, secret);
            let details = hide(&Value::Object(error.details).to_string(), secret);
            error.details = serde_json::from_str(&details).unwrap_or_default();
            Answer::Error(error)
        }
        other @ Answer::Response(_) => other,
    }
}

enum Performed {
    Result(Value),
    Question(Vec<u8>),
}

/// A result: the JSON as text for everybody, and structured for those who know that.
fn result(output: &Value, version: Version) -> Vec<u8> {
    let content = [json!({ "type": "text", "text": output.to_string() })];
    let mut result = json!({ "content": content });
    if version >= Version::V2025_06_18 && output.is_object() {
        result["structuredContent"] = output.clone();
    }
    result.to_string().into_bytes()
}

impl Service for Server {
    const AT_ONCE: bool = false;

    fn info(&self) -> bytes::Bytes {
        bytes::Bytes::from_static(INFO)
    }

    async fn describe(&self, _peer: &Arc<Peer>, _profile: &Arc<Profile>) -> Description {
        Description { capabilities: CAPABILITIES.into(), info: self.info(), instructions: None, more: Vec::new() }
    }

    async fn request(&self, call: &Call) -> Answer {
        match call.method() {
            "tools/list" => match json::get(call.params(), "cursor") {
                None | Some(b"null") => Answer::Result(self.list.clone()),
                Some(_) => Answer::Error(Error::invalid_params("Invalid cursor")),
            },
            "tools/call" => self.call_tool(call).await,
            method => {
                let answer = self.resources.answer(call, &self.session()).await;
                answer.unwrap_or_else(|| Answer::Error(Error::not_offered(method)))
            }
        }
    }

    async fn watch(&self, peer: &Arc<Peer>, uris: &[String], on: bool) {
        self.resources.watch(peer, uris, on, &self.session()).await;
    }

    fn closed(&self, peer: &Arc<Peer>) {
        self.resources.closed(peer);
    }
}
