//! Settings with a few named values: the same names in flags, variables and files.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use rialto_http::client::Way;
use rialto_hub::plan::{EraChoice, Prefix};

/// How much a server is kept from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    None,
    Strict,
}

/// A closed list of values, each with the word that people write.
pub(crate) trait Choice: Copy + PartialEq + Send + Sync + 'static {
    const NAMES: &'static [(&'static str, Self)];

    fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, value)| *value == self).map_or("", |(name, _)| name)
    }

    /// `always, conflict or never`.
    fn listed() -> String {
        let names: Vec<&str> = Self::NAMES.iter().map(|(name, _)| *name).collect();
        match names.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => names.concat(),
        }
    }
}

impl Choice for Prefix {
    const NAMES: &'static [(&'static str, Self)] =
        &[("always", Prefix::Always), ("conflict", Prefix::Conflict), ("never", Prefix::Never)];
}

impl Choice for EraChoice {
    const NAMES: &'static [(&'static str, Self)] =
        &[("auto", EraChoice::Auto), ("legacy", EraChoice::Legacy), ("modern", EraChoice::Modern)];
}

impl Choice for Way {
    const NAMES: &'static [(&'static str, Self)] = &[("http", Way::Streamable), ("sse", Way::Sse)];
}

impl Choice for Profile {
    const NAMES: &'static [(&'static str, Self)] = &[("none", Profile::None), ("strict", Profile::Strict)];
}

/// The same list for a command line flag.
pub(crate) fn parser<T: Choice>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(T::NAMES.iter().map(|(name, _)| *name))
        .try_map(|name| T::parse(&name).ok_or("not in the list of values"))
}

#[cfg(test)]
mod tests {
    use super::Choice;
    use rialto_hub::plan::{EraChoice, Prefix};

    #[test]
    fn names_lead_to_values_and_back() {
        for (name, value) in Prefix::NAMES {
            assert_eq!((Prefix::parse(name), value.name()), (Some(*value), *name));
        }
        assert_eq!(EraChoice::parse("Modern"), None);
        assert_eq!(EraChoice::listed(), "auto, legacy or modern");
    }
}
