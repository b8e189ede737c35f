//! The kinds of values that axes have.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::UnknownName;
use crate::units::{self, NotAQuantity};

/// Where the two ends run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// Both ends on one CPU.
    Same,
    /// The ends on different CPUs; refused where there is one CPU only.
    Split,
    /// Wherever the scheduler puts them.
    Free,
}

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

/// Who chooses the queue of a tap by which a frame leaves the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Steering {
    /// The kernel: a flow stays where its answers came in.
    Kernel,
    /// A hash of addresses, protocol and ports.
    Hash,
    /// The CPU that sends.
    Cpu,
}

/// Which frames of a TCP flow that are there together the tap switch writes as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Join {
    /// None.
    Off,
    /// Those that, cut again, are the packets that they were: the rules of GRO.
    Packets,
    /// All that follow each other in the stream.
    Stream,
}

/// What the senders of a load's flows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Containers {
    /// A process for each flow, all of them in one endpoint.
    Native,
    /// A container for each flow: a process with network, PID, mount and cgroup namespaces of its own.
    Own,
}

/// How the kernel schedules the threads that make the client's load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// As it schedules everything else (`SCHED_OTHER`).
    Default,
    /// Each in its turn, for a slice of fixed length (`SCHED_RR`).
    RoundRobin,
    /// As everything else, with a share of the CPU for each process (a cgroup v2 with the `cpu` controller).
    Groups,
}

/// What lies between two neighbours of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Segments {
    /// A veth pair.
    Veth,
    /// A Linux bridge in the hub.
    Bridge,
    /// Two macvlans on one device of the hub.
    Macvlan,
    /// A direct switch in the hub.
    Direct,
}

/// CPUs by number, ascending.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Cpus(pub Vec<usize>);

/// How the times between two messages are spread about their mean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// All the same.
    #[default]
    Constant,
    /// Exponential: the messages are a Poisson process.
    Poisson,
}

/// What a guest's card is attached to in the hub.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Attach {
    /// A tap, a port of a Linux bridge.
    #[default]
    Bridge,
    /// A tap, a port of the direct switch.
    Direct,
    /// A macvtap on the uplink, bridge mode.
    Macvtap,
}

impl Attach {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Bridge, Self::Direct, Self::Macvtap];
}

/// Where the kernel runs the programs of the direct switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Hook {
    /// tcx (Linux 6.6): each device waits for a grace period, some 10 ms.
    Tcx,
    /// Classifiers of a `clsact`, as before tcx.
    Clsact,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// Switched on.
    On,
    /// Switched off.
    Off,
}

impl Switch {
    /// `Off` for `On`, and `On` for `Off`.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::On => Self::Off,
            Self::Off => Self::On,
        }
    }
}

/// One of two settings of this host that are compared in one run; what each does is a command's business.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Setting {
    /// The one compared with.
    A,
    /// The one that is compared.
    B,
}

impl Setting {
    /// Both.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// Its name on the command line, in JSON and in the environment of its command.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }
}

/// The rate of the wire in bit/s of Ethernet frames (without FCS); `None` leaves it unshaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Rate(pub Option<u64>);

/// One offload flag as the axes name them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OffloadFlag {
    /// TCP segmentation by the device.
    Tso,
    /// Segmentation just before the device.
    Gso,
    /// Merging on receipt.
    Gro,
    /// Merging by the device.
    Lro,
    /// Checksums by the device.
    TxChecksum,
}

impl OffloadFlag {
    /// Every flag, checksums first: segmentation depends on them.
    pub const ALL: [Self; 5] = [Self::TxChecksum, Self::Tso, Self::Gso, Self::Gro, Self::Lro];

    /// The axis' name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tso => "tso",
            Self::Gso => "gso",
            Self::Gro => "gro",
            Self::Lro => "lro",
            Self::TxChecksum => "tx_checksum",
        }
    }
}

pub(super) const PLACEMENTS: [(&str, Placement); 3] = [
    ("same", Placement::Same),
    ("split", Placement::Split),
    ("free", Placement::Free),
];
pub(super) const STEERINGS: [(&str, Steering); 3] = [
    ("kernel", Steering::Kernel),
    ("hash", Steering::Hash),
    ("cpu", Steering::Cpu),
];
pub(super) const JOINS: [(&str, Join); 3] = [
    ("off", Join::Off),
    ("packets", Join::Packets),
    ("stream", Join::Stream),
];
pub(super) const CONTAINERS: [(&str, Containers); 2] =
    [("native", Containers::Native), ("own", Containers::Own)];
pub(super) const SCHEDULERS: [(&str, Scheduler); 3] = [
    ("default", Scheduler::Default),
    ("round-robin", Scheduler::RoundRobin),
    ("groups", Scheduler::Groups),
];
pub(super) const SEGMENTS: [(&str, Segments); 4] = [
    ("veth", Segments::Veth),
    ("bridge", Segments::Bridge),
    ("macvlan", Segments::Macvlan),
    ("direct", Segments::Direct),
];
pub(super) const DISTRIBUTIONS: [(&str, Distribution); 2] = [
    ("constant", Distribution::Constant),
    ("poisson", Distribution::Poisson),
];
pub(super) const ATTACHES: [(&str, Attach); 3] = [
    ("bridge", Attach::Bridge),
    ("direct", Attach::Direct),
    ("macvtap", Attach::Macvtap),
];
pub(super) const HOOKS: [(&str, Hook); 2] = [("tcx", Hook::Tcx), ("clsact", Hook::Clsact)];
pub(super) const SETTINGS: [(&str, Setting); 2] = [("A", Setting::A), ("B", Setting::B)];
pub(super) const FAMILIES: [(&str, Family); 2] = [("4", Family::V4), ("6", Family::V6)];
pub(super) const SWITCHES: [(&str, Switch); 2] = [("on", Switch::On), ("off", Switch::Off)];

/// Shows values by the words that they are read by.
macro_rules! shown_as {
    ($($kind:ty: $words:ident),+ $(,)?) => {$(
        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let word = $words.iter().find(|(_, value)| value == self);
                f.pad(word.map_or("", |(word, _)| word))
            }
        }
    )+};
}

shown_as!(
    Placement: PLACEMENTS,
    Family: FAMILIES,
    Steering: STEERINGS,
    Join: JOINS,
    Containers: CONTAINERS,
    Scheduler: SCHEDULERS,
    Segments: SEGMENTS,
    Distribution: DISTRIBUTIONS,
    Attach: ATTACHES,
    Hook: HOOKS,
    Switch: SWITCHES,
    Setting: SETTINGS,
);

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

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.map_or_else(|| "none".to_owned(), units::show_rate))
    }
}

impl FromStr for Rate {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        if text == "none" {
            Ok(Self(None))
        } else {
            units::parse_rate(text).map(|r| Self(Some(r)))
        }
    }
}

/// The value of that name.
pub(super) fn choice<T: Copy>(
    kind: &'static str,
    text: &str,
    values: &[(&'static str, T)],
) -> Result<T, UnknownName> {
    values
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, value)| *value)
        .ok_or_else(|| UnknownName {
            kind,
            name: text.to_owned(),
            choices: values
                .iter()
                .map(|(name, _)| *name)
                .collect::<Vec<_>>()
                .join(", "),
        })
}
