//! Who we are to an authorization server: somebody it was told about, a document that describes us, or a name it gives us.

use super::Problem;
use super::discovery::Authority;
use crate::client::agent::Agent;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;

/// How a client proves that it is itself when it asks for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Proof {
    /// It has no secret.
    None,
    ClientSecretBasic,
    ClientSecretPost,
}

impl Proof {
    const ALL: [(Proof, &'static str); 3] = [
        (Proof::None, "none"),
        (Proof::ClientSecretBasic, "client_secret_basic"),
        (Proof::ClientSecretPost, "client_secret_post"),
    ];

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(proof, _)| proof)
    }

    /// The way that the authorization server knows.
    fn choose(secret: Option<&String>, authority: &Authority) -> Self {
        let offered = &authority.token_endpoint_auth_methods_supported;
        let offers = |name: &str| offered.iter().any(|method| method == name);
        match secret {
            None => Self::None,
            // What a server means that says nothing.
            Some(_) if offered.is_empty() || offers("client_secret_basic") => Self::ClientSecretBasic,
            Some(_) if offers("client_secret_post") => Self::ClientSecretPost,
            Some(_) => Self::None,
        }
    }
}

/// Us, to one authorization server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    pub(super) proof: Proof,
    /// The address that it knows for answers of logins; absent if it was not told one.
    pub(super) redirect: Option<String>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("id", &self.id).field("proof", &self.proof).finish_non_exhaustive()
    }
}

impl Client {
    /// Somebody the authorization server was told about.
    pub(super) fn known(id: &str, secret: Option<&String>, authority: &Authority) -> Self {
        let proof = Proof::choose(secret, authority);
        Self { id: id.to_owned(), secret: secret.cloned(), proof, redirect: None }
    }

    /// Somebody who is described by a document.
    pub(super) fn described(document: &Url) -> Self {
        Self { id: document.as_str().to_owned(), secret: None, proof: Proof::None, redirect: None }
    }
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

/// Makes us known to an authorization server.
pub(super) async fn register(agent: &Agent, authority: &Authority, redirect: &str) -> Result<Client, Problem> {
    const WHAT: &str = "the registration";
    let endpoint = authority.registration_endpoint.as_ref().ok_or(Problem::NoRegistration)?;
    let offered = &authority.token_endpoint_auth_methods_supported;
    // A program on somebody's machine cannot keep a secret, so it wants none where that is possible.
    let preferred = ["none", "client_secret_basic", "client_secret_post"];
    let method = preferred.into_iter().find(|name| offered.iter().any(|method| method == name));
    let mut about = json!({
        "client_name": "Rialto",
        "application_type": "native",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
    });
    if let Some(method) = method {
        about["token_endpoint_auth_method"] = method.into();
    }
    let request = Request::post(endpoint)
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .header(ACCEPT, HeaderValue::from_static("application/json"))
        .body(Full::from(about.to_string()))
        .map_err(|error| Problem::Unreadable { what: WHAT, why: error.to_string() })?;
    let document = agent.fetch(request).await.map_err(|error| Problem::Unreachable { what: WHAT, why: error.words })?;
    if !matches!(document.status, 200 | 201) {
        return Err(Problem::Registration(format!("HTTP status {}", document.status)));
    }
    let told: Registered = serde_json::from_slice(&document.body)
        .map_err(|error| Problem::Unreadable { what: WHAT, why: error.to_string() })?;
    let proof = match &told.token_endpoint_auth_method {
        Some(name) => {
            Proof::parse(name).ok_or_else(|| Problem::Registration(format!("it wants `{}`", super::harmless(name))))?
        }
        None => Proof::choose(told.client_secret.as_ref(), authority),
    };
    Ok(Client { id: told.client_id, secret: told.client_secret, proof, redirect: Some(redirect.to_owned()) })
}
