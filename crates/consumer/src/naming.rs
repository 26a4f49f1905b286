//! Local names for the tools of several services, in the alphabet and length that every model provider takes. Two services
//! never share one: the alias in front is ours to give, not theirs to take.

use crate::canonical;
use nostr::prelude::PublicKey;

/// The longest name that is safe everywhere.
const MAX_LENGTH: usize = 64;

/// The longest alias, so that room is left for the tool.
const MAX_ALIAS: usize = 24;

/// Between alias and tool. Never part of an alias.
const SEPARATOR: &str = "__";

/// A short word made from a service's name.
pub(crate) fn slug(name: &str) -> String {
    let mut out = String::new();
    for character in name.chars() {
        let character = character.to_ascii_lowercase();
        if character.is_ascii_alphanumeric() {
            out.push(character);
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
        if out.len() == MAX_ALIAS {
            break;
        }
    }
    let out = out.trim_matches('-');
    if out.is_empty() { "service".to_owned() } else { out.to_owned() }
}

/// An alias for each service. Where names are alike, part of the key tells them apart: 64 bits, too many to imitate.
pub(crate) fn aliases(services: &[(PublicKey, String)]) -> Vec<String> {
    let slugs: Vec<String> = services.iter().map(|(_, name)| slug(name)).collect();
    let alias = |(index, slug): (usize, &String)| {
        let is_shared = slugs.iter().enumerate().any(|(other, text)| other != index && text == slug);
        let key = services[index].0.to_hex();
        if is_shared { format!("{slug}-{}", &key[..16]) } else { slug.clone() }
    };
    slugs.iter().enumerate().map(alias).collect()
}

/// `alias__tool`, cut and marked if it is too long.
pub(crate) fn prefixed(alias: &str, tool: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let tool_part: String = tool.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    let name = format!("{alias}{SEPARATOR}{tool_part}");
    if name.len() <= MAX_LENGTH { name } else { marked(&name, tool) }
}

/// The name with a mark made from what it stands for.
pub(crate) fn marked(name: &str, tool: &str) -> String {
    let mark = &canonical::sha256(format!("{name}\0{tool}").as_bytes())[..8];
    let mut end = name.len().min(MAX_LENGTH - 9);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}_{mark}", &name[..end])
}

#[cfg(test)]
mod tests {
    use super::{aliases, marked, prefixed};
    use nostr::prelude::Keys;

    #[test]
    fn names_alike_are_told_apart_by_key() {
        let keys: Vec<_> = (0..4).map(|_| Keys::generate().public_key()).collect();
        let names = ["My Weather!", "my  weather", "Zeit", "漢字"];
        let services: Vec<_> = keys.iter().copied().zip(names.map(ToOwned::to_owned)).collect();
        let found = aliases(&services);
        assert_eq!(found[0], format!("my-weather-{}", &keys[0].to_hex()[..16]));
        assert_eq!(found[1], format!("my-weather-{}", &keys[1].to_hex()[..16]));
        assert_eq!(found[2..], ["zeit", "service"]);
    }

    #[test]
    fn long_and_odd_names_fit() {
        assert_eq!(prefixed("weather", "get.rain"), "weather__get_rain");
        let long = prefixed("weather", &"x".repeat(100));
        assert!(long.len() <= 64 && long.starts_with("weather__xxx"), "{long}");
        assert_ne!(long, prefixed("weather", &"x".repeat(101)));
        assert!(marked(&"ä".repeat(60), "t").len() <= 64);
    }
}
