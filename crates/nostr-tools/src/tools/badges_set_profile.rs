//! `nostr_badges_set_profile`: the badges that are shown with a profile.
//!
//! The list had kind 30008 and the name `profile_badges` before it got a kind of its own, 10008. What others put into it
//! beside badges, such as sets of them, stays.

use crate::argument;
use crate::compose::address::address_of;
use crate::compose::{hint, tag};
use crate::failure::Failure;
use crate::network::{PATIENCE, Route};
use crate::publish::Wishes;
use crate::replace::{Draft, Target};
use crate::result::SendResult;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::nips::nip01::Coordinate;
use nostr::prelude::{Event, EventId, Filter, Kind, PublicKey, Tag};

const SHOWN: u16 = 10_008;
const SHOWN_BEFORE: u16 = 30_008;
const NAME_BEFORE: &str = "profile_badges";

record! {
    struct Display {
        /// 30009:pubkey:d or naddr1
        badge: String,
        /// Id of the award
        award_event_id: String,
        /// A relay that has it
        badge_relay: Option<String>,
        /// A relay that has it
        award_relay: Option<String>,
    }
}

record! {
    struct Input {
        /// All to show, in order
        badges: Vec<Display>,
        /// Content (default: as it is)
        content: Option<String>,
        /// Even if what is shown now is unknown
        force: Option<bool>,
        /// Bits of work (NIP-13)
        pow: Option<u8>,
        /// Publish there as well
        to_relays: Option<Vec<String>>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 26,
        name: "nostr_badges_set_profile",
        title: "Show badges",
        status: Status::Stable,
        nips: &[58],
        summary: "Publishes which badges the profile of the active key shows (kind 10008).",
        effect: Effect::Replaces,
        example: r#"{"badges":[{"badge":"30009:79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798:bravery","award_event_id":"d7dd5eb3ab747e16f8d0212d53032ea2a7cadef53837e5a6c66d42849fcb9027"}]}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        let pairs = input.badges.iter().enumerate();
        let pairs: Vec<Pair> = pairs.map(|(index, badge)| Pair::of(badge, index)).collect::<Result<_, _>>()?;
        let owner = turn.session.keyring.signer().await?.public_key();
        check(&pairs, owner, turn).await?;
        let old = before(owner, turn).await;
        let wishes = Wishes { pow: input.pow, to_relays: input.to_relays };
        let target = Target { wishes, ..Target::kind(Kind::from_u16(SHOWN), input.force) };
        let edit = |base: Option<&Event>| {
            let base = Draft::of(base.or(old.as_ref()));
            let others = base.tags.iter().filter(|tag| !is_badge(tag)).cloned();
            let shown = pairs.iter().flat_map(|pair| pair.tags(&base.tags));
            Ok(Draft { tags: others.chain(shown).collect(), content: input.content.clone().unwrap_or(base.content) })
        };
        let replaced = turn.replace(target, edit).await?;
        replaced.sent.result(&replaced.event)
    }
}

/// A badge and its award.
struct Pair {
    badge: Coordinate,
    award: EventId,
    badge_relay: String,
    award_relay: String,
}

impl Pair {
    fn of(display: &Display, index: usize) -> Result<Self, Failure> {
        let at = |member: &str| format!("/badges/{index}/{member}");
        let relay = |text: &Option<String>, member: &str| {
            text.as_deref().map(|text| argument::relay(text, &at(member))).transpose()
        };
        let found = address_of(Kind::BadgeDefinition, "a badge", &display.badge, &at("badge"))?;
        let badge_relay = relay(&display.badge_relay, "badge_relay")?;
        Ok(Self {
            award: argument::event_id(&display.award_event_id, &at("award_event_id"))?,
            badge_relay: hint(badge_relay.as_ref().or(found.relays.first())).to_owned(),
            award_relay: hint(relay(&display.award_relay, "award_relay")?.as_ref()).to_owned(),
            badge: found.coordinate,
        })
    }

    /// `a` and `e`, with the relays that were known before.
    fn tags(&self, known: &[Tag]) -> [Tag; 2] {
        let tag = |name: &str, value: &str, relay: &str| {
            let before = known.iter().find(|tag| tag.kind() == name && tag.content() == Some(value));
            let before = before.and_then(|tag| tag.as_slice().get(2)).map_or("", String::as_str);
            tag(name, [value, if relay.is_empty() { before } else { relay }])
        };
        [tag("a", &self.badge.to_string(), &self.badge_relay), tag("e", &self.award.to_hex(), &self.award_relay)]
    }
}

/// Whether a tag is part of what this tool sets; also the name that the list had.
fn is_badge(tag: &Tag) -> bool {
    let is_of = |kind: Kind| tag.content().is_some_and(|text| text.starts_with(&format!("{kind}:")));
    match tag.kind() {
        "a" => is_of(Kind::BadgeDefinition),
        "e" => true,
        "d" => tag.content() == Some(NAME_BEFORE),
        _ => false,
    }
}

/// An award that can be found must be for this badge and this profile: others would not show it.
async fn check(pairs: &[Pair], owner: PublicKey, turn: &Turn<'_>) -> Result<(), Failure> {
    if pairs.is_empty() {
        return Ok(());
    }
    let filter = Filter::new().ids(pairs.iter().map(|pair| pair.award));
    let found = turn.fetch(&[filter], Route::Usual, PATIENCE).await.unwrap_or_default();
    for (index, pair) in pairs.iter().enumerate() {
        let Some(award) = found.iter().find(|event| event.id == pair.award) else { continue };
        let badge = pair.badge.to_string();
        let is_for_badge = award.tags.iter().any(|tag| tag.kind() == "a" && tag.content() == Some(&badge));
        let is_award = award.kind == Kind::BadgeAward && award.pubkey == pair.badge.public_key;
        if !is_award || !is_for_badge || !award.tags.public_keys().any(|key| key == owner) {
            let words = "this event does not award the badge to the active key";
            return Err(Failure::invalid(words).at(format!("/badges/{index}/award_event_id")));
        }
    }
    Ok(())
}

/// The list under its former kind.
async fn before(owner: PublicKey, turn: &Turn<'_>) -> Option<Event> {
    let filter = Filter::new().kind(Kind::from_u16(SHOWN_BEFORE)).author(owner).identifier(NAME_BEFORE);
    turn.fetch(&[filter], Route::Usual, PATIENCE).await.ok()?.into_iter().next()
}
