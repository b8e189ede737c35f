//! Which CPUs the ends run on, and how they are scheduled there.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{Decides, one_of, shown_by_name};
use super::descriptor::{Descriptor, always, text, word};
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

shown_by_name!(Placement, Scheduler);

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

/// CPUs of the client's flows, whatever the placement.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ClientCpus {
    /// These, in turn.
    These(Cpus),
    /// So many of those that the placement gives.
    Number(ClientCpuNumber),
}

/// How many CPUs the client's flows have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClientCpuNumber {
    /// All flows share one.
    One,
}

impl ClientCpus {
    /// Their numbers. `placed` are the CPUs that the placement gives the client, none if it leaves them to the scheduler; `allowed` are
    /// those that the run may use.
    #[must_use]
    pub fn among(&self, placed: &[usize], allowed: &[usize]) -> Vec<usize> {
        match self {
            Self::These(cpus) => cpus.0.clone(),
            Self::Number(ClientCpuNumber::One) => placed
                .first()
                .or(allowed.first())
                .copied()
                .into_iter()
                .collect(),
        }
    }
}

impl fmt::Display for ClientCpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::These(cpus) => cpus.fmt(f),
            Self::Number(ClientCpuNumber::One) => f.pad(ONE),
        }
    }
}

impl FromStr for ClientCpus {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        match text {
            ONE => Ok(Self::Number(ClientCpuNumber::One)),
            _ => text.parse().map(Self::These),
        }
    }
}

const ONE: &str = "one";

pub(super) const PLACEMENT: Descriptor<Placement> = Descriptor {
    name: "placement",
    summary: "CPUs of the two ends",
    values: "same, split, free (default split)",
    other: "same",
    ..always(Decides::Lab, || Placement::Split, one_of)
};

pub(super) const CLIENT_CPUS: Descriptor<Option<ClientCpus>> = Descriptor {
    name: "client_cpus",
    summary: "CPUs of the client's flows, in turn, whatever the placement",
    values: "one (the first of those by the placement), 0, 0-3, 0+2, … (default: all by the placement)",
    other: "0-1+3",
    ..text(Decides::Traffic)
};

pub(super) const SCHEDULER: Descriptor<Option<Scheduler>> = Descriptor {
    name: "scheduler",
    summary: "how the kernel schedules the client's flows",
    values: "default, round-robin (SCHED_RR), groups (a CPU share for each process; takes `containers`)",
    other: "round-robin",
    ..word(Decides::Lab)
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_cpus_reach_as_far_as_kernels_do() {
        assert_eq!("8191".parse(), Ok(Cpus(vec![8191])));
        assert!("8192".parse::<Cpus>().is_err());
    }

    #[test]
    fn one_cpu_of_the_client_is_the_first_that_it_has() {
        let one: ClientCpus = "one".parse().unwrap();
        assert_eq!(one.to_string(), "one");
        let json = serde_json::to_string(&one).unwrap();
        assert_eq!(json, "\"one\"");
        assert_eq!(serde_json::from_str::<ClientCpus>(&json).unwrap(), one);
        assert_eq!(one.among(&[4, 5], &[4, 5, 6, 7]), [4]);
        assert_eq!(one.among(&[], &[6, 7]), [6]);
        // As versions before wrote them.
        let these: ClientCpus = serde_json::from_str("[0,2]").unwrap();
        assert_eq!(these, "0+2".parse().unwrap());
        assert_eq!(these.among(&[4, 5], &[4, 5, 6, 7]), [0, 2]);
        assert!("two".parse::<ClientCpus>().is_err());
    }
}
