//! Shows tokens to one server, and gets better ones when it is not content.

use super::challenge::Challenge;
use super::discovery::{self, Found};
use super::login::{Browser, Door};
use super::registration::{self, Client};
use super::vault::{Grant, Token, Vault};
use super::{Problem, grant};
use crate::client::agent::Agent;
use crate::client::endpoint::Endpoint;
use crate::client::reach::is_public;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use rialto_mcp::pending::Fault;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;
use url::Url;

/// What a user may say about logins at one server.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The id under which the authorization server knows us.
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    /// The address of a document that describes us; it then serves as id.
    pub client_metadata: Option<Url>,
    /// Rights to ask for in place of those that the server names.
    pub scopes: Option<Vec<String>>,
    /// The port for answers of logins, where the authorization server knows only one.
    pub port: Option<u16>,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("client_id", &self.client_id)
            .field("client_secret", &self.client_secret.is_some())
            .field("client_metadata", &self.client_metadata.as_ref().map(Url::as_str))
            .field("scopes", &self.scopes)
            .field("port", &self.port)
            .finish()
    }
}

/// A token as it was shown to the server.
#[derive(Clone)]
pub(crate) struct Shown {
    pub(crate) header: HeaderValue,
    access: Arc<str>,
}

/// Proves to one server who we are.
pub struct Authorizer {
    server: Url,
    /// Without its query, which may hold a secret of its own.
    key: String,
    agent: Agent,
    vault: Vault,
    settings: Settings,
    browser: Option<Browser>,
    /// The command that a person has to type where there is no browser.
    hint: Arc<str>,
    cache: Mutex<Cache>,
    /// What a server and those it names are asked with.
    asking: OnceCell<Agent>,
    /// One change of tokens at a time; those who wait find its result.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Cache {
    is_loaded: bool,
    token: Option<(Token, Shown)>,
}

impl std::fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authorizer").field("server", &self.key).finish_non_exhaustive()
    }
}

impl Authorizer {
    /// Without a browser, whatever needs a person fails with `hint`.
    pub fn new(
        endpoint: &Endpoint,
        agent: Agent,
        vault: Vault,
        settings: Settings,
        browser: Option<Browser>,
        hint: &str,
    ) -> Arc<Self> {
        let key = endpoint.to_string();
        let (server, hint, cache) = (endpoint.url().clone(), hint.into(), Mutex::default());
        let (asking, turn) = (OnceCell::new(), tokio::sync::Mutex::default());
        Arc::new(Self { server, key, agent, vault, settings, browser, hint, cache, asking, turn })
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The name under which logins at an endpoint are kept.
    pub fn key(endpoint: &Endpoint) -> String {
        endpoint.to_string()
    }

    /// The agent for metadata and tokens. A server on the open net may name only others there; one in the user's own
    /// network may name its neighbours.
    async fn asking(&self) -> &Agent {
        let choose = || async {
            let host = self.server.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
            let found = tokio::net::lookup_host((host, 0)).await;
            let is_public = found.is_ok_and(|mut addresses| addresses.all(|address| is_public(address.ip())));
            if is_public { self.agent.public() } else { self.agent.clone() }
        };
        self.asking.get_or_init(choose).await
    }

    /// The token to show, renewed if it is about to end.
    pub(crate) async fn token(&self) -> Result<Option<Shown>, Fault> {
        let (is_loaded, cached) = {
            let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
            (cache.is_loaded, cache.token.clone())
        };
        match cached {
            Some((token, shown)) if !token.is_stale() => Ok(Some(shown)),
            None if is_loaded => Ok(None),
            stale => {
                let _turn = self.turn.lock().await;
                let old = stale.map(|(token, _)| token);
                // Rare, so that its state does not weigh on every request.
                Box::pin(self.renewed(old.as_ref())).await.map_err(|problem| fault(&problem))
            }
        }
    }

    /// The token in the vault if it is another one and still good, else a renewed one; none if there is none.
    async fn renewed(&self, old: Option<&Token>) -> Result<Option<Shown>, Problem> {
        let kept = self.vault.current(&self.key)?;
        let Some((_, Grant { token: Some(token), .. })) = &kept else { return Ok(self.cache(None)) };
        if !token.is_stale() && old.is_none_or(|old| old.access != token.access) {
            return Ok(self.cache(Some(token.clone())));
        }
        if token.refresh.is_none() {
            // It may be good for longer than it says; the server knows.
            return Ok(self.cache(Some(token.clone())));
        }
        let _turn = self.vault.turn().await?;
        // Another process may have been faster.
        let Some((issuer, mut grant)) = self.vault.current(&self.key)? else { return Ok(self.cache(None)) };
        let Some(token) = grant.token.clone() else { return Ok(self.cache(None)) };
        if !token.is_stale() && old.is_none_or(|old| old.access != token.access) {
            return Ok(self.cache(Some(token)));
        }
        match grant::refresh(self.asking().await, &grant, &token).await {
            Ok(token) => {
                grant.token = Some(token.clone());
                self.vault.keep(&self.key, &issuer, grant)?;
                Ok(self.cache(Some(token)))
            }
            // It was taken back: only a person can help.
            Err(Problem::NoToken(_)) => {
                grant.token = None;
                self.vault.keep(&self.key, &issuer, grant)?;
                Ok(self.cache(None))
            }
            Err(other) => Err(other),
        }
    }

    fn cache(&self, token: Option<Token>) -> Option<Shown> {
        let shown = token.and_then(|token| {
            let mut header = HeaderValue::from_str(&format!("Bearer {}", token.access)).ok()?;
            header.set_sensitive(true);
            let access = token.access.as_str().into();
            Some((token, Shown { header, access }))
        });
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.is_loaded = true;
        cache.token = shown;
        cache.token.as_ref().map(|(_, shown)| shown.clone())
    }

    /// The server was not content with what it was shown: gets something better, or says why that is impossible.
    pub(crate) async fn meet(&self, challenge: &Challenge, shown: Option<&Shown>) -> Result<(), Fault> {
        let _turn = self.turn.lock().await;
        Box::pin(self.met(challenge, shown)).await.map_err(|problem| fault(&problem))
    }

    async fn met(&self, challenge: &Challenge, shown: Option<&Shown>) -> Result<(), Problem> {
        let cached = self.cache.lock().unwrap_or_else(PoisonError::into_inner).token.clone();
        let is_other = cached.as_ref().is_some_and(|(_, now)| shown.is_none_or(|shown| now.access != shown.access));
        if is_other {
            return Ok(());
        }
        if challenge.is_step_up {
            return self.step_up(challenge, cached.map(|(token, _)| token).as_ref()).await;
        }
        let found = discovery::discover(self.asking().await, &self.server, challenge).await;
        // A refresh token goes to the one who gave it, and only while the server still trusts that one.
        let kept = self.vault.current(&self.key)?;
        if let (Some((issuer, Grant { token: Some(token), .. })), Ok(found)) = (&kept, &found)
            && *issuer == found.authority.issuer
        {
            let is_news = shown.is_none_or(|shown| *shown.access != *token.access);
            if is_news && !token.is_stale() {
                self.cache(Some(token.clone()));
                return Ok(());
            }
            if token.refresh.is_some() && self.renewed(Some(token)).await?.is_some() {
                return Ok(());
            }
        }
        self.cache(None);
        // Where nobody can log in, that is what there is to say, whatever else may be wrong.
        let browser = self.browser.as_ref().ok_or_else(|| Problem::LoginNeeded { hint: self.hint.clone() })?;
        let found = found?;
        let scopes = self.scopes(challenge, &found);
        self.log_in_with(&found, scopes, browser).await
    }

    /// The server wants more rights than the token has.
    async fn step_up(&self, challenge: &Challenge, old: Option<&Token>) -> Result<(), Problem> {
        let had: BTreeSet<&String> = old.iter().flat_map(|token| &token.scopes).collect();
        let wanted = had.union(&challenge.scopes.iter().collect()).map(|scope| (*scope).clone()).collect::<Vec<_>>();
        // To ask for the same again would go on for ever.
        if wanted.len() == had.len() {
            return Err(Problem::NotEnough { scopes: super::harmless(&challenge.scopes.join(" ")) });
        }
        let browser = self.browser.as_ref().ok_or_else(|| {
            let scopes = super::harmless(&wanted.join(" "));
            Problem::LoginNeeded { hint: format!("{} --scope '{scopes}'", self.hint).into() }
        })?;
        let found = discovery::discover(self.asking().await, &self.server, challenge).await?;
        self.log_in_with(&found, wanted, browser).await
    }

    /// The rights to ask for: what the user says, else what the request needs, else what the server knows, else nothing.
    fn scopes(&self, challenge: &Challenge, found: &Found) -> Vec<String> {
        let mut scopes = match (&self.settings.scopes, &found.scopes) {
            (Some(scopes), _) => scopes.clone(),
            (None, _) if !challenge.scopes.is_empty() => challenge.scopes.clone(),
            (None, Some(scopes)) => scopes.clone(),
            (None, None) => Vec::new(),
        };
        // With it, the next login can wait until the refresh token ends.
        let offline = "offline_access";
        if found.authority.scopes_supported.iter().any(|scope| scope == offline)
            && !scopes.iter().any(|scope| scope == offline)
        {
            scopes.push(offline.to_owned());
        }
        scopes
    }

    /// Logs in whether or not there is a token already.
    pub async fn log_in(&self) -> Result<(), Problem> {
        let browser = self.browser.as_ref().ok_or_else(|| Problem::LoginNeeded { hint: self.hint.clone() })?;
        let _turn = self.turn.lock().await;
        let challenge = self.provoke().await;
        let found = discovery::discover(self.asking().await, &self.server, &challenge).await?;
        let scopes = self.scopes(&challenge, &found);
        self.log_in_with(&found, scopes, browser).await
    }

    /// Knocks without a token, to hear what the server wants.
    async fn provoke(&self) -> Challenge {
        let text = concat!(
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#,
            r#""clientInfo":{"name":"rialto","version":""#,
            env!("CARGO_PKG_VERSION"),
            r#""}}}"#
        );
        let request = Request::post(self.server.as_str())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"))
            .body(Full::from(text));
        let Ok(request) = request else { return Challenge::default() };
        match self.agent.send(request).await {
            Ok(response) => Challenge::read(response.status(), response.headers()).unwrap_or_default(),
            Err(_) => Challenge::default(),
        }
    }

    async fn log_in_with(&self, found: &Found, scopes: Vec<String>, browser: &Browser) -> Result<(), Problem> {
        let authority = &found.authority;
        let known = self.vault.grant(&self.key, &authority.issuer)?.map(|grant| grant.client);
        let port = known.as_ref().and_then(|client| Url::parse(client.redirect.as_ref()?).ok()?.port());
        let port = self.settings.port.or(port);
        let door = match (Door::open(port).await, self.settings.port) {
            (Err(_), None) if port.is_some() => Door::open(None).await?,
            (door, _) => door?,
        };
        let client = self.client(authority, known, &door.redirect).await?;
        let ready = grant::client(&client, &authority.authorization_endpoint, &authority.token_endpoint)?;
        let code = door.ask(&ready, authority, found.resource.as_ref(), &scopes, browser).await?;
        let token = grant::exchange(self.asking().await, &ready, code, found.resource.as_ref(), scopes).await?;
        let _turn = self.vault.turn().await?;
        let (token_endpoint, resource) = (authority.token_endpoint.clone(), found.resource.clone());
        let grant = Grant { client, token_endpoint, resource, token: Some(token.clone()) };
        self.vault.keep(&self.key, &authority.issuer, grant)?;
        self.cache(Some(token));
        Ok(())
    }

    /// Who we are to this authorization server, and to no other.
    async fn client(
        &self,
        authority: &discovery::Authority,
        known: Option<Client>,
        redirect: &str,
    ) -> Result<Client, Problem> {
        if let Some(id) = &self.settings.client_id {
            return Ok(Client::known(id, self.settings.client_secret.as_ref(), authority));
        }
        if let (Some(document), true) =
            (&self.settings.client_metadata, authority.client_id_metadata_document_supported)
        {
            return Ok(Client::described(document));
        }
        match known {
            Some(client) if client.redirect.as_deref() == Some(redirect) => Ok(client),
            _ => registration::register(self.asking().await, authority, redirect).await,
        }
    }
}

fn fault(problem: &Problem) -> Fault {
    Fault::Login(match problem {
        Problem::LoginNeeded { .. } => problem.to_string().into(),
        other => format!("cannot prove who we are: {other}").into(),
    })
}
