//! The wallet of whoever runs this: where its address is kept, and how it is opened. The address is a secret.

use std::path::PathBuf;
use std::time::Duration;

use rialto_payment::secret::Secret;
use rialto_payment::wallet::Abilities;
use rialto_wallet::reference::{self, Opened};

use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::identity;
use crate::secret_file::{self, What};

/// How long a wallet may take to say what it can do.
const PATIENCE: Duration = Duration::from_secs(20);

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
        return read.map(Secret::new).ok_or_else(|| missing(format!("there is no file `{path}`")));
    }
    Ok(Secret::new(text))
}

/// Opens a wallet; nothing is asked of it yet.
pub(crate) fn open(address: &Secret) -> Result<Opened, Failure> {
    reference::open(address).map_err(|error| Failure::usage(error.to_string()).code("wallet_invalid"))
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
