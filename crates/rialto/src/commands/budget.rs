//! `rialto budget`: what may be spent without asking.

use clap::{Args, Subcommand};
use nostr::prelude::{PublicKey, Timestamp};
use rialto_consumer::reference::Reference;
use rialto_consumer::remote::npub;
use rialto_ledger::spending::{Budget, Spending};
use rialto_payment::amount::Msat;
use serde_json::json;

use crate::buyer::{self, store_failure, unknown_service};
use crate::commands::pins;
use crate::environment::Environment;
use crate::failure::{Failure, Outcome};
use crate::money::{self, ledger_failure, sat};
use crate::output;
use crate::talk::{Format, Talk};

const EXAMPLES: &str = "\
Examples:
  rialto budget set --per-call 10 --per-day 1000
  rialto budget set --per-call 100 --per-day 500 --service weather
  rialto budget show
  rialto budget clear";

const SET_EXAMPLES: &str = "\
Examples:
  rialto budget set --per-call 10 --per-day 1000
  rialto budget set --per-call 0 --per-day 0 --service npub1…    Always ask for this one";

const SHOW_EXAMPLES: &str = "\
Examples:
  rialto budget show
  rialto budget show --json";

const CLEAR_EXAMPLES: &str = "\
Examples:
  rialto budget clear
  rialto budget clear --service weather";

/// Set what may be spent without asking
///
/// A budget counts fees, everything that may have been paid in the last 24 hours, and every process on this machine. A
/// service's own budget replaces the limit for one call; its limit for a day counts beside that for all services. Without a
/// budget, every payment is asked for.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Set a budget, in the place of the one before
    #[command(after_help = SET_EXAMPLES)]
    Set {
        /// The most for one call, fees included
        #[arg(long, value_name = "SAT")]
        per_call: u64,
        /// The most in any 24 hours, fees included
        #[arg(long, value_name = "SAT")]
        per_day: u64,
        /// Only for this service, by key or by the name in `rialto pins`
        #[arg(long, value_name = "SERVICE")]
        service: Option<String>,
    },
    /// Show budgets, and what is left of them
    #[command(after_help = SHOW_EXAMPLES)]
    Show,
    /// Remove a budget
    #[command(after_help = CLEAR_EXAMPLES)]
    Clear {
        /// Only that of this service, by key or by the name in `rialto pins`
        #[arg(long, value_name = "SERVICE")]
        service: Option<String>,
    },
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    let key = |service: &Option<String>| service.as_deref().map(|typed| key_of(typed, environment)).transpose();
    let broken = |error: rialto_ledger::ledger::Error| ledger_failure(&error);
    match &arguments.action {
        Action::Set { per_call, per_day, service } => {
            let service = key(service)?.map(|key| *key.as_bytes());
            let budget =
                Budget { service, per_call: sat(*per_call, "--per-call")?, per_day: sat(*per_day, "--per-day")? };
            if budget.per_call > budget.per_day {
                return Err(Failure::usage("--per-call is more than --per-day").code("amount_invalid"));
            }
            let spending = money::spending(environment)?;
            spending.set(&budget).map_err(broken)?;
            show(&spending, talk)
        }
        Action::Show => show(&money::spending(environment)?, talk),
        Action::Clear { service } => {
            let service = key(service)?.map(|key| *key.as_bytes());
            let gone = money::spending(environment)?.clear(service.as_ref()).map_err(broken)?;
            match talk.format {
                Format::Json => output::json(&json!({ "cleared": gone })),
                Format::Text => {
                    talk.info(if gone { "removed; payments are asked for" } else { "there was no such budget" });
                    Ok(())
                }
            }
        }
    }
}

/// The key of a service, without asking anybody.
fn key_of(typed: &str, environment: &Environment) -> Result<PublicKey, Failure> {
    match Reference::parse(typed).map_err(|unknown| unknown_service(typed, &unknown))? {
        Reference::Key(target) => Ok(target.provider),
        _ => {
            let book = buyer::pins(environment)?.read().map_err(|error| store_failure(&error))?;
            Ok(pins::choose(&book, typed)?.0)
        }
    }
}

/// One budget with what was spent of it.
struct Line {
    service: Option<String>,
    budget: Budget,
    spent: Msat,
}

fn lines(spending: &Spending) -> Result<Vec<Line>, rialto_ledger::ledger::Error> {
    let now = Timestamp::now().as_secs();
    let line = |budget: Budget| {
        let spent = spending.spent(budget.service.as_ref(), now)?;
        let key = budget.service.and_then(|key| PublicKey::from_slice(&key).ok());
        Ok(Line { service: key.map(|key| npub(&key)), budget, spent })
    };
    spending.budgets()?.into_iter().map(line).collect()
}

fn show(spending: &Spending, talk: &Talk) -> Outcome {
    let lines = lines(spending).map_err(|error| ledger_failure(&error))?;
    if talk.format == Format::Json {
        let described = |line: &Line| {
            json!({
                "service": line.service,
                "per_call_sat": line.budget.per_call.sat_rounded_down(),
                "per_day_sat": line.budget.per_day.sat_rounded_down(),
                "spent_msat": line.spent.get(),
                "left_msat": line.budget.per_day.saturating_sub(line.spent).get(),
            })
        };
        return output::json(&lines.iter().map(described).collect::<Vec<_>>());
    }
    if lines.is_empty() {
        talk.info("no budget is set: every payment is asked for");
        talk.info("rialto budget set --per-call 10 --per-day 1000");
        return Ok(());
    }
    let heads = ["FOR", "PER CALL", "PER DAY", "SPENT", "LEFT"];
    let mut rows: Vec<Vec<String>> = vec![heads.iter().map(ToString::to_string).collect()];
    rows.extend(lines.iter().map(|line| {
        vec![
            line.service.clone().unwrap_or_else(|| "all services".to_owned()),
            line.budget.per_call.to_string(),
            line.budget.per_day.to_string(),
            line.spent.to_string(),
            line.budget.per_day.saturating_sub(line.spent).to_string(),
        ]
    }));
    output::text(&output::table(&rows))
}
