//! What was recorded of two runs, held against each other.

use std::collections::BTreeMap;

use super::Matched;
use crate::model::{CellReport, CpuAccounting, Difference, Environment, RunReport};
use crate::store::Header;
use crate::units;

/// A fact and what it is in one run.
type Fact = (String, String);

/// Every fact that is not the same in both: the machine first, then the run, then what single cells found.
pub(super) fn differences(
    headers: [&Header; 2],
    reports: &[RunReport; 2],
    matched: &[Matched],
) -> Vec<Difference> {
    let [machine_a, machine_b] = headers.map(|h| machine(&h.environment));
    let [run_a, run_b] = [0, 1].map(|at| run(headers[at], &reports[at]));
    let mut all = unequal(&machine_a, &machine_b);
    all.extend(unequal(&run_a, &run_b));
    all.extend(of_cells(reports, matched));
    all
}

fn fact(what: impl Into<String>, value: &(impl ToString + ?Sized)) -> Fact {
    (what.into(), value.to_string())
}

/// Facts of A in their order, then those that only B has.
fn unequal(a: &[Fact], b: &[Fact]) -> Vec<Difference> {
    let of = |facts: &[Fact], what: &str| {
        let known = facts.iter().find(|(name, _)| name == what);
        known.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let only_b = b
        .iter()
        .filter(|(what, _)| a.iter().all(|(name, _)| name != what));
    a.iter()
        .chain(only_b)
        .map(|(what, _)| Difference {
            what: what.clone(),
            a: of(a, what),
            b: of(b, what),
        })
        .filter(|d| d.a != d.b)
        .collect()
}

fn machine(env: &Environment) -> Vec<Fact> {
    let accounting = match env.cpu_accounting {
        CpuAccounting::IdleClock => "idle clock",
        CpuAccounting::ProcStat => "/proc/stat",
    };
    let absent = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
    let hz = env
        .cpu_hz
        .map_or_else(String::new, |hz| format!("{:.2} GHz", hz / 1e9));
    let mut facts = vec![
        fact("kernel", &env.kernel_release),
        fact("kernel build", &env.kernel_version),
        fact("kernel command line", &env.kernel_command_line),
        fact("kernel debug features", &env.debug_features.join(", ")),
        fact("host", &env.hostname),
        fact("architecture", &env.architecture),
        fact("hypervisor", &absent(&env.hypervisor)),
        fact("CPU", &env.cpu_model),
        fact("CPU frequency", &hz),
        fact("CPUs", &env.cpus),
        fact("NUMA nodes", &env.numa_nodes),
        fact("memory", &format!("{} MiB", env.memory_bytes >> 20)),
        fact("clock source", &env.clock_source),
        fact("frequency governor", &absent(&env.frequency_governor)),
        fact("CPU time from", accounting),
    ];
    facts.extend(each("mitigation of ", &env.mitigations));
    facts.extend(each("", &env.kernel_options));
    facts.extend(each("", &env.sysctls));
    facts.push(fact("hopyard", &env.hopyard_version));
    facts.push(fact(
        "hopyard revision",
        &env.hopyard_revision.clone().unwrap_or_default(),
    ));
    facts
}

fn each<'a>(prefix: &'a str, map: &'a BTreeMap<String, String>) -> impl Iterator<Item = Fact> + 'a {
    map.iter()
        .map(move |(key, value)| fact(format!("{prefix}{key}"), value))
}

fn run(header: &Header, report: &RunReport) -> Vec<Fact> {
    let span = |ns| units::show_duration(std::time::Duration::from_nanos(ns));
    vec![
        fact("plan", &header.plan),
        fact("window", &span(header.window_ns)),
        fact("warm-up", &span(header.warm_up_ns)),
        fact("blocks", &report.run.blocks),
        fact("confidence", &units::show_share(header.confidence)),
        fact("margin", &units::show_share(header.margin)),
        fact("base", &header.base.clone().unwrap_or_default()),
        fact("profile", if header.profile { "taken" } else { "none" }),
    ]
}

/// What cells read back or used, each difference once with the number of cells that have it.
fn of_cells(reports: &[RunReport; 2], matched: &[Matched]) -> Vec<Difference> {
    let mut counted: Vec<(Difference, usize)> = Vec::new();
    for one in matched {
        let [Some(a), Some(b)] = [0, 1].map(|run| {
            let cell = reports[run].cells.get(one.at[run]?)?;
            (!cell.estimates.is_empty()).then(|| of_cell(cell))
        }) else {
            continue;
        };
        for found in unequal(&a, &b) {
            match counted.iter_mut().find(|(known, _)| *known == found) {
                Some((_, cells)) => *cells += 1,
                None => counted.push((found, 1)),
            }
        }
    }
    let named = counted.into_iter().map(|(mut found, cells)| {
        let s = if cells == 1 { "" } else { "s" };
        found.what = format!("{} ({cells} cell{s})", found.what);
        found
    });
    named.collect()
}

fn of_cell(cell: &CellReport) -> Vec<Fact> {
    let mut facts: Vec<Fact> = each("offload ", &cell.offloads).collect();
    facts.extend(cell.datapath.iter().map(|d| fact("datapath", d)));
    facts.extend(cell.guest.iter().map(|g| fact("guest", g)));
    if let Some(sees) = cell.filter_sees {
        facts.push(fact("packet filter of the hub sees the traffic", &sees));
    }
    facts.push(fact("way proved", &cell.way.proved));
    facts
}
