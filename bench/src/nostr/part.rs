//! Where the CPU of a provider goes: a call over Nostr, and beside it what its parts cost alone, in the same minute.

use std::{fmt::Write as _, path::Path, process};

use super::{
    drive::{CUSTOMERS, Session},
    floor,
    measure::{Relay, spent},
    server::Server,
    sockets,
    subject::{OUR_PLAIN, OUR_SEALED, all, child},
    wire::Privacy,
};
use crate::{
    Failure, drive, ledger,
    row::{Kind, Report, Row, Target},
    table::{machine, median},
};

/// What a call may cost beside its cryptography.
const PLAIN_FACTOR: f64 = 2.0;
const SEALED_FACTOR: f64 = 1.5;

/// One column of the table, in µs of CPU per call.
struct Column {
    provider: Vec<f64>,
    tool: f64,
    cryptography: Vec<f64>,
    rest: Vec<(&'static str, f64)>,
}

pub async fn report(rialto: &Path, calls: usize, rounds: usize) -> Result<Report, Failure> {
    let mut columns = Vec::new();
    for privacy in [Privacy::Plain, Privacy::Sealed] {
        columns.push(column(rialto, privacy, calls, rounds).await?);
    }
    eprint!("\r{:60}\r", "");
    let mut text = format!("{}; {rounds} rounds; medians; 64 in flight.\n\n", machine());
    let _ = writeln!(text, "| CPU µs/call | plain | sealed |\n|---|---:|---:|");
    let mut line = |what: &str, pick: &dyn Fn(&Column) -> f64, digits: usize| {
        let cells: Vec<_> = columns.iter().map(|column| format!("{:.digits$}", pick(column))).collect();
        let _ = writeln!(text, "| {what} | {} |", cells.join(" | "));
    };
    line("**the provider**", &|column| median(&column.provider), 1);
    line("cryptography alone: the floor", &|column| median(&column.cryptography), 1);
    for place in 0..columns[0].rest.len() {
        line(columns[0].rest[place].0, &|column| column.rest[place].1, 1);
    }
    line("not explained by these", &Column::unexplained, 1);
    line("the provider ÷ the floor", &Column::factor, 2);
    line("beside it: the MCP server's own process", &|column| column.tool, 1);
    let factors = |column: &Column| {
        column.provider.iter().zip(&column.cryptography).map(|(whole, floor)| whole / floor).collect::<Vec<_>>()
    };
    let rows = [("plain", PLAIN_FACTOR), ("sealed", SEALED_FACTOR)].into_iter().zip(&columns);
    let rows = rows.map(|((name, target), column)| {
        let what = format!("{name}, provider's CPU ÷ that of its cryptography alone");
        Row::new("nostr", what, Kind::Cpu, Ok(factors(column))).target(Target::AtMost(target))
    });
    Ok(Report { rows: rows.collect(), text })
}

impl Column {
    fn unexplained(&self) -> f64 {
        let parts: f64 = self.rest.iter().map(|(_, cost)| cost).sum();
        median(&self.provider) - median(&self.cryptography) - parts
    }

    fn factor(&self) -> f64 {
        median(&self.provider) / median(&self.cryptography)
    }
}

async fn column(rialto: &Path, privacy: Privacy, calls: usize, rounds: usize) -> Result<Column, Failure> {
    let wanted = if privacy == Privacy::Plain { OUR_PLAIN } else { OUR_SEALED };
    eprint!("\rwhere: {wanted}{:40}", "");
    let subjects = all(rialto, |name| name == wanted);
    let subject = subjects.first().ok_or("no such subject")?;
    let relay = Relay::start(rialto, None).await?;
    let provider = Server::start(&subject.command(&relay.url)).await?;
    let key = provider.ready["pubkey"].as_str().ok_or("the provider does not say its key")?;
    let mut session = Session::open(&relay.url, subject.dialect, key, CUSTOMERS).await?;
    let warm_up = session.prepare(calls / 4, CUSTOMERS)?;
    let run = session.run(&warm_up).await?;
    let (sample, frames) = session.sample(&warm_up, &run)?;
    let (mut whole, mut tool, mut cryptography) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let prepared = session.prepare(calls, CUSTOMERS)?;
        let before = spent(provider.pid, None)?;
        let run = session.run(&prepared).await?;
        let after = spent(provider.pid, None)?;
        session.verify(&prepared, &run)?;
        let of = |place: usize| (after[place].saturating_sub(before[place])).as_secs_f64() * 1e6 / calls as f64;
        whole.push(of(0));
        tool.push(of(1));
        cryptography.push(floor::cryptography(&sample, privacy)?);
    }
    provider.stop().await;
    relay.stop().await;
    let rest = vec![
        ("JSON of the events", floor::json(&sample, privacy)?),
        ("the relay's socket", sockets::cost(&frames, calls)?),
        ("the ledger, two steps and a mark that are not waited for", ledger::free_job().await?),
        ("the pipes to the MCP server", pipes(rialto, calls)?),
        ("the line in the log", floor::log(&std::env::temp_dir())?),
    ];
    Ok(Column { provider: whole, tool: median(&tool), cryptography, rest })
}

/// What this process needs to write calls to the MCP server and to read its answers.
fn pipes(rialto: &Path, calls: usize) -> Result<f64, Failure> {
    let (mut session, _) = drive::Session::open(&child(rialto))?;
    session.pipelined(calls)?;
    let before = crate::process::cpu(process::id())?;
    session.pipelined(calls)?;
    Ok((crate::process::cpu(process::id())? - before).as_secs_f64() * 1e6 / calls as f64)
}
