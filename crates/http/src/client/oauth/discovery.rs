//! Finds out who gives tokens for a server: the server's own metadata (RFC 9728), then those of the authorization server
//! (RFC 8414 and OpenID Connect). Servers of 2025-03-26 have only the latter, or not even them.

use super::Problem;
use super::challenge::Challenge;
use crate::client::agent::Agent;
use crate::client::connector::is_loopback;
use crate::client::endpoint::{is_same_origin, to_uri};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{ACCEPT, HeaderValue};
use serde::Deserialize;
use url::Url;

/// Who gives tokens for a server, and under which conditions.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// The resource as the server calls itself; it is named in every request for a token.
    pub(super) resource: Option<String>,
    /// The rights that the server knows, if it says so.
    pub(super) scopes: Option<Vec<String>>,
    pub(super) authority: Authority,
}

/// An authorization server.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Authority {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) registration_endpoint: Option<String>,
    #[serde(default)]
    pub(super) scopes_supported: Vec<String>,
    #[serde(default)]
    pub(super) token_endpoint_auth_methods_supported: Vec<String>,
    code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) client_id_metadata_document_supported: bool,
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
}

#[derive(Deserialize)]
struct Resource {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    scopes_supported: Option<Vec<String>>,
}

/// Asks the server and the authorization server that it names.
pub(super) async fn discover(agent: &Agent, server: &Url, challenge: &Challenge) -> Result<Found, Problem> {
    let Some(resource) = resource(agent, server, challenge).await? else {
        // As it was before servers described themselves: the server's own host gives the tokens.
        let authority = authority_of_host(agent, server).await?;
        return Ok(Found { resource: None, scopes: None, authority });
    };
    if !covers(&resource.resource, server) {
        return Err(Problem::WrongResource { told: super::harmless(&resource.resource) });
    }
    let Some(issuer) = resource.authorization_servers.first() else {
        return Err(Problem::NoMetadata { asked: "(none is named)".to_owned() });
    };
    let authority = authority(agent, server, issuer).await?;
    let protects = |methods: &Vec<String>| methods.iter().any(|method| method == "S256");
    if !authority.code_challenge_methods_supported.as_ref().is_some_and(protects) {
        return Err(Problem::NoPkce);
    }
    Ok(Found { resource: Some(resource.resource), scopes: resource.scopes_supported, authority })
}

/// The server's description of itself; `None` if it has none.
async fn resource(agent: &Agent, server: &Url, challenge: &Challenge) -> Result<Option<Resource>, Problem> {
    const WHAT: &str = "the server's metadata";
    // A server may point to a place of its own. Anywhere else, it would make us ask strangers.
    let named = challenge.metadata.as_ref().and_then(|address| Url::parse(address).ok());
    let named = named.filter(|address| is_same_origin(address, server));
    let path = server.path().trim_end_matches('/');
    let mut places = vec![well_known(server, "oauth-protected-resource", path)];
    if !path.is_empty() {
        places.push(well_known(server, "oauth-protected-resource", ""));
    }
    for place in named.into_iter().chain(places) {
        if let Some(body) = fetch(agent, WHAT, &place).await? {
            return read(WHAT, &body).map(Some);
        }
    }
    Ok(None)
}

/// Whether metadata for `resource` are for this server: it is that, or lies below it.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let (below, above) = (server.path(), resource.path().trim_end_matches('/'));
    let rest = below.strip_prefix(above);
    is_same_origin(&resource, server) && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

async fn authority(agent: &Agent, server: &Url, issuer: &str) -> Result<Authority, Problem> {
    const WHAT: &str = "the authorization server's metadata";
    let unreadable = |why: url::ParseError| Problem::Unreadable { what: WHAT, why: why.to_string() };
    let address = Url::parse(issuer).map_err(unreadable)?;
    check_secure(WHAT, &address, server)?;
    let path = address.path().trim_end_matches('/');
    let mut places = vec![
        well_known(&address, "oauth-authorization-server", path),
        well_known(&address, "openid-configuration", path),
    ];
    if !path.is_empty() {
        let mut inside = address.clone();
        inside.set_path(&format!("{path}/.well-known/openid-configuration"));
        places.push(inside);
    }
    for place in places {
        if let Some(body) = fetch(agent, WHAT, &place).await? {
            let authority: Authority = read(WHAT, &body)?;
            // The same name with or without a slash at its end is a common slip, and leads to the same host.
            if authority.issuer.trim_end_matches('/') != issuer.trim_end_matches('/') {
                let (asked, told) = (super::harmless(issuer), super::harmless(&authority.issuer));
                return Err(Problem::WrongIssuer { asked, told });
            }
            check_endpoints(&authority, server)?;
            return Ok(authority);
        }
    }
    Err(Problem::NoMetadata { asked: super::harmless(issuer) })
}

/// The server's own host as authorization server: by its metadata, or by the paths that 2025-03-26 names.
async fn authority_of_host(agent: &Agent, server: &Url) -> Result<Authority, Problem> {
    const WHAT: &str = "the authorization server's metadata";
    let host = server.origin().ascii_serialization();
    if let Some(body) = fetch(agent, WHAT, &well_known(server, "oauth-authorization-server", "")).await? {
        let authority: Authority = read(WHAT, &body)?;
        if authority.issuer.trim_end_matches('/') != host {
            return Err(Problem::WrongIssuer { asked: host, told: super::harmless(&authority.issuer) });
        }
        check_endpoints(&authority, server)?;
        return Ok(authority);
    }
    Ok(Authority {
        authorization_endpoint: format!("{host}/authorize"),
        token_endpoint: format!("{host}/token"),
        registration_endpoint: Some(format!("{host}/register")),
        issuer: host,
        scopes_supported: Vec::new(),
        token_endpoint_auth_methods_supported: Vec::new(),
        code_challenge_methods_supported: None,
        client_id_metadata_document_supported: false,
        authorization_response_iss_parameter_supported: false,
    })
}

fn check_endpoints(authority: &Authority, server: &Url) -> Result<(), Problem> {
    let endpoints = [&authority.authorization_endpoint, &authority.token_endpoint];
    for endpoint in endpoints.into_iter().chain(&authority.registration_endpoint) {
        const WHAT: &str = "an endpoint of the authorization server";
        let address = Url::parse(endpoint).map_err(|why| Problem::Unreadable { what: WHAT, why: why.to_string() })?;
        check_secure(WHAT, &address, server)?;
    }
    Ok(())
}

/// Codes and tokens travel over TLS only, except within this machine.
fn check_secure(what: &'static str, address: &Url, server: &Url) -> Result<(), Problem> {
    let is_local = |url: &Url| url.host_str().is_some_and(is_loopback);
    let is_secure = match address.scheme() {
        "https" => true,
        "http" => is_local(address) && is_local(server),
        _ => false,
    };
    if is_secure { Ok(()) } else { Err(Problem::Insecure { what, address: super::harmless(address.as_str()) }) }
}

fn well_known(base: &Url, name: &str, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("/.well-known/{name}{path}"));
    url.set_query(None);
    url.set_fragment(None);
    url
}

/// A JSON document; `None` if there is none at that place.
async fn fetch(agent: &Agent, what: &'static str, place: &Url) -> Result<Option<Bytes>, Problem> {
    let uri = to_uri(place).ok_or_else(|| Problem::Unreadable { what, why: "not an address".to_owned() })?;
    let mut request = Request::new(Full::default());
    *request.uri_mut() = uri;
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
    let document = agent.fetch(request).await.map_err(|error| Problem::Unreachable { what, why: error.words })?;
    match document.status {
        200 => Ok(Some(document.body)),
        500.. => Err(Problem::Unreachable { what, why: format!("HTTP status {}", document.status).into() }),
        _ => Ok(None),
    }
}

fn read<T: for<'a> Deserialize<'a>>(what: &'static str, body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| Problem::Unreadable { what, why: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::covers;
    use url::Url;

    #[test]
    fn metadata_are_for_a_server_or_for_what_is_above_it() {
        let server = Url::parse("https://a.example/tools/mcp").unwrap();
        for (resource, is_for_it) in [
            ("https://a.example/tools/mcp", true),
            ("https://a.example/tools/mcp/", true),
            ("https://a.example/tools", true),
            ("https://a.example", true),
            ("https://A.example:443/", true),
            ("https://a.example/tool", false),
            ("https://a.example/tools/mcp/x", false),
            ("https://evil.example/tools/mcp", false),
            ("http://a.example/tools/mcp", false),
            ("nonsense", false),
        ] {
            assert_eq!(covers(resource, &server), is_for_it, "{resource}");
        }
    }
}
