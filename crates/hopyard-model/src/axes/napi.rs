//! Who polls a device for received packets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{Decides, Descriptor, one_of, shown_as};

/// Who polls a device (NAPI, `Documentation/networking/napi.rst`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Napi {
    /// A softirq of the CPU that sent the packet or took the interrupt.
    Softirq,
    /// A kernel thread for each NAPI instance (Linux 5.12), placed by the scheduler.
    Threaded,
}

const POLLERS: [(&str, Napi); 2] = [("softirq", Napi::Softirq), ("threaded", Napi::Threaded)];

shown_as!(Napi: POLLERS);

pub(super) struct NapiAxis;

impl Descriptor for NapiAxis {
    type Value = Option<Napi>;
    const NAME: &'static str = "napi";
    const SUMMARY: &'static str =
        "who polls devices that have NAPI (veth: with gro=on tso=off): softirqs, or a thread each";
    const VALUES: &'static str = "softirq, threaded (default softirq)";
    const OTHER: &'static str = "threaded";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_DEVICES: bool = true;

    one_of!(POLLERS);
}
