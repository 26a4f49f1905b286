//! OAuth 2.1 for servers that ask who we are.
//!
//! A server says no and names its metadata ([`Challenge`]); the metadata name the authorization server and what it can do
//! ([`discovery`]); there we are known already or make ourselves known ([`registration`]); a person agrees in a browser
//! ([`login`]); and the tokens are kept for the next time ([`vault`]). The grants themselves are the `oauth2` crate's work.
//!
//! Nothing here prints a token, and no token goes to a host that it is not for.

mod authorizer;
mod challenge;
mod discovery;
mod grant;
mod login;
mod registration;
mod vault;

pub use authorizer::{Authorizer, Settings};
pub use login::Browser;
pub use vault::{Entry, Vault};

pub(super) use challenge::Challenge;

use std::sync::Arc;

/// Why we cannot prove who we are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    #[error("login needed: {hint}")]
    LoginNeeded { hint: Arc<str> },
    #[error("the server wants rights that it did not grant ({scopes})")]
    NotEnough { scopes: String },
    #[error("{what} cannot be had: {why}")]
    Unreachable { what: &'static str, why: Arc<str> },
    #[error("{what} cannot be understood: {why}")]
    Unreadable { what: &'static str, why: String },
    #[error("{what} is at `{address}`, which is neither https nor on this machine beside the server")]
    Insecure { what: &'static str, address: String },
    #[error("the server's metadata are for `{told}`, which it is not")]
    WrongResource { told: String },
    #[error("the authorization server `{asked}` has no metadata")]
    NoMetadata { asked: String },
    #[error("the metadata of `{asked}` say that they are of `{told}`")]
    WrongIssuer { asked: String, told: String },
    #[error("the authorization server does not protect codes (PKCE with S256)")]
    NoPkce,
    #[error("the authorization server knows no way to register; set a client id for this server")]
    NoRegistration,
    #[error("the authorization server refused to register us: {0}")]
    Registration(String),
    #[error("the answer of the login does not come from the authorization server that was asked")]
    WrongAnswer,
    #[error("the login was refused: {0}")]
    Denied(String),
    #[error("nobody logged in within {0} s")]
    TooLate(u64),
    #[error("no port for the answer of the login: {0}")]
    NoPort(String),
    #[error("the authorization server gave no token: {0}")]
    NoToken(String),
    #[error(transparent)]
    Store(#[from] rialto_store::Error),
}

/// Words of a stranger, short and without anything that could steer a terminal.
fn harmless(words: &str) -> String {
    const SHOWN: usize = 200;
    words.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN).collect()
}
