//! From the text of a file to its tree, whichever of the two languages it is written in.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::json;
use crate::config::problem::Report;
use crate::config::source::Source;
use crate::config::tree::{Member, Node, Value};

/// The language of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Toml,
    Json,
}

impl Language {
    /// By extension; by the first character when the extension says nothing.
    pub(crate) fn of(source: &Source) -> Self {
        let extension = source.path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
        match extension.to_ascii_lowercase().as_str() {
            "toml" => Language::Toml,
            "json" | "jsonc" | "json5" => Language::Json,
            _ if source.text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '/']) => Language::Json,
            _ => Language::Toml,
        }
    }
}

/// Reads a file into its tree; `None` after reporting why that is not possible.
pub(crate) fn read(source: &Source, language: Language, report: &mut Report) -> Option<Node> {
    match language {
        Language::Json => match json::read(&source.text) {
            Ok(node) => Some(node),
            Err(error) => {
                let message = format!("not valid JSON: {}", error.message);
                match error.hint {
                    Some(hint) => report.error_with_hint(source, &error.span, message, hint),
                    None => report.error(source, &error.span, message),
                }
                None
            }
        },
        Language::Toml => match DeTable::parse(&source.text) {
            Ok(table) => {
                let span = table.span();
                Some(object(span, table.get_ref()))
            }
            Err(error) => {
                let span = error.span().unwrap_or(0..0);
                report.error(source, &span, format!("not valid TOML: {}", error.message().trim_end()));
                None
            }
        },
    }
}

fn node(value: &Spanned<DeValue<'_>>) -> Node {
    let span = value.span();
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(integer) => match i128::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) => Value::Number(number.to_string()),
            Err(_) => Value::Number(integer.to_string()),
        },
        DeValue::Float(float) => Value::Number(float.to_string()),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(moment) => Value::Text(moment.to_string()),
        DeValue::Array(items) => Value::List(items.iter().map(node).collect()),
        DeValue::Table(table) => return object(span, table),
    };
    Node { span, value }
}

/// The parser sorts keys by name; their places bring back the order of the file.
fn object(span: Range<usize>, table: &DeTable<'_>) -> Node {
    let mut members: Vec<Member> = table
        .iter()
        .map(|(key, value)| Member { key: key.get_ref().to_string(), key_span: key.span(), node: node(value) })
        .collect();
    members.sort_by_key(|member| member.key_span.start);
    Node { span, value: Value::Object(members) }
}

#[cfg(test)]
mod tests {
    use super::{Language, read};
    use crate::config::problem::Report;
    use crate::config::source::{Role, Source};

    fn source(path: &str, text: &str) -> Source {
        Source::new(Role::Given, path.into(), path.to_owned(), text.to_owned())
    }

    #[test]
    fn language_follows_the_extension_then_the_content() {
        let cases = [
            ("a.toml", "{}", Language::Toml),
            ("a.JSON", "", Language::Json),
            ("mcp.jsonc", "", Language::Json),
            ("noname", " \n{}", Language::Json),
            ("noname", "// note\n{}", Language::Json),
            ("noname", "prefix = 'never'", Language::Toml),
        ];
        for (path, text, expected) in cases {
            assert_eq!(Language::of(&source(path, text)), expected, "{path} {text}");
        }
    }

    #[test]
    fn toml_tables_keep_the_order_of_the_file() {
        let source = source("a.toml", "[servers.zebra]\na = 0x10\n[servers.ant]\n[servers.mole]\n");
        let tree = read(&source, Language::Toml, &mut Report::default()).unwrap();
        let servers = tree.get("servers").unwrap();
        let names: Vec<&str> = servers.members().unwrap().iter().map(|member| member.key.as_str()).collect();
        assert_eq!(names, ["zebra", "ant", "mole"]);
    }
}
