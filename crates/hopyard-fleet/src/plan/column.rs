//! The figures that are kept of each pair.

use hopyard_model::loads::Load;
use hopyard_model::{LoadKind, quantity};

/// A figure that each pair has of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The load.
    pub load: LoadKind,
    /// Name of the quantity, with its unit.
    pub quantity: &'static str,
}

/// The main figure of a load first, then what it costs, then its latency.
pub(super) fn quantities(load: &Load) -> Vec<&'static str> {
    let latency = [quantity::LATENCY_P50, quantity::LATENCY_P99];
    let mut all = vec![load.main_figure, load.unit.cost()];
    if load.timed.is_some() {
        all.extend(latency.iter().filter(|name| **name != load.main_figure));
    }
    all
}

impl Column {
    /// Is it what pairs and machines are ranked by?
    #[must_use]
    pub(crate) fn is_main(&self) -> bool {
        self.quantity == self.load.info().main_figure
    }

    /// Is more of it better?
    #[must_use]
    pub fn more_is_better(&self) -> bool {
        !(self.quantity.contains("_ns") || self.quantity.ends_with("_ratio"))
    }

    /// The unit, which the name ends with.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        const UNITS: [(&str, &str); 7] = [
            ("_packets_per_s", "packets/s"),
            ("_bps", "bit/s"),
            ("transactions_per_s", "transactions/s"),
            ("_ns_per_byte", "ns/byte"),
            ("_ns_per_packet", "ns/packet"),
            ("_ns_per_transaction", "ns/transaction"),
            ("_ns", "ns"),
        ];
        let found = UNITS.iter().find(|(end, _)| self.quantity.ends_with(end));
        found.map_or("1", |(_, unit)| unit)
    }
}
