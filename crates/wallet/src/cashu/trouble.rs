//! What went wrong at a mint, in the words of every wallet.

use cdk::Error as Cdk;
use rialto_payment::wallet::Error;
use std::future::Future;
use std::time::Duration;

/// How long a mint may take for one step. One that needs longer is asked again, and whatever it did meanwhile is found.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest words of a mint that are passed on.
const MAX_WORDS: usize = 200;

/// Waits for a mint, but not for ever. What is given up on here is found again as after a crash.
pub(super) async fn within<T>(step: impl Future<Output = Result<T, Cdk>>) -> Result<T, Cdk> {
    // Boxed, since what the library does in one step is large.
    tokio::time::timeout(PATIENCE, Box::pin(step)).await.unwrap_or(Err(Cdk::Timeout))
}

/// For a step that changes nothing at the mint, or is known to have changed nothing.
pub(super) fn undone(error: &Cdk) -> Error {
    match error {
        Cdk::TokenAlreadySpent => Error::Refused("already spent".into()),
        Cdk::InsufficientFunds => Error::Insufficient,
        Cdk::Timeout => Error::Unreachable("the mint does not answer".into()),
        Cdk::TokenPending => Error::Unreachable("the mint is busy with these coins".into()),
        Cdk::HttpError(None, words) => Error::Unreachable(short(words)),
        Cdk::HttpError(Some(status), words) if *status >= 500 || *status == 429 => Error::Unreachable(short(words)),
        Cdk::Database(error) => own(error),
        error => Error::Refused(short(error)),
    }
}

/// For a step of which nobody knows whether it was done.
pub(super) fn unknown(error: &Cdk) -> Error {
    Error::Unknown(short(error))
}

/// When our own store fails.
pub(super) fn own(error: impl std::fmt::Display) -> Error {
    Error::Unreachable(format!("the wallet's own store fails: {}", short(error)))
}

/// Words by others, made harmless.
pub(super) fn short(words: impl std::fmt::Display) -> String {
    let words = words.to_string();
    let mut harmless: String = words.chars().filter(|letter| !letter.is_control()).take(MAX_WORDS).collect();
    if harmless.is_empty() {
        harmless.push_str("without a word");
    }
    harmless
}
