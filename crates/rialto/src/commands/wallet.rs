//! `rialto wallet`: the wallet that pays for calls, and what it has paid.

mod refund;

use std::io::{IsTerminal, Read};
use std::time::Duration;

use clap::{Args, Subcommand};
use nostr::prelude::{PublicKey, Timestamp};
use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use rialto_consumer::remote::npub;
use rialto_ledger::spending::Entry;
use rialto_payment::amount::Msat;
use rialto_payment::secret::{PaymentHash, Secret};
use rialto_payment::wallet::{Error, Order, Standing};
use rialto_wallet::reference::Opened;
use serde_json::{Value, json};

use crate::commands::find::ago;
use crate::commands::wait_for;
use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::money::{self, Chain, Kept, ledger_failure, wallet_failure};
use crate::output;
use crate::talk::{Format, Talk};
use crate::wallet;

const EXAMPLES: &str = "\
Examples:
  rialto wallet connect -                  Paste the wallet's address, then press Enter and Ctrl-D
  rialto wallet show                       Which wallet, and how much is in it
  rialto wallet history --limit 20         What was paid, to whom, and who allowed it
  rialto budget set --per-call 10 --per-day 1000";

const CONNECT_EXAMPLES: &str = "\
Examples:
  rialto wallet connect - < wallet.txt
  rialto wallet connect env:WALLET
  rialto wallet connect file:/run/secrets/wallet";

const SHOW_EXAMPLES: &str = "\
Examples:
  rialto wallet show
  rialto wallet show --json";

const FUND_EXAMPLES: &str = "\
Examples:
  rialto wallet fund 1000
  rialto wallet fund 1000 --json | head -n 1    The invoice, for a program that pays it";

const REFUND_EXAMPLES: &str = "\
Examples:
  rialto wallet refund weather";

const DISCONNECT_EXAMPLES: &str = "\
Examples:
  rialto wallet disconnect";

const HISTORY_EXAMPLES: &str = "\
Examples:
  rialto wallet history
  rialto wallet history --limit 5 --json";

/// No address is longer.
const MAX_ADDRESS: u64 = 4096;

/// How long an invoice that puts money into the wallet can be paid.
const FUND_SECS: u64 = 600;

/// Connect the wallet that pays for calls
///
/// Nothing is paid without a budget (`rialto budget set`) or a person who agrees to it. The wallet's address is a secret: it
/// is kept in a file that only you can read, and never shown.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Connect a wallet, after trying whether it works
    #[command(after_help = CONNECT_EXAMPLES)]
    Connect {
        /// The wallet's address (nostr+walletconnect://…, lnbits+https://…, lnd+https://…, cashu+https://MINT), `-` to read it from standard
        /// input, env:NAME or file:PATH
        #[arg(value_name = "URI")]
        uri: String,
        /// The network whose invoices it pays; all but bitcoin are for tests
        #[arg(long, value_enum, default_value_t = Chain::Bitcoin)]
        network: Chain,
    },
    /// Show which wallet is connected, what it can do, and how much is in it
    #[command(after_help = SHOW_EXAMPLES)]
    Show,
    /// Put money into the wallet: shows an invoice, and waits until it is paid from elsewhere
    #[command(after_help = FUND_EXAMPLES)]
    Fund {
        /// How much, in satoshis
        #[arg(value_name = "SAT", value_parser = clap::value_parser!(u64).range(1..))]
        sat: u64,
    },
    /// Ask a service for what it owes you, as ecash that only you can spend
    #[command(after_help = REFUND_EXAMPLES)]
    Refund(refund::Arguments),
    /// Forget the wallet
    #[command(after_help = DISCONNECT_EXAMPLES)]
    Disconnect,
    /// Show what was paid
    #[command(after_help = HISTORY_EXAMPLES)]
    History {
        /// How many payments are shown
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
    },
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    match &arguments.action {
        Action::Connect { uri, network } => {
            if money::kept(environment)?.is_some() {
                return Err(Failure::usage("a wallet is connected already")
                    .code("wallet_connected")
                    .hint("rialto wallet disconnect    forgets it"));
            }
            let kept = Kept { address: address(uri, environment, talk)?, network: *network };
            wait_for(connect(kept, environment, talk))
        }
        Action::Show => {
            let kept = money::kept(environment)?.ok_or_else(none)?;
            wait_for(show(kept, environment, talk))
        }
        Action::Fund { sat } => {
            let kept = money::kept(environment)?.ok_or_else(none)?;
            let amount = money::sat(*sat, "SAT")?;
            wait_for(fund(kept, amount, environment, talk))
        }
        Action::Refund(arguments) => refund::run(arguments, environment, talk),
        Action::Disconnect => match (money::forget(environment)?, talk.format) {
            (gone, Format::Json) => output::json(&json!({ "disconnected": gone })),
            (true, Format::Text) => {
                talk.info("the wallet is forgotten; what it has paid is still in `rialto wallet history`");
                Ok(())
            }
            (false, Format::Text) => {
                talk.info("no wallet was connected");
                Ok(())
            }
        },
        Action::History { limit } => wait_for(history(*limit, environment, talk)),
    }
}

fn none() -> Failure {
    Failure::new(Exit::Payment, "no wallet is connected").code("no_wallet").hint("rialto wallet connect -")
}

/// The wallet's address, from wherever it was said to be.
fn address(uri: &str, environment: &Environment, talk: &Talk) -> Result<Secret, Failure> {
    if uri == "-" {
        let mut text = String::new();
        let read = std::io::stdin().lock().take(MAX_ADDRESS).read_to_string(&mut text);
        read.map_err(|error| Failure::usage("cannot read the wallet's address").because(&error))?;
        return Ok(Secret::new(text.trim()));
    }
    if !uri.starts_with("env:") && !uri.starts_with("file:") {
        talk.warn(
            "the wallet's address stands in the command line, where other programs and the shell's history can see it; \
             `rialto wallet connect -` reads it from standard input",
        );
    }
    Ok(Secret::new(wallet::given(uri, environment)?.reveal().trim()))
}

async fn connect(kept: Kept, environment: &Environment, talk: &Talk) -> Outcome {
    let state = look(&money::open(&kept, environment).await?).await?;
    if !state.pays {
        return Err(Failure::new(Exit::NotAllowed, "this wallet does not let Rialto pay")
            .code("wallet_cannot_pay")
            .hint("connect it again in the wallet's app, with the permission to pay"));
    }
    let path = money::keep(&kept, environment)?;
    print(&state, talk)?;
    talk.info(&format!("kept in {}, which only you can read", path.display()));
    let budgets = money::spending(environment)?.budgets().map_err(|error| ledger_failure(&error))?;
    if budgets.is_empty() {
        talk.info("every payment is asked for; rialto budget set --per-call 10 --per-day 1000 allows small ones");
    }
    Ok(())
}

async fn show(kept: Kept, environment: &Environment, talk: &Talk) -> Outcome {
    print(&look(&money::open(&kept, environment).await?).await?, talk)
}

async fn fund(kept: Kept, amount: Msat, environment: &Environment, talk: &Talk) -> Outcome {
    let opened = money::open(&kept, environment).await?;
    let wallet = opened.wallet();
    let order = Order { amount, memo: "for the wallet of rialto".to_owned(), expiry: FUND_SECS };
    let invoice = wallet.make(&order).await.map_err(|error| wallet_failure(&error))?;
    match talk.format {
        Format::Json => output::json(&json!({ "invoice": invoice.text, "amount_sat": amount.sat_rounded_down() }))?,
        Format::Text => {
            if std::io::stdout().is_terminal()
                && let Ok(code) = QrCode::new(invoice.text.to_ascii_uppercase())
            {
                output::text(&format!("{}\n", code.render::<Dense1x2>().build()))?;
            }
            output::text(&format!("{}\n", invoice.text))?;
        }
    }
    talk.info(&format!("pay {amount} to this invoice from any Lightning wallet; waiting …"));
    let end = tokio::time::Instant::now() + Duration::from_secs(FUND_SECS);
    let mut rounds = tokio::time::interval(Duration::from_secs(1));
    while tokio::time::Instant::now() < end {
        rounds.tick().await;
        match wallet.look_up(invoice.hash).await {
            Ok(Standing::Settled { amount }) if talk.format == Format::Json => {
                return output::json(&json!({ "received_sat": amount.sat_rounded_down() }));
            }
            Ok(Standing::Settled { amount }) => {
                talk.info(&format!("{amount} came in"));
                return Ok(());
            }
            Ok(Standing::Over) => break,
            // It is asked again.
            Ok(_) | Err(_) => {}
        }
    }
    Err(Failure::new(Exit::Timeout, "the invoice was not paid").code("payment_expired"))
}

/// What there is to say of a wallet.
struct State {
    name: String,
    pays: bool,
    holds: bool,
    balance: Option<Msat>,
}

async fn look(opened: &Opened) -> Result<State, Failure> {
    let (abilities, wallet) = (wallet::abilities(opened).await?, opened.wallet());
    let balance = match wallet.balance().await {
        Ok(balance) => Some(balance),
        // Not every connection may see it.
        Err(Error::Unsupported(_) | Error::Refused(_)) => None,
        Err(error) => return Err(wallet_failure(&error)),
    };
    Ok(State { name: wallet.name(), pays: abilities.pay, holds: abilities.hold, balance })
}

fn print(state: &State, talk: &Talk) -> Outcome {
    let balance = state.balance.map(|balance| balance.sat_rounded_down());
    if talk.format == Format::Json {
        let abilities = json!({ "pay": state.pays, "hold": state.holds });
        return output::json(&json!({ "name": state.name, "abilities": abilities, "balance_sat": balance }));
    }
    let can: Vec<&str> = [(state.pays, "pay"), (true, "receive"), (state.holds, "hold")]
        .into_iter()
        .filter_map(|(is_able, word)| is_able.then_some(word))
        .collect();
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    output::text(&output::table(&[
        row("wallet", state.name.clone()),
        row("can", can.join(", ")),
        row("balance", balance.map_or_else(|| "not told".to_owned(), |balance| format!("{balance} sat"))),
    ]))
}

async fn history(limit: u32, environment: &Environment, talk: &Talk) -> Outcome {
    let payer = money::payer(environment).await?;
    // What was not certain may be by now.
    payer.resolve(None).await;
    let entries = payer.spending().history(limit).map_err(|error| ledger_failure(&error))?;
    if talk.format == Format::Json {
        return output::json(&entries.iter().map(described).collect::<Vec<_>>());
    }
    if entries.is_empty() {
        talk.info("nothing was paid yet");
        return Ok(());
    }
    let heads = ["WHEN", "SERVICE", "TOOL", "AMOUNT", "FEE", "BY", "STATE", "ALLOWED BY"];
    let mut rows: Vec<Vec<String>> = vec![heads.iter().map(ToString::to_string).collect()];
    let now = Timestamp::now();
    rows.extend(entries.iter().map(|entry| {
        let spend = &entry.spend;
        vec![
            ago(now, Timestamp::from(spend.at)),
            spend.service.chars().take(32).collect(),
            spend.tool.chars().take(32).collect(),
            spend.amount.to_string(),
            entry.fee.to_string(),
            entry.rail.name().to_owned(),
            entry.state.name().to_owned(),
            spend.approved.name().to_owned(),
        ]
    }));
    output::text(&output::table(&rows))
}

/// One payment for programs, without what is secret.
fn described(entry: &Entry) -> Value {
    let spend = &entry.spend;
    let provider = PublicKey::from_slice(&spend.provider).map(|key| npub(&key)).unwrap_or_default();
    json!({
        "at": spend.at,
        "request": PaymentHash(spend.request).to_string(),
        "provider": provider,
        "service": spend.service,
        "tool": spend.tool,
        "amount_msat": spend.amount.get(),
        "fee_msat": entry.fee.get(),
        "rail": entry.rail.name(),
        "payment_hash": spend.hash.to_string(),
        "invoice": spend.invoice,
        "state": entry.state.name(),
        "approved_by": spend.approved.name(),
        "note": entry.note,
    })
}
