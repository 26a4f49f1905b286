//! `nostr_zaps_prepare_anonymous`: an invoice for a zap that nobody can trace to us.

use crate::argument;
use crate::failure::Failure;
use crate::lightning::lnurl;
use crate::lightning::{Invoice, sha256};
use crate::network::{Progress, Route, add, patience};
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use crate::zap::{Share, shares};
use nostr::nips::nip19::{FromBech32, Nip19};
use nostr::prelude::{Event, Filter, Keys, Kind, PublicKey, RelayUrl, Tag, UnsignedEvent};
use rialto_relay::sign::sign;
use std::collections::BTreeSet;
use std::time::Duration;

record! {
    struct Input {
        /// Whom or what to zap: NIP-19, or a public key in hex
        target: String,
        /// Satoshis in all
        amount_sats: u64,
        /// A word to the recipient
        comment: Option<String>,
        /// Where the receipt goes (default where the recipient reads)
        relays: Option<Vec<String>>,
        /// Seconds to wait
        timeout_secs: Option<u64>,
    }
}

record! {
    struct Part {
        /// What to pay (BOLT 11)
        invoice: String,
        /// How much it is, in satoshis
        amount_sats: u64,
        /// Who gets it, in hex
        recipient: String,
        /// The server that made the invoice
        host: String,
        /// The zap request, signed by a throw-away key (JSON)
        zap_request: String,
        /// The invoice is good until then (seconds since 1970)
        expires_at: u64,
    }
}

record! {
    struct Output {
        /// What to pay (BOLT 11)
        invoice: String,
        /// How much it is, in satoshis
        amount_sats: u64,
        /// Who gets it, in hex
        recipient: String,
        /// The server that made the invoice
        host: String,
        /// The zap request, signed by a throw-away key (JSON)
        zap_request: String,
        /// The invoice is good until then (seconds since 1970)
        expires_at: u64,
        /// What else to pay, where the event divides zaps between several people
        more: Option<Vec<Part>>,
    }
}

/// More than there will ever be.
const MAX_SATS: u64 = 2_100_000_000_000_000;
const MAX_COMMENT: usize = 1_000;
const MAX_RELAYS: usize = 6;

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 67,
        name: "nostr_zaps_prepare_anonymous",
        title: "Prepare an anonymous zap",
        status: Status::Experimental,
        nips: &[57],
        summary: "Gets an invoice for a zap by a throw-away key; several if the event divides zaps. Whoever pays makes the zap.",
        effect: Effect::Publishes,
        example: r#"{"target":"npub10xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqpkge6d","amount_sats":21}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        if input.amount_sats == 0 || input.amount_sats > MAX_SATS {
            return Err(Failure::invalid("`amount_sats` must be at least 1").at("/amount_sats"));
        }
        let comment = input.comment.unwrap_or_default();
        if comment.len() > MAX_COMMENT {
            return Err(Failure::invalid(format!("`comment` is longer than {MAX_COMMENT} bytes")).at("/comment"));
        }
        let chosen = argument::relays(input.relays.as_deref().unwrap_or_default(), "/relays")?;
        turn.session.guard.admit_event(Kind::ZapRequest, &chosen)?;
        let patience = patience(input.timeout_secs);
        let aim = aim(turn, &input.target, input.amount_sats, patience).await?;
        let order = Order { turn, about: aim.about, comment, chosen, patience };
        let mut prepared = Vec::new();
        // All or nothing: whoever pays should not have to find out who was forgotten.
        for share in &aim.shares {
            turn.progress(&format!("asking for an invoice over {} satoshis", share.sats)).await;
            prepared.push(order.prepare(share).await?);
        }
        let mut prepared = prepared.into_iter();
        let first = prepared.next().ok_or_else(|| Failure::internal("there is nobody to pay"))?;
        let more: Vec<Part> = prepared.collect();
        Ok(Output {
            invoice: first.invoice,
            amount_sats: first.amount_sats,
            recipient: first.recipient,
            host: first.host,
            zap_request: first.zap_request,
            expires_at: first.expires_at,
            more: Some(more).filter(|more| !more.is_empty()),
        })
    }
}

/// What all invoices of one zap have in common.
struct Order<'a> {
    turn: &'a Turn<'a>,
    /// The tags that say what is zapped.
    about: Vec<Tag>,
    comment: String,
    chosen: Vec<RelayUrl>,
    patience: Duration,
}

impl Order<'_> {
    async fn prepare(&self, share: &Share) -> Result<Part, Failure> {
        let turn = self.turn;
        let service = turn.service_of(share.who, share.hint.as_ref(), self.patience).await;
        let service = service.map_err(|failure| failure.with("recipient", share.who.to_hex()))?;
        let host = service.url.host_str().unwrap_or_default().to_owned();
        if service.signer.is_none() {
            return Err(Failure::not_found(format!("{host} takes no zaps, only plain payments")));
        }
        let amount = share.sats * 1000;
        if amount < service.least || amount > service.most {
            let words = format!("{host} takes {} to {} satoshis", service.least.div_ceil(1000), service.most / 1000);
            return Err(Failure::invalid(words).at("/amount_sats"));
        }
        let relays = if self.chosen.is_empty() { inbox(turn, &share.who).await? } else { self.chosen.clone() };
        let names = relays.iter().map(RelayUrl::as_str_without_trailing_slash);
        let mut tags = vec![Tag::public_key(share.who)];
        tags.extend(self.about.iter().cloned());
        tags.push(Tag::custom("relays", names));
        tags.push(Tag::custom("amount", [amount.to_string()]));
        tags.push(Tag::custom("lnurl", [lnurl::code(&service.url)]));
        tags.push(Tag::custom("anon", Vec::<String>::new()));
        // Each with a key of its own: nothing shows that they belong together.
        let keys = Keys::generate();
        let now = turn.session.clock.now();
        let draft = UnsignedEvent::new(keys.public_key(), now, Kind::ZapRequest, tags, self.comment.clone());
        let request = sign(&keys, draft);
        let request = serde_json::to_string(&request).map_err(|error| Failure::internal(error.to_string()))?;
        let text = service.invoice(amount, &request, &turn.session.network.reach).await?;
        let unreadable = || Failure::internal(format!("the invoice of {host} cannot be read"));
        let invoice = Invoice::parse(&text).ok_or_else(unreadable)?;
        // Nobody should pay for something else.
        if invoice.amount != Some(amount) {
            return Err(Failure::internal(format!("{host} made an invoice over another amount")));
        }
        if invoice.description_hash != Some(sha256(request.as_bytes())) {
            return Err(Failure::internal(format!("{host} made an invoice that is not for this zap")));
        }
        Ok(Part {
            invoice: text,
            amount_sats: share.sats,
            recipient: share.who.to_hex(),
            host,
            zap_request: request,
            expires_at: invoice.timestamp.saturating_add(invoice.expiry),
        })
    }
}

/// Who is meant, and what.
struct Aim {
    shares: Vec<Share>,
    about: Vec<Tag>,
}

/// Finds out who is meant, and the tags that say what.
async fn aim(turn: &Turn<'_>, target: &str, sats: u64, patience: Duration) -> Result<Aim, Failure> {
    let bare = argument::bare(target);
    let hints = argument::hints(target);
    let filter = match Nip19::from_bech32(bare) {
        Ok(Nip19::EventId(id)) => Filter::new().id(id),
        Ok(Nip19::Event(event)) => Filter::new().id(event.event_id),
        Ok(Nip19::Coordinate(address)) => {
            let coordinate = &address.coordinate;
            Filter::new().author(coordinate.public_key).kind(coordinate.kind).identifier(&coordinate.identifier)
        }
        _ => {
            let words = "`target` is npub1…, nprofile1…, note1…, nevent1…, naddr1… or a public key in hex";
            let who = argument::public_key(bare, "/target").map_err(|_| Failure::invalid(words).at("/target"))?;
            let share = Share { who, hint: hints.first().cloned(), sats };
            return Ok(Aim { shares: vec![share], about: Vec::new() });
        }
    };
    let found = turn.fetch(&[filter.limit(1)], Route::Also(&hints), patience).await?;
    let missing = || Failure::not_found("no relay that was asked has this event").at("/target");
    let event: &Event = found.first().ok_or_else(missing)?;
    let mut about = vec![Tag::event(event.id)];
    if event.kind.is_addressable() {
        let identifier = event.tags.identifier().unwrap_or_default();
        about.push(Tag::custom("a", [format!("{}:{}:{identifier}", event.kind.as_u16(), event.pubkey.to_hex())]));
    }
    about.push(Tag::custom("k", [event.kind.as_u16().to_string()]));
    Ok(Aim { shares: shares(event, sats)?, about })
}

/// Where the recipient looks. Our own relays only if nothing else is known: they could tell who zapped.
async fn inbox(turn: &Turn<'_>, recipient: &PublicKey) -> Result<Vec<RelayUrl>, Failure> {
    let network = &turn.session.network;
    let lists = network.lists_of(&BTreeSet::from([*recipient]), &Progress::of(turn)).await;
    let mut relays = Vec::new();
    add(&mut relays, lists.get(recipient).into_iter().flat_map(|list| &list.read), MAX_RELAYS);
    if relays.is_empty() {
        add(&mut relays, &network.read_relays()?, MAX_RELAYS);
    }
    Ok(relays)
}
