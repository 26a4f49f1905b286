//! The one error type of the binary: what happened, why, and what to type next.
//!
//! As text it is `error: …`, an excerpt where a file is at fault, an indented chain of causes, a blank line and a
//! `hint:`. With `--json` it is a single object with the same parts.

use std::error::Error;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::exit::Exit;
use crate::talk::Paint;

/// Why a command stops. Build it with one of the constructors and add what is known.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// A stable word for programs, such as `config_invalid`.
    code: &'static str,
    message: String,
    /// The lines of a file that are at fault, with a caret below.
    excerpt: Option<Box<str>>,
    causes: Vec<String>,
    hint: Option<String>,
    /// More for programs, beside the parts that every failure has.
    details: Option<Box<Map<String, Value>>>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            code: exit.code(),
            message: message.into(),
            excerpt: None,
            causes: Vec::new(),
            hint: None,
            details: None,
        }
    }

    /// The command line cannot be carried out as written.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// A configuration file or variable is wrong.
    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message).code("config_invalid")
    }

    /// Something that neither the user nor a remote side is known to have caused.
    pub(crate) fn unexpected(message: impl Into<String>) -> Self {
        Self::new(Exit::Unexpected, message)
    }

    pub(crate) fn code(mut self, code: &'static str) -> Self {
        self.code = code;
        self
    }

    #[cfg(test)]
    pub(crate) fn code_word(&self) -> &'static str {
        self.code
    }

    /// Adds one cause to the end of the chain.
    pub(crate) fn cause(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// Adds an error and everything that it says caused it.
    pub(crate) fn because(mut self, error: &dyn Error) -> Self {
        let mut next = Some(error);
        while let Some(cause) = next {
            self.causes.push(cause.to_string());
            next = cause.source();
        }
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds something that programs may want to know.
    pub(crate) fn detail(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.details.get_or_insert_default().insert(key.to_owned(), value.into());
        self
    }

    pub(crate) fn excerpt(mut self, excerpt: Option<String>) -> Self {
        self.excerpt = excerpt.map(String::into_boxed_str);
        self
    }

    /// For people. Ends with a newline.
    pub(crate) fn to_text(&self, paint: Paint) -> String {
        let mut text = format!("{} {}\n", paint.error("error:"), self.message);
        if let Some(excerpt) = &self.excerpt {
            text.push_str(excerpt);
        }
        for cause in &self.causes {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  caused by: {}", cause.replace('\n', "\n    "));
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "\n{} {}", paint.hint("hint:"), hint.replace('\n', "\n      "));
        }
        text
    }

    /// For programs: one line.
    pub(crate) fn to_json(&self) -> String {
        let mut object = json!({ "error": {
            "code": self.code,
            "message": self.message,
            "causes": self.causes,
            "hint": self.hint,
            "exit": self.exit.number(),
        }});
        for (key, value) in self.details.iter().flat_map(|details| details.iter()) {
            object["error"][key] = value.clone();
        }
        format!("{object}\n")
    }
}

/// What a command returns.
pub(crate) type Outcome = Result<(), Failure>;

#[cfg(test)]
mod tests {
    use super::Failure;
    use crate::exit::Exit;
    use crate::talk::Paint;

    #[test]
    fn text_has_chain_blank_line_and_hint() {
        let io = std::io::Error::other("disk full");
        let failure = Failure::unexpected("cannot write `a`").because(&io).hint("free some space");
        assert_eq!(
            failure.to_text(Paint::Never),
            "error: cannot write `a`\n  caused by: disk full\n\nhint: free some space\n"
        );
    }

    #[test]
    fn json_carries_the_same_parts() {
        let failure = Failure::new(Exit::Timeout, "no answer").cause("relay silent").code("relay_silent");
        assert_eq!(
            failure.to_json(),
            "{\"error\":{\"causes\":[\"relay silent\"],\"code\":\"relay_silent\",\"exit\":7,\"hint\":null,\"message\":\"no answer\"}}\n"
        );
    }
}
