//! Requests: which server each is for, and what is changed on its way there.

use super::{Hub, View};
use crate::bridge::{self, Forgotten};
use crate::catalogue::{Kind, Route};
use crate::link::Link;
use crate::name;
use crate::source::Source;
use bytes::Bytes;
use rialto_mcp::call::Call;
use rialto_mcp::error::{self, Error};
use rialto_mcp::json;
use rialto_mcp::message::Edit;
use rialto_mcp::pending::Fault;
use rialto_mcp::reply::Answer;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// How long a list request waits for a server that does not tell when its lists change.
const REFRESH_WAIT: Duration = Duration::from_secs(2);

impl Hub {
    async fn list(&self, kind: Kind, call: &Call) -> Answer {
        self.wait_started().await;
        let cursor = json::get(call.params(), "cursor").filter(|value| *value != b"null");
        // Pages after the first are of the same list: to ask for all of it again would cost as much for each of them.
        if cursor.is_none() {
            self.freshen(kind).await;
        }
        let view = self.view();
        let section = view.catalogue.section(kind);
        // What was promised for servers to come is an empty list as long as they do not come.
        if let [only] = view.sources.as_slice()
            && !self.has_promised.load(Ordering::Relaxed)
            && only.ready().is_some_and(|link| !link.can(kind.capability()))
        {
            return Answer::Error(Error::not_offered(call.method()));
        }
        let cursor = match cursor {
            None => None,
            Some(value) => match json::string(value) {
                Some(cursor) => Some(cursor),
                None => return Answer::Error(Error::invalid_params("`cursor` must be a string")),
            },
        };
        section.page(kind, cursor.as_deref()).into()
    }

    /// Asks those servers again that would not have told of a change.
    async fn freshen(&self, kind: Kind) {
        let silent = |link: &Arc<Link>| link.can(kind.capability()) && !link.flag(kind.capability(), "listChanged");
        let links: Vec<_> = self.view().sources.iter().filter_map(|source| source.ready()).filter(silent).collect();
        if links.is_empty() {
            return;
        }
        let mut asked = tokio::task::JoinSet::new();
        for link in links {
            asked.spawn(async move { !link.source.refresh(&link, &[kind]).await.is_empty() });
        }
        let mut changed = false;
        let all = async {
            while let Some(one) = asked.join_next().await {
                changed |= one.unwrap_or(false);
            }
        };
        let _ = tokio::time::timeout(REFRESH_WAIT, all).await;
        if changed {
            self.rebuild(&[]);
        }
    }

    /// Finds the server behind a name that is not known yet: it may belong to a server that is starting, or down.
    async fn late_route(&self, kind: Kind, public: &str) -> Result<Option<(Arc<View>, Route)>, Down> {
        let view = self.view();
        let named = view.sources.iter().find(|source| public.starts_with(&name::public(&source.plan.name, "")));
        let mut down = None;
        match named {
            Some(source) if !source.has_offer() => {
                down = source
                    .link()
                    .await
                    .err()
                    .map(|reason| Down { server: source.plan.name.clone(), fault: Fault::Closed(reason) });
            }
            _ => self.wait_started().await,
        }
        let view = self.view();
        let found = view.catalogue.section(kind).route(public).cloned();
        let found = found.or_else(|| view.transparent().map(|only| Route { source: only, name: public.into() }));
        match (found, down) {
            (None, Some(down)) => Err(down),
            (found, _) => Ok(found.map(|route| (view, route))),
        }
    }

    pub(super) async fn by_name(&self, kind: Kind, call: &Call) -> Answer {
        let place = match json::find(call.params(), ["name"]) {
            Ok([Some(place)]) => place,
            Ok([None]) => return Answer::Error(Error::invalid_params("`name` is missing")),
            Err(flaw) => return Answer::Error(Error::invalid_params(flaw.to_string())),
        };
        let Some(public) = json::string(&call.params()[place.clone()]) else {
            return Answer::Error(Error::invalid_params("`name` must be a string"));
        };
        let view = self.view();
        if view.has_policy && has_second_name(call.params()) {
            return Answer::Error(Error::invalid_params("`name` is given twice, in different spellings"));
        }
        let late;
        let (view, route) = match view.catalogue.section(kind).route(&public) {
            Some(route) => (&view, Some(route)),
            None => {
                late = match Box::pin(self.late_route(kind, &public)).await {
                    Ok(late) => late,
                    Err(down) => return Answer::Error(bridge::unanswered(&down.server, call.method(), &down.fault)),
                };
                late.as_ref().map_or((&view, None), |(later, route)| (later, Some(route)))
            }
        };
        let Some(route) = route else {
            let (kind, what) = match kind {
                Kind::Prompts => (error::Kind::PromptNotFound, "prompt"),
                _ => (error::Kind::ToolNotFound, "tool"),
            };
            return Answer::Error(Error::new(kind, format!("Unknown {what}: {public}")).with("name", &*public));
        };
        let source = &view.sources[route.source];
        if *route.name == *public {
            return self.pass(source, call, &[]).await;
        }
        let name = json::quoted(&route.name);
        self.pass(source, call, &[(place, &name)]).await
    }

    async fn by_uri(&self, call: &Call) -> Answer {
        let Some(uri) = json::get_string(call.params(), "uri").map(|uri| uri.into_owned()) else {
            return Answer::Error(Error::invalid_params("`uri` must be a string"));
        };
        if self.view().owner_of(&uri).is_none() {
            self.wait_started().await;
        }
        let view = self.view();
        let Some(source) = view.owner_of(&uri).map(|place| &view.sources[place]) else {
            let error = Error::new(error::Kind::ResourceNotFound, format!("Resource not found: {uri}"));
            return Answer::Error(error.with("uri", uri));
        };
        match call.method() {
            "resources/subscribe" => self.note_subscription(call, source, uri, true).await,
            "resources/unsubscribe" => self.note_subscription(call, source, uri, false).await,
            _ => self.pass(source, call, &[]).await,
        }
    }

    async fn note_subscription(&self, call: &Call, source: &Arc<Source>, uri: String, on: bool) -> Answer {
        let others_want = {
            let mut peers = self.peers();
            if let Some(entry) = peers.get_mut(&call.peer.serial) {
                if on {
                    entry.uris.insert(uri.clone(), 1)
                } else {
                    entry.uris.remove(&uri)
                };
            }
            peers.iter().any(|(serial, entry)| *serial != call.peer.serial && entry.uris.contains_key(&uri))
        };
        if !on && others_want {
            return Answer::empty();
        }
        match source.link().await {
            Ok(link) if link.is_modern() => {
                self.subscribe(&link, &uri, on).await;
                Answer::empty()
            }
            _ => self.pass(source, call, &[]).await,
        }
    }

    async fn complete(&self, call: &Call) -> Answer {
        let params = call.params();
        let Ok([Some(reference)]) = json::find(params, ["ref"]) else {
            return Answer::Error(Error::invalid_params("`ref` is missing"));
        };
        let object = &params[reference.clone()];
        if let Some(uri) = json::get_string(object, "uri") {
            let view = self.view();
            let route = view.catalogue.section(Kind::Templates).route(&uri).map(|route| route.source);
            return match route.or_else(|| view.owner_of(&uri)) {
                Some(place) => self.pass(&view.sources[place], call, &[]).await,
                None => Answer::Error(
                    Error::new(error::Kind::ResourceNotFound, format!("Resource not found: {uri}")).with("uri", &*uri),
                ),
            };
        }
        let place = json::find(object, ["name"]).ok().and_then(|[place]| place);
        let Some((place, public)) =
            place.and_then(|place| Some((place.clone(), json::string(&object[place])?.into_owned())))
        else {
            return Answer::Error(Error::invalid_params("`ref` must have a `name` or a `uri`"));
        };
        let route = match self.late_route(Kind::Prompts, &public).await {
            Ok(route) => route,
            Err(down) => return Answer::Error(bridge::unanswered(&down.server, call.method(), &down.fault)),
        };
        let Some((view, route)) = route else {
            let error = Error::new(error::Kind::PromptNotFound, format!("Unknown prompt: {public}"));
            return Answer::Error(error.with("name", public));
        };
        let name = json::quoted(&route.name);
        let place = place.start + reference.start..place.end + reference.start;
        let edits: &[Edit<'_>] = if *route.name == *public { &[] } else { &[(place, &name)] };
        self.pass(&view.sources[route.source], call, edits).await
    }

    async fn set_level(&self, call: &Call) -> Answer {
        let Ok([Some(place)]) = json::find(call.params(), ["level"]) else {
            return Answer::Error(Error::invalid_params("`level` is missing"));
        };
        // A common misspelling.
        let is_short = json::string(&call.params()[place.clone()]).as_deref() == Some("warn");
        let level: &[u8] = if is_short { b"\"warning\"" } else { &call.params()[place.clone()] };
        let wanted = self.note_level(&call.peer, level);
        let is_changed = wanted != level;
        let level = &wanted;
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner) = Some(Bytes::copy_from_slice(level));
        let edits: &[Edit<'_>] = if is_short || is_changed { &[(place, level)] } else { &[] };
        let view = self.view();
        if let [only] = view.sources.as_slice()
            && only.ready().is_none_or(|link| !link.is_modern())
        {
            return self.pass(only, call, edits).await;
        }
        let mut asked = tokio::task::JoinSet::new();
        for link in view.sources.iter().filter_map(|source| source.ready()) {
            let params = level_params(level);
            asked.spawn(async move { set_level(&link, &params).await });
        }
        asked.join_all().await;
        Answer::empty()
    }

    pub(super) async fn other_request(&self, call: &Call) -> Answer {
        if let Some(kind) = Kind::of_method(call.method()) {
            return self.list(kind, call).await;
        }
        match call.method() {
            "prompts/get" => self.by_name(Kind::Prompts, call).await,
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => self.by_uri(call).await,
            "completion/complete" => self.complete(call).await,
            "logging/setLevel" => self.set_level(call).await,
            // What no version of the protocol knows can be passed on only where there is no choice.
            method => match self.view().sources.as_slice() {
                [only] => self.pass(only, call, &[]).await,
                _ => Answer::Error(Error::method_not_found(method)),
            },
        }
    }

    /// Passes a call on to one server.
    async fn pass(&self, source: &Arc<Source>, call: &Call, edits: &[Edit<'_>]) -> Answer {
        let link = match source.ready() {
            Some(link) => Ok(link),
            None => Box::pin(source.link()).await,
        };
        let fault = match link {
            Ok(link) => match bridge::forward(self, &link, call, edits).await {
                Ok(answer) => return answer,
                Err(Forgotten) => match Box::pin(source.link_after(Some(&link))).await {
                    Ok(link) => match Box::pin(bridge::forward(self, &link, call, edits)).await {
                        Ok(answer) => return answer,
                        Err(Forgotten) => Fault::SessionGone,
                    },
                    Err(reason) => Fault::Closed(reason),
                },
            },
            Err(reason) => Fault::Closed(reason),
        };
        Answer::Error(bridge::unanswered(&source.plan.name, call.method(), &fault))
    }
}

pub(super) fn level_params(level: &[u8]) -> Vec<u8> {
    [b"{\"level\":".as_slice(), level, b"}"].concat()
}

/// Tells a server which log messages are wanted; a stateless one is told with each request.
pub(super) async fn set_level(link: &Link, params: &[u8]) {
    if link.can("logging") && !link.is_modern() {
        // A server that refuses sends what it likes.
        let _ = link.ask("logging/setLevel", params, link.source.patience()).await;
    }
}

/// Some servers take `Name` for `name`: what our policy saw must be what they see.
fn has_second_name(params: &[u8]) -> bool {
    let names = json::Members::of(params).map_while(Result::ok);
    names.filter(|member| member.resembles("name")).count() > 1
}

/// The server that a name belongs to is not there.
struct Down {
    server: String,
    fault: Fault,
}
