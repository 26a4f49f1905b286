//! Nobody spends more than is allowed, or twice for one request, however many processes try at once.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on should panic; processes report")]

use rialto_ledger::spending::{Approval, Budget, Denied, Rail, Spend, Spending, State};
use rialto_payment::amount::Msat;
use rialto_payment::secret::{PaymentHash, Secret};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const NOW: u64 = 1_000_000;
const DAY: u64 = 24 * 60 * 60;
const SERVICE: [u8; 32] = [1; 32];
const OTHER: [u8; 32] = [2; 32];

fn sat(sat: u64) -> Msat {
    Msat::from_sat(sat).unwrap()
}

fn id(number: u64) -> [u8; 32] {
    let mut id = [7; 32];
    id[..8].copy_from_slice(&number.to_be_bytes());
    id
}

fn spend(number: u64, amount: u64) -> Spend {
    Spend {
        request: id(number),
        provider: SERVICE,
        service: "weather".into(),
        tool: "forecast".into(),
        amount: sat(amount),
        max_fee: Msat::ZERO,
        hash: PaymentHash(id(number)),
        invoice: format!("lnbc{number}"),
        expires: NOW + 60,
        approved: Approval::Budget,
        at: NOW,
    }
}

fn open(directory: &Path, budgets: &[(Option<[u8; 32]>, u64, u64)]) -> Spending {
    let spending = Spending::open(directory).unwrap();
    for (service, per_call, per_day) in budgets {
        spending.set(&Budget { service: *service, per_call: sat(*per_call), per_day: sat(*per_day) }).unwrap();
    }
    spending
}

#[test]
fn a_budget_is_kept() {
    let none: &[(Option<[u8; 32]>, u64, u64)] = &[];
    // The budgets, what was spent before (when, on whom, how much), the amount, and what is said to it.
    for (budgets, before, amount, expected) in [
        (none, &[][..], 1, Err(Denied::NoBudget)),
        (&[(None, 0, 0)], &[], 1, Err(Denied::PerCall { cap: sat(0) })),
        (&[(None, 10, 100)], &[], 10, Ok(())),
        (&[(None, 10, 100)], &[], 11, Err(Denied::PerCall { cap: sat(10) })),
        (&[(None, 10, 100)], &[(NOW - 1, SERVICE, 91)], 10, Err(Denied::PerDay { left: sat(9) })),
        (&[(None, 10, 100)], &[(NOW - 1, OTHER, 91)], 10, Err(Denied::PerDay { left: sat(9) })),
        (&[(None, 10, 100)], &[(NOW - DAY, SERVICE, 91)], 10, Ok(())),
        (&[(None, 10, 100)], &[(NOW - DAY + 1, SERVICE, 91)], 10, Err(Denied::PerDay { left: sat(9) })),
        // A clock that was wrong does not make room.
        (&[(None, 10, 100)], &[(NOW + DAY, SERVICE, 91)], 10, Err(Denied::PerDay { left: sat(9) })),
        (&[(Some(SERVICE), 10, 100)], &[(NOW, OTHER, 500)], 10, Ok(())),
        (&[(Some(OTHER), 10, 100)], &[], 1, Err(Denied::NoBudget)),
        // A service's own limit for a call counts in the place of the other, for the day both do.
        (&[(None, 10, 100), (Some(SERVICE), 50, 60)], &[], 50, Ok(())),
        (&[(None, 10, 100), (Some(SERVICE), 5, 60)], &[], 6, Err(Denied::PerCall { cap: sat(5) })),
        (&[(None, 10, 100), (Some(SERVICE), 0, 60)], &[], 1, Err(Denied::PerCall { cap: sat(0) })),
        (&[(None, 10, 100), (Some(SERVICE), 50, 60)], &[(NOW, SERVICE, 55)], 6, Err(Denied::PerDay { left: sat(5) })),
        (&[(None, 10, 100), (Some(SERVICE), 50, 500)], &[(NOW, OTHER, 95)], 6, Err(Denied::PerDay { left: sat(5) })),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let spending = open(directory.path(), budgets);
        for (number, (at, provider, amount)) in before.iter().enumerate() {
            let earlier = spend(1000 + number as u64, *amount);
            let earlier = Spend { at: *at, provider: *provider, approved: Approval::Person, ..earlier };
            spending.reserve(&earlier).unwrap();
        }
        let said = spending.reserve(&spend(1, amount));
        assert_eq!(said.map(|_| ()), expected, "{budgets:?} {before:?} {amount}");
    }
}

#[test]
fn what_sending_costs_counts_too() {
    let directory = tempfile::tempdir().unwrap();
    let spending = open(directory.path(), &[(None, 12, 30)]);
    let with_fee = |number| Spend { max_fee: sat(10), ..spend(number, 5) };
    assert_eq!(spending.reserve(&with_fee(1)).unwrap(), sat(7), "no more than the limit for a call");
    assert_eq!(spending.left(&SERVICE, NOW).unwrap().today, sat(18));
    assert!(spending.begin(&id(1), Rail::Lightning, None, NOW).unwrap());
    spending.paid(&id(1), sat(1), NOW).unwrap();
    assert_eq!(spending.left(&SERVICE, NOW).unwrap().today, sat(24), "what it has cost in the end");
    spending.reserve(&with_fee(2)).unwrap();
    spending.reserve(&Spend { approved: Approval::Person, ..with_fee(3) }).unwrap();
    assert_eq!(spending.left(&SERVICE, NOW).unwrap().today, sat(0), "what a person allows counts as well");
    assert_eq!(spending.spent(None, NOW).unwrap(), sat(6 + 12 + 15));
    spending.failed(&id(3), "no route", NOW).unwrap();
    assert_eq!(spending.left(&SERVICE, NOW).unwrap().today, sat(12));
}

#[test]
fn a_request_and_an_invoice_are_paid_once() {
    let directory = tempfile::tempdir().unwrap();
    let spending = open(directory.path(), &[(None, 10, 100)]);
    let first = spend(1, 1);
    spending.reserve(&first).unwrap();
    for state in [State::Intended, State::Paying, State::Unknown, State::Failed, State::Paid] {
        match state {
            State::Intended => {}
            State::Paying => assert!(spending.begin(&id(1), Rail::Lightning, None, NOW).unwrap()),
            State::Unknown => spending.unknown(&id(1), "no answer", NOW).unwrap(),
            State::Failed => spending.failed(&id(1), "no route", NOW).unwrap(),
            State::Paid => spending.paid(&id(1), Msat::ZERO, NOW).unwrap(),
        }
        for approved in [Approval::Budget, Approval::Person] {
            let other_invoice = Spend { hash: PaymentHash(id(2)), approved, ..first.clone() };
            assert_eq!(spending.reserve(&other_invoice), Err(Denied::RequestKnown(state)));
            let other_request = Spend { request: id(2), approved, ..first.clone() };
            assert_eq!(spending.reserve(&other_request), Err(Denied::HashKnown(state)));
        }
    }
    assert!(!spending.begin(&id(1), Rail::Lightning, None, NOW).unwrap(), "it is paid");
    spending.failed(&id(1), "late", NOW).unwrap();
    assert_eq!(spending.history(10).unwrap()[0].state, State::Paid, "what is known to be paid stays so");
}

#[test]
fn what_is_not_certain_is_found_again_and_what_was_not_begun_is_given_up() {
    let directory = tempfile::tempdir().unwrap();
    let spending = open(directory.path(), &[(None, 10, 100)]);
    for number in 1..=4 {
        spending.reserve(&spend(number, 1)).unwrap();
    }
    let token = Secret::new("cashuBsecret");
    assert!(spending.begin(&id(2), Rail::Ecash, Some(&token), NOW).unwrap());
    assert!(spending.begin(&id(3), Rail::Lightning, None, NOW).unwrap());
    spending.unknown(&id(3), "no answer", NOW).unwrap();
    drop(spending);
    let spending = Spending::open(directory.path()).unwrap();
    let found = spending.unresolved(Some(&SERVICE), NOW).unwrap();
    let seen: Vec<_> = found.iter().map(|entry| (entry.spend.request, entry.state, entry.rail)).collect();
    assert_eq!(seen, [(id(2), State::Paying, Rail::Ecash), (id(3), State::Unknown, Rail::Lightning)]);
    assert_eq!(found[0].token.as_ref(), Some(&token));
    assert!(!format!("{found:?}").contains("cashuBsecret"));
    assert_eq!(spending.unresolved(Some(&OTHER), NOW).unwrap(), []);
    assert!(spending.begin(&id(1), Rail::Lightning, None, NOW).unwrap(), "it is not too old");
    assert_eq!(spending.unresolved(None, NOW + 601).unwrap().len(), 3);
    assert!(!spending.begin(&id(4), Rail::Lightning, None, NOW + 601).unwrap(), "it was given up");
    assert_eq!(spending.spent(None, NOW).unwrap(), sat(3));
}

#[test]
fn nobody_else_can_read_it() {
    let directory = tempfile::tempdir().unwrap();
    let spending = open(&directory.path().join("data"), &[(None, 10, 100)]);
    spending.reserve(&spend(1, 1)).unwrap();
    for name in ["spending.db", "spending.db-wal", "spending.db-shm", "spending.lock"] {
        let mode = std::fs::metadata(directory.path().join("data").join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn budgets_are_set_shown_and_cleared() {
    let directory = tempfile::tempdir().unwrap();
    let spending = open(directory.path(), &[(Some(SERVICE), 1, 2), (None, 3, 4), (None, 5, 6)]);
    let found: Vec<_> = spending.budgets().unwrap().iter().map(|budget| (budget.service, budget.per_call)).collect();
    assert_eq!(found, [(None, sat(5)), (Some(SERVICE), sat(1))]);
    assert!(spending.clear(None).unwrap() && !spending.clear(None).unwrap());
    assert_eq!(spending.budgets().unwrap().len(), 1);
}

/// Processes, threads in each, what each thread tries to spend, and what there is.
const PROCESSES: u64 = 6;
const THREADS: u64 = 4;
const TRIES: u64 = 25;
const PER_DAY: u64 = 200;

/// What one of the processes below does; without them, nothing.
#[test]
fn one_of_many_processes() {
    let Some(directory) = std::env::var_os("RIALTO_TEST_SPENDING") else { return };
    let process: u64 = std::env::var("RIALTO_TEST_PROCESS").unwrap().parse().unwrap();
    let spending = Spending::open(Path::new(&directory)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let spending = spending.clone();
            scope.spawn(move || {
                for number in 0..TRIES {
                    // The first five are wanted by everybody.
                    let own = (process * THREADS + thread) * 1000 + number;
                    let wanted = if number < 5 { number } else { 10_000 + own };
                    let amount = 1 + own % 3;
                    match spending.reserve(&Spend { max_fee: sat(1), ..spend(wanted, amount) }) {
                        Ok(_) if own.is_multiple_of(5) => spending.failed(&id(wanted), "no route", NOW).unwrap(),
                        Ok(fee) => {
                            assert!(spending.begin(&id(wanted), Rail::Lightning, None, NOW).unwrap());
                            spending.paid(&id(wanted), fee, NOW).unwrap();
                            println!("\npaid {wanted} {}", sat(amount).checked_add(fee).unwrap().get());
                        }
                        Err(Denied::Ledger(error)) => panic!("{error}"),
                        Err(_) => {}
                    }
                }
            });
        }
    });
}

#[test]
fn many_processes_never_spend_more_than_one_budget() {
    let directory = tempfile::tempdir().unwrap();
    let spending = open(directory.path(), &[(None, 3, PER_DAY)]);
    let start = |process: u64| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "one_of_many_processes", "--nocapture"]);
        command.env("RIALTO_TEST_SPENDING", directory.path()).env("RIALTO_TEST_PROCESS", process.to_string());
        command.stdout(std::process::Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..PROCESSES).map(start).collect();
    let (mut paid, mut requests) = (0, Vec::new());
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let Some((request, amount)) = line.strip_prefix("paid ").and_then(|line| line.split_once(' ')) else {
                continue;
            };
            requests.push(request.to_owned());
            paid += amount.parse::<u64>().unwrap();
        }
    }
    let count = requests.len();
    requests.sort();
    requests.dedup();
    assert_eq!(requests.len(), count, "something was paid twice");
    assert!(paid <= PER_DAY * 1000, "{paid}");
    // There was more than enough to spend it on: all but a rest smaller than one call is gone.
    assert!(paid > (PER_DAY - 4) * 1000, "{paid}");
    assert_eq!(spending.spent(None, NOW).unwrap().get(), paid);
}
