//! What was measured, as far as rules ask for it: series of values by block.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer};

use super::bench::{Benched, Done, FunctionalCheck};
use super::guest::Beside;
use super::profiles::{profile_share, share, softirq_by_profile};
use crate::assess::{self, PER_GHZ, Quantity, last_attempts, quantity};
use crate::model::stored::by_reason;
use crate::model::{
    Cell, CpuTolerance, DatapathKind, LoadKind, Measurement, OPEN_VSWITCH, Sample, WarningCode,
};
use crate::profile::subsystems::subsystems;
use crate::store::Run;

/// What a rule is about.
#[derive(Clone)]
pub enum What {
    /// The main figure of the load: goodput or transactions.
    Rate,
    /// The CPU cost that goes with it.
    Cost,
    /// Work per CPU time.
    Efficiency,
    /// Busy CPUs over all CPUs.
    BusyRatio,
    /// CPUs in softirq over all CPUs, by ticks.
    SoftirqRatio,
    /// Sends that the kernel refused, over sends.
    SendErrorRatio,
    /// How long jitter took to settle, s.
    SettlingTime,
    /// A quantity of the registry.
    Named(&'static Quantity),
    /// The share of busy samples that fell into these subsystems.
    ProfileShare(Vec<String>),
    /// What of the CPU cost fell into these subsystems.
    CostShare(Vec<String>),
}

/// Names that the registry of quantities does not have, and `share SUBSYSTEM+…` and `cost of SUBSYSTEM+…`.
const OWN: &[(&str, What)] = &[
    ("rate", What::Rate),
    ("cost", What::Cost),
    ("efficiency", What::Efficiency),
    ("busy_ratio", What::BusyRatio),
    ("softirq_ratio", What::SoftirqRatio),
    ("send_error_ratio", What::SendErrorRatio),
    ("settling_s", What::SettlingTime),
];
const SHARE: &str = "share ";
const COST_OF: &str = "cost of ";

/// Why a sample has no figure of CPU time.
const CPU_UNKNOWN: &str =
    "the hypervisor took time away, so that CPU time is not known closely enough";

impl std::str::FromStr for What {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, own)) = OWN.iter().find(|(name, _)| *name == text) {
            return Ok(own.clone());
        }
        let share = text.strip_prefix(SHARE);
        let Some(names) = share.or_else(|| text.strip_prefix(COST_OF)) else {
            let own: Vec<&str> = OWN.iter().map(|(name, _)| *name).collect();
            return quantity(text).map(Self::Named).map_err(|e| {
                format!(
                    "{e}, {}, {SHARE}SUBSYSTEM, {COST_OF}SUBSYSTEM",
                    own.join(", ")
                )
            });
        };
        let names: Vec<String> = names
            .split('+')
            .map(|name| name.trim().to_owned())
            .collect();
        let known = |name: &&String| subsystems().iter().any(|known| known.name == **name);
        match names.iter().find(|name| !known(name)) {
            Some(name) => Err(format!("there is no subsystem `{name}`")),
            None if share.is_some() => Ok(Self::ProfileShare(names)),
            None => Ok(Self::CostShare(names)),
        }
    }
}

impl<'de> Deserialize<'de> for What {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        String::deserialize(input)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl std::fmt::Debug for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let own = OWN
            .iter()
            .find(|(_, own)| std::mem::discriminant(own) == std::mem::discriminant(self));
        match own {
            Some((name, _)) => f.write_str(name),
            None => f.write_str(&self.name(LoadKind::TcpStream)),
        }
    }
}

impl PartialEq for What {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

impl What {
    /// Its name for a load, with its unit.
    #[must_use]
    pub fn name(&self, load: LoadKind) -> String {
        match self {
            Self::Rate if load.is_stream() => "goodput_bps".to_owned(),
            Self::Rate => "transactions_per_s".to_owned(),
            Self::Cost => assess::cost(load).to_owned(),
            Self::Efficiency => "efficiency_bps_per_core".to_owned(),
            Self::BusyRatio => "busy_ratio".to_owned(),
            Self::SoftirqRatio => "softirq_ratio".to_owned(),
            Self::SendErrorRatio => "send_error_ratio".to_owned(),
            Self::SettlingTime => "settling_s".to_owned(),
            Self::Named(quantity) => quantity.name.to_owned(),
            Self::ProfileShare(names) => format!("{} share_ratio", names.join("+")),
            Self::CostShare(names) => format!("{COST_OF}{}", names.join("+")),
        }
    }

    /// Names under which a plan may have published it.
    fn published_names(&self, load: LoadKind) -> [String; 2] {
        let own = self.name(load);
        match self {
            // Of equal messages the ratio of costs per packet is that of costs per byte.
            Self::Cost => [own, "cpu_ns_per_byte".to_owned()],
            Self::Efficiency => [own, PER_GHZ.to_owned()],
            Self::Named(q) if q.name == "packets_per_s" => [own, "goodput_bps".to_owned()],
            _ => [own.clone(), own],
        }
    }

    fn value(&self, m: &Measurement, load: LoadKind, tolerance: CpuTolerance) -> Option<f64> {
        let whole = m.cpu.elapsed_ns * f64::from(m.cpu.cpus);
        match self {
            Self::BusyRatio => Some(m.cpu.net_ns(tolerance)? / whole),
            Self::SoftirqRatio => {
                let adds_up = (m.cpu.closure - 1.0).abs() <= assess::CLOSURE;
                adds_up.then(|| m.cpu.split.softirq_ns / whole)
            }
            Self::SendErrorRatio => share(m.send_errors, m.sent.messages),
            Self::Named(quantity) => {
                let value = || quantity.value(m, load, tolerance);
                quantity.applies(load).then(value)?
            }
            Self::Rate | Self::Cost | Self::Efficiency => {
                let named = quantity(&self.name(load)).ok()?;
                named.value(m, load, tolerance)
            }
            Self::SettlingTime => assess::settling_time_s(m),
            Self::ProfileShare(_) | Self::CostShare(_) => None,
        }
    }

    /// Why it may be absent though the cell was measured.
    fn absence(&self) -> &'static str {
        match self {
            Self::SoftirqRatio => {
                "the columns of /proc/stat do not add up, and the run took no profiles that would tell softirq time"
            }
            Self::SettlingTime => {
                "jitter did not settle within the window, or was not watched from the start of the traffic"
            }
            Self::ProfileShare(_) | Self::CostShare(_) => {
                "the run took no profiles, or too few samples in them"
            }
            Self::Named(q) if q.name == "client_cache_misses_per_s" => {
                "this machine offers no hardware counter of cache misses (PMU)"
            }
            Self::Named(q) if q.name == "queue_changes_per_flow_per_s" => {
                "changes of queue were not counted"
            }
            Self::Cost | Self::Efficiency | Self::BusyRatio => CPU_UNKNOWN,
            Self::Named(q) if q.needs_cpu() => CPU_UNKNOWN,
            _ => "it was not measured",
        }
    }
}

/// Values by block.
pub(super) type Series = BTreeMap<u32, f64>;

/// What claims are judged by.
#[derive(Debug, Default)]
pub struct Evidence {
    /// What each directory of claims was asked for: ids and reports, none for all.
    pub asked: Vec<Vec<String>>,
    /// Plans whose runs are of a first look.
    pub first_looks: BTreeSet<String>,
    /// Runs, at most one for each plan.
    pub runs: Vec<Run>,
    /// Why a plan could not be run.
    pub not_run: BTreeMap<String, String>,
    /// What was done in throw-away labs.
    pub done: BTreeMap<String, Done>,
    /// What was measured beside the plans.
    pub benched: BTreeMap<String, Benched>,
    /// What a guest has of what this machine's kernel lacks.
    pub beside: Option<Beside>,
}

impl Evidence {
    /// The deed as it was done here, or else in the guest.
    pub(super) fn deed(&self, name: &str) -> Option<Done> {
        let here = self.done.get(name);
        let guest = self.beside.as_ref().map(|beside| &beside.guest);
        let there = guest.and_then(|guest| Some((guest, guest.done.get(name)?)));
        match (here, there) {
            (None | Some(Err(_)), Some((guest, Ok(done)))) => Some(Ok(FunctionalCheck {
                passed: done.passed,
                seen: format!("{} (in {})", done.seen, guest.described()),
            })),
            (Some(Err(here)), Some((guest, Err(there)))) if here != there => {
                Some(Err(format!("{here}; in {}: {there}", guest.described())))
            }
            (here, _) => here.cloned(),
        }
    }

    /// Adds what was found elsewhere. Of two runs of a plan the first counts, and so with all else.
    pub(super) fn add(&mut self, found: Self) {
        for run in found.runs {
            let plan = &run.header.plan;
            if self.of_plan(plan).is_ok() {
                continue;
            }
            if found.first_looks.contains(plan) {
                self.first_looks.insert(plan.clone());
            }
            self.runs.push(run);
        }
        self.asked.extend(found.asked);
        keep_first(&mut self.not_run, found.not_run);
        keep_first(&mut self.done, found.done);
        keep_first(&mut self.benched, found.benched);
        self.beside = self.beside.take().or(found.beside);
    }

    /// The run of a plan.
    ///
    /// # Errors
    /// There is none, and why.
    pub(super) fn of_plan(&self, plan: &str) -> Result<&Run, String> {
        let run = self.runs.iter().find(|run| run.header.plan == plan);
        run.ok_or_else(|| match self.not_run.get(plan) {
            Some(why) => why.clone(),
            None => format!("plan {plan} was not run"),
        })
    }
}

fn keep_first<T>(known: &mut BTreeMap<String, T>, found: BTreeMap<String, T>) {
    for (name, one) in found {
        known.entry(name).or_insert(one);
    }
}

/// Why paths that a rule names are not in a run: each reason with all its paths.
pub(super) fn left_out(run: &Run, paths: &[String]) -> Vec<String> {
    let named = |name: &String| paths.is_empty() || paths.contains(name);
    let mut left_out = run.header.left_out.clone();
    left_out.retain(|(name, _)| named(name));
    let said = |(why, names): &(&str, Vec<&str>)| format!("{}: {why}", names.join(", "));
    let has = |path: &String| run.header.cells.iter().any(|one| one.cell.path == *path);
    let is_known = |path: &String| run.header.left_out.iter().any(|(name, _)| name == path);
    let never = paths.iter().filter(|path| !has(path) && !is_known(path));
    let never: Vec<&str> = never.map(String::as_str).collect();
    let plan = &run.header.plan;
    let never =
        (!never.is_empty()).then(|| format!("{}: not in the run of plan {plan}", never.join(", ")));
    by_reason(&left_out).iter().map(said).chain(never).collect()
}

/// The values of a cell of a run.
///
/// # Errors
/// There are none, and why.
pub(super) fn series(run: &Run, cell: usize, what: &What) -> Result<Series, String> {
    let planned = &run.header.cells[cell];
    if let Some(why) = &planned.unsupported {
        return Err(format!("{}: {why}", planned.cell.path));
    }
    let blocks = last_attempts(&run.samples);
    let own: Vec<(&Sample, &Measurement)> = blocks
        .into_iter()
        .filter(|sample| sample.cell == cell)
        .filter_map(|sample| Some((sample, sample.measurement()?)))
        .collect();
    let userspace = |m: &Measurement| {
        let datapath = m.datapath.as_ref();
        datapath.is_some_and(|d| d.kind == DatapathKind::Userspace && d.switch == OPEN_VSWITCH)
    };
    if own.iter().any(|(_, m)| userspace(m)) {
        return Err(format!(
            "{}: forwarded in userspace for want of the openvswitch module, which does not count",
            planned.cell.path
        ));
    }
    if own
        .iter()
        .any(|(_, m)| m.guest.as_ref().is_some_and(|guest| guest.emulated))
    {
        return Err(format!(
            "{}: the guest was emulated for want of KVM, and its figures have a shape and no size",
            planned.cell.path
        ));
    }
    let load = planned.cell.load;
    let value = |(sample, m): &(&Sample, &Measurement)| {
        let value = match what {
            What::ProfileShare(names) => profile_share(run, sample, names),
            What::CostShare(names) => What::Cost
                .value(m, load, run.header.cpu_tolerance())
                .zip(profile_share(run, sample, names))
                .map(|(cost, share)| cost * share),
            What::SoftirqRatio => what
                .value(m, load, run.header.cpu_tolerance())
                .or_else(|| softirq_by_profile(run, sample, m)),
            what => what.value(m, load, run.header.cpu_tolerance()),
        };
        Some((sample.block, value?))
    };
    let astray = own.iter().find(|(_, m)| !m.way.proved);
    if let Some((_, astray)) = astray {
        return Err(format!(
            "{}: its path proof failed ({})",
            planned.cell.path,
            astray.way.problems.first().map_or("", String::as_str)
        ));
    }
    let series: Series = own.iter().filter_map(value).collect();
    if matches!(what, What::SettlingTime) && !series.is_empty() && series.len() < own.len() {
        // The mean of the others would be too small (docs/curves.md).
        return Err(format!(
            "{}: jitter did not settle in {} of {} windows",
            planned.cell.path,
            own.len() - series.len(),
            own.len()
        ));
    }
    if series.is_empty() {
        let why = if own.is_empty() {
            "it was never measured"
        } else {
            what.absence()
        };
        return Err(format!("{}: {why}", planned.cell.path));
    }
    Ok(series)
}

/// What the run's plan has of a report for a cell.
pub(super) fn published(run: &Run, cell: &Cell, what: &What) -> Option<f64> {
    let names = what.published_names(cell.load);
    names.iter().find_map(|name| {
        let tables = run.header.published.iter().filter(|p| p.quantity == *name);
        let mut figures = tables.flat_map(|table| &table.figures);
        let of_cell = figures.find(|f| f.is_of((&cell.path, cell.peer, cell.load), &cell.axes));
        of_cell.map(|figure| figure.value)
    })
}

/// Is a warning about what every run of claims has, or what verdicts say themselves?
pub(super) fn expected(code: WarningCode) -> bool {
    matches!(
        code,
        WarningCode::Width
            | WarningCode::CongestionControl
            | WarningCode::Closure
            | WarningCode::LeftOut
            | WarningCode::QuickLook
            | WarningCode::Datapath
    )
}
