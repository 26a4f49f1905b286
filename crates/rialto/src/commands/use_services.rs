//! `rialto use`: services on Nostr as an MCP server, for any MCP host.

use std::time::Duration;

use clap::Args;
use rialto_consumer::bridge::{Bridge, Chosen, Notice, Options, Prefix};
use rialto_consumer::ongoing::PATIENCE;
use rialto_mcp::pending::Patience;
use rialto_mcp::serve::serve;
use rialto_mcp::stdio;

use crate::buyer::{Buyer, Wanted};
use crate::commands::wait_for;
use crate::environment::Environment;
use crate::failure::{Failure, Outcome};
use crate::money;
use crate::relays::RelayFlags;
use crate::signals::Stop;
use crate::talk::{Aside, Talk, Tone};
use crate::wires::WayFlags;

const EXAMPLES: &str = "\
Examples:
  rialto use nprofile1…
  rialto use weather maps --relay wss://relay.example
  rialto use npub1… --plain

In an MCP host:
  {\"mcpServers\": {\"weather\": {\"command\": \"rialto\", \"args\": [\"use\", \"nprofile1…\"]}}}

`rialto connect HOST SERVICE` writes that for you.";

/// Use services as an MCP server over standard input and output
///
/// Their tools, resources and prompts appear as local ones. A tool whose definition changes after its first use is
/// hidden until you accept the change with `rialto pins`.
#[derive(Debug, Args)]
#[command(name = "use", after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Services: npub1…, nprofile1…, naddr1…, name@domain, or names in `rialto find`
    #[arg(value_name = "SERVICE", required = true)]
    services: Vec<String>,

    #[command(flatten)]
    way: WayFlags,

    /// When names get their service in front [default: always if there are several services]
    #[arg(long, value_name = "WHEN", value_enum)]
    prefix: Option<When>,

    /// How long a call may take without a sign of life
    #[arg(long, value_name = "N", default_value_t = PATIENCE.silence.as_secs(), value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout_secs: u64,

    #[command(flatten)]
    relays: RelayFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum When {
    Always,
    Conflict,
    Never,
}

impl Arguments {
    fn prefix(&self) -> Prefix {
        match self.prefix {
            None => Prefix::Automatic,
            Some(When::Always) => Prefix::Always,
            Some(When::Conflict) => Prefix::Conflict,
            Some(When::Never) => Prefix::Never,
        }
    }

    fn patience(&self) -> Patience {
        let silence = Duration::from_secs(self.timeout_secs);
        Patience { silence, total: PATIENCE.total.max(silence) }
    }
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    let wanted: Vec<Wanted> = arguments.services.iter().map(|typed| Wanted::read(typed)).collect::<Result<_, _>>()?;
    wait_for(bridge(arguments, &wanted, environment, *talk))
}

async fn bridge(arguments: &Arguments, wanted: &[Wanted], environment: &Environment, talk: Talk) -> Outcome {
    let buyer = Buyer::start(&arguments.relays, wanted, environment, &talk)?;
    let terms = arguments.way.terms();
    let chosen = wanted
        .iter()
        .map(|wanted| Chosen { typed: wanted.typed.clone(), reference: wanted.reference.clone(), terms })
        .collect();
    let (aside, last_words) = Aside::new(talk);
    let notices = Box::new(move |notice: Notice| {
        let tone = match notice {
            Notice::Ready { .. } => Tone::Verbose,
            _ => Tone::Warn,
        };
        aside.say(tone, notice.to_string());
    });
    let payer = money::payer(environment).await?;
    // What was being paid when the last process ended.
    let unresolved = payer.clone();
    tokio::spawn(async move { unresolved.resolve(None).await });
    let options = Options { prefix: arguments.prefix(), patience: arguments.patience(), payer: Some(payer), notices };
    let bridge = Bridge::start(buyer.customer.clone(), buyer.pins, chosen, options);
    let mut stop = Stop::listen()?;
    let served = tokio::select! {
        served = serve(bridge.clone(), stdio::streams()) => served,
        () = stop.asked() => Ok(()),
    };
    drop(bridge);
    // What was given up is cancelled at the services, if the relays are quick enough.
    buyer.customer.stop().await;
    last_words.wait();
    served.map_err(|error| Failure::unexpected("the connection to the MCP host failed").because(&error))
}
