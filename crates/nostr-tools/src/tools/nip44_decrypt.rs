//! `nostr_nip44_decrypt`: a text that was encrypted for us.

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
        /// The text to decrypt
        ciphertext: String,
    }
}

record! {
    struct Output {
        /// The decrypted text
        plaintext: String,
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
        place: 21,
        name: "nostr_nip44_decrypt",
        title: "Decrypt a text",
        status: Status::Stable,
        nips: &[44],
        summary: "Decrypts a text that another key has encrypted (NIP-44).",
        effect: Effect::ReadsHere,
        example: r#"{"public_key":"npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6","ciphertext":"AgQ…"}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let peer = argument::public_key(&input.public_key, "/public_key")?;
        let signer = turn.session.signer_named(input.private_key.as_deref(), "/private_key").await?;
        let plaintext = signer.decrypt(&peer, &input.ciphertext).await.map_err(|failure| failure.at("/ciphertext"))?;
        Ok(Output { plaintext, version: 2, peer_public_key_hex: peer.to_hex(), peer_public_key_npub: npub(&peer) })
    }
}
