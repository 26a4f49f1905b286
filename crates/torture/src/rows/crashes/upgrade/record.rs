//! Writes a ledger with a job in every stage, as a provider leaves it that is killed.
//!
//! To be done once for each version of the tables, with a program that has it: `torture record FOLDER --rialto FILE`.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use serde_json::json;

use super::{PUBKEY, flags, found, key};
use crate::market::{Market, invoice};
use crate::nostr_side::PATIENCE;
use crate::nostr_side::customer::{Customer, RESPONSE};
use crate::nostr_side::fake_relay::{FakeRelay, Verdict};
use crate::nostr_side::log::until;

fn open(folder: &Path) -> Connection {
    Connection::open_with_flags(rialto_ledger::sqlite::file(folder), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

/// Writes `VERSION.sql` into a folder, unless there is one.
pub fn record(into: &Path) -> PathBuf {
    let relay = FakeRelay::start();
    let market = Market::holding().at(std::slice::from_ref(&relay));
    let (folder, key) = (market.ledger_directory(PUBKEY), key(&market));
    let mut flags = flags(&key);
    flags.extend(["--max-running", "1"]);
    let mut provider = market.serve(&flags);
    assert_eq!(provider.pubkey, PUBKEY);
    let customer = Customer::new(&relay.url(), PUBKEY);
    let call = |tool: &str, stage: u8, is_paid: bool| {
        // The tag is the stage in which it is found, so that it can be told what ran later.
        let arguments = json!({ "name": tool, "parameters": { "tag": stage.to_string(), "name": "never" } });
        let id = customer.post(&customer.draft("execute-tool", &arguments));
        if is_paid {
            market.begin_to_pay(&invoice(&customer.wait_for_status(&id, "payment-required"), 5));
        }
        id
    };
    let reached = |id: &str, stage: i64, is_sent: bool| {
        until(&format!("stage {stage}"), PATIENCE, || {
            let jobs = found(&open(&folder));
            jobs.iter().any(|job| job.id == id && job.stage == stage && job.is_sent == is_sent)
        });
    };
    reached(&call("note", 7, true), 7, true);
    relay.judge(|event, _| if event.kind == RESPONSE { Verdict::Ignore } else { Verdict::Accept });
    reached(&call("note", 7, true), 7, false);
    for (tool, method) in [("note", "settle_hold_invoice"), ("sulk", "cancel_hold_invoice")] {
        market.bank.faults().add(format!("account=0 method={method} times=1000 ignore").parse().unwrap());
        reached(&call(tool, 6, true), 6, false);
    }
    reached(&call("gate", 5, true), 5, false);
    reached(&call("note", 4, true), 4, false);
    reached(&call("note", 2, false), 2, false);
    market.bank.faults().add("account=0 method=make_hold_invoice times=1000 ignore".parse().unwrap());
    reached(&call("note", 1, false), 1, false);
    provider.process.kill();
    let connection = open(&folder);
    let version: u32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    let path = into.join(format!("{version}.sql"));
    let mut file = fs::File::create_new(&path).expect("there is none of this version yet");
    file.write_all(dump(&connection, version).as_bytes()).unwrap();
    path
}

/// The tables and their rows, as statements.
fn dump(connection: &Connection, version: u32) -> String {
    let mut out = String::from("BEGIN;\n");
    let list = |sql: &str| -> Vec<String> {
        let mut select = connection.prepare(sql).unwrap();
        select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let made = list("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type DESC, rowid");
    made.iter().for_each(|sql| out.push_str(&format!("{sql};\n")));
    // Jobs first: the others belong to them.
    for table in list("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name <> 'job', name") {
        let columns = list(&format!("SELECT name FROM pragma_table_info('{table}')"));
        let values: Vec<String> = columns.iter().map(|column| format!("quote({column})")).collect();
        for row in list(&format!("SELECT {} FROM {table}", values.join(" || ', ' || "))) {
            out.push_str(&format!("INSERT INTO {table} VALUES ({row});\n"));
        }
    }
    out + &format!("PRAGMA user_version = {version};\nCOMMIT;\n")
}
