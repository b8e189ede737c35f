//! Who polls a device for received packets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{Decides, shown_by_name};
use super::descriptor::{Descriptor, word};

/// Who polls a device (NAPI, `Documentation/networking/napi.rst`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Napi {
    /// A softirq of the CPU that sent the packet or took the interrupt.
    Softirq,
    /// A kernel thread for each NAPI instance (Linux 5.12), placed by the scheduler.
    Threaded,
}

shown_by_name!(Napi);

pub(super) const NAPI: Descriptor<Option<Napi>> = Descriptor {
    name: "napi",
    summary: "who polls devices that have NAPI (veth: with gro=on tso=off): softirqs, or a thread each",
    values: "softirq, threaded (default softirq)",
    other: "threaded",
    of_devices: true,
    ..word(Decides::Lab)
};
