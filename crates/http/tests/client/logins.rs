//! Logins: who is shown which token, and what is kept of them.

use crate::stage::{Reply, Seen, Server, Session, agent, endpoint, result};
use rialto_http::client::Remote;
use rialto_http::client::oauth::{Authorizer, Browser, Problem, Settings, Vault};
use rialto_mcp::pending::Fault;
use serde_json::json;
use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use url::Url;

/// What the server and its authorization server know. Tokens are numbered; a refresh token is good once.
#[derive(Default)]
struct Office {
    access: u32,
    refresh: u32,
    /// How often a refresh token was shown that had been used before.
    reused: u32,
    /// What a login is answered with in place of a code.
    denial: Option<&'static str>,
    /// Where the server says that its authorization server is.
    issuer: Option<&'static str>,
}

type Shared = Arc<Mutex<Office>>;

fn form(text: &str) -> HashMap<String, String> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

fn act(seen: &Seen, office: &Shared) -> Reply {
    let address = format!("http://{}", seen.header("host").unwrap());
    let mut office = office.lock().unwrap();
    let (path, query) = seen.path.split_once('?').unwrap_or((&seen.path, ""));
    match path {
        "/mcp" => {
            if seen.header("authorization") == Some(&format!("Bearer access-{}-hunter2", office.access)) {
                return Reply::json(&result(seen, json!({ "welcome": true })));
            }
            let about = format!("Bearer resource_metadata=\"{address}/.well-known/oauth-protected-resource/mcp\"");
            Reply::status(401).with("www-authenticate", &about)
        }
        "/.well-known/oauth-protected-resource/mcp" => Reply::json(&json!({
            "resource": format!("{address}/mcp"),
            "authorization_servers": [office.issuer.map_or(address, ToOwned::to_owned)],
        })),
        "/.well-known/oauth-authorization-server" => Reply::json(&json!({
            "issuer": address,
            "authorization_endpoint": format!("{address}/authorize"),
            "token_endpoint": format!("{address}/token"),
            "registration_endpoint": format!("{address}/register"),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        })),
        "/register" => Reply::new(201, "application/json", r#"{"client_id":"us"}"#),
        "/authorize" => {
            let asked = form(query);
            let mut back = Url::parse(&asked["redirect_uri"]).unwrap();
            let outcome = office.denial.map_or(("code", "the-code"), |denial| ("error", denial));
            back.query_pairs_mut().append_pair(outcome.0, outcome.1).append_pair("state", &asked["state"]);
            Reply::status(302).with("location", back.as_str())
        }
        "/token" => {
            let asked = form(std::str::from_utf8(&seen.body).unwrap());
            if asked["grant_type"] == "refresh_token"
                && asked["refresh_token"] != format!("refresh-{}-hunter2", office.refresh)
            {
                office.reused += 1;
                return Reply::new(400, "application/json", r#"{"error":"invalid_grant"}"#);
            }
            office.access += 1;
            office.refresh += 1;
            Reply::json(&json!({
                "access_token": format!("access-{}-hunter2", office.access),
                "refresh_token": format!("refresh-{}-hunter2", office.refresh),
                "token_type": "bearer",
                "expires_in": 3600,
            }))
        }
        _ => Reply::status(404),
    }
}

async fn office() -> (Server, Shared) {
    let office = Shared::default();
    let shared = office.clone();
    (Server::start(move |seen| act(seen, &shared)).await, office)
}

/// Somebody who goes wherever they are sent.
fn browser() -> Browser {
    let agent = agent();
    Arc::new(move |url| {
        let (agent, url) = (agent.clone(), url.clone());
        tokio::spawn(async move {
            let location = agent.visit(&url).await.unwrap().unwrap();
            agent.visit(&url.join(&location).unwrap()).await.unwrap();
        });
    })
}

fn authorizer(server: &Server, vault: Vault, browser: Option<Browser>) -> Arc<Authorizer> {
    Authorizer::new(&endpoint(&server.url()), agent(), vault, Settings::default(), browser, "type this")
}

fn session(server: &Server, vault: Vault, browser: Option<Browser>) -> Session {
    let authorizer = Some(authorizer(server, vault, browser));
    Session::with(Remote { endpoint: endpoint(&server.url()), agent: agent(), authorizer })
}

async fn is_welcome(session: &Session) -> bool {
    session.ask("tools/call", &json!({})).await == Ok(json!({ "welcome": true }))
}

#[tokio::test]
async fn a_login_is_kept_for_the_next_time_where_only_its_owner_can_read_it() {
    let (server, office) = office().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state/tokens.json");
    assert!(is_welcome(&session(&server, Vault::in_file(file.clone()), Some(browser()))).await);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    // The next process needs no browser, and shows its token at once.
    let before = server.seen().len();
    assert!(is_welcome(&session(&server, Vault::in_file(file.clone()), None)).await);
    assert_eq!(server.seen().len(), before + 1);
    // A token that is no longer good is renewed, without a browser.
    office.lock().unwrap().access += 1;
    assert!(is_welcome(&session(&server, Vault::in_file(file.clone()), None)).await);
    let vault = Vault::in_file(file);
    let kept = vault.list().unwrap();
    assert_eq!((kept[0].server.clone(), kept[0].can_refresh), (server.url(), true));
    assert!(!format!("{vault:?} {kept:?}").contains("hunter2"));
    assert!(vault.forget(&server.url()).unwrap());
    assert!(!is_welcome(&session(&server, vault, None)).await);
}

#[tokio::test]
async fn tokens_are_shown_to_the_server_alone() {
    let (server, office) = office().await;
    let session = session(&server, Vault::in_memory(), Some(browser()));
    assert!(is_welcome(&session).await);
    office.lock().unwrap().access += 1;
    assert!(is_welcome(&session).await);
    for seen in server.seen().iter().filter(|seen| seen.path != "/mcp") {
        assert!(!format!("{:?}", seen.headers).contains("hunter2"), "{seen:?}");
        assert!(seen.path == "/token" || !String::from_utf8_lossy(&seen.body).contains("hunter2"), "{seen:?}");
    }
    let paths: Vec<String> = server.seen().into_iter().map(|seen| seen.path).collect();
    assert_eq!(paths.iter().filter(|path| *path == "/register").count(), 1);
    assert_eq!(paths.iter().filter(|path| path.starts_with("/authorize")).count(), 1);
}

#[tokio::test]
async fn of_two_processes_that_renew_at_once_neither_loses_the_token() {
    let (server, office) = office().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.json");
    assert!(is_welcome(&session(&server, Vault::in_file(file.clone()), Some(browser()))).await);
    for _ in 0..5 {
        let sessions: Vec<_> = (0..4).map(|_| session(&server, Vault::in_file(file.clone()), None)).collect();
        for session in &sessions {
            assert!(is_welcome(session).await);
        }
        office.lock().unwrap().access += 1;
        let (a, b, c, d) = tokio::join!(
            is_welcome(&sessions[0]),
            is_welcome(&sessions[1]),
            is_welcome(&sessions[2]),
            is_welcome(&sessions[3])
        );
        assert!(a && b && c && d);
    }
    assert_eq!(office.lock().unwrap().reused, 0);
}

#[tokio::test]
async fn where_nobody_can_log_in_the_error_says_what_to_type() {
    let (server, _) = office().await;
    let fault = session(&server, Vault::in_memory(), None).ask("tools/call", &json!({})).await.unwrap_err();
    assert_eq!(fault, Fault::Login("login needed: type this".into()));
    assert!(!server.story().iter().any(|what| what.contains("register")), "{:?}", server.story());
}

#[tokio::test]
async fn a_person_who_refuses_is_believed() {
    let (server, office) = office().await;
    office.lock().unwrap().denial = Some("access_denied\u{1b}[31m");
    let refused = authorizer(&server, Vault::in_memory(), Some(browser())).log_in().await.unwrap_err();
    assert_eq!(refused, Problem::Denied("access_denied [31m".into()), "and nothing steers the terminal");
    assert!(!server.seen().iter().any(|seen| seen.path == "/token"));
}

#[tokio::test]
async fn codes_do_not_travel_in_the_open() {
    let (server, office) = office().await;
    office.lock().unwrap().issuer = Some("http://login.example");
    let refused = authorizer(&server, Vault::in_memory(), Some(browser())).log_in().await.unwrap_err();
    assert!(matches!(refused, Problem::Insecure { .. }), "{refused}");
}

#[tokio::test]
async fn an_answer_that_was_not_asked_for_is_not_taken() {
    let (server, _) = office().await;
    let agent = agent();
    // A page that somebody else made the browser open, before the real answer comes.
    let browser: Browser = Arc::new(move |url| {
        let (agent, url) = (agent.clone(), url.clone());
        tokio::spawn(async move {
            let location = agent.visit(&url).await.unwrap().unwrap();
            let real = url.join(&location).unwrap();
            let mut forged = real.clone();
            forged.query_pairs_mut().clear().append_pair("code", "forged").append_pair("state", "guessed");
            agent.visit(&forged).await.unwrap();
            agent.visit(&real).await.unwrap();
        });
    });
    authorizer(&server, Vault::in_memory(), Some(browser)).log_in().await.unwrap();
    let shown = server.seen().into_iter().find(|seen| seen.path == "/token").unwrap();
    assert!(String::from_utf8_lossy(&shown.body).contains("code=the-code"));
}
