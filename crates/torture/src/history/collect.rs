//! How a history is put together: from what relays heard, what wallets did, what tools wrote down, and the books.

use rialto_ledger::check::{Report, check};
use rialto_ledger::export::{More, export};
use rialto_ledger::ledger::Ledger;
use rialto_ledger::look::{Look, Source};
use rialto_payment::invoice::Invoice;
use rialto_wallet::testing::TestWallet;

use super::{History, Run, Said, Word};
use crate::crowd::{Crowd, outcome_of};
use crate::market::{CUSTOMER, PROVIDER};
use crate::nostr_side::customer::{FEEDBACK, RESPONSE};
use crate::nostr_side::event::{Event, unhex};
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::runtime;
use crate::nostr_side::world::World;

impl History {
    /// What customers asked for, at a price that is the same for all.
    pub fn asked(&mut self, crowd: &Crowd, price_msat: u64) {
        crowd.look(|stories| {
            for (id, story) in stories {
                let request = super::Request {
                    provider: crowd.provider().to_owned(),
                    payer: CUSTOMER,
                    payee: PROVIDER,
                    effect: story.effect.clone(),
                    price_msat,
                    cap_msat: price_msat,
                    most_runs: 1,
                };
                self.requests.insert(id.clone(), request);
            }
        });
    }

    pub fn heard(&mut self, relays: &[FakeRelay]) {
        for heard in relays.iter().flat_map(FakeRelay::heard).filter(|heard| heard.frame[0] == "EVENT") {
            let event = Event::parse(&heard.frame[1]);
            let request = event.tags("e").first().and_then(|tag| tag.first()).cloned();
            if let (Some(request), Some(word)) = (request, word(&event)) {
                self.said.push(Said { at: heard.at_ms, request, event, word });
            }
        }
        self.said.sort_by_key(|said| said.at);
    }

    pub fn paid(&mut self, bank: &TestWallet) {
        self.wallet = bank.deeds();
    }

    pub fn ran(&mut self, world: &World) {
        self.runs = world.runs().into_iter().map(|(at, effect)| Run { at, effect }).collect();
    }

    /// What the books say, and what is wrong with them.
    pub fn kept(&mut self, source: Source<'_>) -> Report {
        runtime().block_on(async {
            let look = Look::open(source).await.unwrap();
            let mut take = |record| {
                self.ledger.push(record);
                More::Yes
            };
            export(&look, &mut take).await.unwrap();
            check(&look, std::time::UNIX_EPOCH.elapsed().unwrap().as_secs()).await.unwrap()
        })
    }

    /// The answers in the books, which nobody else may have open.
    pub fn answered(&mut self, ledger: &dyn Ledger) {
        for id in self.requests.keys() {
            let bytes = unhex(id).and_then(|bytes| bytes.try_into().ok()).expect("an id");
            let answers = runtime().block_on(ledger.answers(bytes)).unwrap();
            let answers = answers.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
            self.stored.insert(id.clone(), answers);
        }
    }
}

/// What an event of a provider says.
fn word(event: &Event) -> Option<Word> {
    match event.kind {
        RESPONSE => {
            let part = event.tags("part").first().and_then(|part| part.first()?.parse().ok()).unwrap_or(0);
            Some(Word::Answer { part, outcome: outcome_of(event) })
        }
        FEEDBACK if event.has_tag("status", "payment-required") => {
            let invoice: Invoice = event.tags("invoice").first()?.first()?.parse().ok()?;
            Some(Word::Quote { hash: invoice.hash.to_string(), msat: invoice.amount?.get() })
        }
        FEEDBACK if event.has_tag("status", "success") || event.has_tag("status", "error") => Some(Word::Ending),
        FEEDBACK => Some(Word::Progress),
        _ => None,
    }
}
