//! How many flows there are, what sends them, and when they begin.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{AxisError, Decides, Descriptor, count, one_of, optional_text, shown_as};
use crate::Start as Beginning;

/// Most flows of a load.
pub const MOST_FLOWS: u32 = 1000;

/// What sends a load's flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Containers {
    /// A process for each flow, all of them in one endpoint.
    Native,
    /// A container for each flow: a process with network, PID, mount and cgroup namespaces of its own.
    Own,
}

const CONTAINERS: [(&str, Containers); 2] =
    [("native", Containers::Native), ("own", Containers::Own)];

shown_as!(Containers: CONTAINERS);

pub(super) struct Flows;

impl Descriptor for Flows {
    type Value = u32;
    const NAME: &'static str = "flows";
    const SUMMARY: &'static str = "connections or datagram flows side by side";
    const VALUES: &'static str = "1 to 1000 (default 1)";
    const OTHER: &'static str = "8";
    const ABSENT: Self::Value = 1;
    const DECIDES: Decides = Decides::LabOfProcesses;
    const COUNTS: bool = true;

    fn parse(text: &str) -> Result<Self::Value, AxisError> {
        count(Self::NAME, text, 1, MOST_FLOWS)
    }

    fn print(value: &Self::Value) -> Option<String> {
        Some(value.to_string())
    }
}

pub(super) struct ContainersAxis;

impl Descriptor for ContainersAxis {
    type Value = Option<Containers>;
    const NAME: &'static str = "containers";
    const SUMMARY: &'static str =
        "a process for each flow's sender: all in one endpoint, or each in a container";
    const VALUES: &'static str = "native, own (default: one process, a thread for each flow)";
    const OTHER: &'static str = "own";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_PATH: bool = true;

    one_of!(CONTAINERS);
}

pub(super) struct Start;

impl Descriptor for Start {
    type Value = Option<Beginning>;
    const NAME: &'static str = "start";
    const SUMMARY: &'static str =
        "when the flows begin; the window opens after the last of them has";
    const VALUES: &'static str = "simultaneous, staggered:TIME (default simultaneous)";
    const OTHER: &'static str = "staggered:250us";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Traffic;

    optional_text!();
}
