//! Wallets by their addresses: which connector it is, and where an embedded one keeps its coins. Addresses are secrets.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rialto_http::client::{Agent, Options};
use rialto_payment::amount::Msat;
use rialto_payment::secret::Secret;
use rialto_payment::wallet::Abilities;
use rialto_wallet::cashu::{Cashu, Mints, Settings};
use rialto_wallet::reference::{self, Opened};

use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::identity::{self, Identity};
use crate::secret_file::{self, What};

/// How long a wallet may take to say what it can do.
const PATIENCE: Duration = Duration::from_secs(20);

/// What mints may owe an embedded wallet: they could vanish with it.
pub(crate) const DEFAULT_CAP_SAT: u64 = 100_000;

/// What the address of an embedded wallet begins with: `cashu+https://mint.example,https://other.example`.
const EMBEDDED: &str = "cashu+";

/// Where `rialto wallet connect` keeps the address.
pub(crate) fn file(environment: &Environment) -> Result<PathBuf, Failure> {
    Ok(identity::data_directory(environment)?.join("wallet"))
}

/// The address that was kept, if any.
pub(crate) fn kept(environment: &Environment) -> Result<Option<Secret>, Failure> {
    let text = secret_file::read(&file(environment)?, What::Wallet)?;
    // Behind it stands what else is known about the wallet.
    let address = text.as_deref().and_then(|text| text.lines().next()).map(str::trim);
    Ok(address.filter(|address| !address.is_empty()).map(Secret::new))
}

/// The address in `env:NAME` or `file:PATH`, or the text itself.
pub(crate) fn given(text: &str, environment: &Environment) -> Result<Secret, Failure> {
    let missing = |words: String| Failure::usage(words).code("wallet_invalid");
    if let Some(name) = text.strip_prefix("env:") {
        let value = environment.raw(name).and_then(|value| value.to_str()).filter(|value| !value.is_empty());
        return value.map(Secret::new).ok_or_else(|| missing(format!("the variable `{name}` is not set")));
    }
    if let Some(path) = text.strip_prefix("file:") {
        let read = secret_file::read(path.as_ref(), What::Wallet)?;
        let first = read.map(|text| Secret::new(text.lines().next().unwrap_or_default().trim()));
        return first.ok_or_else(|| missing(format!("there is no file `{path}`")));
    }
    Ok(Secret::new(text))
}

/// Opens a wallet for one of our keys, to which its tokens are locked. Needs a runtime.
pub(crate) async fn open(address: &Secret, identity: &Identity, environment: &Environment) -> Result<Opened, Failure> {
    if let Some(mints) = address.reveal().trim().strip_prefix(EMBEDDED) {
        return embedded(mints, DEFAULT_CAP_SAT, identity, environment)
            .await
            .map(|purse| Opened::Purse(Arc::new(purse)));
    }
    // The error does not repeat what was given.
    reference::open(address).map_err(|error| {
        Failure::config("the wallet cannot be used")
            .because(&error)
            .code("wallet_invalid")
            .hint("your wallet's app shows its address under \"Nostr Wallet Connect\"; cashu+https://… names a mint")
    })
}

/// The ecash wallet of one of our keys, at these mints.
pub(crate) async fn embedded(
    mints: &str,
    cap_sat: u64,
    identity: &Identity,
    environment: &Environment,
) -> Result<Cashu, Failure> {
    let unusable = || Failure::config("the ecash wallet cannot be used").code("wallet_invalid");
    let mints: Mints = mints.parse().map_err(|error| unusable().because(&error))?;
    let options = Options::from_variables(|name| environment.raw(name).map(ToOwned::to_owned));
    let agent = Agent::new(&options).map_err(|error| unusable().because(&error))?;
    let whose = identity.keys.public_key().to_hex();
    let directory = identity::data_directory(environment)?.join("purse").join(whose);
    let key = identity.keys.secret_key().to_secret_bytes();
    let cap = Msat::from_sat(cap_sat).unwrap_or_default();
    let settings = Settings { directory, mints, cap, key, agent };
    Cashu::open(settings).await.map_err(|error| {
        unusable()
            .because(&error)
            .hint("an ecash wallet is used by one process at a time; `rialto serve` and `rialto use` keep theirs open")
    })
}

/// Asks a wallet what it can do; so it is known that it is there.
pub(crate) async fn abilities(opened: &Opened) -> Result<Abilities, Failure> {
    let wallet = opened.wallet();
    let unreachable = |cause: String| {
        Failure::new(Exit::Unreachable, format!("the wallet does not answer: {}", wallet.name()))
            .cause(cause)
            .code("wallet_unreachable")
            .hint("rialto wallet show    asks it again")
    };
    match tokio::time::timeout(PATIENCE, wallet.abilities()).await {
        Ok(Ok(abilities)) => Ok(abilities),
        Ok(Err(error)) => Err(unreachable(error.to_string())),
        Err(_) => Err(unreachable(format!("nothing came within {} s", PATIENCE.as_secs()))),
    }
}
