//! The wallet's book: every invoice and every payment, and how far each has come.
//!
//! It does nothing and reads no clock. Two things come to pass without anybody saying so, an invoice's expiry and a held
//! payment's deadline; they follow from the [`Moment`] that whoever asks brings along.

use ldk_node::bitcoin::hex::DisplayHex;
use ldk_node::lightning_types::payment::{PaymentHash, PaymentPreimage};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;

/// When a question is asked: seconds since 1970, and the height of the chain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) now: u64,
    pub(crate) height: u32,
}

/// What proves a payment; until then whoever has it can take the money.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Preimage(pub(crate) PaymentPreimage);

impl Preimage {
    pub(crate) fn reveal(self) -> String {
        self.0.0.to_lower_hex_string()
    }
}

impl fmt::Debug for Preimage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Preimage(…)")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    Incoming,
    Outgoing,
}

/// Who decides when an incoming payment is taken: the node at once, or the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    AtOnce,
    Held,
}

/// How far something has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Pending,
    /// The money is here and waits. From `deadline` on, a height, it is sent back.
    Accepted {
        deadline: Option<u32>,
    },
    /// The node has been told to take the money, and cannot be told otherwise any more.
    Claiming {
        deadline: Option<u32>,
        preimage: Preimage,
    },
    Settled {
        at: u64,
        preimage: Option<Preimage>,
    },
    Failed,
}

/// How far something has come, as clients are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Pending,
    Accepted,
    Settled,
    Expired,
    Failed,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) hash: PaymentHash,
    pub(crate) direction: Direction,
    pub(crate) claim: Claim,
    pub(crate) invoice: String,
    pub(crate) description: Option<String>,
    pub(crate) description_hash: Option<String>,
    /// 0 as long as it is up to the payer.
    pub(crate) amount_msat: u64,
    pub(crate) fees_msat: u64,
    pub(crate) created_at: u64,
    pub(crate) expires_at: u64,
    pub(crate) stage: Stage,
}

impl Entry {
    pub(crate) fn state(&self, moment: Moment) -> State {
        match self.stage {
            // What was sent is on its way, whatever the date.
            Stage::Pending if self.direction == Direction::Incoming && moment.now > self.expires_at => State::Expired,
            Stage::Pending => State::Pending,
            Stage::Accepted { deadline: Some(deadline) } if moment.height >= deadline => State::Failed,
            Stage::Accepted { .. } | Stage::Claiming { .. } => State::Accepted,
            Stage::Settled { .. } => State::Settled,
            Stage::Failed => State::Failed,
        }
    }

    /// The entry as NIP-47 calls it a transaction.
    pub(crate) fn report(&self, moment: Moment) -> Value {
        let mut report = json!({
            "type": self.direction,
            "state": self.state(moment),
            "invoice": self.invoice,
            "payment_hash": self.hash.0.to_lower_hex_string(),
            "amount": self.amount_msat,
            "fees_paid": self.fees_msat,
            "created_at": self.created_at,
            "expires_at": self.expires_at,
        });
        if let Some(description) = &self.description {
            report["description"] = json!(description);
        }
        if let Some(hash) = &self.description_hash {
            report["description_hash"] = json!(hash);
        }
        match self.stage {
            Stage::Settled { at, preimage } => {
                report["settled_at"] = json!(at);
                if let Some(preimage) = preimage {
                    report["preimage"] = json!(preimage.reveal());
                }
            }
            Stage::Accepted { deadline: Some(deadline) } | Stage::Claiming { deadline: Some(deadline), .. } => {
                report["settle_deadline"] = json!(deadline);
            }
            _ => {}
        }
        report
    }
}

/// Entries in the order of their making.
#[derive(Debug, Default)]
pub(crate) struct Book {
    entries: Vec<Entry>,
    places: HashMap<PaymentHash, usize>,
}

impl Book {
    /// Writes an entry; one with the same hash is replaced, as when a payment that failed is tried again.
    pub(crate) fn write(&mut self, entry: Entry) {
        match self.places.get(&entry.hash) {
            Some(place) => self.entries[*place] = entry,
            None => {
                self.places.insert(entry.hash, self.entries.len());
                self.entries.push(entry);
            }
        }
    }

    pub(crate) fn find(&self, hash: &PaymentHash) -> Option<&Entry> {
        self.places.get(hash).map(|place| &self.entries[*place])
    }

    pub(crate) fn find_mut(&mut self, hash: &PaymentHash) -> Option<&mut Entry> {
        self.places.get(hash).map(|place| &mut self.entries[*place])
    }

    /// All entries, the youngest first.
    pub(crate) fn youngest_first(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().rev()
    }
}

#[cfg(test)]
mod tests {
    use super::{Book, Claim, Direction, Entry, Moment, Preimage, Stage, State};
    use ldk_node::lightning_types::payment::{PaymentHash, PaymentPreimage};

    fn entry(stage: Stage, direction: Direction) -> Entry {
        Entry {
            hash: PaymentHash([1; 32]),
            direction,
            claim: Claim::Held,
            invoice: "lnbcrt1".to_owned(),
            description: None,
            description_hash: None,
            amount_msat: 1,
            fees_msat: 0,
            created_at: 100,
            expires_at: 200,
            stage,
        }
    }

    #[test]
    fn what_passes_with_time_passes_for_whoever_looks() {
        let early = Moment { now: 200, height: 9 };
        let late = Moment { now: 201, height: 10 };
        let settled = Stage::Settled { at: 150, preimage: None };
        let accepted = Stage::Accepted { deadline: Some(10) };
        let claiming = Stage::Claiming { deadline: Some(10), preimage: Preimage(PaymentPreimage([0; 32])) };
        for (stage, direction, at_first, later) in [
            (Stage::Pending, Direction::Incoming, State::Pending, State::Expired),
            (Stage::Pending, Direction::Outgoing, State::Pending, State::Pending),
            (accepted, Direction::Incoming, State::Accepted, State::Failed),
            (claiming, Direction::Incoming, State::Accepted, State::Accepted),
            (settled, Direction::Incoming, State::Settled, State::Settled),
            (Stage::Failed, Direction::Incoming, State::Failed, State::Failed),
        ] {
            let entry = entry(stage, direction);
            assert_eq!((entry.state(early), entry.state(late)), (at_first, later), "{stage:?} {direction:?}");
        }
    }

    #[test]
    fn the_preimage_is_told_once_settled_and_never_printed() {
        let preimage = Preimage(PaymentPreimage([0xab; 32]));
        let entry = entry(Stage::Settled { at: 150, preimage: Some(preimage) }, Direction::Incoming);
        assert_eq!(entry.report(Moment { now: 1, height: 1 })["preimage"], "ab".repeat(32));
        assert!(!format!("{entry:?}").contains("abab") && !format!("{entry:?}").contains("171"));
    }

    #[test]
    fn a_second_try_takes_the_place_of_the_first() {
        let mut book = Book::default();
        book.write(entry(Stage::Failed, Direction::Outgoing));
        book.write(entry(Stage::Pending, Direction::Outgoing));
        assert_eq!(book.youngest_first().count(), 1);
        assert_eq!(book.find(&PaymentHash([1; 32])).unwrap().stage, Stage::Pending);
    }
}
