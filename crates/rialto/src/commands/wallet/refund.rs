//! `rialto wallet refund`: what a service owes us, as ecash.

use clap::Args;
use rialto_consumer::ongoing::PATIENCE;
use rialto_consumer::remote::Terms;
use rialto_payment::secret::Secret;
use rialto_wallet::reference::Opened;
use rialto_wire::request::Command;
use rialto_wire::service::Wire;
use serde_json::{Value, json};

use crate::buyer::{Buyer, Wanted, call_failure, remote_failure};
use crate::commands::wait_for;
use crate::environment::Environment;
use crate::failure::{Failure, Outcome};
use crate::money;
use crate::output;
use crate::relays::RelayFlags;
use crate::talk::{Format, Talk};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The service: npub1…, nprofile1…, naddr1…, name@domain, or its name in `rialto find`
    #[arg(value_name = "SERVICE")]
    service: String,

    #[command(flatten)]
    relays: RelayFlags,
}

pub(super) fn run(arguments: &Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    let wanted = Wanted::read(&arguments.service)?;
    wait_for(async {
        let buyer = Buyer::start(&arguments.relays, std::slice::from_ref(&wanted), environment, talk)?;
        let refunded = refund(&buyer, &wanted, environment, talk).await;
        buyer.customer.stop().await;
        refunded
    })
}

async fn refund(buyer: &Buyer, wanted: &Wanted, environment: &Environment, talk: &Talk) -> Outcome {
    let terms = Terms { wire: Some(Wire::Dvmcp), plain: false };
    let remote = buyer.open(wanted, terms).await?;
    let asked = remote.begin(Command::Refund, "{}".to_owned(), PATIENCE).map_err(|error| call_failure(&error))?;
    let reply = asked.finish().await.map_err(|error| call_failure(&error))?;
    if let Some(failed) = &reply.failure {
        return Err(remote_failure(failed));
    }
    let answer: Value = serde_json::from_str(&reply.content).unwrap_or_default();
    let Some(token) = answer["token"].as_str() else {
        return Err(Failure::unexpected("the service gave no token").code("malformed_answer"));
    };
    // Whatever becomes of it below, it is not lost: only our key can spend it.
    match talk.format {
        Format::Json => output::json(&json!({ "token": token, "amount_sat": answer["amount_sat"] }))?,
        Format::Text => output::text(&format!("{token}\n"))?,
    }
    let Some(kept) = money::kept(environment)? else {
        talk.info("this token is yours alone; no wallet is connected that could take it in");
        return Ok(());
    };
    match money::open(&kept, environment).await? {
        Opened::Purse(purse) => {
            let came = purse.receive(&Secret::new(token)).await.map_err(|error| money::wallet_failure(&error))?;
            talk.info(&format!("{came} came in"));
        }
        Opened::Lightning(_) => talk.info("this token is yours alone; the wallet that is connected takes no ecash"),
    }
    Ok(())
}
