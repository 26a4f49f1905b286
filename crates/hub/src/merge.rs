//! What the hub says about itself: the sum of what its servers say.

use crate::link::Link;
use bytes::Bytes;
use rialto_mcp::json::{self, Members};
use rialto_mcp::server::Description;
use std::sync::Arc;

/// What a gateway can always do, whatever its servers turn out to offer later.
const GENERAL: &str = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"logging":{},"completions":{}}"#;

/// Members of a handshake's result that are told in another way, or not at all.
const KNOWN: [&str; 8] = [
    "protocolVersion",
    "capabilities",
    "serverInfo",
    "instructions",
    "supportedVersions",
    "resultType",
    "ttlMs",
    "cacheScope",
];

/// Describes the hub in front of `links`, which are in the order of the plan; absent ones are not ready.
pub(crate) fn describe(links: &[Option<Arc<Link>>], info: Bytes) -> Description {
    let ready: Vec<_> = links.iter().flatten().filter_map(|link| Some((link, link.welcome()?))).collect();
    if let ([_], [(_, welcome)]) = (links, ready.as_slice()) {
        let mut more = Vec::new();
        for member in Members::of(&welcome.result).map_while(Result::ok) {
            if !KNOWN.iter().any(|known| member.is(known)) {
                json::push_member(&mut more, member.key, &welcome.result[member.value]);
            }
        }
        let capabilities = welcome.capabilities.to_vec();
        return Description { capabilities, info, instructions: welcome.instructions.clone(), more };
    }
    let mut capabilities = GENERAL.as_bytes().to_vec();
    let mut instructions = String::new();
    for (link, welcome) in ready {
        let mut routed = Vec::new();
        for member in Members::of(&welcome.capabilities).map_while(Result::ok) {
            // What a server can do beyond these is asked for by methods that nothing tells whom they are for.
            if json::get(GENERAL.as_bytes(), &member.name()).is_some() {
                json::push_member(&mut routed, member.key, &welcome.capabilities[member.value]);
            }
        }
        let routed = [b"{".as_slice(), &routed, b"}"].concat();
        capabilities = united(&capabilities, &routed);
        if let Some(text) = &welcome.instructions {
            let name = &link.source.plan.name;
            instructions.push_str(&format!("{}## {name}\n\n{text}", if instructions.is_empty() { "" } else { "\n\n" }));
        }
    }
    let instructions = (!instructions.is_empty()).then_some(instructions);
    Description { capabilities, info, instructions, more: Vec::new() }
}

/// Two objects as one: what both have as objects is united in turn, otherwise the first has its way.
fn united(first: &[u8], second: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for member in Members::of(first).map_while(Result::ok) {
        let value = &first[member.value.clone()];
        let other = std::str::from_utf8(member.key).ok().and_then(|key| json::get(second, key));
        match other {
            Some(other) if value.first() == Some(&b'{') && other.first() == Some(&b'{') => {
                json::push_member(&mut out, member.key, &united(value, other));
            }
            _ => json::push_member(&mut out, member.key, value),
        }
    }
    for member in Members::of(second).map_while(Result::ok) {
        let is_new = std::str::from_utf8(member.key).is_ok_and(|key| json::get(first, key).is_none());
        if is_new {
            json::push_member(&mut out, member.key, &second[member.value]);
        }
    }
    out.insert(0, b'{');
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests {
    use super::united;

    #[test]
    fn capabilities_are_united() {
        let first = br#"{"tools":{"listChanged":true},"logging":{}}"#;
        let second = br#"{"tools":{"x":1.0},"tasks":{"list":{}},"logging":{"levels":["warn"]}}"#;
        assert_eq!(
            String::from_utf8(united(first, second)).unwrap(),
            r#"{"tools":{"listChanged":true,"x":1.0},"logging":{"levels":["warn"]},"tasks":{"list":{}}}"#
        );
    }
}
