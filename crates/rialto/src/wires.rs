//! The protocols between customers and providers, as they are named on the command line.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use rialto_wire::service::Wire;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WireName(pub(crate) Wire);

impl ValueEnum for WireName {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [WireName; 2] = [WireName(Wire::ALL[0]), WireName(Wire::ALL[1])];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}
