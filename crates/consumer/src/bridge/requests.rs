//! The requests of a host, passed on to the services that they are for.

use super::Bridge;
use super::answer::{self, Asked};
use super::host::Host;
use super::offer::{Offer, Place};
use crate::error::Error as RequestError;
use crate::ongoing::{Ongoing, Progress, Step};
use crate::payment::Purchase;
use crate::reply::Reply;
use rialto_mcp::call::Call;
use rialto_mcp::error::{Error, Kind};
use rialto_mcp::json;
use rialto_mcp::peer::progress_token;
use rialto_mcp::version::meta;
use rialto_wire::dvmcp::content::Execute;
use rialto_wire::request::Command;
use std::sync::Arc;

/// What of a request's `_meta` is between the host and us.
const ENVELOPE: [&str; 5] =
    ["progressToken", meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES, meta::CLIENT_INFO, meta::LOG_LEVEL];

impl Bridge {
    pub(super) fn list(&self, call: &Call) -> Result<Vec<u8>, Error> {
        if !matches!(json::get(call.params(), "cursor"), None | Some(b"null")) {
            return Err(Error::invalid_params("Invalid cursor"));
        }
        let offer = self.offer();
        let list = match call.method() {
            "tools/list" => offer.tools(),
            "prompts/list" => offer.prompts(),
            "resources/list" => offer.resources(),
            _ => offer.templates(),
        };
        // Before the first service was heard of there is no list at all.
        Ok(if list.is_empty() { empty(call.method()) } else { list.to_vec() })
    }

    /// Looks something up; if it is not there, services that are still being looked for may have it.
    async fn find<T>(&self, look: impl Fn(&Offer) -> Option<T>) -> Option<T> {
        let offer: Arc<Offer> = self.offer();
        match look(&offer) {
            Some(found) => Some(found),
            None => {
                self.settled().await;
                look(&self.offer())
            }
        }
    }

    pub(super) async fn call_tool(&self, call: &Call) -> Result<Vec<u8>, Error> {
        let name = string(call.params(), "name")?;
        let place = self.find(|offer| offer.tool(&name).cloned()).await;
        let place = place.ok_or_else(|| {
            Error::new(Kind::ToolNotFound, format!("Unknown tool: {name}")).with("name", name.as_str())
        })?;
        if place.is_changed {
            return Err(changed(&place, &name));
        }
        let arguments = object(call.params(), "arguments")?.unwrap_or(b"{}");
        let meta = object(call.params(), "_meta")?.map(|meta| json::without_members(meta, &ENVELOPE));
        let execute = Execute {
            name: &place.name,
            arguments,
            timeout: None,
            progress: progress_token(call.params()).is_some(),
            meta: meta.as_deref().filter(|meta| *meta != b"{}"),
        };
        let purchase = self.options.payer.clone().map(|payer| {
            Arc::new(Purchase {
                payer,
                service: place.service.clone(),
                tool: place.name.clone(),
                price: place.price,
                input: arguments.len(),
                allowed: None,
                approver: Arc::new(Host(call.clone())),
            })
        });
        let begun = place.remote.buy(&execute, self.options.patience, purchase).await;
        finish(call, begun, &place, Asked::Tool(&name)).await
    }

    pub(super) async fn read(&self, call: &Call) -> Result<Vec<u8>, Error> {
        let uri = string(call.params(), "uri")?;
        let place = self.find(|offer| offer.resource(&uri).cloned()).await;
        let place = place.ok_or_else(|| {
            Error::new(Kind::ResourceNotFound, format!("Resource not found: {uri}")).with("uri", uri.as_str())
        })?;
        finish(call, place.remote.read(&uri, self.options.patience), &place, Asked::Resource(&uri)).await
    }

    pub(super) async fn prompt(&self, call: &Call) -> Result<Vec<u8>, Error> {
        let name = string(call.params(), "name")?;
        let place = self.find(|offer| offer.prompt(&name).cloned()).await;
        let place = place.ok_or_else(|| {
            Error::new(Kind::PromptNotFound, format!("Unknown prompt: {name}")).with("name", name.as_str())
        })?;
        let arguments = object(call.params(), "arguments")?;
        let begun = place.remote.prompt(&place.name, arguments, self.options.patience);
        finish(call, begun, &place, Asked::Prompt(&name)).await
    }

    pub(super) async fn complete(&self, call: &Call) -> Result<Vec<u8>, Error> {
        let reference = object(call.params(), "ref")?.ok_or_else(|| Error::invalid_params("`ref` is missing"))?;
        object(call.params(), "argument")?.ok_or_else(|| Error::invalid_params("`argument` is missing"))?;
        let name = json::get_string(reference, "name").map(|name| name.into_owned());
        let uri = json::get_string(reference, "uri").map(|uri| uri.into_owned());
        let place = self
            .find(|offer| match (&name, &uri) {
                (Some(name), _) => offer.prompt(name).cloned(),
                (None, Some(uri)) => offer.resource(uri).cloned(),
                (None, None) => None,
            })
            .await;
        let place = place.ok_or_else(|| Error::invalid_params("`ref` names nothing that is offered here"))?;
        let content = completion(call.params(), reference, &place, name.is_some());
        let begun = place.remote.begin(Command::Complete, content, self.options.patience);
        finish(call, begun, &place, Asked::Completion).await
    }
}

fn empty(method: &str) -> Vec<u8> {
    let key = match method {
        "tools/list" => "tools",
        "prompts/list" => "prompts",
        "resources/list" => "resources",
        _ => "resourceTemplates",
    };
    format!("{{\"{key}\":[]}}").into_bytes()
}

fn changed(place: &Place, name: &str) -> Error {
    let npub = place.remote.npub();
    let message = format!(
        "`{name}` of {} is not the tool that it was when it was first used. It is not called until the user accepts the \
         change: rialto pins review {npub}",
        place.service
    );
    Error::new(Kind::AccessDenied, message)
        .with("reason", "definition_changed")
        .with("name", name)
        .with("provider", npub)
}

/// Follows a request to its end; progress goes to the host.
async fn finish(
    call: &Call,
    begun: Result<Ongoing, RequestError>,
    place: &Place,
    asked: Asked<'_>,
) -> Result<Vec<u8>, Error> {
    let npub = place.remote.npub();
    let followed = async { follow(call, begun?).await };
    match followed.await {
        Ok(reply) => answer::result(reply, asked, &npub),
        Err(error) => match (&error, asked) {
            (RequestError::PaymentRequired(unpaid), Asked::Tool(_)) => Ok(answer::unpaid(&error, unpaid, &npub)),
            _ => Err(answer::error(&error, asked, &npub)),
        },
    }
}

async fn follow(call: &Call, mut ongoing: Ongoing) -> Result<Reply, RequestError> {
    let mut last = f64::NEG_INFINITY;
    loop {
        match ongoing.next().await? {
            Step::Done(reply) => return Ok(reply),
            Step::Paid(_) => {}
            Step::Progress(Progress { progress, total, message }) => {
                // A host may count on numbers that grow.
                let next = progress.unwrap_or(if last.is_finite() { last + 1.0 } else { 0.0 });
                if next.is_finite() && next > last {
                    last = next;
                    call.progress(next, total.filter(|total| total.is_finite()), message.as_deref()).await;
                }
            }
        }
    }
}

fn string(params: &[u8], key: &str) -> Result<String, Error> {
    let text = json::get_string(params, key).map(|text| text.into_owned());
    text.ok_or_else(|| Error::invalid_params(format!("`{key}` must be given once, as a string")))
}

fn object<'a>(params: &'a [u8], key: &str) -> Result<Option<&'a [u8]>, Error> {
    let [place] = json::find(params, [key]).map_err(|flaw| Error::invalid_params(flaw.to_string()))?;
    match place.map(|place| &params[place]) {
        None | Some(b"null") => Ok(None),
        Some(value) if value.first() == Some(&b'{') => Ok(Some(value)),
        Some(_) => Err(Error::invalid_params(format!("`{key}` must be an object"))),
    }
}

/// The params of a completion, with the name that the service knows.
fn completion(params: &[u8], reference: &[u8], place: &Place, by_name: bool) -> String {
    let mut members = Vec::new();
    let mut own = reference.to_vec();
    if by_name && let Ok([Some(at)]) = json::find(reference, ["name"]) {
        own.clear();
        json::splice(&mut own, reference, &[(at, &json::quoted(&place.name))]);
    }
    json::push_member(&mut members, b"ref", &own);
    for key in ["argument", "context"] {
        if let Some(value) = json::get(params, key) {
            json::push_member(&mut members, key.as_bytes(), value);
        }
    }
    format!("{{{}}}", String::from_utf8_lossy(&members))
}
