//! `nostr_events_post_comment`: a comment on anything but a note.

use crate::compose::target::Claim;
use crate::compose::{comment, filled, publication};
use crate::failure::Failure;
use crate::result::SendResult;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::Kind;

publication! {
    struct Input {
        /// The text
        content: String,
        /// What it is about: id, nevent1 or naddr1
        root_event_id: String,
        /// Its author
        root_event_pubkey: String,
        /// Its kind
        root_event_kind: u16,
        /// Comment to answer
        parent_event_id: Option<String>,
        /// Its author
        parent_event_pubkey: Option<String>,
        /// Its kind (default 1111)
        parent_event_kind: Option<u16>,
        /// A relay that has them
        relay_hint: Option<String>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 37,
        name: "nostr_events_post_comment",
        title: "Comment on an event",
        status: Status::Stable,
        nips: &[22],
        summary: "Publishes a comment (kind 1111) on any event but a note, or an answer to one.",
        effect: Effect::Publishes,
        example: r#"{"content":"Well put","root_event_id":"d7dd5eb3ab747e16f8d0212d53032ea2a7cadef53837e5a6c66d42849fcb9027","root_event_pubkey":"79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798","root_event_kind":11}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        filled(&input.content, "/content")?;
        refuse(input.root_event_kind, "/root_event_kind", &[Kind::TextNote, Kind::Comment])?;
        if let Some(kind) = input.parent_event_kind {
            refuse(kind, "/parent_event_kind", &[Kind::TextNote])?;
        }
        let wishes = input.wishes();
        let relay = ("/relay_hint", input.relay_hint.as_deref());
        let root = Claim {
            event: ("/root_event_id", &input.root_event_id),
            author: ("/root_event_pubkey", Some(&input.root_event_pubkey)),
            kind: ("/root_event_kind", Some(input.root_event_kind)),
            relay,
        };
        let root = root.find(turn, &wishes).await?;
        let parent = match &input.parent_event_id {
            Some(id) => {
                let parent = Claim {
                    event: ("/parent_event_id", id),
                    author: ("/parent_event_pubkey", input.parent_event_pubkey.as_deref()),
                    kind: ("/parent_event_kind", input.parent_event_kind),
                    relay,
                };
                parent.find(turn, &wishes).await?
            }
            None => root.clone(),
        };
        let about = comment::about(&root, "/root_event_pubkey")?;
        let tags = comment::comment(about, &parent, "/parent_event_pubkey", &[], &input.content)?;
        turn.publish(Kind::Comment, tags.into_vec(), input.content, wishes).await
    }
}

/// Notes are answered with notes, and a discussion is never about a comment.
fn refuse(kind: u16, pointer: &str, kinds: &[Kind]) -> Result<(), Failure> {
    match Kind::from_u16(kind) {
        kind if !kinds.contains(&kind) => Ok(()),
        Kind::TextNote => Err(Failure::invalid("a note is answered with nostr_events_post_reply").at(pointer)),
        _ => Err(Failure::invalid("give what the comment is about as root, and the comment as parent").at(pointer)),
    }
}
