//! A wallet by its address. The scheme says what it is; the rest is secret and never repeated.

use crate::lnbits::Lnbits;
use crate::lnd::Lnd;
use crate::nwc::{self, Nwc, Patience};
use crate::{lnbits, lnd, rest};
use rialto_payment::secret::Secret;
use rialto_payment::wallet::{Purse, Wallet};
use std::sync::Arc;

/// What can be opened, as it is told to whoever wrote something else.
pub const SCHEMES: &[&str] = &["nostr+walletconnect://", "lnbits+https://", "lnd+https://", "cashu+https://"];

/// Why a wallet cannot be opened. What was given is not repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("the address of a wallet begins with one of: {}", SCHEMES.join(", "))]
    Scheme,
    #[error("the address of the wallet (Nostr Wallet Connect) cannot be used: {0}")]
    Nwc(#[from] nwc::Invalid),
    #[error("the address of the wallet ({0}) cannot be used: {1}")]
    Rest(&'static str, rest::Invalid),
}

/// A wallet that was opened, by what it can be used for.
#[derive(Debug, Clone)]
pub enum Opened {
    Lightning(Arc<dyn Wallet>),
    /// One that also takes and gives ecash.
    Purse(Arc<dyn Purse>),
}

impl Opened {
    /// Whatever it is, it is a Lightning wallet.
    pub fn wallet(&self) -> Arc<dyn Wallet> {
        match self {
            Opened::Lightning(wallet) => wallet.clone(),
            Opened::Purse(purse) => purse.clone(),
        }
    }
}

/// Opens a wallet; nothing is asked of it yet. Needs a tokio runtime.
pub fn open(reference: &Secret) -> Result<Opened, Error> {
    let scheme = reference.reveal().trim().split(':').next().unwrap_or_default();
    let lightning: Arc<dyn Wallet> = match scheme {
        "nostr+walletconnect" => Arc::new(Nwc::open(reference, Patience::default())?),
        "lnbits+https" | "lnbits+http" => {
            Arc::new(Lnbits::open(reference).map_err(|invalid| Error::Rest(lnbits::NAME, invalid))?)
        }
        "lnd+https" | "lnd+http" => Arc::new(Lnd::open(reference).map_err(|invalid| Error::Rest(lnd::NAME, invalid))?),
        _ => return Err(Error::Scheme),
    };
    Ok(Opened::Lightning(lightning))
}

#[cfg(test)]
mod tests {
    use super::{Error, open};
    use rialto_payment::secret::Secret;

    const KEY: &str = "b889ff5b1513b641e2a139f661a661364979c5beee91842f8f0ef42ab558e9d4";

    #[tokio::test]
    async fn the_scheme_says_what_it_is() {
        for (text, name) in [
            (
                format!("nostr+walletconnect://{KEY}?relay=ws://127.0.0.1:1&secret={KEY}"),
                "Nostr Wallet Connect to b889ff5b",
            ),
            ("lnbits+https://lnbits.example/sub?key=abc".to_owned(), "LNbits at lnbits.example"),
            ("lnbits+http://127.0.0.1:5000?key=abc".to_owned(), "LNbits at 127.0.0.1:5000"),
            ("lnd+https://node.example:8080?macaroon=0201".to_owned(), "LND at node.example:8080"),
        ] {
            let wallet = open(&Secret::new(&text)).unwrap_or_else(|error| panic!("{text}: {error}")).wallet();
            assert!(wallet.name().starts_with(name), "{}", wallet.name());
            assert_eq!(format!("{wallet:?}"), wallet.name());
        }
    }

    #[tokio::test]
    async fn what_cannot_be_opened_is_told_without_repeating_it() {
        for (text, words) in [
            ("sesame", "begins with one of"),
            ("", "begins with one of"),
            ("https://sesame.example", "begins with one of"),
            ("nostr+walletconnect://sesame?relay=wss://a.example", "public key"),
            ("lnbits+https://sesame.example", "`key=` is missing"),
            ("lnbits+http://sesame.example?key=abc", "only be on this machine"),
            ("lnbits+ftp://sesame.example?key=abc", "begins with one of"),
            ("lnd+https://sesame.example:8080", "`macaroon=` is missing"),
            ("lnd+https://a.example?macaroon=sesame", "`macaroon=` is not"),
            ("lnd+https://a.example?macaroon=02&cert=sesame", "`cert=` is not"),
            ("lnd+https://a.example?macaroon=file:/does/not/exist", "cannot be read"),
        ] {
            let error = open(&Secret::new(text)).map(|_| ()).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(shown.contains(words) && !shown.contains("sesame"), "{text}: {shown}");
        }
        assert_eq!(open(&Secret::new("x")).map(|_| ()), Err(Error::Scheme));
    }
}
