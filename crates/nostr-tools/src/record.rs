//! The lines that one call leaves in the log.

use crate::confirm::shown;
use crate::failure::Failure;
use crate::log::{Line, Log, Outcome};
use crate::tool::{Effect, Entry, Turn};
use rialto_mcp::json;
use serde_json::{Map, Value};

/// No line shows more of an argument.
const MAX_SHOWN: usize = 200;

/// One call as the log sees it.
pub(crate) struct Record<'a> {
    log: &'a Log,
    turn: &'a Turn<'a>,
    line: Line,
    is_kept: bool,
}

impl<'a> Record<'a> {
    pub(crate) fn new(log: &'a Log, tool: &Entry, turn: &'a Turn<'a>) -> Self {
        let at = turn.session.clock.now().as_secs();
        let client = turn.call.profile.info.as_ref().and_then(|info| json::get_string(info, "name"));
        let line = Line {
            at,
            call: log.name_call(at),
            tool: tool.about.name.to_owned(),
            outcome: Outcome::Begun,
            key: turn.session.keyring.active().ok().flatten().map(|identity| identity.label),
            client: client.map(|name| name.chars().filter(|letter| !letter.is_control()).take(MAX_SHOWN).collect()),
            arguments: Map::new(),
            event: None,
            reason: None,
            message: None,
        };
        // What only calculates touches nothing that anybody would want to look up.
        Self { log, turn, line, is_kept: tool.about.effect != Effect::Calculates }
    }

    /// Says what is about to happen. If that cannot be written, it must not happen.
    pub(crate) fn begin(&mut self, arguments: &Value) -> Result<(), Failure> {
        self.line.arguments = shown(arguments, self.turn.session, MAX_SHOWN).into_iter().collect();
        self.log.append(&self.line)?;
        self.line.arguments = Map::new();
        Ok(())
    }

    pub(crate) fn end(&mut self, outcome: &Result<Value, Failure>) {
        match outcome {
            Ok(output) => {
                self.line.outcome = Outcome::Done;
                let id = output.get("id").or_else(|| output.get("event_id"));
                self.line.event = id.and_then(Value::as_str).map(ToOwned::to_owned);
            }
            Err(failure) => self.explain(Outcome::Failed, failure),
        }
        self.write();
    }

    /// It does not happen at all.
    pub(crate) fn refused(&mut self, failure: Failure) -> Failure {
        self.explain(Outcome::Refused, &failure);
        self.write();
        failure
    }

    fn explain(&mut self, outcome: Outcome, failure: &Failure) {
        self.line.outcome = outcome;
        self.line.reason = Some(failure.reason.to_owned());
        self.line.message = self.turn.session.masked(&failure.message).ok();
    }

    fn write(&mut self) {
        if self.is_kept {
            self.line.at = self.turn.session.clock.now().as_secs();
            // What has happened has happened; its first line is in the log.
            let _ = self.log.append(&self.line);
        }
    }
}
