//! What a server says when it wants to know who asks: `WWW-Authenticate`.

use hyper::StatusCode;
use hyper::header::{HeaderMap, WWW_AUTHENTICATE};

/// A demand for a token, or for a better one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Challenge {
    /// The token is good, but not for this.
    pub(super) is_step_up: bool,
    /// Where the server describes itself.
    pub(super) metadata: Option<String>,
    /// The rights that the request needs.
    pub(super) scopes: Vec<String>,
}

impl Challenge {
    /// Reads a refusal. 403 without a word about rights is final.
    pub(crate) fn read(status: StatusCode, headers: &HeaderMap) -> Option<Self> {
        let mut challenge = Self::default();
        let mut error = None;
        for value in headers.get_all(WWW_AUTHENTICATE) {
            for (name, value) in bearer(&String::from_utf8_lossy(value.as_bytes())) {
                match name.as_str() {
                    "resource_metadata" => challenge.metadata = Some(value),
                    "scope" => challenge.scopes = value.split_ascii_whitespace().map(ToOwned::to_owned).collect(),
                    "error" => error = Some(value),
                    _ => {}
                }
            }
        }
        challenge.is_step_up = status == StatusCode::FORBIDDEN;
        let is_ours = match status {
            StatusCode::UNAUTHORIZED => true,
            StatusCode::FORBIDDEN => error.as_deref() == Some("insufficient_scope"),
            _ => false,
        };
        is_ours.then_some(challenge)
    }
}

/// The parameters of the `Bearer` challenge in a header that may hold several.
fn bearer(header: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut is_bearer = false;
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            return found;
        }
        let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
        let word = &rest[..end];
        rest = rest[end..].trim_start_matches([' ', '\t']);
        let Some(after) = rest.strip_prefix('=') else {
            // A word without a value is the name of a scheme.
            is_bearer = word.eq_ignore_ascii_case("bearer");
            if end == 0 {
                return found;
            }
            continue;
        };
        let (value, after) = value(after.trim_start_matches([' ', '\t']));
        if is_bearer {
            found.push((word.to_ascii_lowercase(), value));
        }
        rest = after;
    }
}

/// One value, quoted or not, and what follows it.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::Challenge;
    use hyper::StatusCode;
    use hyper::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};

    fn read(status: u16, headers: &[&str]) -> Option<Challenge> {
        let mut map = HeaderMap::new();
        for header in headers {
            map.append(WWW_AUTHENTICATE, HeaderValue::from_str(header).unwrap());
        }
        Challenge::read(StatusCode::from_u16(status).unwrap(), &map)
    }

    #[test]
    fn challenges_are_read() {
        let full = Challenge {
            is_step_up: false,
            metadata: Some("https://a/meta".into()),
            scopes: vec!["one".into(), "two".into()],
        };
        for headers in [
            &[r#"Bearer resource_metadata="https://a/meta", scope="one two""#][..],
            &[r#"bearer realm="a, b=\"c\"",scope = "one two" , resource_metadata=https://a/meta"#],
            &["Basic realm=\"x\"", r#"Bearer scope="one two",resource_metadata="https://a/meta""#],
            &[r#"Basic scope="no", Bearer scope="one two", resource_metadata="https://a/meta", DPoP scope="no""#],
        ] {
            assert_eq!(read(401, headers), Some(full.clone()), "{headers:?}");
        }
        assert_eq!(read(401, &[]), Some(Challenge::default()));
        assert_eq!(read(403, &["Bearer scope=\"x\""]), None, "forbidden is forbidden");
        let step_up = Challenge { is_step_up: true, metadata: None, scopes: vec!["x".into()] };
        assert_eq!(read(403, &["Bearer error=\"insufficient_scope\", scope=\"x\""]), Some(step_up));
        assert_eq!(read(500, &["Bearer"]), None);
    }

    #[test]
    fn nonsense_ends() {
        for header in ["=", "Bearer =", "Bearer scope=\"open", "Bearer scope=\"a\\", ",,,", "Bearer , =x"] {
            assert!(read(401, &[header]).is_some(), "{header}");
        }
    }
}
