//! The selling side.
