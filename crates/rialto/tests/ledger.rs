//! `rialto ledger` on a ledger that another process, this one, has open.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod support;

use rialto_ledger::job::{Before, Entry, Money, New, Quote, Rail, Stage, Step};
use rialto_ledger::ledger::Ledger;
use rialto_ledger::sqlite::{Sqlite, file};
use rialto_payment::amount::Msat;
use rialto_payment::secret::{PaymentHash, Preimage, Secret};
use support::World;

const KEY: &str = "3bf0c63fcb93463407af97a5e5ee64fa883d107ef9e558472c4eb9aaaefa459d";

fn job() -> Step {
    let new = New { customer: [2; 32], came: 100, origin: "private origin".to_owned(), request: None };
    let mut step = Step::new([1; 32], Before::Unknown(Box::new(new)), Stage::Done, 200);
    step.quote = Some(Quote {
        tool: "=echo, \"twice\"".to_owned(),
        price: Msat::new(21_000).unwrap(),
        credit: Msat::ZERO,
        rail: Rail::Hold,
        money: Money::Taken,
        hash: Some(PaymentHash([3; 32])),
        preimage: Some(Preimage::new([0xab; 32])),
        invoice: Some("lnbc1secret".to_owned()),
        token: Some(Secret::new("cashuBsecret")),
        expires: 300,
        paid: Msat::new(21_000).unwrap(),
    });
    step.credit = Some(Entry { msat: 7, why: "a gift" });
    step.answers = Some(vec!["private answer".to_owned()]);
    step
}

#[tokio::test]
async fn a_ledger_in_use_is_checked_and_exported() {
    let world = World::new();
    let directory = world.home().join(".local/share/rialto/jobs").join(KEY);
    let ledger = Sqlite::open(&directory).unwrap();
    ledger.commit(vec![job()]).await.unwrap();

    let run = world.run(&["ledger", "check", "--key", KEY]);
    assert_eq!((run.exit, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    assert_eq!(run.stderr, "1 jobs, and everything adds up\n");

    let hex = |byte: &str| byte.repeat(32);
    let run = world.run(&["ledger", "export", "--key", KEY]);
    let (id, customer, hash) = (hex("01"), hex("02"), hex("03"));
    let expected = format!(
        r#"{{"id":"{id}","customer":"{customer}","stage":"Done","came":100,"at":200,"attempts":0,"quote":{{"tool":"=echo, \"twice\"","price_msat":21000,"credit_msat":0,"rail":"Hold","money":"Taken","payment_hash":"{hash}","expires":300,"paid_msat":21000}},"credits":[{{"at":200,"msat":7,"why":"a gift"}}]}}"#
    );
    assert_eq!((run.exit, run.stdout), (0, format!("{expected}\n")), "{}", run.stderr);

    let run = world.run(&["ledger", "export", "--format", "csv", "--key", KEY]);
    let line =
        format!("{id},{customer},Done,100,200,0,\"'=echo, \"\"twice\"\"\",21000,0,Hold,Taken,{hash},300,21000,7");
    assert_eq!((run.exit, run.stdout.lines().nth(1)), (0, Some(line.as_str())), "{}", run.stderr);

    // Somebody has helped themselves.
    let connection = rusqlite::Connection::open(file(&directory)).unwrap();
    connection.execute_batch("UPDATE credit SET balance = 7000").unwrap();
    let run = world.run(&["ledger", "check", "--key", KEY, "--json"]);
    assert_eq!(run.exit, 1, "{}", run.stderr);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&report["findings"][0]["kind"], &report["findings"][0]["id"]), (&"balance".into(), &customer.into()));
    assert!(run.stderr.contains("ledger_unsound"), "{}", run.stderr);
    // The provider has not noticed anything.
    assert_eq!(ledger.answers([1; 32]).await.unwrap(), ["private answer"]);
}
