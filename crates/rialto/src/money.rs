//! The customer's money: the wallet that was connected, and what may be spent of it.

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use rialto_consumer::payment::Payer;
use rialto_ledger::spending::Spending;
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Network;
use rialto_payment::secret::Secret;
use rialto_payment::wallet::Error;
use rialto_wallet::reference::Opened;

use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::identity::{self, Role, data_directory};
use crate::secret_file::{self, What};
use crate::wallet;

/// More than this is a mistake in units.
const MAX_SAT: u64 = 100_000_000;

/// A wallet as it is kept.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) address: Secret,
    /// Whose invoices it pays.
    pub(crate) network: Chain,
}

/// A network of Lightning that a wallet may be on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Chain {
    Bitcoin,
    Testnet,
    Signet,
    Regtest,
}

impl Chain {
    const ALL: [(Chain, &'static str, Network); 4] = [
        (Chain::Bitcoin, "bitcoin", Network::Bitcoin),
        (Chain::Testnet, "testnet", Network::Testnet),
        (Chain::Signet, "signet", Network::Signet),
        (Chain::Regtest, "regtest", Network::Regtest),
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(chain, ..)| *chain == self).map_or("bitcoin", |(_, name, _)| name)
    }

    fn network(self) -> Network {
        Self::ALL.iter().find(|(chain, ..)| *chain == self).map_or(Network::Bitcoin, |(.., network)| *network)
    }
}

impl FromStr for Chain {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.iter().find(|(_, name, _)| *name == text).map(|(chain, ..)| *chain).ok_or(())
    }
}

/// The wallet that was connected, if any.
pub(crate) fn kept(environment: &Environment) -> Result<Option<Kept>, Failure> {
    let Some(address) = wallet::kept(environment)? else { return Ok(None) };
    let text = secret_file::read(&wallet::file(environment)?, What::Wallet)?.unwrap_or_default();
    let network = text.lines().find_map(|line| line.strip_prefix("network=")).and_then(|name| name.trim().parse().ok());
    Ok(Some(Kept { address, network: network.unwrap_or(Chain::Bitcoin) }))
}

/// Keeps a wallet where none is.
pub(crate) fn keep(kept: &Kept, environment: &Environment) -> Result<PathBuf, Failure> {
    let path = wallet::file(environment)?;
    let text = format!("{}\nnetwork={}", kept.address.reveal(), kept.network.name());
    secret_file::write(&path, What::Wallet, &text)?;
    Ok(path)
}

/// Says whether there was one.
pub(crate) fn forget(environment: &Environment) -> Result<bool, Failure> {
    match fs::remove_file(wallet::file(environment)?) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Failure::unexpected("cannot remove the file with the wallet").because(&error)),
    }
}

/// Opens a wallet that pays. Needs a runtime.
pub(crate) async fn open(kept: &Kept, environment: &Environment) -> Result<Opened, Failure> {
    let identity = identity::load(Role::Customer, None, environment)?;
    wallet::open(&kept.address, &identity, environment).await
}

/// What went wrong with a wallet.
pub(crate) fn wallet_failure(error: &Error) -> Failure {
    let exit = if error.is_temporary() { Exit::Unreachable } else { Exit::Payment };
    Failure::new(exit, "the wallet does not work").because(error).code("wallet_failed")
}

pub(crate) fn spending(environment: &Environment) -> Result<Spending, Failure> {
    Spending::open(&data_directory(environment)?).map_err(|error| ledger_failure(&error))
}

pub(crate) fn ledger_failure(error: &rialto_ledger::ledger::Error) -> Failure {
    Failure::unexpected("what is spent cannot be noted").because(error).code("store")
}

/// What pays for calls: with the wallet that was connected, if there is one. Needs a runtime.
pub(crate) async fn payer(environment: &Environment) -> Result<Arc<Payer>, Failure> {
    let spending = spending(environment)?;
    let Some(kept) = kept(environment)? else { return Ok(Arc::new(Payer::new(None, spending, Network::Bitcoin))) };
    let network = kept.network.network();
    Ok(Arc::new(match open(&kept, environment).await? {
        Opened::Lightning(wallet) => Payer::new(Some(wallet), spending, network),
        Opened::Purse(purse) => Payer::with_purse(purse, spending, network),
    }))
}

/// An amount that somebody typed.
pub(crate) fn sat(typed: u64, name: &str) -> Result<Msat, Failure> {
    let amount = Msat::from_sat(typed).filter(|_| typed <= MAX_SAT);
    amount.ok_or_else(|| {
        Failure::usage(format!("{name} is more than a bitcoin")).code("amount_invalid").hint("amounts are in satoshis")
    })
}
