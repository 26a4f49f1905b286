//! What happens to calls: who lies, and about what.

use nostr::key::Keys;
use rialto_payment::secret::Preimage;
use rialto_wallet::testing::sign_open_invoice;

use super::market::{Market, PRICE, PROVIDER, STRANGER};
use crate::nostr_side::event::Draft;
use crate::nostr_side::fake_provider::{Asked, FakeProvider, text_result};
use crate::nostr_side::fake_relay::FakeRelay;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Attack {
    /// None: five satoshis are asked for, and the result is given for them.
    None,
    /// The same demand again and again.
    Repeated,
    /// Once it is paid, another demand, and another.
    SecondDemand,
    /// Strangers ask for money; the provider does not.
    ForgedDemands,
    /// A stranger asks for money before the provider does.
    StrangerFirst,
    /// A stranger gives a result before the provider does.
    ForeignResult,
    /// One satoshi, it says; in the invoice is a million.
    Inflated,
    /// A satoshi more than was announced.
    AbovePrice,
    NoAmount,
    Expired,
    /// The invoice of another call that was paid.
    UsedInvoice,
    /// What was asked in private is demanded in public.
    Exposed,
    Nonsense,
}

impl Attack {
    pub(super) const ALL: [Attack; 13] = [
        Attack::None,
        Attack::Repeated,
        Attack::SecondDemand,
        Attack::ForgedDemands,
        Attack::StrangerFirst,
        Attack::ForeignResult,
        Attack::Inflated,
        Attack::AbovePrice,
        Attack::NoAmount,
        Attack::Expired,
        Attack::UsedInvoice,
        Attack::Exposed,
        Attack::Nonsense,
    ];

    pub(super) fn of(number: usize) -> Self {
        Self::ALL[number % Self::ALL.len()]
    }

    /// Whether the provider gives a result without being paid.
    pub(super) fn is_free(self) -> bool {
        matches!(self, Attack::ForgedDemands | Attack::ForeignResult | Attack::Exposed)
    }

    /// Whether an honest price is asked for.
    pub(super) fn may_be_paid(self) -> bool {
        matches!(self, Attack::None | Attack::Repeated | Attack::SecondDemand | Attack::StrangerFirst)
    }
}

pub(super) fn demand(provider: &FakeProvider, asked: &Asked, amount: u64, invoice: &str) -> Draft {
    let demand = provider.feedback(asked, &["payment-required", "pay me"]);
    demand.tag(&["amount", &amount.to_string(), invoice]).tag(&["invoice", invoice])
}

/// Plays what happens to one call.
pub(super) fn play(market: &Market, provider: &FakeProvider, relay: &FakeRelay, asked: &Asked) {
    let body = asked.event.body();
    let number: usize = body["parameters"]["text"].as_str().unwrap().parse().unwrap();
    let attack = Attack::of(number);
    let stranger = Keys::generate();
    let good = format!("result {number}");
    let ask = |sat: u64, invoice: &str| provider.send(asked, &demand(provider, asked, sat, invoice));
    let forge = |sat: u64| {
        let invoice = market.invoice(number, STRANGER, sat);
        provider.send_as(&stranger, asked, &demand(provider, asked, sat, &invoice));
    };
    match attack {
        // The first invoice turns up again.
        Attack::None if number == 0 => {
            market.note(number, market.used.clone());
            ask(PRICE, &market.used.text);
        }
        Attack::None => ask(PRICE, &market.invoice(number, PROVIDER, PRICE)),
        Attack::Repeated => {
            let invoice = market.invoice(number, PROVIDER, PRICE);
            (0..5).for_each(|_| ask(PRICE, &invoice));
            ask(PRICE, &invoice.to_uppercase());
        }
        Attack::SecondDemand => ask(PRICE, &market.invoice(number, PROVIDER, PRICE)),
        Attack::ForgedDemands => (0..3).for_each(|_| forge(PRICE)),
        Attack::StrangerFirst => {
            forge(PRICE);
            ask(PRICE, &market.invoice(number, PROVIDER, PRICE));
        }
        Attack::ForeignResult => {
            provider.send_as(&stranger, asked, &provider.response(asked, &text_result("stolen")));
        }
        Attack::Inflated => ask(1, &market.invoice(number, PROVIDER, 1_000_000)),
        Attack::AbovePrice => ask(PRICE, &market.invoice(number, PROVIDER, PRICE + 1)),
        Attack::NoAmount => {
            let hash = Preimage::generate().unwrap().hash();
            ask(PRICE, &sign_open_invoice("as you like", 600, hash).unwrap());
        }
        Attack::Expired => ask(PRICE, &market.expired.text),
        Attack::UsedInvoice => ask(PRICE, &market.used.text),
        Attack::Exposed => {
            let invoice = market.invoice(number, PROVIDER, PRICE);
            relay.publish(&demand(provider, asked, PRICE, &invoice).sign(&provider.keys));
        }
        Attack::Nonsense => ask(PRICE, "lnbcrt50n1nonsense"),
    }
    if attack.is_free() {
        provider.say(asked, &good);
    } else if attack.may_be_paid() && market.is_paid_soon(number) {
        if attack == Attack::SecondDemand {
            (0..2).for_each(|_| ask(PRICE, &market.invoice(number, PROVIDER, PRICE)));
        }
        provider.say(asked, &good);
    }
}
