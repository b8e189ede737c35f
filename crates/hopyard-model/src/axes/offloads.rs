//! Offload flags of every device.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{AxisError, Decides, Descriptor, choice, shown, shown_as};

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

pub(super) const SWITCHES: [(&str, Switch); 2] = [("on", Switch::On), ("off", Switch::Off)];

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

shown_as!(Switch: SWITCHES);

/// An axis that sets offloads of every device. The lab sets and reads them back together (`lab/offloads.rs`).
macro_rules! offload_axis {
    ($axis:ident, $name:literal, $summary:literal, $other:literal) => {
        #[doc = $summary]
        pub(super) struct $axis;

        impl Descriptor for $axis {
            type Value = Option<Switch>;
            const NAME: &'static str = $name;
            const SUMMARY: &'static str = $summary;
            const VALUES: &'static str = "on, off (default: as the kernel makes the device)";
            const OTHER: &'static str = $other;
            const ABSENT: Self::Value = None;
            const DECIDES: Decides = Decides::Lab;
            const OF_DEVICES: bool = true;

            fn parse(text: &str) -> Result<Self::Value, AxisError> {
                Ok(Some(choice(Self::NAME, text, &SWITCHES)?))
            }

            fn print(value: &Self::Value) -> Option<String> {
                shown(value)
            }
        }
    };
}

offload_axis!(
    AllOffloads,
    "offload",
    "all offload flags below that a device lets one change",
    "off"
);
offload_axis!(Tso, "tso", "TCP segmentation offload on every device", "on");
offload_axis!(
    Gso,
    "gso",
    "generic segmentation offload on every device",
    "off"
);
offload_axis!(Gro, "gro", "generic receive offload on every device", "on");
offload_axis!(Lro, "lro", "large receive offload on every device", "off");
offload_axis!(
    TxChecksum,
    "tx_checksum",
    "transmit checksum offload on every device",
    "on"
);
