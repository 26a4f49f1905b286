//! Wallets that are asked over HTTP: what their servers say, and what silence means.

use crate::answer::{self, one_line};
use nostr::types::url::Url;
use rialto_http::client::{Agent, Answer, Options, Question, Trouble};
use rialto_payment::secret::Secret;
use rialto_payment::wallet::Error;
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// How long anything but a payment is waited for: it takes a wallet a moment, or something is wrong.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// How long a payment is waited for: longer, and nothing is known anyway.
pub(crate) const PAY_PATIENCE: Duration = Duration::from_secs(60);

/// Why a text is no address of a wallet. The text is not repeated: it may hold most of a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("it is no address")]
    Malformed,
    #[error("without encryption (+http) it may only be on this machine")]
    Plain,
    #[error("`{0}=` is missing")]
    Missing(&'static str),
    #[error("`{0}=` is not what it should be")]
    Value(&'static str),
    #[error("a file that it names cannot be read: {0}")]
    File(String),
}

/// A server, and the key to it.
pub(crate) struct Server {
    agent: Agent,
    base: Url,
    key: (&'static str, Secret),
}

/// What a server answered.
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) body: Option<Value>,
}

impl Said {
    pub(crate) fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// The parts of an address: where the server is, and what stands after the question mark.
pub(crate) struct Parts {
    pub(crate) base: Url,
    values: Vec<(String, String)>,
}

impl Parts {
    /// Reads `NAME+https://HOST[:PORT][/PATH]?KEY=VALUE&…`
    pub(crate) fn read(reference: &Secret, name: &str) -> Result<Self, Invalid> {
        let text = reference.reveal().trim();
        let rest = text.strip_prefix(name).and_then(|rest| rest.strip_prefix('+')).ok_or(Invalid::Malformed)?;
        let mut base = Url::parse(rest).map_err(|_| Invalid::Malformed)?;
        match base.scheme() {
            "https" => {}
            "http" if rialto_relay::address::is_loopback(&base) => {}
            "http" => return Err(Invalid::Plain),
            _ => return Err(Invalid::Malformed),
        }
        let values = base.query_pairs().map(|(key, value)| (key.into_owned(), value.into_owned())).collect();
        base.set_query(None);
        base.set_fragment(None);
        let path = format!("{}/", base.path().trim_end_matches('/'));
        base.set_path(&path);
        Ok(Self { base, values })
    }

    pub(crate) fn value(&self, name: &'static str) -> Result<&str, Invalid> {
        let found = self.values.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty()).ok_or(Invalid::Missing(name))
    }
}

impl Server {
    pub(crate) fn new(base: Url, key: (&'static str, Secret), certificate: Option<PathBuf>) -> Result<Self, Invalid> {
        let options = Options { pinned: certificate, ..Options::from_variables(|name| std::env::var_os(name)) };
        let agent = Agent::new(&options).map_err(|error| Invalid::File(error.to_string()))?;
        Ok(Self { agent, base, key })
    }

    /// Where it is.
    pub(crate) fn place(&self) -> String {
        let host = self.base.host_str().unwrap_or_default();
        self.base.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Asks, and waits for the head of the answer.
    pub(crate) async fn open(&self, path: &str, body: Option<&Value>) -> Result<Answer, Error> {
        let url = self.base.join(path).map_err(|_| Error::Unreachable("its address cannot be used".to_owned()))?;
        let body = body.map(|body| body.to_string().into_bytes());
        let (name, key) = &self.key;
        let question = Question { url: &url, key: (name, key.reveal()), body: body.as_deref() };
        self.agent.ask(question).await.map_err(|trouble| failure(&trouble))
    }

    /// Asks, and waits for all of the answer.
    pub(crate) async fn ask(&self, path: &str, body: Option<&Value>, patience: Duration) -> Result<Said, Error> {
        let asked = async {
            let answer = self.open(path, body).await?;
            let status = answer.status;
            let body = answer.whole().await.map_err(|trouble| failure(&trouble))?;
            Ok(Said { status, body: serde_json::from_slice(&body).ok() })
        };
        tokio::time::timeout(patience, asked).await.map_err(|_| late(patience))?
    }
}

pub(crate) fn late(patience: Duration) -> Error {
    Error::Unknown(format!("nothing was heard within {} s", patience.as_secs()))
}

pub(crate) fn failure(trouble: &Trouble) -> Error {
    let words = one_line(&trouble.words);
    if trouble.is_unsent { Error::Unreachable(words) } else { Error::Unknown(words) }
}

/// What an answer that is no good means: the server's own words are a no, those of a server in between are nothing.
pub(crate) fn refusal(status: u16, words: Option<&str>) -> Error {
    match (status, words) {
        (_, Some(words)) => Error::Refused(one_line(words)),
        (500.., None) => Error::Unknown(format!("its server answers {status}")),
        (_, None) => Error::Refused(format!("its server answers {status}")),
    }
}

pub(crate) fn read<T: for<'a> Deserialize<'a>>(body: Option<Value>) -> Result<T, Error> {
    answer::read(body.unwrap_or_default())
}
