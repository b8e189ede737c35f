//! The link that traffic passes, where it passes one.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One end of the link, and its flow control by pause frames (IEEE 802.3, annex 31B).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct LinkEnd {
    /// Namespace by its role in the lab.
    pub namespace: String,
    /// Name of the device in its namespace.
    pub name: String,
    /// What it does about pause frames.
    pub flow_control: FlowControl,
    /// Is that agreed on with the other end? Absent where there are no pause frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub negotiated: Option<bool>,
}

/// What an end of a link does about pause frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlowControl {
    /// The device has none, as those that are software alone.
    None,
    /// It could, and neither sends nor heeds them.
    Off,
    /// It heeds them.
    Rx,
    /// It sends them.
    Tx,
    /// It sends and heeds them.
    RxTx,
}

impl FlowControl {
    /// Of a device that has pause frames.
    #[must_use]
    pub fn of(rx: bool, tx: bool) -> Self {
        match (rx, tx) {
            (false, false) => Self::Off,
            (true, false) => Self::Rx,
            (false, true) => Self::Tx,
            (true, true) => Self::RxTx,
        }
    }
}

impl fmt::Display for FlowControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::None => "no pause frames",
            Self::Off => "pause frames switched off",
            Self::Rx => "pause frames that it heeds and does not send",
            Self::Tx => "pause frames that it sends and does not heed",
            Self::RxTx => "pause frames that it sends and heeds",
        })
    }
}
