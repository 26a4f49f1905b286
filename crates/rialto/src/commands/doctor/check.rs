//! One finding of the doctor.

use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    Ok,
    WorthALook,
    Broken,
}

impl Check {
    fn word(self) -> &'static str {
        match self {
            Check::Ok => "ok",
            Check::WorthALook => "warning",
            Check::Broken => "broken",
        }
    }
}

/// What was looked at, and how it is.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) check: Check,
    /// The kind of thing: `relay`, `server` …
    subject: &'static str,
    name: String,
    /// Never changes its meaning.
    pub(super) code: &'static str,
    words: String,
    hint: Option<String>,
}

impl Finding {
    pub(super) fn ok(subject: &'static str, name: &str, words: &str) -> Self {
        Self { check: Check::Ok, subject, name: name.into(), code: "ok", words: words.into(), hint: None }
    }

    pub(super) fn worth_a_look(subject: &'static str, name: &str, code: &'static str, words: &str) -> Self {
        Self { check: Check::WorthALook, code, ..Self::ok(subject, name, words) }
    }

    pub(super) fn broken(subject: &'static str, name: &str, code: &'static str, words: &str) -> Self {
        Self { check: Check::Broken, code, ..Self::ok(subject, name, words) }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn to_text(&self) -> String {
        let Self { check, subject, name, words, .. } = self;
        // Names and reasons come from files, relays and servers; none of them may steer the terminal.
        let clean = |text: &str| text.replace(|c: char| c.is_control(), " ");
        let line = format!("{:<8} {subject:<7} {}: {}\n", check.word(), clean(name), clean(words));
        match &self.hint {
            Some(hint) => format!("{line}         hint: {}\n", clean(hint)),
            None => line,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "status": self.check.word(),
            "check": self.subject,
            "name": self.name,
            "code": self.code,
            "message": self.words,
            "hint": self.hint,
        })
    }
}
