//! What a provider answered: the text of one response.

use crate::error::{Error, Failure};
use crate::text;
use rialto_hub::schema::Schema;
use rialto_mcp::json;
use rialto_wire::dvmcp::answer;
use rialto_wire::strict;
use serde_json::Value;

/// A response that is a JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The object as the provider wrote it.
    pub content: String,
    /// Set if the request failed before a tool could say anything; a tool that says no itself is no failure.
    pub failure: Option<Failure>,
}

impl Reply {
    pub(crate) fn read(content: String) -> Result<Self, Error> {
        let unusable = |why: &dyn std::fmt::Display| Error::Malformed(why.to_string());
        let mut content = content;
        let mut value = strict::parse(&content).map_err(|error| unusable(&error))?;
        if let Value::String(inner) = value {
            // Some wrap the object in a string once more.
            value = strict::parse(&inner).map_err(|error| unusable(&error))?;
            content = inner;
        }
        if !value.is_object() {
            return Err(unusable(&"it is no JSON object"));
        }
        let failure = if value.get("isError") == Some(&Value::Bool(true)) { failure(&value) } else { None };
        Ok(Self { content, failure })
    }

    /// A tool's result that came by message. What it has promised must be there.
    pub(crate) fn promised(result: String, output: Option<&Schema>) -> Result<Self, Error> {
        let value: Value = serde_json::from_str(&result).map_err(|error| Error::Malformed(error.to_string()))?;
        let has_failed = value.get("isError") == Some(&Value::Bool(true));
        if let Some(schema) = output.filter(|_| !has_failed) {
            let structured = value.get("structuredContent").unwrap_or(&Value::Null);
            schema.check(structured).map_err(|misfit| {
                let words = format!("it is not what the tool promises: {}", misfit.message);
                Error::Malformed(text::limited(&text::one_line(&words), 500))
            })?;
        }
        Ok(Self { content: result, failure: None })
    }

    /// The items of a list, each as written.
    pub(crate) fn list(&self, key: &str) -> Result<Vec<&[u8]>, Error> {
        let content = self.content.as_bytes();
        let missing = || Error::Malformed(format!("it has no list of {key}"));
        let list = json::get(content, key).ok_or_else(missing)?;
        let places = json::elements(list).map_err(|_| missing())?;
        Ok(places.into_iter().map(|place| &list[place]).collect())
    }

    pub(crate) fn into_result(self) -> Result<Self, Error> {
        match self.failure {
            Some(failure) => Err(Error::Failed(failure)),
            None => Ok(self),
        }
    }
}

fn failure(value: &Value) -> Option<Failure> {
    let (code, message) = answer::read_failure(value)?;
    let pointer = value["metadata"]["error"].get("pointer").and_then(Value::as_str).map(ToOwned::to_owned);
    (code != "tool_error").then(|| Failure { pointer, ..Failure::new(&code, &message) })
}

#[cfg(test)]
mod tests {
    use super::Reply;
    use crate::error::Failure;

    #[test]
    fn a_tool_that_says_no_is_no_failure() {
        let no = r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#;
        assert_eq!(Reply::read(no.into()).unwrap(), Reply { content: no.into(), failure: None });
        let own = r#"{"isError":true,"metadata":{"error":{"code":"tool_error","message":"no"}}}"#;
        assert_eq!(Reply::read(own.into()).unwrap().failure, None);
        let broken = r#"{"isError":true,"metadata":{"error":{"code":"timeout","message":"late","pointer":"/a"}}}"#;
        let expected = Failure { pointer: Some("/a".into()), ..Failure::new("timeout", "late") };
        assert_eq!(Reply::read(broken.into()).unwrap().failure, Some(expected));
        assert_eq!(Reply::read(broken.replace("true", "false")).unwrap().failure, None);
    }

    #[test]
    fn only_objects_are_replies() {
        let inner = r#"{"tools":[]}"#;
        let wrapped = serde_json::to_string(inner).unwrap();
        assert_eq!(Reply::read(wrapped).unwrap().content, inner);
        for bad in ["", "[]", "\"x\"", "{\"a\":1,\"a\":2}", "nul"] {
            assert!(Reply::read(bad.into()).is_err(), "{bad}");
        }
    }
}
