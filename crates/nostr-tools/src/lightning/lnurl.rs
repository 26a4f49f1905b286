//! Where somebody is paid: a Lightning address or an LNURL leads to a server that makes invoices (LUD-06, LUD-16).

use super::{bytes, decode, encode};
use crate::failure::Failure;
use crate::result::quoted;
use nostr::prelude::PublicKey;
use nostr::types::url::Url;
use rialto_relay::address::{self, Reach};
use rialto_relay::http;
use serde_json::{Map, Value};

const MAX_LNURL: usize = 2_000;

/// What a server says about paying somebody.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    /// Where it says so.
    pub(crate) url: Url,
    callback: Url,
    /// In thousandths of a satoshi.
    pub(crate) least: u64,
    pub(crate) most: u64,
    /// Who signs receipts of zaps; nobody if it does not know zaps.
    pub(crate) signer: Option<PublicKey>,
}

/// Where the owner of a profile wants to be paid.
pub(crate) fn address_in(profile: &Map<String, Value>) -> Result<Url, Failure> {
    let text = |name: &str| profile.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    if let Some(address) = text("lud16") {
        return from_address(address).ok_or_else(|| unusable("lud16", address));
    }
    if let Some(code) = text("lud06") {
        return from_code(code).ok_or_else(|| unusable("lud06", code));
    }
    Err(Failure::not_found("their profile names no Lightning address (lud16 or lud06), so they cannot be zapped"))
}

fn unusable(field: &str, text: &str) -> Failure {
    Failure::not_found(format!("the {field} in their profile is of no use: `{}`", quoted(text)))
}

fn from_address(address: &str) -> Option<Url> {
    let (name, domain) = address.split_once('@')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    if name.is_empty()
        || domain.is_empty()
        || !name.chars().all(is_plain)
        || domain.contains(['/', '@', '?', '#', '\\'])
    {
        return None;
    }
    let url = Url::parse(&format!("https://{domain}/.well-known/lnurlp/{name}")).ok()?;
    plain_if_local(url)
}

fn from_code(code: &str) -> Option<Url> {
    let (prefix, groups) = decode(code.strip_prefix("lightning:").unwrap_or(code), MAX_LNURL)?;
    let url = Url::parse(std::str::from_utf8(&bytes(&groups)?).ok()?).ok()?;
    let is_web = url.scheme() == "https" || (url.scheme() == "http" && address::is_loopback(&url));
    (prefix == "lnurl" && is_web).then_some(url)
}

/// Nobody has a certificate for this machine.
fn plain_if_local(mut url: Url) -> Option<Url> {
    if address::is_loopback(&url) {
        url.set_scheme("http").ok()?;
    }
    Some(url)
}

/// A URL as zap requests name it.
pub(crate) fn code(url: &Url) -> String {
    encode("lnurl", url.as_str().as_bytes())
}

async fn get(url: &Url, reach: &Reach) -> Result<Map<String, Value>, Failure> {
    let host = url.host_str().unwrap_or_default().to_owned();
    let failed = |words: &str| Failure::internal(format!("{host} does not tell how to pay: {}", quoted(words)));
    let addresses = reach.addresses(url).await.map_err(|error| failed(&error.to_string()))?;
    let document = http::get_from(url, "application/json", Some(&addresses)).await;
    let document = document.map_err(|error| failed(&error.to_string()))?;
    let value = serde_json::from_slice(&document.body).map_err(|_| failed("what it sent is no JSON"))?;
    let Value::Object(members) = value else { return Err(failed("what it sent is no object")) };
    if members.get("status").and_then(Value::as_str).is_some_and(|status| status.eq_ignore_ascii_case("error")) {
        let reason = members.get("reason").and_then(Value::as_str).unwrap_or("no reason given");
        return Err(failed(reason));
    }
    Ok(members)
}

impl Service {
    pub(crate) async fn ask(url: Url, reach: &Reach) -> Result<Self, Failure> {
        let members = get(&url, reach).await?;
        let wrong = |what: &str| {
            Failure::internal(format!("{} says something wrong about {what}", url.host_str().unwrap_or_default()))
        };
        let callback = members.get("callback").and_then(Value::as_str).and_then(|text| Url::parse(text).ok());
        let callback = callback.ok_or_else(|| wrong("where to ask for an invoice"))?;
        let is_web = callback.scheme() == "https" || (callback.scheme() == "http" && address::is_loopback(&callback));
        if !is_web {
            return Err(wrong("where to ask for an invoice"));
        }
        let number = |name: &str| members.get(name).and_then(Value::as_u64);
        let (least, most) = number("minSendable").zip(number("maxSendable")).ok_or_else(|| wrong("amounts"))?;
        let allows = members.get("allowsNostr").and_then(Value::as_bool).unwrap_or(false);
        let signer = members.get("nostrPubkey").and_then(Value::as_str).and_then(|key| PublicKey::from_hex(key).ok());
        Ok(Self { callback, least, most, signer: signer.filter(|key| allows && key.xonly().is_ok()), url })
    }

    /// Asks for an invoice over so much, for this zap request.
    pub(crate) async fn invoice(&self, amount: u64, request: &str, reach: &Reach) -> Result<String, Failure> {
        let mut url = self.callback.clone();
        url.query_pairs_mut()
            .append_pair("amount", &amount.to_string())
            .append_pair("nostr", request)
            .append_pair("lnurl", &code(&self.url));
        let members = get(&url, reach).await?;
        let invoice = members.get("pr").and_then(Value::as_str);
        invoice.map(ToOwned::to_owned).ok_or_else(|| Failure::internal("there is no invoice in the server's answer"))
    }
}

#[cfg(test)]
mod tests {
    use super::{address_in, code, from_code};
    use serde_json::{Map, Value, json};

    fn profile(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn addresses_lead_where_they_say() {
        let url = address_in(&profile(&json!({ "lud16": "bob@example.com" }))).unwrap();
        assert_eq!(url.as_str(), "https://example.com/.well-known/lnurlp/bob");
        let coded = address_in(&profile(&json!({ "lud06": code(&url).to_uppercase() }))).unwrap();
        assert_eq!(coded, url);
        for bad in ["bob", "bob@", "@example.com", "a/b@example.com", "bob@example.com/x", "bob@a@b"] {
            assert!(address_in(&profile(&json!({ "lud16": bad }))).is_err(), "{bad}");
        }
        assert!(from_code(&crate::lightning::encode("lnurl", b"http://example.com/")).is_none(), "not encrypted");
        assert!(from_code(&crate::lightning::encode("lnurl", b"file:///etc/passwd")).is_none());
    }
}
