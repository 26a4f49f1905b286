//! Steps as the database's function `step` reads them.

use super::schema::hex;
use crate::job::{Before, Outcome, Quote, Refusal, Stage, Step};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Given<'a> {
    id: String,
    stage: u8,
    at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<New<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<u8>,
    fence: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    quote: Option<Offer<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    coins: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    credit: Option<Entry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    free: Option<Free<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<&'a [String]>,
}

#[derive(Serialize)]
struct New<'a> {
    customer: String,
    came: i64,
    origin: &'a str,
    request: Option<&'a str>,
}

#[derive(Serialize)]
struct Offer<'a> {
    tool: &'a str,
    price: i64,
    credit: i64,
    rail: u8,
    money: u8,
    hash: Option<String>,
    preimage: Option<String>,
    invoice: Option<&'a str>,
    token: Option<&'a str>,
    expires: i64,
    paid: i64,
}

#[derive(Serialize)]
struct Entry<'a> {
    msat: i64,
    why: &'a str,
}

#[derive(Serialize)]
struct Free<'a> {
    tool: &'a str,
    of: u32,
}

/// Large numbers cannot be; the database's are signed.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn given(step: &Step) -> Given<'_> {
    let (new, before) = match &step.before {
        Before::Stage(stage) => (None, Some(stage.number())),
        Before::Unknown(new) => {
            let new = New {
                customer: hex(&new.customer),
                came: signed(new.came),
                origin: &new.origin,
                request: new.request.as_deref(),
            };
            (Some(new), None)
        }
    };
    Given {
        id: hex(&step.id),
        stage: step.stage.number(),
        at: signed(step.at),
        new,
        before,
        fence: signed(step.fence),
        quote: step.quote.as_ref().map(offer),
        coins: step.coins.iter().map(|coin| hex(coin)).collect(),
        credit: step.credit.as_ref().map(|entry| Entry { msat: entry.msat, why: entry.why }),
        free: step.free_use.as_ref().map(|free| Free { tool: &free.tool, of: free.of }),
        answers: step.answers.as_deref(),
    }
}

fn offer(quote: &Quote) -> Offer<'_> {
    Offer {
        tool: &quote.tool,
        price: signed(quote.price.get()),
        credit: signed(quote.credit.get()),
        rail: quote.rail.number(),
        money: quote.money.number(),
        hash: quote.hash.map(|hash| hex(&hash.0)),
        preimage: quote.preimage.as_ref().map(|preimage| hex(preimage.reveal())),
        invoice: quote.invoice.as_deref(),
        token: quote.token.as_ref().map(|token| token.reveal()),
        expires: signed(quote.expires),
        paid: signed(quote.paid.get()),
    }
}

/// Whether the database can keep its texts. PostgreSQL has no character U+0000.
pub(super) fn can_be_kept(step: &Step) -> bool {
    let is_text = |text: &str| !text.contains('\0');
    let new = match &step.before {
        Before::Unknown(new) => is_text(&new.origin) && new.request.as_deref().is_none_or(is_text),
        Before::Stage(_) => true,
    };
    let quote = step.quote.as_ref().is_none_or(|quote| {
        is_text(&quote.tool)
            && quote.invoice.as_deref().is_none_or(is_text)
            && quote.token.as_ref().is_none_or(|token| is_text(token.reveal()))
    });
    new && quote
        && step.free_use.as_ref().is_none_or(|free| is_text(&free.tool))
        && step.answers.iter().flatten().all(|answer| is_text(answer))
}

/// What a number of `step` means; see there.
pub(super) fn outcome(number: i64) -> Option<Outcome> {
    let refusal = match number {
        1.. => return Some(Outcome::Taken { fence: number.unsigned_abs() }),
        -1 => Refusal::Moved,
        -2 => Refusal::HashUsed,
        -3 => Refusal::CoinUsed,
        -4 => Refusal::NoCredit,
        -5 => Refusal::NoneFree,
        _ => Refusal::Known(Stage::from_number(-10 - number)?),
    };
    Some(Outcome::Refused(refusal))
}
