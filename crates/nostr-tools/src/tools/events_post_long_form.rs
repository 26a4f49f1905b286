//! `nostr_events_post_long_form`: an article.

use crate::argument;
use crate::compose::{self, Tags, publication, tag, text};
use crate::failure::Failure;
use crate::network::PATIENCE;
use crate::publish::Route;
use crate::result::SendResult;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Event, Filter, Kind, PublicKey, RelayUrl};

/// Longer identifiers are unwieldy in addresses.
const MOST_LETTERS: usize = 64;

publication! {
    struct Input {
        /// Markdown
        content: String,
        /// Title
        title: Option<String>,
        /// Its lasting name (default: from the title); the same name replaces
        identifier: Option<String>,
        /// Summary
        summary: Option<String>,
        /// Picture URL
        image: Option<String>,
        /// First published, in Unix seconds (default: as before, or now)
        published_at: Option<u64>,
        /// Topics
        hashtags: Option<Vec<String>>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 60,
        name: "nostr_events_post_long_form",
        title: "Publish an article",
        status: Status::Stable,
        nips: &[23],
        summary: "Publishes an article (kind 30023). One with the same identifier is replaced.",
        effect: Effect::Replaces,
        example: r##"{"title":"On relays","content":"# Relays\n\nThey carry events.","hashtags":["nostr"]}"##,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        compose::filled(&input.content, "/content")?;
        let topics = compose::topics(input.hashtags.as_deref().unwrap_or_default(), "/hashtags")?;
        let author = turn.session.keyring.signer().await?.public_key();
        let (identifier, earlier) = input.identifier(author, turn).await?;
        let first = |event: &Event| event.tags.iter().find(|tag| tag.kind() == "published_at").cloned();
        let published_at = match (input.published_at, earlier.as_ref().and_then(first)) {
            (None, Some(tag)) => tag,
            (given, _) => tag("published_at", [&given.unwrap_or(turn.session.clock.now().as_secs()).to_string()]),
        };
        let mut tags = Tags::default();
        tags.add(tag("d", [&identifier]));
        let texts = [("title", &input.title), ("image", &input.image), ("summary", &input.summary)];
        tags.add_all(texts.into_iter().filter_map(|(name, value)| Some(tag(name, [value.as_deref()?]))));
        tags.add(published_at);
        tags.add_all(topics);
        text::mention(&mut tags, &input.content);
        let wishes = input.wishes();
        turn.publish(Kind::LongFormTextNote, tags.into_vec(), input.content, wishes).await
    }
}

impl Input {
    /// The identifier, and the version that will be replaced. Two articles of one title must not replace each other by
    /// accident, so an identifier that we made up has to be new.
    async fn identifier(&self, author: PublicKey, turn: &Turn<'_>) -> Result<(String, Option<Event>), Failure> {
        let places = argument::relays(self.to_relays.as_deref().unwrap_or_default(), "/to_relays")?;
        if let Some(given) = &self.identifier {
            let given = compose::filled(given, "/identifier")?.to_owned();
            let earlier = earlier(&given, author, &places, turn).await?;
            return Ok((given, earlier));
        }
        let made = self.title.as_deref().map(slug).filter(|slug| !slug.is_empty());
        let Some(made) = made else { return Ok((random()?, None)) };
        if earlier(&made, author, &places, turn).await?.is_some() {
            let words = format!("there is an article `{made}` already; give `{made}` as identifier to replace it");
            return Err(Failure::invalid(format!("{words}, or another to keep both")).at("/identifier"));
        }
        Ok((made, None))
    }
}

/// The article of this name. If nobody answers, it is unknown what would be replaced, and nothing is.
async fn earlier(
    identifier: &str,
    author: PublicKey,
    places: &[RelayUrl],
    turn: &Turn<'_>,
) -> Result<Option<Event>, Failure> {
    let filter = Filter::new().kind(Kind::LongFormTextNote).author(author).identifier(identifier);
    let found = turn.fetch(&[filter], Route::Also(places), PATIENCE).await?.into_iter().next();
    if let Some(version) = &found {
        turn.session.network.versions.saw(version);
    }
    Ok(found)
}

/// A title as a name: `On Relays!` becomes `on-relays`.
fn slug(title: &str) -> String {
    let lower = title.to_lowercase();
    let words = lower.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let slug = words.collect::<Vec<_>>().join("-");
    slug.chars().take(MOST_LETTERS).collect::<String>().trim_end_matches('-').to_owned()
}

fn random() -> Result<String, Failure> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| Failure::internal(format!("no randomness: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::slug;

    #[test]
    fn titles_become_names() {
        let cases = [("On Relays!", "on-relays"), (" Grüße, 世界 ", "grüße-世界"), ("…", ""), (&"a b ".repeat(99), "")];
        for (title, expected) in &cases[..3] {
            assert_eq!(slug(title), *expected);
        }
        assert!(slug(cases[3].0).len() <= 64 && !slug(cases[3].0).ends_with('-'));
    }
}
