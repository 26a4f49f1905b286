//! A person agrees in a browser; the answer comes back to a port on this machine.

use super::Problem;
use super::discovery::Authority;
use super::grant::Code;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use oauth2::{CsrfToken, PkceCodeChallenge, RedirectUrl, Scope};
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use url::Url;

/// Shows a person the address to log in at.
pub type Browser = Arc<dyn Fn(&Url) + Send + Sync>;

/// How long a person may take. Passwords have to be found, second factors to be waited for.
const PATIENCE: Duration = Duration::from_secs(300);

/// How long a browser may take to send its request.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);

const PATH: &str = "/callback";

/// A port that waits for the answer of a login.
pub(super) struct Door {
    listener: TcpListener,
    pub(super) redirect: String,
}

impl Door {
    /// Opens a port: the one that was registered before, if it is still free.
    pub(super) async fn open(port: Option<u16>) -> Result<Self, Problem> {
        let bound = match port {
            Some(port) => TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await,
            None => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await,
        };
        let no_port = |error: std::io::Error| Problem::NoPort(error.to_string());
        let listener = bound.map_err(no_port)?;
        let port = listener.local_addr().map_err(no_port)?.port();
        Ok(Self { listener, redirect: format!("http://127.0.0.1:{port}{PATH}") })
    }

    /// Sends a person to the authorization server and waits for the code.
    pub(super) async fn ask(
        self,
        client: &super::grant::Ready,
        authority: &Authority,
        resource: Option<&String>,
        scopes: &[String],
        browser: &Browser,
    ) -> Result<Code, Problem> {
        let redirect = RedirectUrl::new(self.redirect.clone()).map_err(|error| Problem::NoPort(error.to_string()))?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let mut request = client
            .authorize_url(CsrfToken::new_random)
            .set_pkce_challenge(challenge)
            .set_redirect_uri(std::borrow::Cow::Borrowed(&redirect))
            .add_scopes(scopes.iter().cloned().map(Scope::new));
        if let Some(resource) = resource {
            request = request.add_extra_param("resource", resource.clone());
        }
        if scopes.iter().any(|scope| scope == "offline_access") {
            // Without it, OpenID providers do not hand out refresh tokens a second time.
            request = request.add_extra_param("prompt", "consent");
        }
        let (url, state) = request.url();
        browser(&url);
        let late = |_| Problem::TooLate(PATIENCE.as_secs());
        let answer = tokio::time::timeout(PATIENCE, self.wait(state.secret())).await.map_err(late)??;
        let code = answer.check(authority)?;
        Ok(Code { code, verifier, redirect })
    }

    /// The first answer that knows the secret that the browser was sent away with.
    async fn wait(self, state: &str) -> Result<Answer, Problem> {
        let (answers, mut answered) = mpsc::channel::<Answer>(1);
        let mut browsers = JoinSet::new();
        let state: Arc<str> = state.into();
        loop {
            tokio::select! {
                Some(answer) = answered.recv() => {
                    // The page that says so is still on its way.
                    let last = async { while browsers.join_next().await.is_some() {} };
                    let _ = tokio::time::timeout(Duration::from_millis(300), last).await;
                    return Ok(answer);
                }
                accepted = self.listener.accept() => {
                    let Ok((stream, _)) = accepted else { continue };
                    let (answers, state) = (answers.clone(), state.clone());
                    let service = service_fn(move |request: Request<Incoming>| {
                        let (answers, state) = (answers.clone(), state.clone());
                        async move { Ok::<_, Infallible>(page(&request, &state, &answers)) }
                    });
                    browsers.spawn(async move {
                        let mut server = hyper::server::conn::http1::Builder::new();
                        server.keep_alive(false).timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE);
                        let _ = server.serve_connection(TokioIo::new(stream), service).await;
                    });
                }
                Some(_) = browsers.join_next(), if !browsers.is_empty() => {}
            }
        }
    }
}

fn page(request: &Request<Incoming>, state: &str, answers: &mpsc::Sender<Answer>) -> Response<Full<Bytes>> {
    let (status, words) = match Answer::read(request, state) {
        Some(answer) => {
            let words = if answer.code.is_some() {
                "You are logged in. This window can be closed."
            } else {
                "The login was refused. This window can be closed."
            };
            // A second one is a repeated request of the same browser.
            let _ = answers.try_send(answer);
            (StatusCode::OK, words)
        }
        None => (StatusCode::NOT_FOUND, "There is nothing here."),
    };
    let mut response = Response::new(Full::from(format!("<!doctype html><title>Rialto</title><p>{words}</p>\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// What the authorization server sent along with the browser.
struct Answer {
    code: Option<String>,
    issuer: Option<String>,
    error: Option<String>,
}

impl Answer {
    fn read(request: &Request<Incoming>, state: &str) -> Option<Self> {
        let uri = request.uri();
        if request.method() != hyper::Method::GET || uri.path() != PATH {
            return None;
        }
        let mut answer = Self { code: None, issuer: None, error: None };
        let mut is_ours = false;
        for (name, value) in url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
            match &*name {
                "state" => is_ours = value == state,
                "code" => answer.code = Some(value.into_owned()),
                "iss" => answer.issuer = Some(value.into_owned()),
                "error" => answer.error = Some(value.into_owned()),
                _ => {}
            }
        }
        is_ours.then_some(answer)
    }

    /// Who answers must be who was asked, to the letter: a code for one must never be shown to another.
    fn check(self, authority: &Authority) -> Result<String, Problem> {
        let is_right = match &self.issuer {
            Some(issuer) => *issuer == authority.issuer,
            None => !authority.authorization_response_iss_parameter_supported,
        };
        if !is_right {
            return Err(Problem::WrongAnswer);
        }
        match (self.error, self.code) {
            (Some(error), _) => Err(Problem::Denied(super::harmless(&error))),
            (None, Some(code)) => Ok(code),
            (None, None) => Err(Problem::Denied("there is no code in the answer".to_owned())),
        }
    }
}
