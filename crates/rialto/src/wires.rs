//! The protocols between customers and providers, as they are named on the command line.

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use rialto_consumer::remote::Terms;
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

/// Which way requests go.
#[derive(Debug, Clone, Args)]
pub(crate) struct WayFlags {
    /// Call the service over this wire [default: the most private way that it offers]
    #[arg(long, value_name = "WIRE")]
    wire: Option<WireName>,

    /// Seal nothing, also if the service could read it: everybody can see who calls, and over dvmcp also what
    #[arg(long)]
    plain: bool,
}

impl WayFlags {
    pub(crate) fn terms(&self) -> Terms {
        Terms { wire: self.wire.map(|name| name.0), plain: self.plain }
    }
}
