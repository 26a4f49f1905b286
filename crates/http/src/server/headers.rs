//! What a stateless request must repeat in its headers, so that whoever stands between need not read its body.

use crate::server::response::{Refusal, SESSION_ID};
use hyper::StatusCode;
use hyper::header::HeaderMap;
use rialto_mcp::error::{Error, Kind};
use rialto_mcp::json;
use rialto_mcp::message::Request;
use rialto_mcp::mirror::{self, Mirrored};
use rialto_mcp::peer::Profile;
use rialto_mcp::version::{Version, meta};

const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
const PARAM: &str = "mcp-param-";

/// The version that a request names in its headers, if it does.
pub(super) fn version(headers: &HeaderMap) -> Option<Result<Version, &str>> {
    let text = text(headers, VERSION)?;
    Some(Version::parse(text).ok_or(text))
}

/// Whether a request claims to be a stateless one, rightly or not. Within a session only the header counts: older clients may
/// have put anything into `_meta`.
pub(super) fn is_stateless(headers: &HeaderMap, body_version: Option<&str>) -> bool {
    let is_in_session = headers.contains_key(SESSION_ID);
    match version(headers) {
        Some(Ok(version)) if version.is_modern() => true,
        Some(Ok(_)) => body_version.is_some() && !is_in_session,
        Some(Err(_)) | None => (headers.contains_key(METHOD) || body_version.is_some()) && !is_in_session,
    }
}

/// Refuses a version that there is not.
pub(super) fn check_version(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(Err(requested)) = version(headers) else { return Ok(()) };
    let known: Vec<_> = Version::ALL.iter().map(|version| version.as_str()).collect();
    let error = Error::new(Kind::UnsupportedVersion, format!("Unsupported protocol version: {requested}"));
    let error = error.with("supported", known).with("requested", requested);
    Err(Refusal::of(StatusCode::BAD_REQUEST, error))
}

/// The version in `_meta`.
pub(super) fn body_version(params: &[u8]) -> Option<std::borrow::Cow<'_, str>> {
    json::get_string(json::get(params, "_meta")?, meta::PROTOCOL_VERSION)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().map_or("", |text| text.trim_matches([' ', '\t'])))
}

fn mismatch(words: &str) -> Error {
    Error::new(Kind::HeaderMismatch, format!("Header mismatch: {words}"))
}

/// Compares one header with what the body says.
fn compare(name: &str, header: Option<&str>, body: &str) -> Result<(), Error> {
    match header {
        None => Err(mismatch(&format!("`{name}` is missing"))),
        Some(header) if header == body => Ok(()),
        Some(header) => Err(mismatch(&format!("`{name}` is `{header}`, the body says `{body}`"))),
    }
}

/// Reads how a stateless request presents itself, and checks its headers against it.
pub(super) fn check(headers: &HeaderMap, request: &Request) -> Result<Profile, Refusal> {
    checked(headers, request).map_err(|error| Refusal::of(StatusCode::BAD_REQUEST, error).to(Some(&request.id)))
}

fn checked(headers: &HeaderMap, request: &Request) -> Result<Profile, Error> {
    let params = request.params();
    let missing = || Error::invalid_params(format!("`_meta` must have `{}`", meta::PROTOCOL_VERSION));
    let version = body_version(params).ok_or_else(missing)?;
    compare("MCP-Protocol-Version", text(headers, VERSION), &version)?;
    let profile = Profile::from_meta(params).ok_or_else(missing)??;
    compare("Mcp-Method", text(headers, METHOD), request.method())?;
    if let Some(name) = mirror::name(request.method(), params) {
        let header = text(headers, NAME).map(mirror::decode).transpose();
        let header = header.map_err(|garbled| mismatch(&format!("`Mcp-Name`: {garbled}")))?;
        compare("Mcp-Name", header.as_deref(), &name)?;
    }
    Ok(profile)
}

/// Checks the arguments of a tool that its definition wants in headers.
pub(super) fn check_arguments(headers: &HeaderMap, request: &Request, mirrored: &[Mirrored]) -> Result<(), Refusal> {
    for argument in mirrored {
        let name = format!("{PARAM}{}", argument.header.to_ascii_lowercase());
        let words = match argument.agrees(text(headers, &name), request.params()) {
            Ok(true) => continue,
            Ok(false) => "is not what the body says".to_owned(),
            Err(garbled) => garbled.to_string(),
        };
        let error = mismatch(&format!("`Mcp-Param-{}`: {words}", argument.header));
        return Err(Refusal::of(StatusCode::BAD_REQUEST, error).to(Some(&request.id)));
    }
    Ok(())
}
