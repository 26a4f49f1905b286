//! The settings beside the servers, in layers: flag over environment over project file over user file over default.
//! Every value remembers where it came from.

use std::ops::RangeInclusive;
use std::sync::Arc;

use rialto_hub::plan::{DEFAULT_CALL_TIMEOUT, DEFAULT_MAX_CALL_TIMEOUT, DEFAULT_STARTUP_GRACE, EraChoice, Prefix};
use serde_json::{Value, json};

use crate::config::choice::Choice;
use crate::config::problem::Report;
use crate::config::source::Source;
use crate::environment::{self, Environment, Variable};

/// A call that may wait longer than a week is a mistake in units.
pub(crate) const SECONDS: RangeInclusive<u64> = 1..=7 * 24 * 3600;

/// Nobody wants a host to wait longer than ten minutes for its first list.
pub(crate) const GRACE_MILLISECONDS: RangeInclusive<u64> = 0..=600_000;

/// Ports that a login may be answered at.
pub(crate) const PORTS: RangeInclusive<u64> = 1..=65_535;

/// Where a value was set.
#[derive(Clone)]
pub(crate) enum Origin {
    Default,
    /// The byte offset in the file.
    File(Arc<Source>, usize),
    Environment(&'static str),
    Flag(&'static str),
}

impl Origin {
    /// `project file (rialto.toml:3)`, `environment (RIALTO_PREFIX)`, `flag (--prefix)` or `default`.
    pub(crate) fn describe(&self) -> String {
        match self {
            Origin::Default => "default".to_owned(),
            Origin::File(source, offset) => {
                let place = source.place(*offset);
                format!("{} ({}:{})", source.role.name(), place.file, place.line)
            }
            Origin::Environment(name) => format!("environment ({name})"),
            Origin::Flag(name) => format!("flag ({name})"),
        }
    }

    /// The same for programs.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Origin::Default => json!({ "layer": "default" }),
            Origin::File(source, offset) => {
                let place = source.place(*offset);
                json!({ "layer": source.role.name(), "file": place.file, "line": place.line, "column": place.column })
            }
            Origin::Environment(name) => json!({ "layer": "environment", "name": name }),
            Origin::Flag(name) => json!({ "layer": "flag", "name": name }),
        }
    }
}

/// A value and where it was set.
#[derive(Clone)]
pub(crate) struct Traced<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

impl<T> Traced<T> {
    pub(crate) fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }

    pub(crate) fn is_default(&self) -> bool {
        matches!(self.origin, Origin::Default)
    }
}

/// What one layer sets.
#[derive(Clone, Default)]
pub(crate) struct Layer {
    pub(crate) prefix: Option<Traced<Prefix>>,
    pub(crate) era: Option<Traced<EraChoice>>,
    pub(crate) startup_grace_ms: Option<Traced<u64>>,
    pub(crate) timeout_secs: Option<Traced<u64>>,
    pub(crate) max_timeout_secs: Option<Traced<u64>>,
}

impl Layer {
    /// This layer's values, and those of the layer below where this one sets none.
    pub(crate) fn over(self, below: Layer) -> Layer {
        Layer {
            prefix: self.prefix.or(below.prefix),
            era: self.era.or(below.era),
            startup_grace_ms: self.startup_grace_ms.or(below.startup_grace_ms),
            timeout_secs: self.timeout_secs.or(below.timeout_secs),
            max_timeout_secs: self.max_timeout_secs.or(below.max_timeout_secs),
        }
    }

    pub(crate) fn of_environment(environment: &Environment, report: &mut Report) -> Layer {
        let mut variables = Variables { environment, report };
        Layer {
            prefix: variables.choice(environment::PREFIX),
            era: variables.choice(environment::ERA),
            startup_grace_ms: variables.number(environment::STARTUP_GRACE_MS, &GRACE_MILLISECONDS),
            timeout_secs: variables.number(environment::TIMEOUT_SECS, &SECONDS),
            max_timeout_secs: variables.number(environment::MAX_TIMEOUT_SECS, &SECONDS),
        }
    }
}

/// Every setting, complete.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) prefix: Traced<Prefix>,
    pub(crate) era: Traced<EraChoice>,
    pub(crate) startup_grace_ms: Traced<u64>,
    pub(crate) timeout_secs: Traced<u64>,
    pub(crate) max_timeout_secs: Traced<u64>,
}

impl Settings {
    /// The layers' result over the defaults. Only the prefix has a default that depends on the command.
    pub(crate) fn complete(layer: Layer, default_prefix: Prefix) -> Self {
        fn or<T>(value: Option<Traced<T>>, default: T) -> Traced<T> {
            value.unwrap_or(Traced::new(default, Origin::Default))
        }
        let grace = u64::try_from(DEFAULT_STARTUP_GRACE.as_millis()).unwrap_or(u64::MAX);
        Self {
            prefix: or(layer.prefix, default_prefix),
            era: or(layer.era, EraChoice::default()),
            startup_grace_ms: or(layer.startup_grace_ms, grace),
            timeout_secs: or(layer.timeout_secs, DEFAULT_CALL_TIMEOUT.as_secs()),
            max_timeout_secs: or(layer.max_timeout_secs, DEFAULT_MAX_CALL_TIMEOUT.as_secs()),
        }
    }
}

/// Reads values from variables.
struct Variables<'a> {
    environment: &'a Environment,
    report: &'a mut Report,
}

impl Variables<'_> {
    fn text(&mut self, name: &'static str) -> Option<String> {
        match self.environment.variable(name) {
            Variable::Unset => None,
            Variable::Text(text) => (!text.is_empty()).then_some(text),
            Variable::NotText => {
                self.report.error_outside_files(format!("environment variable `{name}` is not valid UTF-8"), None);
                None
            }
        }
    }

    fn choice<T: Choice>(&mut self, name: &'static str) -> Option<Traced<T>> {
        let text = self.text(name)?;
        let value = T::parse(&text);
        if value.is_none() {
            let message = format!("environment variable `{name}` must be {}, not `{text}`", T::listed());
            self.report.error_outside_files(message, None);
        }
        Some(Traced::new(value?, Origin::Environment(name)))
    }

    fn number(&mut self, name: &'static str, range: &RangeInclusive<u64>) -> Option<Traced<u64>> {
        let text = self.text(name)?;
        let value = text.parse().ok().filter(|value| range.contains(value));
        if value.is_none() {
            let (low, high) = (range.start(), range.end());
            let message =
                format!("environment variable `{name}` must be a whole number from {low} to {high}, not `{text}`");
            self.report.error_outside_files(message, None);
        }
        Some(Traced::new(value?, Origin::Environment(name)))
    }
}
