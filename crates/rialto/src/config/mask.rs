//! Hides what may be a secret before it is shown: environment values, arguments and lines of configuration files.
//!
//! The rules err on the side of hiding. A `${NAME}` reference is a name, not a value, and stays visible.

/// Shown instead of a secret; its length says nothing about the secret's.
pub(crate) const MASK: &str = "•••";

/// Words that make a flag or variable name one for a secret.
const SECRET_WORDS: [&str; 15] = [
    "token",
    "key",
    "secret",
    "password",
    "passwd",
    "pass",
    "pwd",
    "auth",
    "authorization",
    "credential",
    "credentials",
    "bearer",
    "nsec",
    "cookie",
    "pat",
];

/// Beginnings that give a value away as a secret wherever it stands.
const SECRET_BEGINNINGS: [&str; 13] = [
    "sk-",
    "sk_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "nsec1",
    "ncryptsec1",
    "nostr+walletconnect:",
    "eyJ",
];

/// Arguments as they may be shown.
pub(crate) fn arguments(arguments: &[String]) -> Vec<String> {
    let mut hide_next = false;
    let mut shown = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let hide = std::mem::take(&mut hide_next);
        let is_flag = argument.starts_with('-');
        if hide && !is_flag {
            shown.push(value(argument));
            continue;
        }
        hide_next = is_flag && !argument.contains('=') && is_secret_name(argument);
        let assignment = argument.split_once('=').filter(|(name, _)| !name.contains("://"));
        shown.push(match assignment {
            Some((name, content)) if is_secret_name(name) => format!("{name}={}", value(content)),
            Some((name, content)) if is_secret_value(content) => format!("{name}={MASK}"),
            _ => argument_alone(argument),
        });
    }
    shown
}

fn argument_alone(argument: &str) -> String {
    if is_secret_value(argument) {
        return MASK.to_owned();
    }
    // A header such as `Authorization: Bearer …`.
    if let Some((name, content)) = argument.split_once(':')
        && !content.starts_with("//")
        && is_secret_name(name)
    {
        return format!("{name}: {}", value(content.trim_start()));
    }
    let argument = match password_of_url(argument) {
        Some(password) => argument.replacen(password, MASK, 1),
        None => argument.to_owned(),
    };
    without_secrets_in_query(&argument)
}

/// `https://host/path?a=1&token=…` with the secret ones hidden.
fn without_secrets_in_query(argument: &str) -> String {
    let Some((address, query)) = argument.split_once('?').filter(|_| argument.contains("://")) else {
        return argument.to_owned();
    };
    let shown = |pair: &str| match pair.split_once('=') {
        Some((name, content)) if is_secret_name(name) || is_secret_value(content) => {
            format!("{name}={}", value(content))
        }
        _ => pair.to_owned(),
    };
    format!("{address}?{}", query.split('&').map(shown).collect::<Vec<_>>().join("&"))
}

/// A secret's value: hidden unless it is nothing but a reference to a variable.
fn value(content: &str) -> String {
    let name = content.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let is_reference = name.is_some_and(|name| !name.contains(['$', '{', '}']) && !name.contains(":-"));
    if is_reference { content.to_owned() } else { MASK.to_owned() }
}

fn is_secret_name(name: &str) -> bool {
    let spaced: String = name
        .chars()
        .flat_map(|c| match c {
            c if c.is_uppercase() => vec![' ', c.to_ascii_lowercase()],
            c if c.is_alphanumeric() => vec![c],
            _ => vec![' '],
        })
        .collect();
    let lower = name.to_lowercase();
    let words = |text: &str| -> bool {
        let mut words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.any(|word| SECRET_WORDS.contains(&word) || ["apikey", "accesstoken", "authtoken"].contains(&word))
    };
    words(&spaced) || words(&lower)
}

fn is_secret_value(content: &str) -> bool {
    let content = content.trim_start();
    // Keys and hashes: whoever needs the hash of something finds it in the file.
    let is_long_hex = content.len() >= 32 && content.chars().all(|c| c.is_ascii_hexdigit());
    let begins_inside = |beginning: &str| {
        content.match_indices(beginning).any(|(at, _)| {
            let is_word = !content[..at].ends_with(|c: char| c.is_alphanumeric());
            is_word && content.len() > at + beginning.len() + 7
        })
    };
    SECRET_BEGINNINGS.iter().any(|beginning| begins_inside(beginning))
        || is_long_hex
        || content.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("bearer "))
}

/// The password in `scheme://user:password@host`.
fn password_of_url(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    (!password.is_empty()).then_some(password)
}

/// Keys whose value is one of a few known words.
const PLAIN_KEYS: [&str; 4] = ["prefix", "era", "type", "transport"];

/// A line of a JSON or TOML file with every quoted value, and every long bare one, hidden character by character, so
/// that a caret below still points at the right place. Quoted keys stay.
pub(crate) fn line(line: &str) -> String {
    let characters: Vec<char> = line.chars().collect();
    let mut out = String::with_capacity(line.len());
    let mut position = 0;
    let mut after_key = false;
    let mut plain_value = false;
    while let Some(&current) = characters.get(position) {
        let run = match current {
            '"' | '\'' => quoted(&characters[position..]),
            c if is_bare(c) => characters[position..].iter().take_while(|c| is_bare(**c)).count(),
            _ => 0,
        };
        if run == 0 {
            after_key |= matches!(current, '=' | ':');
            out.push(current);
            position += 1;
            continue;
        }
        let text: String = characters[position..position + run].iter().collect();
        let next = characters[position + run..].iter().find(|c| !c.is_whitespace());
        let is_key = matches!(next, Some(':' | '='));
        let show = std::mem::replace(&mut plain_value, is_key && PLAIN_KEYS.contains(&text.trim_matches(['"', '\''])));
        match current {
            '"' | '\'' if !is_key && !show => out.push_str(&hide_inside(&text, current)),
            '"' | '\'' => out.push_str(&text),
            _ if after_key && !is_key && run >= SHORTEST_BARE => out.extend(std::iter::repeat_n('•', run)),
            _ => out.push_str(&text),
        }
        position += run;
    }
    out
}

/// Shorter unquoted runs are numbers, `true` and `false`.
const SHORTEST_BARE: usize = 8;

fn is_bare(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '+' | '/' | '$')
}

/// Length of the quoted text that starts here, up to its closing quote or the end of the line.
fn quoted(characters: &[char]) -> usize {
    let quote = characters[0];
    let mut position = 1;
    while let Some(&current) = characters.get(position) {
        position += 1;
        if current == quote {
            return position;
        }
        if current == '\\' {
            position += 1;
        }
    }
    characters.len()
}

fn hide_inside(text: &str, quote: char) -> String {
    let last = text.chars().count() - 1;
    let is_quote = |position: usize, c: char| c == quote && (position == 0 || position == last);
    text.chars().enumerate().map(|(position, c)| if is_quote(position, c) { c } else { '•' }).collect()
}

#[cfg(test)]
mod tests {
    use super::{arguments, line};

    #[test]
    fn arguments_that_may_hold_secrets_are_hidden() {
        let cases: &[(&[&str], &[&str])] = &[
            (&["-y", "some-server", "--port=8080"], &["-y", "some-server", "--port=8080"]),
            (&["--token=hunter2"], &["--token=•••"]),
            (&["--api-key", "hunter2", "x"], &["--api-key", "•••", "x"]),
            (&["--apiKey", "hunter2"], &["--apiKey", "•••"]),
            (&["--api-key", "--verbose"], &["--api-key", "--verbose"]),
            (&["--token", "${GITHUB_TOKEN}"], &["--token", "${GITHUB_TOKEN}"]),
            (&["--token=${T:-hunter2}"], &["--token=•••"]),
            (&["-e", "GITHUB_TOKEN=abc", "-e", "PORT=1"], &["-e", "GITHUB_TOKEN=•••", "-e", "PORT=1"]),
            (&["ghp_0123456789abcdef"], &["•••"]),
            (&["--header", "Authorization: Bearer abc"], &["--header", "Authorization: •••"]),
            (&["--header=X: sk-SECRETTOKEN123"], &["--header=•••"]),
            (&["${A:-sk-SECRETTOKEN123}"], &["•••"]),
            (&["--pat", "SECRETTOKEN"], &["--pat", "•••"]),
            (&["desk-booking-server"], &["desk-booking-server"]),
            (&["postgres://ada:hunter2@db/x"], &["postgres://ada:•••@db/x"]),
            (&["https://x.org/sse?a=1&token=hunter2&b=2"], &["https://x.org/sse?a=1&token=•••&b=2"]),
            (&["{\"apiKey\":\"hunter2\"}"], &["{\"apiKey\": •••"]),
            (&["0123456789abcdef0123456789abcdef"], &["•••"]),
            (&["https://example.com:443/keys"], &["https://example.com:443/keys"]),
            (&["--keyboard", "de", "monkey"], &["--keyboard", "de", "monkey"]),
        ];
        for (given, expected) in cases {
            let given: Vec<String> = given.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(arguments(&given), *expected);
        }
    }

    #[test]
    fn lines_keep_keys_and_width() {
        let cases = [
            (r#"  "TOKEN": "hunter2","#, r#"  "TOKEN": "•••••••","#),
            (r#""args": ["--token", "a\"b"]"#, r#""args": ["•••••••", "••••"]"#),
            ("token = 'hunter2' # note", "token = '•••••••' # note"),
            ("\"open\": \"hunter2", "\"open\": \"•••••••"),
            ("prefix = 'alwys' 'hunter2'", "prefix = 'alwys' '•••••••'"),
            ("timeout_secs = 60", "timeout_secs = 60"),
            ("token = sk_live_12345", "token = •••••••••••••"),
        ];
        for (given, expected) in cases {
            assert_eq!(line(given), expected);
            assert_eq!(given.chars().count(), expected.chars().count());
        }
    }
}
