//! `nostr_events_post_reply`: an answer to an event of any kind.

use crate::argument;
use crate::compose::target::{Claim, Target};
use crate::compose::{self, comment, note, publication};
use crate::failure::Failure;
use crate::publish::Wishes;
use crate::result::SendResult;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Kind, PublicKey};

publication! {
    struct Input {
        /// The text
        content: String,
        /// Event to answer: id, nevent1 or naddr1
        reply_to_id: String,
        /// Its author
        reply_to_pubkey: String,
        /// Its kind
        reply_to_kind: u16,
        /// Beginning of the thread (default: looked up)
        root_event_id: Option<String>,
        /// Its author
        root_event_pubkey: Option<String>,
        /// Its kind
        root_event_kind: Option<u16>,
        /// Others to tell
        mentioned_pubkeys: Option<Vec<String>>,
        /// A relay that has them
        relay_hint: Option<String>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 36,
        name: "nostr_events_post_reply",
        title: "Answer an event",
        status: Status::Stable,
        nips: &[10, 22],
        summary: "Publishes an answer: a note (kind 1) to a note, a comment (kind 1111) to anything else.",
        effect: Effect::Publishes,
        example: r#"{"content":"I agree","reply_to_id":"d7dd5eb3ab747e16f8d0212d53032ea2a7cadef53837e5a6c66d42849fcb9027","reply_to_pubkey":"79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798","reply_to_kind":1}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        compose::filled(&input.content, "/content")?;
        let mentioned = input.mentioned_pubkeys.as_deref().unwrap_or_default();
        let mentioned = argument::public_keys(mentioned, "/mentioned_pubkeys")?;
        let wishes = input.wishes();
        let claim = Claim {
            event: ("/reply_to_id", &input.reply_to_id),
            author: ("/reply_to_pubkey", Some(&input.reply_to_pubkey)),
            kind: ("/reply_to_kind", Some(input.reply_to_kind)),
            relay: ("/relay_hint", input.relay_hint.as_deref()),
        };
        let parent = claim.find(turn, &wishes).await?;
        let root = input.root(turn, &wishes).await?;
        let (kind, tags) = if input.reply_to_kind == Kind::TextNote.as_u16() {
            if let Some(kind) = root.as_ref().and_then(|root| root.kind).filter(|kind| *kind != Kind::TextNote) {
                let words = format!("a thread of notes begins with a note, not with kind {kind}");
                return Err(Failure::invalid(words).at("/root_event_kind"));
            }
            (Kind::TextNote, note::reply(&parent, root, &mentioned, &input.content))
        } else {
            (Kind::Comment, comment_tags(&parent, root.as_ref(), &mentioned, &input.content)?)
        };
        turn.publish(kind, tags.into_vec(), input.content, wishes).await
    }
}

impl Input {
    /// The beginning of the thread, if it is given.
    async fn root(&self, turn: &Turn<'_>, wishes: &Wishes) -> Result<Option<Target>, Failure> {
        let Some(root) = self.root_event_id.as_deref() else { return Ok(None) };
        let claim = Claim {
            event: ("/root_event_id", root),
            author: ("/root_event_pubkey", self.root_event_pubkey.as_deref()),
            kind: ("/root_event_kind", self.root_event_kind),
            relay: ("/relay_hint", self.relay_hint.as_deref()),
        };
        claim.find(turn, wishes).await.map(Some)
    }
}

fn comment_tags(
    parent: &Target,
    root: Option<&Target>,
    mentioned: &[PublicKey],
    content: &str,
) -> Result<compose::Tags, Failure> {
    let author = "/root_event_pubkey";
    let about = match root {
        Some(root) if root.kind.is_none() => {
            let words = "no relay that was asked has the beginning of the thread; say of which kind it is";
            return Err(Failure::not_found(words).at("/root_event_kind"));
        }
        Some(root) => comment::about(root, author)?,
        None if parent.kind != Some(Kind::Comment) => comment::about(parent, author)?,
        None => parent.event.as_ref().and_then(comment::inherited).ok_or_else(|| {
            let words = "no relay that was asked has the comment; say what it is about with root_event_id, \
                         root_event_pubkey and root_event_kind";
            Failure::not_found(words).at("/reply_to_id")
        })?,
    };
    comment::comment(about, parent, author, mentioned, content)
}
