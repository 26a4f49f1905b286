//! R23: three hundred combinations of who calls, which tool, under which rules, and whether it is paid, each compared with what an
//! oracle says that was written from the documentation.

mod oracle;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nostr::key::Keys;
use nostr::nips::nip19::ToBech32 as _;
use serde_json::{Value, json};

use oracle::{Expected, Oracle, Price, Rule};

use crate::market::Market;
use crate::nostr_side::PATIENCE;
use crate::nostr_side::customer::Customer;
use crate::nostr_side::event::hex_key;
use crate::nostr_side::messenger::{Messenger, Way, request};
use crate::nostr_side::world::Provider;
use crate::rows::{Row, Setting};
use crate::score::Score;
use crate::several::several;

pub(super) const ROW: Row = Row::new("R23", "who may call what, and for how much", run);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Caller {
    Friend,
    Other,
    Stranger,
}

const CALLERS: [Caller; 3] = [Caller::Friend, Caller::Other, Caller::Stranger];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tool {
    Note,
    Nap,
    Meta,
    Rich,
    /// None that there is.
    Absent,
}

const TOOLS: [Tool; 5] = [Tool::Note, Tool::Nap, Tool::Meta, Tool::Rich, Tool::Absent];

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Tool::Note => "note",
            Tool::Nap => "nap",
            Tool::Meta => "meta",
            Tool::Rich => "rich",
            Tool::Absent => "nothing",
        }
    }
}

/// How a request travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wire {
    Plain,
    Sealed,
    Message(Way),
}

const WIRES: [Wire; 4] = [Wire::Plain, Wire::Sealed, Wire::Message(Way::Message), Wire::Message(Way::Sealed)];

struct Person {
    customer: Customer,
    messenger: Messenger,
}

fn flags(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The rules, with the keys of those whom they name.
fn rules(keys: &BTreeMap<Caller, Keys>) -> Vec<Rule> {
    let hex = |caller: Caller| hex_key(&keys[&caller]);
    let npub = |caller: Caller| keys[&caller].public_key().to_bech32().unwrap();
    let (friend, other) = (hex(Caller::Friend), npub(Caller::Other));
    let sat = |sat: u64| Price { sat, ..Price::default() };
    let rule = |name: &'static str, words: &[&str]| Rule { name, flags: flags(words), ..Rule::default() };
    let file = format!(
        "default = 2\n[tools]\nmeta = 0\nnote = {{ sat = 5, sat_per_kb = 1, first_free = 1 }}\n[discounts]\n{} = 50\n",
        npub(Caller::Friend)
    );
    vec![
        rule("open", &[]),
        Rule {
            private: vec![Caller::Friend, Caller::Other],
            ..rule("private", &["--private", &friend, "--private", &other])
        },
        Rule { denied: vec![Caller::Other], ..rule("denied", &["--deny", &other]) },
        Rule {
            private: vec![Caller::Friend, Caller::Other],
            denied: vec![Caller::Other],
            ..rule("private and denied", &["--private", &friend, "--private", &other, "--deny", &hex(Caller::Other)])
        },
        Rule { shown: vec![Tool::Note, Tool::Meta], ..rule("some tools", &["--tool", "note", "--tool", "me*"]) },
        Rule { hidden: vec![Tool::Note, Tool::Nap], ..rule("hidden tools", &["--tool", "*", "--hide-tool", "n*"]) },
        Rule {
            shown: vec![Tool::Note, Tool::Rich],
            hidden: vec![Tool::Note],
            private: vec![Caller::Friend],
            ..rule(
                "one tool for one",
                &["--tool", "note", "--tool", "rich", "--hide-tool", "note", "--private", &friend],
            )
        },
        Rule {
            prices: [(Tool::Note, sat(5)), (Tool::Meta, sat(0))].into(),
            others: sat(3),
            denied: vec![Caller::Stranger],
            ..rule(
                "prices",
                &["--price", "note=5", "--price", "*=3", "--price", "meta=0", "--deny", &hex(Caller::Stranger)],
            )
        },
        Rule {
            prices: [
                (Tool::Meta, sat(0)),
                (Tool::Note, Price { sat: 5, sat_per_kb: 1, first_free: 1 }),
                (Tool::Rich, sat(7)),
            ]
            .into(),
            others: sat(2),
            discounts: [(Caller::Friend, 50)].into(),
            // The last word is a file's text, which `play` puts into one.
            ..rule("a file of prices", &["--price", "rich=7", "--prices", &file])
        },
        Rule { requests: Some(2), ..rule("few requests", &["--rate-per-key", "2"]) },
    ]
}

fn run(_setting: Setting) -> Score {
    let keys: BTreeMap<Caller, Keys> = CALLERS.map(|caller| (caller, Keys::generate())).into();
    let rules = rules(&keys);
    let mut score = Score::default();
    let (mut right, mut unpaid) = (0, 0);
    let results = several(3, &rules, |rule| play(rule, &keys));
    for (rule, result) in rules.iter().zip(results) {
        match result {
            Ok(report) => {
                right += report.right;
                unpaid += report.unpaid_runs;
                report.wrong.iter().take(5).for_each(|wrong| score.note(format!("{}: {wrong}", rule.name)));
            }
            Err(why) => score.note(format!("{}: {why}", rule.name)),
        }
    }
    score.exactly("combinations as documented", right, rules.len() * CALLERS.len() * TOOLS.len() * 2);
    score.none("runs that were not allowed or not paid", unpaid);
    score.exactly("prices without a wallet that are served", usize::from(serves_without_wallet()), 0_usize);
    score
}

/// A price without a wallet would be a gift: the service does not begin.
fn serves_without_wallet() -> bool {
    let world = crate::nostr_side::world::World::new();
    let (_relay, url) = world.relay();
    let mut serve = world.rialto("provider", &["serve", "--price", "*=1", "--relay", &url, "--", "cat"]);
    serve.end().success()
}

#[derive(Default)]
struct Report {
    right: usize,
    wrong: Vec<String>,
    unpaid_runs: usize,
}

/// One combination, as it was posted.
struct Posted {
    caller: Caller,
    tool: Tool,
    pays: bool,
    wire: Wire,
    tag: String,
    id: String,
    expected: Expected,
}

fn play(rule: &Rule, keys: &BTreeMap<Caller, Keys>) -> Report {
    let market = Market::plain();
    let mut flags = rule.flags.clone();
    if flags.contains(&"--prices".to_owned()) {
        let text = flags.pop().unwrap();
        flags.push(market.keep("prices.toml", &text).to_str().unwrap().to_owned());
    }
    if rule.requests.is_none() {
        flags.extend(["--rate-per-key".to_owned(), "0".to_owned()]);
    }
    let provider = market.serve(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    let person = |caller: &Caller| {
        let (relay, key) = (&market.relay, &keys[caller]);
        let customer = Customer::with_keys(relay, &provider.pubkey, key.clone());
        (*caller, Person { customer, messenger: Messenger::with_keys(relay, &provider.pubkey, key.clone()) })
    };
    let people: BTreeMap<Caller, Person> = CALLERS.iter().map(person).collect();
    let mut oracle = Oracle::default();
    let mut report = Report::default();
    let mut all = Vec::new();
    for (index, caller) in CALLERS.into_iter().enumerate() {
        for (number, tool) in TOOLS.into_iter().enumerate() {
            for pays in [false, true] {
                let wire = WIRES[(2 * number + index + usize::from(pays)) % WIRES.len()];
                let tag = format!("{caller:?}-{number}-{pays}");
                // Some arguments are longer than a thousand bytes.
                let text = "x".repeat(if pays { 1500 } else { 10 });
                let arguments = json!({ "tag": tag, "text": text });
                let expected = oracle.expect(rule, caller, tool, arguments.to_string().len());
                let id = post(&people[&caller], wire, tool.name(), &arguments);
                let posted = Posted { caller, tool, pays, wire, tag, id, expected };
                if expected != Expected::Limited {
                    let person = &people[&caller];
                    if let Err(why) = check(&market, person, &posted) {
                        report.wrong.push(format!("{caller:?}, {tool:?}, pays: {pays}, {wire:?}: {why}"));
                    }
                }
                all.push(posted);
            }
        }
    }
    settle(&market, &provider);
    judge(&market, &people, &all, &mut report);
    report
}

/// After the answer to somebody new, everything before it has been looked at.
fn settle(market: &Market, provider: &Provider) {
    let newcomer = market.customer(provider);
    let id = newcomer.post(&newcomer.draft("list-tools", &json!("")));
    newcomer.answers(&id);
    newcomer.answers(&newcomer.post_sealed(&newcomer.draft("list-tools", &json!(""))));
}

/// Every call ran as often as it should have.
fn judge(market: &Market, people: &BTreeMap<Caller, Person>, all: &[Posted], report: &mut Report) {
    for posted in all {
        let runs = market.world.times(&format!("{} {}", posted.tool.name(), posted.tag));
        let wanted = match posted.expected {
            Expected::Runs => 1,
            Expected::Costs(_) => usize::from(posted.pays),
            Expected::Refused(_) | Expected::Limited => 0,
        };
        report.unpaid_runs += runs.saturating_sub(wanted);
        let said = told(&people[&posted.caller], posted);
        let is_quiet = match (&posted.expected, &said) {
            (Expected::Limited, Some(Told::Error(code))) => code == "rate_limited",
            (Expected::Limited, other) => other.is_none(),
            _ => true,
        };
        if runs != wanted || !is_quiet {
            let Posted { caller, tool, pays, expected, .. } = posted;
            report
                .wrong
                .push(format!("{caller:?}, {tool:?}, pays: {pays}: {expected:?}, but {runs} runs and {said:?}"));
        }
    }
    report.right += all.len().saturating_sub(report.wrong.len());
}

fn post(person: &Person, wire: Wire, tool: &str, arguments: &Value) -> String {
    let customer = &person.customer;
    let draft = || customer.draft("execute-tool", &json!({ "name": tool, "parameters": arguments }));
    match wire {
        Wire::Plain => customer.post(&draft()),
        Wire::Sealed => customer.post_sealed(&draft()),
        Wire::Message(way) => person.messenger.post(way, &request(tool, arguments)),
    }
}

/// What a caller was told last.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Error(String),
    Asked(u64, String),
    Done,
}

fn told(person: &Person, posted: &Posted) -> Option<Told> {
    if let Wire::Message(_) = posted.wire {
        let answers = person.messenger.answers(&posted.id);
        let body = answers.last()?.body();
        return Some(match body["error"]["code"].as_str() {
            Some("payment_required") => {
                let error = &body["error"];
                Told::Asked(error["amount_sat"].as_u64().unwrap(), error["invoice"].as_str().unwrap().to_owned())
            }
            Some(code) => Told::Error(code.to_owned()),
            None => Told::Done,
        });
    }
    let answers = person.customer.so_far(&posted.id);
    if let [response] = answers.responses().as_slice() {
        let body = response.body();
        return Some(match body["isError"] == true {
            true => Told::Error(body["metadata"]["error"]["code"].as_str().unwrap_or("tool_error").to_owned()),
            false => Told::Done,
        });
    }
    let asked = answers.feedback().into_iter().find(|event| event.has_tag("status", "payment-required"))?;
    Some(Told::Asked(asked.tags("amount")[0][0].parse().unwrap(), asked.tag("invoice").to_owned()))
}

/// Waits until something is told that fits.
fn wait(person: &Person, posted: &Posted, fits: impl Fn(&Told) -> bool) -> Option<Told> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(told) = told(person, posted).filter(&fits) {
            return Some(told);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

fn check(market: &Market, person: &Person, posted: &Posted) -> Result<(), String> {
    let first = wait(person, posted, |_| true);
    let wanted = posted.expected;
    match (wanted, first) {
        (Expected::Refused(code), Some(Told::Error(told))) if told == code => Ok(()),
        (Expected::Runs, Some(Told::Done)) => Ok(()),
        (Expected::Costs(sat), Some(Told::Asked(asked, invoice))) if asked == sat => {
            if posted.pays {
                market.pay(&invoice).map_err(|error| error.to_string())?;
                let end = wait(person, posted, |told| !matches!(told, Told::Asked(..)));
                return if end == Some(Told::Done) { Ok(()) } else { Err(format!("paid, but {end:?}")) };
            }
            Ok(())
        }
        (_, other) => Err(format!("{wanted:?}, but {other:?}")),
    }
}
