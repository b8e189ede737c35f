//! Offload flags of every device.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{Decides, shown_by_name};
use super::descriptor::{Descriptor, word};

/// On or off.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// Switched on.
    On,
    /// Switched off.
    Off,
}

impl Switch {
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::On => Self::Off,
            Self::Off => Self::On,
        }
    }
}

/// One offload flag, as the axes name them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OffloadFlag {
    /// TCP segmentation by the device.
    Tso,
    /// Segmentation in software just before the device.
    Gso,
    /// Merging of received packets in software.
    Gro,
    /// Merging of received packets by the device.
    Lro,
    /// Checksums by the device.
    TxChecksum,
}

impl OffloadFlag {
    /// Every flag, checksums first, because segmentation depends on them.
    pub const ALL: [Self; 5] = [Self::TxChecksum, Self::Tso, Self::Gso, Self::Gro, Self::Lro];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tso => "tso",
            Self::Gso => "gso",
            Self::Gro => "gro",
            Self::Lro => "lro",
            Self::TxChecksum => "tx_checksum",
        }
    }
}

shown_by_name!(Switch);

/// An axis that sets offloads of every device. The lab sets and reads them back together (`lab/offloads.rs`).
const fn of_devices(
    name: &'static str,
    summary: &'static str,
    other: &'static str,
) -> Descriptor<Option<Switch>> {
    Descriptor {
        name,
        summary,
        values: "on, off (default: as the kernel makes the device)",
        other,
        of_devices: true,
        ..word(Decides::Lab)
    }
}

pub(super) const ALL_OFFLOADS: Descriptor<Option<Switch>> = of_devices(
    "offload",
    "all offload flags below that a device lets one change",
    "off",
);
pub(super) const TSO: Descriptor<Option<Switch>> =
    of_devices("tso", "TCP segmentation offload on every device", "on");
pub(super) const GSO: Descriptor<Option<Switch>> =
    of_devices("gso", "generic segmentation offload on every device", "off");
pub(super) const GRO: Descriptor<Option<Switch>> =
    of_devices("gro", "generic receive offload on every device", "on");
pub(super) const LRO: Descriptor<Option<Switch>> =
    of_devices("lro", "large receive offload on every device", "off");
pub(super) const TX_CHECKSUM: Descriptor<Option<Switch>> = of_devices(
    "tx_checksum",
    "transmit checksum offload on every device",
    "on",
);
