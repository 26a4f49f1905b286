//! Looking at a ledger that is in use: nothing is found in one that is sound, everything in one that was meddled with, and
//! nothing secret leaves it.

use crate::place::Place;
use crate::steps::{begin, coin, done, entry, go_on, id, quote, taken};
use rialto_ledger::check::check;
use rialto_ledger::export::{CSV_HEADER, More, Record, export};
use rialto_ledger::job::{Money, Stage};
use rialto_ledger::ledger::Ledger;
use rialto_ledger::look::{Look, Source};
use rialto_payment::secret::Secret;

async fn look(place: &Place) -> Look {
    let address;
    let source = match place {
        Place::Sqlite(directory) => Source::Sqlite(directory.path()),
        Place::Postgres { address: text, key } => {
            address = Secret::new(text.as_str());
            Source::Postgres { address: &address, key }
        }
    };
    Look::open(source).await.unwrap()
}

async fn findings(place: &Place, now: u64) -> Vec<&'static str> {
    let report = check(&look(place).await, now).await.unwrap();
    report.findings.iter().map(|finding| finding.kind).collect()
}

async fn fill(ledger: &dyn Ledger) {
    done(ledger, 1, 1, 300, Some(quote(Some(1), Money::Taken))).await;
    let mut step = begin(2, 1, Stage::Quoted);
    step.quote = Some(quote(Some(2), Money::Open));
    step.coins = vec![coin(1)];
    taken(ledger, step).await;
    let mut step = begin(3, 1, Stage::Done);
    step.credit = entry(70);
    step.answers = Some(vec!["answer".to_owned()]);
    taken(ledger, step).await;
    let mut step = begin(4, 1, Stage::Running);
    step.quote = Some(quote(Some(4), Money::Held));
    step.credit = entry(-20);
    let fence = taken(ledger, step).await;
    let mut step = go_on(4, Stage::Running, Stage::Settling, fence);
    step.quote = Some(quote(Some(4), Money::Returning));
    step.credit = entry(20);
    step.answers = Some(vec!["sorry".to_owned()]);
    taken(ledger, step).await;
}

pub(crate) async fn a_sound_ledger_has_no_findings_and_a_broken_one_does(place: &Place) {
    let ledger = place.open().await;
    fill(&*ledger).await;
    // While it is in use, and at a time when nothing in it is old.
    assert_eq!(check(&look(place).await, 400).await.unwrap().jobs, 4);
    assert_eq!(findings(place, 400).await, Vec::<&str>::new());
    assert_eq!(findings(place, 400_000).await, ["stale", "stale"]);
    let undone = "UPDATE credit SET balance = balance + 5 WHERE number = (SELECT max(number) FROM credit)";
    let first = "id = (SELECT job FROM quote WHERE money = 6)";
    for (sql, expected) in [
        (undone.to_owned(), vec!["balance"]),
        ("UPDATE credit SET balance = balance - 5 WHERE number = (SELECT max(number) FROM credit)".to_owned(), vec![]),
        (format!("UPDATE job SET stage = 5 WHERE {first}"), vec!["money"]),
        (format!("UPDATE job SET stage = 7 WHERE {first}"), vec![]),
        ("UPDATE quote SET paid = 1 WHERE money = 6".to_owned(), vec!["underpaid"]),
        ("UPDATE quote SET paid = 20000 WHERE money = 6".to_owned(), vec![]),
        ("UPDATE quote SET money = 4, preimage = NULL WHERE money = 5".to_owned(), vec!["preimage"]),
        ("UPDATE quote SET money = 5 WHERE money = 4".to_owned(), vec![]),
        (format!("DELETE FROM answer WHERE job = (SELECT id FROM job WHERE {first})"), vec!["unanswered"]),
    ] {
        place.meddle(&sql, &sql).await;
        assert_eq!(findings(place, 400).await, expected, "{sql}");
    }
    drop(ledger);
    if !place.is_shared() {
        place.meddle("PRAGMA foreign_keys = OFF; DELETE FROM job WHERE stage = 2", "").await;
        let mut found = findings(place, 400).await;
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, ["foreign_key", "orphan", "unanswered"]);
    }
}

pub(crate) async fn what_is_exported_holds_no_secret(place: &Place) {
    let ledger = place.open().await;
    fill(&*ledger).await;
    let mut records: Vec<Record> = Vec::new();
    export(&look(place).await, |record| {
        records.push(record);
        More::Yes
    })
    .await
    .unwrap();
    assert_eq!(records.iter().map(|record| record.stage).collect::<Vec<_>>(), ["Done", "Quoted", "Done", "Settling"]);
    assert_eq!(records[3].credits.iter().map(|credit| credit.msat).collect::<Vec<_>>(), [-20, 20]);
    assert_eq!(records[2].quote, None);
    let first = records[0].quote.as_ref().unwrap();
    assert_eq!((first.price_msat, first.paid_msat, first.money, first.rail), (21_000, 20_000, "Taken", "Hold"));
    let hex: String = id(1).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((first.payment_hash.as_ref(), &records[0].id), (Some(&hex), &hex));
    let columns = CSV_HEADER.split(',').count();
    let mut all = String::new();
    for record in &records {
        assert_eq!(record.csv().split(',').count(), columns, "{}", record.csv());
        all += &format!("{}\n{}\n", record.csv(), serde_json::to_string(record).unwrap());
    }
    // The preimage, the token, the invoice, a request and an answer.
    for secret in ["09090909", "cashu", "lnbc", "tool\":\"echo ü", "answer 1"] {
        assert!(!all.contains(secret), "`{secret}` in {all}");
    }
    let mut one = 0;
    export(&look(place).await, |_| {
        one += 1;
        More::No
    })
    .await
    .unwrap();
    assert_eq!(one, 1);
}
