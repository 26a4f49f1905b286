//! The buying side.
