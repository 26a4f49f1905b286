//! Short words for the steps that the cases are made of.

use rialto_ledger::job::{Before, Entry, FreeUse, Id, Money, New, Outcome, Quote, Rail, Refusal, Stage, Step};
use rialto_ledger::ledger::Ledger;
use rialto_payment::amount::Msat;
use rialto_payment::secret::{PaymentHash, Preimage, Secret};

pub(crate) fn id(number: u64) -> Id {
    let mut id = [0; 32];
    id[..8].copy_from_slice(&number.to_be_bytes());
    id
}

pub(crate) fn msat(number: u64) -> Msat {
    Msat::new(number).unwrap()
}

pub(crate) fn new(customer: Id) -> Before {
    let request = Some(r#"{"tool":"echo ü \u0000"}"#.to_owned());
    Before::Unknown(Box::new(New { customer, came: 100, origin: r#"{"wire":"dvmcp"}"#.to_owned(), request }))
}

pub(crate) fn begin(job: u64, customer: u64, stage: Stage) -> Step {
    Step { durable: true, ..Step::new(id(job), new(id(customer)), stage, 100) }
}

pub(crate) fn go_on(job: u64, before: Stage, stage: Stage, fence: u64) -> Step {
    Step { fence, durable: true, ..Step::new(id(job), Before::Stage(before), stage, 200) }
}

pub(crate) fn quote(hash: Option<u64>, money: Money) -> Quote {
    Quote {
        tool: "echo".to_owned(),
        price: msat(21_000),
        credit: msat(1_000),
        rail: Rail::Hold,
        money,
        hash: hash.map(|hash| PaymentHash(id(hash))),
        preimage: Some(Preimage::new([9; 32])),
        invoice: Some("lnbc1…".to_owned()),
        token: Some(Secret::new("cashuB…")),
        expires: 1_000,
        paid: msat(20_000),
    }
}

pub(crate) fn free(of: u32) -> Option<FreeUse> {
    Some(FreeUse { tool: "echo".to_owned(), of })
}

pub(crate) fn entry(msat: i64) -> Option<Entry> {
    Some(Entry { msat, why: "test" })
}

pub(crate) fn coin(number: u8) -> [u8; 33] {
    [number; 33]
}

pub(crate) async fn commit(ledger: &dyn Ledger, step: Step) -> Outcome {
    ledger.commit(vec![step]).await.unwrap().remove(0)
}

/// The fence, of a step that must count.
pub(crate) async fn taken(ledger: &dyn Ledger, step: Step) -> u64 {
    match commit(ledger, step).await {
        Outcome::Taken { fence } => fence,
        Outcome::Refused(refusal) => panic!("{refusal}"),
    }
}

pub(crate) async fn refused(ledger: &dyn Ledger, step: Step) -> Refusal {
    match commit(ledger, step).await {
        Outcome::Refused(refusal) => refusal,
        Outcome::Taken { .. } => panic!("it was taken"),
    }
}

/// A job that is paid, run and answered.
pub(crate) async fn done(ledger: &dyn Ledger, job: u64, customer: u64, at: u64, paid: Option<Quote>) {
    let mut step = begin(job, customer, Stage::Funded);
    step.quote = paid;
    let fence = taken(ledger, step).await;
    let fence = taken(ledger, go_on(job, Stage::Funded, Stage::Running, fence)).await;
    let mut last = go_on(job, Stage::Running, Stage::Done, fence);
    last.at = at;
    last.answers = Some(vec![format!("answer {job}"), "status".to_owned()]);
    taken(ledger, last).await;
}
