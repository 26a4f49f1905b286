//! Variables in configuration text: `${NAME}` and `${NAME:-default}`, and the ones editors offer.
//!
//! | written | becomes |
//! |---|---|
//! | `${NAME}`, `${env:NAME}` | the variable; an error when it is unset |
//! | `${NAME:-default}` | the variable, or the default when it is unset or empty |
//! | `${workspaceFolder}` | the folder of the file (above `.vscode` or `.cursor`) |
//! | `${workspaceFolderBasename}` | the name of that folder |
//! | `${userHome}` | the home directory |
//! | `${pathSeparator}`, `${/}` | `/` |
//! | `$${` | a literal `${` |
//!
//! Messages name variables, never their values.

use std::path::{MAIN_SEPARATOR_STR, Path};

use crate::environment::{Environment, Variable};

/// Why text cannot be expanded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ExpandError {
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// Expands every variable in `text`. `workspace` is the folder that the file belongs to.
pub(crate) fn expand(text: &str, environment: &Environment, workspace: &Path) -> Result<String, ExpandError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        if rest[..start].ends_with('$') {
            out.push_str(&rest[..start - 1]);
            out.push_str("${");
            rest = &rest[start + 2..];
            continue;
        }
        out.push_str(&rest[..start]);
        let Some(length) = rest[start..].find('}') else {
            return Err(literal("`${` without a closing `}`"));
        };
        out.push_str(&resolve(&rest[start + 2..start + length], environment, workspace)?);
        rest = &rest[start + length + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

fn resolve(expression: &str, environment: &Environment, workspace: &Path) -> Result<String, ExpandError> {
    if let Some(identifier) = expression.strip_prefix("input:") {
        return Err(ExpandError {
            message: format!("`${{input:{identifier}}}` asks an editor, which is not there"),
            hint: format!(
                "put the value in an environment variable and write ${{{}}}",
                identifier.to_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_")
            ),
        });
    }
    match expression {
        "workspaceFolder" => return Ok(workspace.display().to_string()),
        "workspaceFolderBasename" => {
            return Ok(workspace.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default());
        }
        "pathSeparator" | "/" => return Ok(MAIN_SEPARATOR_STR.to_owned()),
        "userHome" => {
            return match environment.home() {
                Some(home) => Ok(home.display().to_string()),
                None => Err(unset("HOME")),
            };
        }
        _ => {}
    }
    let expression = expression.strip_prefix("env:").unwrap_or(expression);
    let (name, default) = match expression.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (expression, None),
    };
    let valid = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !valid {
        return Err(literal("`${…}` does not hold a variable's name"));
    }
    match (environment.variable(name), default) {
        (Variable::Text(value), None) => Ok(value),
        (Variable::Text(value), Some(_)) if !value.is_empty() => Ok(value),
        (Variable::Unset | Variable::Text(_), Some(default)) => Ok(default.to_owned()),
        (Variable::Unset, None) => Err(unset(name)),
        (Variable::NotText, _) => Err(ExpandError {
            message: format!("environment variable `{name}` is not valid UTF-8"),
            hint: format!("set {name} to text"),
        }),
    }
}

fn unset(name: &str) -> ExpandError {
    ExpandError {
        message: format!("environment variable `{name}` is not set"),
        hint: format!("set {name}, or give a default: ${{{name}:-…}}"),
    }
}

fn literal(message: &str) -> ExpandError {
    ExpandError { message: message.to_owned(), hint: "write $${ where a literal ${ is meant".to_owned() }
}

/// Replaces a leading `~/` by the home directory, as shells do.
pub(crate) fn home_relative(text: &str, environment: &Environment) -> String {
    match (text.strip_prefix("~/"), environment.home()) {
        (Some(rest), Some(home)) => home.join(rest).display().to_string(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::expand;
    use crate::environment::Environment;

    fn run(text: &str) -> Result<String, String> {
        let environment = Environment::of(&[("HOME", "/people/ada"), ("NAME", "value"), ("EMPTY", "")]);
        expand(text, &environment, Path::new("/project")).map_err(|error| error.message)
    }

    #[test]
    fn variables_are_replaced() {
        let cases = [
            ("plain $NAME $ }", "plain $NAME $ }"),
            ("a${NAME}b${NAME}", "avaluebvalue"),
            ("${EMPTY}", ""),
            ("${EMPTY:-default}", "default"),
            ("${UNSET:-de:-fault}", "de:-fault"),
            ("${UNSET:-}", ""),
            ("${NAME:-default}", "value"),
            ("${env:NAME}", "value"),
            ("${workspaceFolder}/x", "/project/x"),
            ("${workspaceFolderBasename}", "project"),
            ("${userHome}", "/people/ada"),
            ("$${NAME}", "${NAME}"),
            ("é${NAME}é", "évalueé"),
        ];
        for (text, expected) in cases {
            assert_eq!(run(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_replaced_is_an_error() {
        let cases = [
            ("${UNSET}", "environment variable `UNSET` is not set"),
            ("${env:UNSET}", "environment variable `UNSET` is not set"),
            ("${NAME", "`${` without a closing `}`"),
            ("${}", "`${…}` does not hold a variable's name"),
            ("${NAME%/}", "`${…}` does not hold a variable's name"),
            ("${input:api-key}", "`${input:api-key}` asks an editor, which is not there"),
        ];
        for (text, expected) in cases {
            assert_eq!(run(text), Err(expected.to_owned()), "{text}");
        }
    }
}
