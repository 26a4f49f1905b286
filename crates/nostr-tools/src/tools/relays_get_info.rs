//! `nostr_relays_get_info`: what a relay says about itself.

use crate::argument;
use crate::failure::Failure;
use crate::network::patience;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use rialto_relay::information;
use serde_json::Value;

record! {
    struct Input {
        /// Its address (wss://…)
        relay_url: String,
        /// Seconds to wait
        timeout_secs: Option<u64>,
    }
}

record! {
    struct Output {
        /// Its address
        relay_url: String,
        /// Where the document is
        http_url: String,
        /// The HTTP status
        status: u16,
        /// The document, as the relay wrote it
        document: Value,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 17,
        name: "nostr_relays_get_info",
        title: "Ask a relay about itself",
        status: Status::Stable,
        nips: &[11],
        summary: "Fetches the information document of a relay: name, limits, supported NIPs.",
        effect: Effect::ReadsThere,
        example: r#"{"relay_url":"wss://relay.example.com"}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        // Some write the address of the document.
        let text = input.relay_url.trim();
        let text = match text.split_once("://") {
            Some(("https", rest)) => format!("wss://{rest}"),
            Some(("http", rest)) => format!("ws://{rest}"),
            _ => text.to_owned(),
        };
        let relay = argument::relay(&text, "/relay_url")?;
        let url = information::address(&relay).map_err(|error| Failure::invalid(error.to_string()).at("/relay_url"))?;
        let asked = tokio::time::timeout(patience(input.timeout_secs), turn.session.network.information(&relay)).await;
        let (status, document) = asked.map_err(|_| Failure::timeout(format!("{relay} does not answer")))??;
        let relay_url = relay.as_str_without_trailing_slash().to_owned();
        Ok(Output { relay_url, http_url: url.to_string(), status, document })
    }
}
