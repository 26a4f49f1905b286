//! Public names: `server__tool`, in the alphabet and length that every model provider takes.

use std::fmt::Write as _;

/// The longest name that is safe everywhere, although the protocol allows twice as much.
pub const MAX_LENGTH: usize = 64;

/// Between the server's and the tool's part. Never part of the server's.
pub const SEPARATOR: &str = "__";

/// The public name of `tool` of `server`. The same pair always gets the same name.
pub fn public(server: &str, tool: &str) -> String {
    let original = server;
    let mut server = sanitised(server);
    while server.contains(SEPARATOR) {
        server = server.replace(SEPARATOR, "_");
    }
    server = server.trim_matches('_').to_owned();
    if server.is_empty() {
        // Nothing of the name can be kept, but two servers must stay apart.
        server = format!("server-{:08x}", hash(original.bytes()) as u32);
    }
    let name = format!("{server}{SEPARATOR}{}", sanitised(tool));
    if name.len() <= MAX_LENGTH { name } else { marked(&name, server.as_str(), tool) }
}

/// `name`, cut if need be, with a mark made from the two parts; used where plain names are too long or equal.
pub fn marked(name: &str, server: &str, tool: &str) -> String {
    const MARK: usize = 9;
    let kept = name.len().min(MAX_LENGTH - MARK);
    let mut out = name[..kept].to_owned();
    let mark = hash(server.bytes().chain([0]).chain(tool.bytes()));
    let _ = write!(out, "_{:08x}", (mark ^ (mark >> 32)) as u32);
    out
}

fn sanitised(part: &str) -> String {
    part.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
}

/// FNV-1a: the same on every machine and in every version, which `std`'s hashers do not promise.
fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Whether `name` fits `pattern`, in which `*` stands for any run of characters.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(middle) = last.replace(part) {
            let Some((_, after)) = rest.split_once(middle) else { return false };
            rest = after;
        }
    }
    last.map_or(rest.is_empty(), |tail| rest.ends_with(tail))
}

#[cfg(test)]
mod tests {
    use super::{MAX_LENGTH, marked, matches, public};

    #[test]
    fn names() {
        for (server, tool, expected) in [
            ("files", "read", "files__read"),
            ("my server", "do.it:now", "my_server__do_it_now"),
            ("a__b", "c__d", "a_b__c__d"),
            ("_x_", "y", "x__y"),
            ("ünï", "é", "n___"),
        ] {
            assert_eq!(public(server, tool), expected);
        }
    }

    #[test]
    fn long_names_are_cut_stably_and_stay_apart() {
        let long = "tool".repeat(30);
        let one = public("server", &format!("{long}1"));
        let two = public("server", &format!("{long}2"));
        assert_eq!(one.len(), MAX_LENGTH);
        assert_ne!(one, two);
        assert_eq!(one, public("server", &format!("{long}1")));
        // Fixed for ever: people write these names into their settings.
        assert_eq!(marked("a__b", "a", "b"), "a__b_e1f4ffab");
    }

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("read", "read", true),
            ("read", "reader", false),
            ("read*", "reader", true),
            ("*er", "reader", true),
            ("r*d*r", "reader", true),
            ("r*x*r", "reader", false),
            ("*", "", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
