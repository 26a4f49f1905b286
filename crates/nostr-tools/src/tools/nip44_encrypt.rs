//! `nostr_nip44_encrypt`: a text that only one other can read.

use crate::argument;
use crate::failure::Failure;
use crate::result::npub;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};

record! {
    secret struct Input {
        /// label:NAME (default the active key); if allowed nsec1… or hex
        private_key: Option<String>,
        /// The other's public key
        public_key: String,
        /// The text to encrypt
        plaintext: String,
        /// There is only 2
        version: Option<u8>,
    }
}

record! {
    struct Output {
        /// The encrypted text
        ciphertext: String,
        /// The version of NIP-44
        version: u8,
        /// The other's public key in hex
        peer_public_key_hex: String,
        /// The other's public key as npub
        peer_public_key_npub: String,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 20,
        name: "nostr_nip44_encrypt",
        title: "Encrypt a text",
        status: Status::Stable,
        nips: &[44],
        summary: "Encrypts a text for one other key (NIP-44). Publishes nothing.",
        effect: Effect::ReadsHere,
        example: r#"{"public_key":"npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6","plaintext":"see you at eight"}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        if input.version.is_some_and(|version| version != 2) {
            return Err(Failure::invalid("version 2 is the only one of NIP-44").at("/version"));
        }
        let peer = argument::public_key(&input.public_key, "/public_key")?;
        let signer = turn.session.signer_named(input.private_key.as_deref(), "/private_key").await?;
        let ciphertext = signer.encrypt(&peer, &input.plaintext).await.map_err(|failure| failure.at("/plaintext"))?;
        Ok(Output { ciphertext, version: 2, peer_public_key_hex: peer.to_hex(), peer_public_key_npub: npub(&peer) })
    }
}
