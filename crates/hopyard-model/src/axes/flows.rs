//! How many flows there are, what sends them, and when they begin.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{Decides, shown_by_name};
use super::descriptor::{Descriptor, always, count, text, word};
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

shown_by_name!(Containers);

pub(super) const FLOWS: Descriptor<u32> = Descriptor {
    name: "flows",
    summary: "connections or datagram flows side by side",
    values: "1 to 1000 (default 1)",
    other: "8",
    counts: true,
    is_quantity: true,
    ..always(Decides::LabOfProcesses, || 1, count::<1, MOST_FLOWS>)
};

pub(super) const CONTAINERS: Descriptor<Option<Containers>> = Descriptor {
    name: "containers",
    summary: "a process for each flow's sender: all in one endpoint, or each in a container",
    values: "native, own (default: one process, a thread for each flow)",
    other: "own",
    of_path: true,
    ..word(Decides::Lab)
};

pub(super) const START: Descriptor<Option<Beginning>> = Descriptor {
    name: "start",
    summary: "when the flows begin; the window opens after the last of them has",
    values: "simultaneous, staggered:TIME (default simultaneous)",
    other: "staggered:250us",
    ..text(Decides::Traffic)
};
