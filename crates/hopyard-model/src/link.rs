//! The wire between two machines, if the traffic passes one.

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
    /// Its use of pause frames.
    pub flow_control: FlowControl,
    /// Whether that was negotiated with the other end. Absent if there are no pause frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub negotiated: Option<bool>,
}

/// How an end of a link uses pause frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlowControl {
    /// The device has none, such as a pure software device.
    None,
    /// It could, but neither sends nor obeys them.
    Off,
    /// It obeys them.
    Rx,
    /// It sends them.
    Tx,
    /// It sends and obeys them.
    RxTx,
}

impl FlowControl {
    /// For a device that has pause frames.
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
