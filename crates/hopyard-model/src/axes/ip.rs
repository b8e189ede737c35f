//! IP version and MTU.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{AxisError, Decides, Descriptor, choice, shown_as, size};

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

const FAMILIES: [(&str, Family); 2] = [("4", Family::V4), ("6", Family::V6)];

shown_as!(Family: FAMILIES);

pub(super) struct FamilyAxis;

impl Descriptor for FamilyAxis {
    type Value = Family;
    const NAME: &'static str = "family";
    const SUMMARY: &'static str = "IP version";
    const VALUES: &'static str = "4, 6 (default 4)";
    const OTHER: &'static str = "6";
    const ABSENT: Self::Value = Family::V4;
    const DECIDES: Decides = Decides::Lab;
    const OF_DEVICES: bool = true;

    fn parse(text: &str) -> Result<Self::Value, AxisError> {
        choice(Self::NAME, text, &FAMILIES)
    }

    fn print(value: &Self::Value) -> Option<String> {
        Some(value.to_string())
    }
}

pub(super) struct Mtu;

impl Descriptor for Mtu {
    type Value = u32;
    const NAME: &'static str = "mtu";
    const SUMMARY: &'static str = "MTU of every device of the path";
    const VALUES: &'static str = "1280 to 65535 (default 1500)";
    const OTHER: &'static str = "9000";
    const ABSENT: Self::Value = 1500;
    const DECIDES: Decides = Decides::Lab;
    const OF_DEVICES: bool = true;

    fn parse(text: &str) -> Result<Self::Value, AxisError> {
        size(Self::NAME, text, 1280, 65535)
    }

    fn print(value: &Self::Value) -> Option<String> {
        Some(value.to_string())
    }
}
