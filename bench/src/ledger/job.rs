//! One paid job, from the request to the answer: the five steps of a real one, each on the disk before the next.

use rialto_ledger::{
    job::{Before, Id, Money, New, Outcome, Quote, Rail, Stage, Step},
    ledger::Ledger,
};
use rialto_payment::{
    amount::Msat,
    secret::{PaymentHash, Preimage},
};
use tokio::sync::Semaphore;

/// Requests have the hashes of their content as ids; these are as evenly spread.
pub fn id(number: u64, salt: u64) -> Id {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt.wrapping_mul(0xd1b5_4a32_d192_ed03);
    let mut id = [0; 32];
    for chunk in id.chunks_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        chunk.copy_from_slice(&(mixed ^ (mixed >> 31)).to_be_bytes());
    }
    id
}

fn quote(number: u64, money: Money, invoice: Option<String>) -> Quote {
    let price = Msat::new(21_000).unwrap_or_default();
    Quote {
        tool: "forecast".to_owned(),
        price,
        credit: Msat::ZERO,
        rail: Rail::Hold,
        money,
        hash: Some(PaymentHash(id(number, 2))),
        preimage: Some(Preimage::new(id(number, 3))),
        invoice,
        token: None,
        expires: 1_800_000_600,
        paid: if money == Money::Open { Msat::ZERO } else { price },
    }
}

fn steps(number: u64) -> [Step; 5] {
    let job = id(number, 1);
    let at = 1_800_000_000 + number % 100_000;
    let step = |before: Stage, stage: Stage| Step { fence: 1, ..Step::new(job, Before::Stage(before), stage, at) };
    let request = Some(format!("{{\"name\":\"forecast\",\"arguments\":{{\"city\":\"{}\"}}}}", "x".repeat(150)));
    let origin = format!("{{\"wire\":\"dvmcp\",\"relay\":\"wss://relay.example\",\"id\":\"{number}\"}}");
    let new = New { customer: id(number % 1000, 4), came: at, origin, request };
    let invoice = Some(format!("lnbc210n1{}", "q".repeat(300)));
    let mut all = [
        Step::new(job, Before::Unknown(Box::new(new)), Stage::Asking, at),
        step(Stage::Asking, Stage::Quoted),
        step(Stage::Quoted, Stage::Funded),
        step(Stage::Funded, Stage::Running),
        step(Stage::Running, Stage::Done),
    ];
    all[0].quote = Some(quote(number, Money::Open, None));
    all[1].quote = Some(quote(number, Money::Open, invoice.clone()));
    all[2].quote = Some(quote(number, Money::Ours, invoice.clone()));
    all[4].quote = Some(quote(number, Money::Taken, invoice));
    all[4].answers = Some(vec!["a".repeat(1000), "b".repeat(1000)]);
    all.iter_mut().for_each(|step| step.durable = true);
    all
}

/// What a provider notes of a call that costs nothing: that it runs, and its answers. Nothing of it is waited for.
pub fn free_steps(number: u64) -> [Step; 2] {
    let job = id(number, 5);
    let origin = format!("{{\"wire\":\"dvmcp\",\"relay\":\"wss://relay.example\",\"id\":\"{number}\"}}");
    let new = New { customer: id(number % 64, 4), came: 1_800_000_000, origin, request: None };
    let begun = Step::new(job, Before::Unknown(Box::new(new)), Stage::Running, 1_800_000_000);
    let mut done = Step::new(job, Before::Stage(Stage::Running), Stage::Done, 1_800_000_000);
    done.fence = 1;
    done.answers = Some(vec!["a".repeat(700), "b".repeat(700)]);
    [begun, done]
}

/// A step is given when the one before is on the disk, and a permit is free.
pub async fn run(ledger: &dyn Ledger, number: u64, permits: &Semaphore) -> Result<(), String> {
    for step in steps(number) {
        let _permit = permits.acquire().await.map_err(|error| error.to_string())?;
        let outcomes = ledger.commit(vec![step]).await.map_err(|error| error.to_string())?;
        if !matches!(outcomes.as_slice(), [Outcome::Taken { .. }]) {
            return Err(format!("job {number}: {outcomes:?}"));
        }
    }
    Ok(())
}
