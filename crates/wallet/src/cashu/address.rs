//! Lightning addresses (LUD-16): a name at a domain that gives invoices on request.
//!
//! Its server is told nothing but the amount, and is believed in nothing: the invoice must be for exactly what was asked.

use super::mints::{is_safe, is_this_machine};
use super::trouble::short;
use hyper::Request;
use rialto_http::client::Agent;
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::wallet::Error;
use serde::Deserialize;
use std::fmt;
use std::str::FromStr;
use url::Url;

/// `name@domain`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    name: String,
    domain: String,
    url: Url,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a Lightning address, which looks like name@domain.example")]
pub struct NoAddress(String);

impl FromStr for Address {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let wrong = || NoAddress(text.to_owned());
        let (name, domain) = text.trim().split_once('@').ok_or_else(wrong)?;
        let is_name = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-_.+".contains(letter);
        let name = name.to_ascii_lowercase();
        if name.is_empty()
            || name.len() > 64
            || domain.is_empty()
            || !name.chars().all(is_name)
            || domain.contains(['/', '?', '#', '@'])
        {
            return Err(wrong());
        }
        let path = format!("{domain}/.well-known/lnurlp/{name}");
        let mut url: Url = format!("https://{path}").parse().map_err(|_| wrong())?;
        if is_this_machine(&url) {
            url = format!("http://{path}").parse().map_err(|_| wrong())?;
        }
        Ok(Self { name, domain: domain.to_owned(), url })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.domain)
    }
}

/// What a server says of a name (LUD-06). One that reports an error has nothing else in it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Offer {
    callback: Url,
    min_sendable: u64,
    max_sendable: u64,
    tag: String,
}

#[derive(Deserialize)]
struct Answer {
    pr: String,
}

#[derive(Deserialize)]
struct Complaint {
    reason: String,
}

impl Address {
    /// An invoice for exactly this much.
    pub(super) async fn invoice(&self, agent: &Agent, amount: Msat) -> Result<Invoice, Error> {
        let refused = |words: String| Error::Refused(format!("{self}: {words}"));
        let offer: Offer = self.ask(agent, &self.url).await?;
        if offer.tag != "payRequest" {
            return Err(refused("it takes no payments".into()));
        }
        let is_taken = (offer.min_sendable..=offer.max_sendable).contains(&amount.get());
        if !is_taken {
            let [least, most] = [offer.min_sendable, offer.max_sendable].map(|msat| Msat::new(msat).unwrap_or(amount));
            return Err(refused(format!("it takes {least} to {most}, and not {amount}")));
        }
        let mut callback = offer.callback;
        // A server on the net may not send us to this machine.
        if !is_safe(&callback) || is_this_machine(&callback) != is_this_machine(&self.url) {
            return Err(refused("it sends us to an address that is not safe".into()));
        }
        callback.query_pairs_mut().append_pair("amount", &amount.get().to_string());
        let answer: Answer = self.ask(agent, &callback).await?;
        let invoice: Invoice = answer.pr.parse().map_err(|error| refused(short(error)))?;
        if invoice.amount != Some(amount) {
            return Err(refused("its invoice is for another amount".into()));
        }
        Ok(invoice)
    }

    async fn ask<T: serde::de::DeserializeOwned>(&self, agent: &Agent, url: &Url) -> Result<T, Error> {
        let failed = |words: String| Error::Unreachable(format!("{self}: {words}"));
        let request = Request::get(url.as_str()).body(http_body_util::Full::<bytes::Bytes>::default());
        let request = request.map_err(|error| failed(short(error)))?;
        let agent = if is_this_machine(url) { agent.clone() } else { agent.public() };
        let document = agent.fetch(request).await.map_err(|trouble| failed(short(trouble)))?;
        if let Ok(complaint) = serde_json::from_slice::<Complaint>(&document.body) {
            return Err(Error::Refused(format!("{self}: {}", short(complaint.reason))));
        }
        if document.status != 200 {
            return Err(failed(format!("its server answered {}", document.status)));
        }
        serde_json::from_slice(&document.body).map_err(|_| failed("its server's answer cannot be read".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn addresses_lead_to_their_domain() {
        for (text, url) in [
            ("alice@example.com", "https://example.com/.well-known/lnurlp/alice"),
            ("Alice.B+tips@Example.com", "https://example.com/.well-known/lnurlp/alice.b+tips"),
            ("bob@127.0.0.1:8080", "http://127.0.0.1:8080/.well-known/lnurlp/bob"),
            ("bob@localhost", "http://localhost/.well-known/lnurlp/bob"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().url.as_str(), url);
        }
        for text in
            ["", "alice", "@example.com", "alice@", "a/b@example.com", "alice@example.com/x", "a@b@c", "a b@c.example"]
        {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
