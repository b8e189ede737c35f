//! Which CPUs the ends run on, and how they are scheduled there.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{AxisError, Decides, Descriptor, choice, one_of, optional_text, shown_as};
use crate::units::{self, NotAQuantity};

/// Where the two ends run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// Both ends on one CPU.
    Same,
    /// The ends on different CPUs; refused if there is only one CPU.
    Split,
    /// Wherever the scheduler puts them.
    Free,
}

const PLACEMENTS: [(&str, Placement); 3] = [
    ("same", Placement::Same),
    ("split", Placement::Split),
    ("free", Placement::Free),
];

/// How the kernel schedules the threads that make the client's load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// As everything else (`SCHED_OTHER`).
    Default,
    /// Round robin, with slices of fixed length (`SCHED_RR`).
    RoundRobin,
    /// As everything else, with a share of the CPU for each process (a cgroup v2 with the `cpu` controller).
    Groups,
}

const SCHEDULERS: [(&str, Scheduler); 3] = [
    ("default", Scheduler::Default),
    ("round-robin", Scheduler::RoundRobin),
    ("groups", Scheduler::Groups),
];

shown_as!(Placement: PLACEMENTS, Scheduler: SCHEDULERS);

/// CPUs by number, ascending.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Cpus(pub Vec<usize>);

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.pad(&numbers.join("+"))
    }
}

impl FromStr for Cpus {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        units::parse_cpus(text).map(Self)
    }
}

pub(super) struct PlacementAxis;

impl Descriptor for PlacementAxis {
    type Value = Placement;
    const NAME: &'static str = "placement";
    const SUMMARY: &'static str = "CPUs of the two ends";
    const VALUES: &'static str = "same, split, free (default split)";
    const OTHER: &'static str = "same";
    const ABSENT: Self::Value = Placement::Split;
    const DECIDES: Decides = Decides::Lab;

    fn parse(text: &str) -> Result<Self::Value, AxisError> {
        choice(Self::NAME, text, &PLACEMENTS)
    }

    fn print(value: &Self::Value) -> Option<String> {
        Some(value.to_string())
    }
}

pub(super) struct ClientCpus;

impl Descriptor for ClientCpus {
    type Value = Option<Cpus>;
    const NAME: &'static str = "client_cpus";
    const SUMMARY: &'static str = "CPUs of the client's flows, in turn, whatever the placement";
    const VALUES: &'static str = "0, 0-3, 0+2, … (default: by the placement)";
    const OTHER: &'static str = "0-1+3";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Traffic;

    optional_text!();
}

pub(super) struct SchedulerAxis;

impl Descriptor for SchedulerAxis {
    type Value = Option<Scheduler>;
    const NAME: &'static str = "scheduler";
    const SUMMARY: &'static str = "how the kernel schedules the client's flows";
    const VALUES: &'static str = "default, round-robin (SCHED_RR), groups (a CPU share for each process; takes `containers`)";
    const OTHER: &'static str = "round-robin";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;

    one_of!(SCHEDULERS);
}
