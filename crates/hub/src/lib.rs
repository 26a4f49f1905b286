//! Sources of tools behind one catalogue. The hub knows neither wires nor sources by name.

pub mod plan;
