//! What every command of the buying side needs: a key, relays, the service that is meant, and words for what went wrong.

use nostr::nips::nip19::ToBech32;
use nostr::prelude::RelayUrl;
use rialto_consumer::announcements::Announcements;
use rialto_consumer::customer::Customer;
use rialto_consumer::error::{Error, Failure as RemoteFailure};
use rialto_consumer::payment::Unpaid;
use rialto_consumer::pins::Pins;
use rialto_consumer::reference::{Reference, Unknown};
use rialto_consumer::remote::{Remote, Terms};
use rialto_consumer::text;
use rialto_wire::failure::Code;
use rialto_wire::service::Wire;

use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::identity::{self, Role};
use crate::relays::{self, RelayFlags};
use crate::suggest::nearest;
use crate::talk::Talk;

/// A customer at work.
pub(crate) struct Buyer {
    pub(crate) customer: Customer,
    pub(crate) pins: Pins,
}

/// A service as it was typed.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) typed: String,
    pub(crate) reference: Reference,
}

impl Wanted {
    pub(crate) fn read(typed: &str) -> Result<Self, Failure> {
        let reference = Reference::parse(typed).map_err(|unknown| unknown_service(typed, &unknown))?;
        Ok(Self { typed: typed.to_owned(), reference })
    }
}

impl Buyer {
    /// Begins to connect. Where no relay was asked for, those in the services' links are used, else the one on this machine.
    pub(crate) fn start(
        flags: &RelayFlags,
        services: &[Wanted],
        environment: &Environment,
        talk: &Talk,
    ) -> Result<Self, Failure> {
        let mut relays = flags.chosen(environment)?;
        let hints = services.iter().flat_map(|service| service.reference.relays());
        relays.extend(hints.cloned());
        if relays.is_empty() {
            relays.push(relays::local()?);
        }
        let identity = identity::load(Role::Customer, None, environment)?;
        if identity.is_new {
            let npub = identity.keys.public_key().to_bech32().unwrap_or_default();
            talk.info(&format!("made a key for your requests: {npub}, kept in {}", identity.path.display()));
        }
        let directory = identity::data_directory(environment)?;
        let announcements = Announcements::in_directory(&directory).map_err(|error| store_failure(&error))?;
        let names: Vec<&str> = relays.iter().map(RelayUrl::as_str_without_trailing_slash).collect();
        talk.verbose(&format!("relays: {}", names.join(", ")));
        let customer = Customer::start(identity.keys, &relays, announcements);
        Ok(Self { customer, pins: Pins::in_directory(&directory) })
    }

    /// Finds the service that is meant.
    pub(crate) async fn open(&self, wanted: &Wanted, terms: Terms) -> Result<Remote, Failure> {
        let target = wanted.reference.resolve(&self.customer, &self.pins).await;
        let target = target.map_err(|unknown| unknown_service(&wanted.typed, &unknown))?;
        let remote = Remote::open(&self.customer, &target, terms).await.map_err(|error| failure(&error))?;
        let wires = remote.wires();
        match terms.wire.filter(|wire| !wires.is_empty() && !wires.contains(wire)) {
            None => Ok(remote),
            Some(wire) => {
                let words = format!("the service is not offered over {}", wire.name());
                let names: Vec<&str> = wires.into_iter().map(Wire::name).collect();
                Err(Failure::new(Exit::Unreachable, words)
                    .code("wire_not_offered")
                    .hint(format!("it is offered over {}; without --wire that is used", names.join(", "))))
            }
        }
    }
}

/// The file of pins, without going to any relay.
pub(crate) fn pins(environment: &Environment) -> Result<Pins, Failure> {
    Ok(Pins::in_directory(&identity::data_directory(environment)?))
}

pub(crate) fn store_failure(error: &rialto_store::Error) -> Failure {
    Failure::unexpected("what must be remembered cannot be kept")
        .because(error)
        .code("store")
        .hint("a file that cannot be repaired can be moved away; what it remembered is forgotten then")
}

/// Why it is not clear which service is meant.
pub(crate) fn unknown_service(typed: &str, unknown: &Unknown) -> Failure {
    // A secret is not repeated.
    let shown = text::name(typed);
    match unknown {
        Unknown::Secret => Failure::usage("SERVICE is a secret key").cause(unknown.to_string()).code("secret_given"),
        Unknown::Empty => Failure::usage("no service was named").code("service_unknown").hint("rialto find"),
        Unknown::NoService(_) | Unknown::Damaged => Failure::usage(format!("`{shown}` names no service"))
            .cause(unknown.to_string())
            .code("service_unknown")
            .hint("a service is named by npub1…, nprofile1…, naddr1…, name@domain, or by its name in `rialto find`"),
        Unknown::Address(_) => Failure::new(Exit::Unreachable, format!("`{shown}` leads to no service"))
            .cause(unknown.to_string())
            .code("service_unknown"),
        Unknown::NoSuchName { known } => {
            let failure =
                Failure::new(Exit::Unreachable, format!("no service is called `{shown}`")).code("service_unknown");
            match nearest(typed, known.iter().map(String::as_str)) {
                Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
                None => failure.hint("rialto find    lists the services there are"),
            }
        }
        Unknown::Ambiguous(candidates) => {
            let lines: Vec<String> = candidates
                .iter()
                .map(|candidate| format!("{}  {}  {}", candidate.link, candidate.name, candidate.about))
                .collect();
            Failure::usage(format!("several services are called `{shown}`"))
                .code("service_ambiguous")
                .hint(format!("name one of them by its key:\n{}", lines.join("\n")))
        }
        Unknown::Request(error) => failure(error),
        _ => Failure::unexpected(format!("`{shown}` names no service")).cause(unknown.to_string()),
    }
}

/// What went wrong with a request.
pub(crate) fn failure(error: &Error) -> Failure {
    match error {
        Error::NoRelay | Error::Unreachable(_) => {
            let failure = Failure::new(Exit::Unreachable, "no relay can be reached").code("relay_unreachable");
            let hint = "--relay wss://… uses another one; `rialto relay` runs one on this machine";
            complaints(failure, error).hint(hint)
        }
        Error::Refused(_) => {
            complaints(Failure::new(Exit::Unreachable, "no relay took the request").code("relay_refused"), error)
                .hint("--relay wss://… uses another one")
        }
        Error::NoAnswer(_) => Failure::new(Exit::Unreachable, "the service does not answer")
            .cause(error.to_string())
            .code("no_answer")
            .hint("it may be away, listen on other relays (--relay), or not read sealed requests (--plain)"),
        Error::Silent(_) | Error::Overdue(_) => {
            Failure::new(Exit::Timeout, "the service took too long").cause(error.to_string())
        }
        Error::PaymentRequired(unpaid) => unpaid_failure(unpaid),
        Error::Failed(remote) => remote_failure(remote),
        Error::Misfit { message, pointer } => {
            let failure = Failure::usage("the arguments do not fit the tool").code("invalid_input");
            failure.cause(located(message, pointer.as_deref()))
        }
        Error::Unclear(_) => {
            Failure::new(Exit::Unreachable, "the service cannot be called yet").cause(error.to_string()).code("unclear")
        }
        Error::NoManifest => Failure::new(Exit::Unreachable, "the service has no manifest")
            .code("no_manifest")
            .cause("no relay has it now; if there was one, no less private way is taken instead")
            .hint("--relay wss://… asks another relay; --wire dvmcp calls it another way"),
        Error::TooLarge { .. } => Failure::usage(error.to_string())
            .code("too_large")
            .hint("a sealed request holds less than an open one; --plain has more room, but everybody can read it"),
        Error::Store(error) => store_failure(error),
        other => Failure::unexpected("the request failed").cause(other.to_string()),
    }
}

fn unpaid_failure(unpaid: &Unpaid) -> Failure {
    let code = if unpaid.why.is_unclear() { "payment_unclear" } else { "payment_required" };
    let message = match unpaid.amount {
        Some(amount) => format!("the service wants to be paid {amount}"),
        None => "the service wants to be paid".to_owned(),
    };
    let failure = Failure::new(Exit::Payment, message).code(code).cause(unpaid.why.to_string());
    let failure = failure.detail("amount_sat", unpaid.amount.map(|amount| amount.sat_rounded_up()));
    let failure = match &unpaid.demand.invoice {
        Some(invoice) => failure.cause(format!("the invoice: {invoice}")).detail("invoice", invoice.as_str()),
        None => failure,
    };
    match unpaid.why.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// The same where the service has shown before that it is there.
pub(crate) fn call_failure(error: &Error) -> Failure {
    match error {
        Error::NoAnswer(_) => Failure::new(Exit::Timeout, "the service did not answer in time")
            .cause(error.to_string())
            .code("no_answer")
            .hint("--timeout-secs N waits longer; by message nothing is heard before the result"),
        other => failure(other),
    }
}

fn complaints(failure: Failure, error: &Error) -> Failure {
    let all = match error {
        Error::Refused(all) | Error::Unreachable(all) => all.as_slice(),
        _ => &[],
    };
    all.iter().fold(failure, |failure, one| failure.cause(format!("{}: {}", one.relay, one.words)))
}

/// An error that the provider told us of.
pub(crate) fn remote_failure(remote: &RemoteFailure) -> Failure {
    let code = Code::ALL.into_iter().find(|code| code.as_str() == remote.code);
    let exit = match code {
        Some(Code::Timeout) => Exit::Timeout,
        Some(Code::Unauthorized) => Exit::NotAllowed,
        Some(Code::InvalidInput | Code::InvalidRequest | Code::TooLarge | Code::UnknownTool) => Exit::Usage,
        Some(Code::UpstreamUnavailable | Code::OutcomeUnknown | Code::Busy | Code::RateLimited) => Exit::Unreachable,
        _ => Exit::ToolSaidNo,
    };
    let words = located(&remote.message, remote.pointer.as_deref());
    let failure = Failure::new(exit, "the service answered with an error").cause(format!("{}: {words}", remote.code));
    failure.code(code.map_or("remote_error", Code::as_str))
}

/// A message with the place in the arguments that it is about.
fn located(message: &str, pointer: Option<&str>) -> String {
    match pointer {
        Some(pointer) => format!("{message} (at {})", text::name(pointer)),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::failure;
    use crate::exit::Exit;
    use rialto_consumer::error::Error;
    use std::time::Duration;

    #[test]
    fn that_a_call_must_wait_is_nothing_unexpected() {
        let failure = failure(&Error::Unclear(Duration::from_secs(9)));
        assert_eq!((failure.exit, failure.code_word()), (Exit::Unreachable, "unclear"));
    }
}
