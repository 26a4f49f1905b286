//! `nostr_events_parse_emojis`: custom emojis in a text.

use crate::failure::Failure;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};

/// Kinds in which NIP-30 knows custom emojis.
const KINDS: [u16; 4] = [0, 1, 7, 30315];

record! {
    struct Input {
        /// The text
        content: String,
        /// Its kind: not all show emojis
        kind: Option<u16>,
        /// The tags of the event
        tags: Option<Vec<Vec<String>>>,
    }
}

record! {
    struct EmojiTag {
        /// The name, without colons
        shortcode: String,
        /// Whether the tag is well-formed
        valid: bool,
        /// The picture
        url: Option<String>,
        /// What is wrong with it
        error: Option<String>,
    }
}

record! {
    struct EmojiMention {
        /// As it stands in the text
        raw: String,
        /// The name, without colons
        shortcode: String,
        /// Whether there is a tag for it
        valid: bool,
        /// The picture
        url: Option<String>,
        /// What is wrong with it
        error: Option<String>,
    }
}

record! {
    struct Output {
        /// The emoji tags
        tags: Vec<EmojiTag>,
        /// The emojis in the text, in their order
        mentions: Vec<EmojiMention>,
        /// The kind that was given
        kind: Option<u16>,
        /// Whether emojis are shown in events of this kind
        kind_supported: Option<bool>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 27,
        name: "nostr_events_parse_emojis",
        title: "Find custom emojis",
        status: Status::Stable,
        nips: &[30],
        summary: "Matches :shortcodes: in a text with emoji tags.",
        effect: Effect::Calculates,
        example: r#"{"content":"hi :wave:","tags":[["emoji","wave","https://example.com/wave.png"]]}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, _turn: &Turn<'_>) -> Result<Output, Failure> {
        let tags: Vec<EmojiTag> = input.tags.iter().flatten().filter_map(|tag| emoji(tag)).collect();
        let mentions = mentions(&input.content, &tags);
        let kind_supported = input.kind.map(|kind| KINDS.contains(&kind));
        Ok(Output { tags, mentions, kind: input.kind, kind_supported })
    }
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn emoji(tag: &[String]) -> Option<EmojiTag> {
    let (name, rest) = tag.split_first()?;
    if name != "emoji" {
        return None;
    }
    let shortcode = rest.first().cloned().unwrap_or_default();
    let url = rest.get(1).cloned();
    let is_address = |url: &String| url.starts_with("https://") || url.starts_with("http://");
    let error = if shortcode.is_empty() || !shortcode.bytes().all(is_letter) {
        Some("a shortcode has only letters, digits, hyphens and underscores")
    } else if !url.as_ref().is_some_and(is_address) {
        Some("the picture needs an http or https address")
    } else {
        None
    };
    Some(EmojiTag { shortcode, valid: error.is_none(), url, error: error.map(ToOwned::to_owned) })
}

/// What stands between two colons. A colon that begins nothing is passed over alone, so that it takes no partner away from
/// what follows; one inside a word or a time (10:30:15) begins something only if there is a tag for it.
fn mentions(text: &str, tags: &[EmojiTag]) -> Vec<EmojiMention> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut place = 0;
    while let Some(start) = bytes[place..].iter().position(|byte| *byte == b':').map(|offset| place + offset) {
        let length = bytes[start + 1..].iter().take_while(|byte| is_letter(**byte)).count();
        let end = start + 1 + length;
        place = start + 1;
        if length == 0 || bytes.get(end) != Some(&b':') {
            continue;
        }
        let shortcode = &text[start + 1..end];
        let tag = tags.iter().find(|tag| tag.shortcode == shortcode && tag.valid);
        let is_within = start > 0 && bytes[start - 1].is_ascii_alphanumeric();
        if tag.is_none() && is_within {
            continue;
        }
        place = end + 1;
        found.push(EmojiMention {
            raw: text[start..=end].to_owned(),
            shortcode: shortcode.to_owned(),
            valid: tag.is_some(),
            url: tag.and_then(|tag| tag.url.clone()),
            error: tag.is_none().then(|| "no valid emoji tag has this shortcode".to_owned()),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{emoji, mentions};

    #[test]
    fn a_colon_alone_takes_no_partner_away() {
        let tag = |name: &str| emoji(&["emoji".to_owned(), name.to_owned(), "https://e.example/x.png".to_owned()]);
        let tags: Vec<_> = ["wave", "a", "b"].iter().filter_map(|name| tag(name)).collect();
        let cases = [
            ("Time: see :wave: ok", vec![(":wave:", true)]),
            (":a::b:", vec![(":a:", true), (":b:", true)]),
            (":a:b:", vec![(":a:", true)]),
            ("at 10:30:15 :none:", vec![(":none:", false)]),
            ("x:wave:y", vec![(":wave:", true)]),
            ("é:wave:é", vec![(":wave:", true)]),
            (":: : :a", vec![]),
        ];
        for (text, expected) in cases {
            let found: Vec<_> = mentions(text, &tags).into_iter().map(|one| (one.raw, one.valid)).collect();
            let found: Vec<(&str, bool)> = found.iter().map(|(raw, valid)| (raw.as_str(), *valid)).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn tags_are_checked() {
        let tag = |parts: &[&str]| emoji(&parts.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert!(tag(&["t", "x"]).is_none());
        assert!(tag(&["emoji", "soap-box_1", "https://e.example/x.png"]).unwrap().valid);
        assert!(!tag(&["emoji", "two words", "https://e.example/x.png"]).unwrap().valid);
        assert!(!tag(&["emoji", "x", "javascript:alert(1)"]).unwrap().valid);
        assert!(!tag(&["emoji"]).unwrap().valid);
    }
}
