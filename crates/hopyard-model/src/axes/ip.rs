//! IP version and MTU.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{Decides, one_of, shown_by_name};
use super::descriptor::{Descriptor, always, size};

/// The IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Family {
    /// IPv4.
    #[serde(rename = "4")]
    V4,
    /// IPv6.
    #[serde(rename = "6")]
    V6,
}

shown_by_name!(Family);

pub(super) const FAMILY: Descriptor<Family> = Descriptor {
    name: "family",
    summary: "IP version",
    values: "4, 6 (default 4)",
    other: "6",
    of_devices: true,
    ..always(Decides::Lab, || Family::V4, one_of)
};

pub(super) const MTU: Descriptor<u32> = Descriptor {
    name: "mtu",
    summary: "MTU of every device of the path",
    values: "1280 to 65535 (default 1500)",
    other: "9000",
    of_devices: true,
    is_quantity: true,
    ..always(Decides::Lab, || 1500, size::<1280, 65535>)
};
