//! The tools that write events, against a relay: what they publish is compared with the NIPs tag by tag, and what they refuse
//! is refused where the fault is.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

#[path = "compose/world.rs"]
mod world;

#[path = "compose/everything.rs"]
mod everything;
#[path = "compose/groups.rs"]
mod groups;
#[path = "compose/lists.rs"]
mod lists;
#[path = "compose/notes.rs"]
mod notes;
#[path = "compose/polls.rs"]
mod polls;
#[path = "compose/threads.rs"]
mod threads;
