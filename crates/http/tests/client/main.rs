//! The client half over real sockets, against servers that do what they should and what they should not.

mod failures;
mod gateways;
mod logins;
mod proxies;
mod sessions;
mod stage;
mod streams;
mod versions;
