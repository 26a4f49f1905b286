//! Questions to services that are no MCP servers, such as wallets: one request, and its answer as a whole or line by line.

use super::agent::{Agent, Trouble};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};

/// The longest answer, and the longest line of one.
const MAX_ANSWER: usize = 1024 * 1024;

/// A request. Its body, if there is one, is JSON, and makes it a `POST`.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    pub url: &'a url::Url,
    /// The header that proves who we are. Its value is shown nowhere.
    pub key: (&'static str, &'a str),
    pub body: Option<&'a [u8]>,
}

impl std::fmt::Debug for Question<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Addresses of such services hold secrets as well.
        f.write_str("Question")
    }
}

/// An answer whose head has come.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    body: Incoming,
    rest: BytesMut,
    has_ended: bool,
}

impl Agent {
    /// Asks, and waits for the head of the answer. How long is the caller's to say; redirections are not followed, as they
    /// would take the key along.
    pub async fn ask(&self, question: Question<'_>) -> Result<Answer, Trouble> {
        let unsent = |words: &str| Trouble { words: words.into(), is_unsent: true };
        let uri: Uri = question.url.as_str().parse().map_err(|_| unsent("not an address"))?;
        let (name, value) = question.key;
        let mut value = HeaderValue::from_str(value).map_err(|_| unsent("the key has characters that no key has"))?;
        value.set_sensitive(true);
        let method = if question.body.is_some() { Method::POST } else { Method::GET };
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header(HeaderName::from_static(name), value)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/json")
            .body(Full::from(question.body.map(Bytes::copy_from_slice).unwrap_or_default()))
            .map_err(|_| unsent("not a request"))?;
        let response = self.send(request).await?;
        let status = response.status().as_u16();
        Ok(Answer { status, body: response.into_body(), rest: BytesMut::new(), has_ended: false })
    }
}

impl Answer {
    /// All of it.
    pub async fn whole(mut self) -> Result<Bytes, Trouble> {
        while self.more().await? {}
        Ok(self.rest.freeze())
    }

    /// The next line that is not empty; `None` after the last.
    pub async fn line(&mut self) -> Result<Option<Bytes>, Trouble> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.rest) {
                let line = self.rest.split_to(end + 1).freeze();
                if !line.trim_ascii().is_empty() {
                    return Ok(Some(line));
                }
            } else if !self.more().await? {
                let line = std::mem::take(&mut self.rest).freeze();
                return Ok(Some(line).filter(|line| !line.trim_ascii().is_empty()));
            }
        }
    }

    /// Reads more; says whether there was any.
    async fn more(&mut self) -> Result<bool, Trouble> {
        while !self.has_ended {
            let Some(frame) = self.body.frame().await else {
                self.has_ended = true;
                break;
            };
            let frame = frame.map_err(|error| Trouble::sent(error.to_string()))?;
            let Ok(data) = frame.into_data() else { continue };
            if self.rest.len() + data.len() > MAX_ANSWER {
                return Err(Trouble::sent("the answer is too long"));
            }
            self.rest.extend_from_slice(&data);
            return Ok(true);
        }
        Ok(false)
    }
}
