//! Comparison of what was recorded of runs.

use std::collections::BTreeMap;

use super::runs::{Assessed, Group, all_cells};
use crate::model::stored::Header;
use crate::model::{
    CellReport, CpuAccounting, Difference, EndpointUsed, Environment, RunReport, distinct,
};
use crate::units;

/// A fact and its value in one run.
type Fact = (String, String);

/// Every fact that differs between the sides: the machine first, then the run, then what single cells read back.
pub(super) fn differences(sides: &[Group<'_>; 2]) -> Vec<Difference> {
    let of_sides = |of: fn(&Assessed<'_>) -> Vec<Fact>| {
        let [a, b] = sides.each_ref().map(|side| together(side.iter().map(of)));
        unequal(&a, &b)
    };
    let mut all = of_sides(|run| machine(&run.header.environment));
    all.extend(of_sides(|run| this_run(run.header, &run.report)));
    all.extend(of_cells(sides));
    all
}

/// Facts that differ between runs that were named as repeats of one thing, with their values. The number of blocks and
/// the current CPU frequency are left out, because they are not part of what is measured.
pub(super) fn not_alike(group: &Group<'_>) -> Vec<String> {
    let facts = |run: &Assessed<'_>| {
        let mut facts = machine(&run.header.environment);
        facts.extend(this_run(run.header, &run.report));
        facts.retain(|(what, _)| !["blocks", "CPU frequency"].contains(&what.as_str()));
        facts
    };
    let Some((first, others)) = group.split_first() else {
        return Vec::new();
    };
    let first = facts(first);
    let unequal = others
        .iter()
        .flat_map(|other| unequal(&first, &facts(other)));
    distinct(unequal.map(|found| found.what))
}

/// Facts that must be equal if the runs of one group are to show how much those of another scatter, but are not.
pub(super) fn other_conditions(one: &Assessed<'_>, other: &Assessed<'_>) -> Vec<String> {
    const CONDITIONS: [&str; 9] = [
        "host",
        "architecture",
        "hypervisor",
        "CPU",
        "CPUs",
        "window",
        "warm-up",
        "blocks",
        "base",
    ];
    let facts = |run: &Assessed<'_>| {
        let mut facts = machine(&run.header.environment);
        facts.extend(this_run(run.header, &run.report));
        facts.retain(|(what, _)| CONDITIONS.contains(&what.as_str()));
        facts
    };
    let differing = unequal(&facts(one), &facts(other));
    differing.into_iter().map(|found| found.what).collect()
}

/// The facts of several runs: each value that occurs, once.
fn together(runs: impl Iterator<Item = Vec<Fact>>) -> Vec<Fact> {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    for (what, value) in runs.flatten() {
        match all.iter_mut().find(|(known, _)| *known == what) {
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => all.push((what, vec![value])),
        }
    }
    let joined = all.into_iter().map(|(what, mut values)| {
        values.sort();
        (what, values.join(" or "))
    });
    joined.collect()
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
        CpuAccounting::KeptAwake => "CPUs kept awake",
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

fn this_run(header: &Header, report: &RunReport) -> Vec<Fact> {
    let span = |ns| units::show_duration(std::time::Duration::from_nanos(ns));
    let mut facts = vec![
        fact("plan", &header.plan),
        fact("window", &span(header.window_ns)),
        fact("warm-up", &span(header.warm_up_ns)),
        fact("blocks", &report.run.blocks),
        fact("confidence", &units::show_share(header.confidence)),
        fact("margin", &units::show_share(header.margin)),
        fact("base", &header.base.clone().unwrap_or_default()),
        fact("profile", if header.profile { "taken" } else { "none" }),
        fact(
            "turns",
            if header.turn_ns.is_some() {
                "on"
            } else {
                "off"
            },
        ),
    ];
    if let Some(used) = &header.settings {
        let commands = &used.commands;
        facts.push(fact("command of --a", &commands.a));
        facts.push(fact("command of --b", &commands.b));
    }
    if let Some(asked) = &header.endpoints {
        facts.push(fact("client reached by", &asked.client));
        facts.push(fact("server reached by", &asked.server));
        if let Some([card, far]) = &asked.cards {
            facts.push(fact("card of the client", card));
            facts.push(fact("card of the server", far));
        }
        if let Some(address) = asked.server_address {
            facts.push(fact("address of the server", &address));
        }
    }
    facts
}

/// What cells read back or used: each difference once, with the number of cells that have it.
fn of_cells(sides: &[Group<'_>; 2]) -> Vec<Difference> {
    let mut counted: Vec<(Difference, usize)> = Vec::new();
    for cell in all_cells(sides) {
        let of_run = |run: &Assessed<'_>| {
            let at = run.place(cell).ok()?;
            Some(of_cell(&run.report.cells[at]))
        };
        let [a, b] = sides
            .each_ref()
            .map(|side| together(side.iter().filter_map(of_run)));
        if a.is_empty() || b.is_empty() {
            continue;
        }
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

/// The machine of an endpoint and its device.
fn endpoint(end: &str, used: &EndpointUsed) -> Vec<Fact> {
    let host = used.machine.as_ref().map(|m| m.hostname.clone());
    let named = [("host", host), ("device", Some(used.device.clone()))];
    let all = named.into_iter().chain(used.facts());
    let known = all.filter_map(|(what, value)| Some((what, value?)));
    known
        .map(|(what, value)| fact(format!("{what} of the {end}"), &value))
        .collect()
}

fn of_cell(cell: &CellReport) -> Vec<Fact> {
    let mut facts: Vec<Fact> = each("offload ", &cell.offloads).collect();
    facts.extend(cell.datapath.iter().map(|d| fact("datapath", d)));
    facts.extend(cell.guest.iter().map(|g| fact("guest", g)));
    if let Some(used) = &cell.endpoints {
        facts.extend(endpoint("client", &used.client));
        facts.extend(endpoint("server", &used.server));
    }
    if let Some(sees) = cell.filter_sees {
        facts.push(fact("packet filter of the hub sees the traffic", &sees));
    }
    facts.push(fact("path proof", &cell.way.proved));
    facts
}
