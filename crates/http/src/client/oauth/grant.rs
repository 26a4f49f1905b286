//! Asks an authorization server for tokens.

use super::Problem;
use super::registration::{Client, Proof};
use super::vault::{Grant, Token, now};
use crate::client::agent::{Agent, Trouble};
use bytes::Bytes;
use http_body_util::Full;
use oauth2::basic::{BasicClient, BasicTokenType};
use oauth2::{
    AsyncHttpClient, AuthType, AuthUrl, AuthorizationCode, ClientId, ClientSecret, EndpointNotSet, EndpointSet,
    HttpRequest, HttpResponse, PkceCodeVerifier, RedirectUrl, RefreshToken, RequestTokenError, TokenResponse, TokenUrl,
};
use std::future::Future;
use std::pin::Pin;

/// The `oauth2` crate's client, ready to ask for codes and tokens.
pub(super) type Ready = BasicClient<EndpointSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet>;

fn unreadable(why: &dyn std::fmt::Display) -> Problem {
    Problem::Unreadable { what: "an endpoint of the authorization server", why: why.to_string() }
}

/// Puts together a client. The address for codes matters only where one is asked for.
pub(super) fn client(us: &Client, authorize: &str, token: &str) -> Result<Ready, Problem> {
    let authorize = AuthUrl::new(authorize.to_owned()).map_err(|error| unreadable(&error))?;
    let token = TokenUrl::new(token.to_owned()).map_err(|error| unreadable(&error))?;
    let auth_type = if us.proof == Proof::ClientSecretBasic { AuthType::BasicAuth } else { AuthType::RequestBody };
    let mut client = BasicClient::new(ClientId::new(us.id.clone()))
        .set_auth_uri(authorize)
        .set_token_uri(token)
        .set_auth_type(auth_type);
    if let (Some(secret), true) = (&us.secret, us.proof != Proof::None) {
        client = client.set_client_secret(ClientSecret::new(secret.clone()));
    }
    Ok(client)
}

/// A code that a login gave us, and what proves that it was given to us.
pub(super) struct Code {
    pub(super) code: String,
    pub(super) verifier: PkceCodeVerifier,
    pub(super) redirect: RedirectUrl,
}

/// Changes a code into a token.
pub(super) async fn exchange(
    agent: &Agent,
    client: &Ready,
    code: Code,
    resource: Option<&String>,
    scopes: Vec<String>,
) -> Result<Token, Problem> {
    let mut request = client
        .exchange_code(AuthorizationCode::new(code.code))
        .set_pkce_verifier(code.verifier)
        .set_redirect_uri(std::borrow::Cow::Owned(code.redirect));
    if let Some(resource) = resource {
        request = request.add_extra_param("resource", resource.clone());
    }
    let answer = request.request_async(&Http(agent.clone())).await.map_err(|error| no_token(&error))?;
    token(&answer, None, scopes)
}

/// Changes a refresh token into a new token.
pub(super) async fn refresh(agent: &Agent, grant: &Grant, old: &Token) -> Result<Token, Problem> {
    let secret = old.refresh.clone().ok_or_else(|| Problem::NoToken("there is nothing to renew it with".to_owned()))?;
    // No code is asked for here, so that any address will do for them.
    let client = client(&grant.client, &grant.token_endpoint, &grant.token_endpoint)?;
    let spent = RefreshToken::new(secret.clone());
    let mut request = client.exchange_refresh_token(&spent);
    if let Some(resource) = &grant.resource {
        request = request.add_extra_param("resource", resource.clone());
    }
    let answer = request.request_async(&Http(agent.clone())).await.map_err(|error| no_token(&error))?;
    token(&answer, Some(secret), old.scopes.clone())
}

fn token(
    answer: &oauth2::basic::BasicTokenResponse,
    old_refresh: Option<String>,
    scopes: Vec<String>,
) -> Result<Token, Problem> {
    if *answer.token_type() != BasicTokenType::Bearer {
        return Err(Problem::NoToken("it is of a kind that we do not know".to_owned()));
    }
    Ok(Token {
        access: answer.access_token().secret().clone(),
        // A server that gives no new one lets us use the old one again.
        refresh: answer.refresh_token().map(|token| token.secret().clone()).or(old_refresh),
        expires: answer.expires_in().map(|lifetime| now() + lifetime.as_secs()),
        scopes,
    })
}

fn no_token<T: oauth2::ErrorResponse + std::fmt::Display>(error: &RequestTokenError<Trouble, T>) -> Problem {
    const WHAT: &str = "a token";
    match error {
        RequestTokenError::ServerResponse(refusal) => Problem::NoToken(super::harmless(&refusal.to_string())),
        RequestTokenError::Request(trouble) => Problem::Unreachable { what: WHAT, why: trouble.words.clone() },
        // The text of the answer is not told: it may hold the token.
        RequestTokenError::Parse(..) => Problem::Unreadable { what: WHAT, why: "the answer is not one".to_owned() },
        RequestTokenError::Other(words) => Problem::NoToken(super::harmless(words)),
    }
}

/// Our agent, as the `oauth2` crate wants to see it.
struct Http(Agent);

impl<'c> AsyncHttpClient<'c> for Http {
    type Error = Trouble;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, Trouble>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let document = self.0.fetch(hyper::Request::from_parts(parts, Full::new(Bytes::from(body)))).await?;
            let mut response = HttpResponse::new(document.body.to_vec());
            *response.status_mut() =
                hyper::StatusCode::from_u16(document.status).map_err(|error| Trouble::sent(error.to_string()))?;
            Ok(response)
        })
    }
}
