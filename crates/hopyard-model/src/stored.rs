//! A run as its directory stores it: what was planned and where, the samples, and how it ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Cell, CpuTolerance, EndpointsAsked, Environment, Feature, FilterChain, OffloadSurvey,
    ProfileWindow, Published, Sample, SettingsReport, TraceSummary, grouped,
};

/// Version of the files.
pub const SCHEMA: &str = "hopyard/store/1";

/// A cell of the run, and the reason if it is not measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedCell {
    pub cell: Cell,
    /// Why this host cannot build it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<String>,
    /// Whether packet filter rules of the hub see its traffic. Absent in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter_sees: Option<bool>,
    /// Where its traffic can be filtered if rules of the hub do not see it, as text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules_instead: Option<String>,
    /// Chains of the user's rules in the hub, with what they saw when its lab was tried; none if the path has no hub.
    /// Absent without rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chains: Option<Vec<FilterChain>>,
    /// What its path offers besides speed. Absent in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offers: Option<Vec<Feature>>,
    /// The most that the generator can do for this load, in units of its main figure per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_per_s: Option<f64>,
}

/// The plan of a run, and its machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the format: [`SCHEMA`].
    pub schema: String,
    /// Id: time and plan.
    pub id: String,
    /// Name of the plan.
    pub plan: String,
    /// Seed of every random order.
    pub seed: u64,
    /// When the run began (RFC 3339).
    pub started: String,
    /// Length of a measured window, ns.
    pub window_ns: u64,
    /// Time of traffic before each window that is not counted, ns.
    pub warm_up_ns: u64,
    /// Length of a profile's window, ns, if the plan gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile_window_ns: Option<u64>,
    /// Smallest number of blocks.
    pub blocks_min: u32,
    /// Largest number of blocks.
    pub blocks_max: u32,
    /// Half-width at which measuring may stop, as a share.
    pub half_width: f64,
    /// Confidence of intervals, 0 to 1.
    pub confidence: f64,
    /// Margin of equivalence, as a share.
    pub margin: f64,
    /// What others are compared with: a path, or `AXIS=VALUE`.
    pub base: Option<String>,
    /// Whether the user gave that base. Then nothing replaces it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub base_asked: bool,
    /// Whether the user gave the time limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub limit_asked: bool,
    /// What the recommended path must offer, as given with the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Feature>,
    /// Time after which measuring ends, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ns: Option<u64>,
    /// The difference that every comparison must be able to show before measuring ends, as a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decide: Option<f64>,
    /// Length of the longest window of a turn, ns, if cells take turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_ns: Option<u64>,
    /// Length of the shortest, ns, if cells differ by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortest_turn_ns: Option<u64>,
    /// Whether a profile is taken besides each sample.
    #[serde(default)]
    pub profile: bool,
    /// Names of paths left out because this host cannot build them, with the reason.
    pub left_out: Vec<(String, String)>,
    /// Published figures of the plan's report, one entry per table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// The two settings of the host that are compared. A record: nothing that reads it runs the commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<SettingsReport>,
    /// The endpoints of path `as-is`, as given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<EndpointsAsked>,
    /// The largest loss against the base that the gate allows, as a share, if the run is a gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_on: Option<f64>,
    /// The state that the kernel makes of combinations of offloads, if the run is a sweep of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offloads: Option<OffloadSurvey>,
    /// The traces that cells replay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<TraceSummary>,
    /// The cells, in the plan's order.
    pub cells: Vec<PlannedCell>,
    /// Machine and kernel on which the run began.
    pub environment: Environment,
}

impl Header {
    /// How precisely the CPU time of a sample must be known: as finely as the run compares figures, by the width of its
    /// intervals or by its margin of equivalence.
    #[must_use]
    pub fn cpu_tolerance(&self) -> CpuTolerance {
        /// For a run that sets neither, which older versions allowed.
        const USUAL: f64 = 0.02;
        let asked = [self.half_width, self.margin]
            .into_iter()
            .filter(|share| *share > 0.0);
        CpuTolerance(asked.reduce(f64::min).unwrap_or(USUAL))
    }
}

/// The paths that were left out, grouped by reason.
#[must_use]
pub fn by_reason(left_out: &[(String, String)]) -> Vec<(&str, Vec<&str>)> {
    grouped(left_out.iter().map(|(name, why)| (&**why, &**name)))
}

/// Which paths were left out and why, as text for people; `None` if none was.
#[must_use]
pub fn left_out_in_words(left_out: &[(String, String)]) -> Option<String> {
    let said = by_reason(left_out);
    let said = said
        .iter()
        .map(|(why, names)| format!("{} ({why})", names.join(", ")));
    let said = said.collect::<Vec<_>>().join("; ");
    (!said.is_empty()).then(|| {
        format!("This host cannot build some paths, so all of their cells are left out: {said}.")
    })
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// As planned: intervals were narrow enough, or the most blocks were reached.
    Complete,
    /// The time limit came first.
    TimeLimit,
    /// The user stopped it with a signal.
    Interrupted,
}

/// A stored run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its plan and machine.
    pub header: Header,
    /// Samples in the order in which they were taken.
    pub samples: Vec<Sample>,
    /// Its profiles.
    pub profiles: Vec<ProfileWindow>,
    /// How it ended; `None` if the program was killed.
    pub end: Option<End>,
}
