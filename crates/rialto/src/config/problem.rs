//! What is wrong with a configuration: collected first, so that one run shows everything there is to mend.

use std::ops::Range;

use crate::config::source::{Place, Source, Unreadable};
use crate::failure::Failure;

/// One thing to mend.
#[derive(Debug)]
pub(crate) struct Problem {
    place: Option<Place>,
    message: String,
    excerpt: Option<String>,
    hint: Option<String>,
}

impl Problem {
    /// `file:line:column: message`.
    fn located(&self) -> String {
        match &self.place {
            Some(place) => format!("{place}: {}", self.message),
            None => self.message.clone(),
        }
    }

    /// Everything on one line.
    pub(crate) fn line(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}: {hint}", self.located()),
            None => self.located(),
        }
    }
}

/// The problems found so far. Errors stop the command once everything is read; warnings do not.
#[derive(Debug, Default)]
pub(crate) struct Report {
    errors: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
}

impl Report {
    pub(crate) fn error(&mut self, source: &Source, span: &Range<usize>, message: impl Into<String>) {
        self.errors.push(problem(source, span, message.into(), None));
    }

    pub(crate) fn error_with_hint(
        &mut self,
        source: &Source,
        span: &Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.errors.push(problem(source, span, message.into(), Some(hint.into())));
    }

    /// An error that belongs to no file.
    pub(crate) fn error_outside_files(&mut self, message: impl Into<String>, hint: Option<String>) {
        self.errors.push(Problem { place: None, message: message.into(), excerpt: None, hint });
    }

    pub(crate) fn unreadable(&mut self, unreadable: &Unreadable) {
        let message = format!("cannot read `{}`: {}", unreadable.name, unreadable.reason);
        self.error_outside_files(message, unreadable.hint.map(str::to_owned));
    }

    pub(crate) fn warning(
        &mut self,
        source: &Source,
        span: &Range<usize>,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        self.warnings.push(problem(source, span, message.into(), hint));
    }

    /// The failure that the errors amount to, if there are any.
    pub(crate) fn into_result(mut self) -> Result<Vec<Problem>, Failure> {
        match self.errors.len() {
            0 => Ok(self.warnings),
            1 => {
                let Problem { place, message, excerpt, hint } = self.errors.remove(0);
                let located = place.map_or(message.clone(), |place| format!("{place}: {message}"));
                let failure = Failure::config(located).excerpt(excerpt);
                Err(match hint {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                })
            }
            count => {
                let failure = Failure::config(format!("the configuration has {count} errors"));
                Err(self.errors.iter().fold(failure, |failure, problem| failure.cause(problem.line())))
            }
        }
    }
}

fn problem(source: &Source, span: &Range<usize>, message: String, hint: Option<String>) -> Problem {
    Problem { place: Some(source.place(span.start)), message, excerpt: source.excerpt(span), hint }
}
