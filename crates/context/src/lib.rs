//! Context caches: a folder of documents becomes a cache, and a query with a budget selects from it. The same cache, query
//! and budget give the same bytes, on every machine.
//!
//! [`build`] makes a cache, [`Library`] answers from the caches beneath a root, [`inspect`] and [`verify`] look at them.
//! Selection itself (`selection`) is pure; every file is read through `beneath`, which cannot be led out of its folder.

mod beneath;
mod budget;
pub mod build;
mod cache;
mod digest;
mod document;
pub mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod index;
pub mod inspect;
pub mod library;
mod manifest;
pub mod reply;
mod resident;
pub mod search;
mod selection;
pub mod server;
pub mod verify;
mod words;

pub use document::Document;
pub use index::store::Store;
pub use library::Library;
pub use resident::{Checking, Interrupt};
pub use words::tokens;
