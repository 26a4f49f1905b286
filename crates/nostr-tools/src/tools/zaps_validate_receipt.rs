//! `nostr_zaps_validate_receipt`: whether a zap was paid.

use crate::argument;
use crate::failure::Failure;
use crate::network::{Route, patience};
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use crate::zap::{self, Verdict, Zap};
use nostr::prelude::{Event, Filter};

record! {
    struct Input {
        /// The receipt: its id (note1…, nevent1… or hex), or the whole event as JSON
        receipt: String,
        /// Seconds to wait
        timeout_secs: Option<u64>,
    }
}

record! {
    struct Output {
        /// Whether it passed every check
        valid: bool,
        /// The zap, with what is wrong with it
        zap: Zap,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 68,
        name: "nostr_zaps_validate_receipt",
        title: "Validate a zap receipt",
        status: Status::Experimental,
        nips: &[57],
        summary: "Checks a zap receipt: the signer against the recipient's Lightning server, the amount and the description hash in the invoice.",
        effect: Effect::ReadsThere,
        example: r#"{"receipt":"0000000000000000000000000000000000000000000000000000000000000001"}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let patience = patience(input.timeout_secs);
        let text = input.receipt.trim();
        let receipt = if text.starts_with('{') {
            let event: Event = serde_json::from_str(text)
                .map_err(|error| Failure::invalid(format!("not an event: {error}")).at("/receipt"))?;
            event.verify().map_err(|_| Failure::invalid("its id or signature is wrong").at("/receipt"))?;
            event
        } else {
            let filter = Filter::new().id(argument::event_id(text, "/receipt")?);
            let found = turn.fetch(&[filter], Route::Also(&argument::hints(text)), patience).await?;
            let missing = || Failure::not_found("no relay that was asked has this receipt").at("/receipt");
            found.into_iter().next().ok_or_else(missing)?
        };
        let recipient = zap::recipient(&receipt);
        let trusted = turn.trusted(recipient.into_iter().collect(), patience).await;
        let trusted = recipient.and_then(|recipient| trusted.get(&recipient));
        let zap = zap::examine(&receipt, trusted, None);
        Ok(Output { valid: zap.verdict == Verdict::Valid, zap })
    }
}
