//! Plans: what to measure, how precisely, and for how long at most.
//!
//! A plan is checked completely before anything is built: its text with file, line and key ([`file`]), its cells
//! against what this host can do ([`expand`]).

mod carried;
mod choice;
mod endpoints;
mod expand;
mod file;
mod offloads;
mod published;
mod source;
mod trace;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub(crate) use carried::carried;
pub(crate) use expand::base_with_digest;
pub use expand::{Error as ExpandError, Expanded, expand};
pub use file::{base, parse, time_limit, warm_up, window};
pub use offloads::offloads;
pub use source::Error as FileError;
pub use trace::TraceError;
pub(crate) use trace::spec_of;
pub(crate) use trace::summaries as traces;

use crate::lab::Endpoints;
use crate::model::{Blocks, FOR_A_VERDICT, Feature, LoadKind, Peer, Published, Setting, Settings};

/// What to measure and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the plan, which is part of the id of its runs.
    pub name: String,
    /// A line about it.
    pub summary: String,
    /// The parts from which cells are made, in the order of the tables; a cell of several parts counts once.
    pub parts: Vec<Part>,
    /// What others are compared with: a path, `AXIS=VALUE`, or `offload`.
    pub base: Option<String>,
    /// Whether the user gave that base. Then the plan does not run without it.
    #[serde(default)]
    pub base_asked: bool,
    /// Whether the user gave the time limit. Then a command of a setting may take all of it.
    #[serde(default)]
    pub limit_asked: bool,
    /// What the recommended path must offer.
    #[serde(default)]
    pub needs: Vec<Feature>,
    /// Length of a window.
    pub window: Duration,
    /// Traffic before each window.
    pub warm_up: Duration,
    /// Length of a profile's window, if not that of the measured ones.
    #[serde(default)]
    pub profile_window: Option<Duration>,
    /// Fewest and most blocks.
    pub blocks: Blocks,
    /// Half-width at which measuring may stop, as a share.
    pub half_width: f64,
    /// Confidence of intervals, 0 to 1.
    pub confidence: f64,
    /// Difference below which two cells are equivalent, as a share.
    pub margin: f64,
    /// Measuring ends after this in any case.
    pub time_limit: Option<Duration>,
    /// Measuring continues until every comparison could show this difference, as a share; without it, until estimates
    /// reach `half_width`.
    pub decide: Option<f64>,
    /// Whether cells take turns if they can.
    pub turns: bool,
    /// Published figures of it, one entry per table.
    pub published: Vec<Published>,
    /// Two settings of this host to compare. Their commands come only from the command line of this run: a plan that is
    /// read or passed on has none.
    #[serde(skip)]
    pub settings: Option<Settings>,
    /// The endpoints of path `as-is`. They are commands too, so they are not passed on.
    #[serde(skip)]
    pub endpoints: Option<Endpoints>,
    /// The gate: the allowed loss against the base, as a share.
    #[serde(default)]
    pub fail_on: Option<f64>,
    /// Whether named paths that this host cannot build are left out with a message. Does not apply to paths named on
    /// the command line.
    #[serde(default)]
    pub where_installed: bool,
    /// Whether CPUs are kept from halting while it is measured.
    #[serde(default)]
    pub keep_awake: bool,
}

impl Plan {
    /// Shorter windows and no more blocks than verdicts need: wider intervals, sooner.
    pub fn apply_quick_preset(&mut self) {
        const WINDOW: Duration = Duration::from_millis(200);
        const WARM_UP: Duration = Duration::from_millis(80);
        const LIMIT: Duration = Duration::from_secs(240);
        self.window = self.window.min(WINDOW);
        self.warm_up = self.warm_up.min(WARM_UP);
        self.profile_window = None;
        self.blocks = Blocks {
            min: FOR_A_VERDICT,
            max: FOR_A_VERDICT,
        };
        self.time_limit = Some(self.time_limit.map_or(LIMIT, |limit| limit.min(LIMIT)));
    }

    /// Makes measuring continue until every comparison could show a difference, or until a time limit.
    pub fn decide_at(&mut self, difference: f64) {
        const LIMIT: Duration = Duration::from_secs(30 * 60);
        self.decide = Some(difference);
        self.blocks = Blocks {
            min: self.blocks.min.max(FOR_A_VERDICT),
            max: Blocks::MOST,
        };
        self.time_limit = Some(LIMIT);
    }

    /// Measures each cell under two settings of this host. B is compared with A unless another base was given.
    pub fn compare_settings(&mut self, settings: Settings) {
        let values = Setting::ALL.map(|setting| setting.name().to_owned());
        for part in &mut self.parts {
            part.set(Self::SETTING, &values);
        }
        if !self.base_asked {
            self.base = Some(format!("{}={}", Self::SETTING, Setting::A.name()));
        }
        self.settings = Some(settings);
    }

    /// The axis of the settings.
    pub const SETTING: &'static str = "setting";

    /// Whether cells take turns if they can. Not if traffic is to be watched from its beginning.
    #[must_use]
    pub fn takes_turns(&self) -> bool {
        self.turns && !self.warm_up.is_zero()
    }

    /// Removes the paths for which `lacking` returns a reason, and returns them with their reasons. Parts without a
    /// path are removed too.
    pub fn leave_out(&mut self, lacking: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
        let mut left_out: Vec<(String, String)> = Vec::new();
        for part in &mut self.parts {
            part.paths.named_mut().retain(|name| {
                let why = lacking(name);
                if let Some(why) = &why
                    && !left_out.iter().any(|(known, _)| known == name)
                {
                    left_out.push((name.clone(), why.clone()));
                }
                why.is_none()
            });
        }
        let has_paths =
            |part: &Part| !matches!(&part.paths, Paths::Named(names) if names.is_empty());
        self.parts.retain(has_paths);
        left_out
    }
}

/// Cells: each path with each peer, load and combination of axis values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Paths to build.
    pub paths: Paths,
    /// Where the other end is.
    pub peers: Vec<Peer>,
    /// Loads for each path.
    pub loads: Vec<LoadKind>,
    /// Axis name → values; several values are a sweep.
    pub set: Vec<(String, Vec<String>)>,
}

impl Part {
    /// Sets an axis to these values, replacing earlier ones.
    pub fn set(&mut self, axis: &str, values: &[String]) {
        self.set.retain(|(name, _)| name != axis);
        self.set.push((axis.to_owned(), values.to_vec()));
    }
}

/// Which paths a plan covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Paths {
    /// Every path that this host can build, without those that are by name only, and the paths of these names. Of the former, those that
    /// cannot be built are left out with a message.
    All(Vec<String>),
    /// These. One that cannot be built is left out if the plan says so ([`Plan::where_installed`]); otherwise it is an
    /// error.
    Named(Vec<String>),
}

impl Paths {
    const ALL: &str = "all";

    /// Reads names of paths; `all` among them means every path that this host can build and that need not be named.
    #[must_use]
    pub fn from_names(names: &[String]) -> Self {
        let named = names.iter().filter(|name| *name != Self::ALL);
        let named: Vec<String> = named.cloned().collect();
        if named.len() < names.len() {
            Self::All(named)
        } else {
            Self::Named(named)
        }
    }

    /// The paths that are named.
    #[must_use]
    pub fn named(&self) -> &[String] {
        let (Self::All(names) | Self::Named(names)) = self;
        names
    }

    fn named_mut(&mut self) -> &mut Vec<String> {
        let (Self::All(names) | Self::Named(names)) = self;
        names
    }
}

/// Files of the folder `plans` by these names: (file name, text).
macro_rules! plans {
    ($($name:literal),+ $(,)?) => {
        &[$((
            concat!($name, ".toml"),
            include_str!(concat!("../../../../plans/", $name, ".toml")),
        )),+]
    };
}

/// The plans of the program: (file name, text).
pub static PLANS: &[(&str, &str)] = plans![
    "paths",
    "all-paths",
    "netback-direct-2006",
    "netback-direct-2006-unpaced",
    "netback-direct-2006-host",
    "netback-direct-2006-tables",
    "netns-macvlan-2007",
    "netns-macvlan-2007-causes",
    "netns-macvlan-2007-sweep",
    "namespace-switching-2014",
    "namespace-switching-2014-flags",
    "namespace-switching-2014-placement",
    "direct-switch",
    "direct-switch-ports",
    "tap-switches",
    "services",
    "local-shortcuts",
    "encryption",
    "rootless",
    "multiqueue-tap-2011",
    "multiqueue-tap-2011-guest",
    "multiqueue-tap-2011-scenarios",
    "multiqueue-tap-2011-tun",
    "multiqueue-tap-2011-tuning",
    "multiqueue-tap-2011-threads",
    "planetlab-containers-2007",
    "planetlab-rotation-2007",
    "planetlab-switches-2007",
    "planetlab-routing-2007",
    "planetlab-chains-2007",
    "planetlab-settling-2007",
    "planetlab-settling-groups-2007",
];

/// A plan by its name, or by the name of a TOML file.
///
/// # Errors
/// There is no such plan or file, or its text is wrong.
pub fn find(name: &str) -> Result<Plan, FileError> {
    if let Some(plan) = built_in(name)? {
        return Ok(plan);
    }
    if !name.ends_with(".toml") {
        let known: Vec<&str> = PLANS
            .iter()
            .filter_map(|(f, _)| f.strip_suffix(".toml"))
            .collect();
        return Err(FileError::Unknown {
            name: name.to_owned(),
            choices: known.join(", "),
        });
    }
    let text = std::fs::read_to_string(name).map_err(|source| FileError::Read {
        file: name.to_owned(),
        source,
    })?;
    parse(name, &text)
}

/// The built-in plan of this name. Each is parsed once: judging the claims asks for the same plans hundreds of times, and published figures
/// make some of them hundreds of lines long.
fn built_in(name: &str) -> Result<Option<Plan>, FileError> {
    static PARSED: Mutex<BTreeMap<&str, Plan>> = Mutex::new(BTreeMap::new());
    let is_meant = |(file, _): &&(&str, &str)| file.strip_suffix(".toml") == Some(name);
    let Some((file, text)) = PLANS.iter().find(is_meant) else {
        return Ok(None);
    };
    let mut parsed = PARSED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(plan) = parsed.get(file) {
        return Ok(Some(plan.clone()));
    }
    let plan = Plan {
        // A user who names the plan has named none of its paths.
        where_installed: true,
        ..parse(file, text)?
    };
    parsed.insert(file, plan.clone());
    Ok(Some(plan))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plans_that_come_along_are_right() {
        for (file, text) in PLANS {
            let plan = parse(file, text).unwrap();
            assert_eq!(format!("{}.toml", plan.name), *file);
            assert!(!plan.summary.is_empty());
        }
    }

    /// The five tests of netperf until they are known to ± 2.5 %, and one connection at the rate of the report, eight times at 99 %.
    #[test]
    fn plans_of_reports_are_as_exact_as_those() {
        use LoadKind::{TcpMaerts, TcpRr, TcpStream, UdpRr, UdpStream};
        let plan = find("netns-macvlan-2007").unwrap();
        assert_eq!((plan.half_width, plan.confidence), (0.025, 0.95));
        let loads: Vec<_> = plan.parts.iter().flat_map(|part| &part.loads).collect();
        for load in [TcpStream, TcpMaerts, TcpRr, UdpStream, UdpRr] {
            assert!(loads.contains(&&load), "{load}");
        }
        for part in &plan.parts {
            let is_maerts = part.loads == [TcpMaerts];
            let size = if is_maerts { "87380" } else { "1400" };
            assert_eq!(of_axis(part, "message_size"), [size]);
            let both = "offload@veth-route:a/eth0=off+offload@veth-route:hub/veth-a=off";
            assert_eq!(of_axis(part, "device_offload"), [both]);
            assert_eq!(of_axis(part, "wire_pause"), ["2ms"]);
        }
        let causes = find("netns-macvlan-2007-causes").unwrap();
        let part = &causes.parts[0];
        assert_eq!(of_axis(part, "wire_pause"), ["2ms"]);
        for end in ["bridge-nf:a/eth0=off", "bridge-nf:hub/veth-a=off"] {
            assert!(of_axis(part, "device_offload")[0].contains(end), "{part:?}");
        }
        let plan = find("netback-direct-2006").unwrap();
        assert_eq!((plan.blocks.min, plan.confidence), (8, 0.99));
        let part = &plan.parts[0];
        assert_eq!(of_axis(part, "pace"), ["940mbit"]);
        assert_eq!(of_axis(part, "flows"), [""; 0], "one connection");
        let plan = find("namespace-switching-2014").unwrap();
        assert_eq!(of_axis(&plan.parts[0], "placement"), ["free"]);
        assert_eq!(of_axis(&plan.parts[0], "message_size"), ["131072"]);
    }

    fn of_axis<'a>(part: &'a Part, name: &str) -> &'a [String] {
        let values = part.set.iter().find(|(axis, _)| axis == name);
        values.map_or(&[], |(_, values)| values)
    }

    #[test]
    fn paths_are_left_out_with_the_reason_once() {
        let mut plan = find("netns-macvlan-2007-causes").unwrap();
        let left_out = plan.leave_out(|name| (name != "bridge-nf").then(|| format!("no {name}")));
        let names: Vec<&str> = left_out.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["native", "veth-route"]);
        assert_eq!(left_out[1].1, "no veth-route");
        // The part with only the routed path is removed.
        assert_eq!(plan.parts.len(), 1);
        assert_eq!(
            plan.parts[0].paths,
            Paths::Named(vec!["bridge-nf".to_owned()])
        );
        assert!(plan.leave_out(|_| None).is_empty());
    }

    #[test]
    fn an_unknown_plan_lists_the_known() {
        assert_eq!(
            find("nothing").unwrap_err().to_string(),
            "there is no plan `nothing`: choose paths, all-paths, netback-direct-2006, netback-direct-2006-unpaced, netback-direct-2006-host, netback-direct-2006-tables, netns-macvlan-2007, netns-macvlan-2007-causes, netns-macvlan-2007-sweep, namespace-switching-2014, namespace-switching-2014-flags, namespace-switching-2014-placement, direct-switch, direct-switch-ports, tap-switches, services, local-shortcuts, encryption, rootless, multiqueue-tap-2011, multiqueue-tap-2011-guest, multiqueue-tap-2011-scenarios, multiqueue-tap-2011-tun, multiqueue-tap-2011-tuning, multiqueue-tap-2011-threads, planetlab-containers-2007, planetlab-rotation-2007, planetlab-switches-2007, planetlab-routing-2007, planetlab-chains-2007, planetlab-settling-2007, planetlab-settling-groups-2007, or name a .toml file"
        );
    }
}
