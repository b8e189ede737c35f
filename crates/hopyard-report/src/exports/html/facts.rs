//! The machine, and the devices that the traffic passed.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::group::Layout;
use crate::model::{CellReport, CpuAccounting, Environment, RunReport};
use crate::plain;

/// Devices of a cell that are named.
const NAMED: usize = 12;

/// Everything captured about the machine.
pub(super) fn environment(environment: &Environment) -> Markup {
    let facts = facts(environment);
    html! {
        div.scroll.wrap tabindex="0" role="region" aria-label="Environment" {
            table {
                caption.heard { "Environment" }
                thead.heard { tr { th scope="col" { "what" } th scope="col" { "value" } } }
                tbody { @for (what, value) in facts {
                    tr { th scope="row" { (what) } td { (plain::line(&value)) } }
                } }
            }
        }
    }
}

fn facts(env: &Environment) -> Vec<(&'static str, String)> {
    let revision = env
        .hopyard_revision
        .iter()
        .map(|revision| format!(", {revision}"));
    let gib = env.memory_bytes >> 20;
    let accounting = match env.cpu_accounting {
        CpuAccounting::IdleClock => "idle clock in ns",
        CpuAccounting::KeptAwake => "threads that kept the CPUs awake, in ns",
        CpuAccounting::ProcStat => "idle column of /proc/stat, steps of 10 ms",
    };
    let pairs = |map: &BTreeMap<String, String>| {
        let each = map.iter().map(|(name, value)| format!("{name} = {value}"));
        each.collect::<Vec<_>>().join("; ")
    };
    let facts = [
        (
            "hopyard",
            Some(revision.fold(env.hopyard_version.clone(), |all, one| all + &one)),
        ),
        ("host", Some(env.hostname.clone())),
        (
            "kernel",
            Some(format!(
                "{} {} {}",
                env.kernel_release, env.kernel_version, env.architecture
            )),
        ),
        ("command line", Some(env.kernel_command_line.clone())),
        (
            "CPU",
            Some(format!(
                "{}, {} online, NUMA nodes: {}",
                env.cpu_model, env.cpus, env.numa_nodes
            )),
        ),
        (
            "CPUs under placement split",
            env.split_cpus
                .as_ref()
                .map(|split| format!("client {}, server {}", split.client, split.server)),
        ),
        (
            "frequency",
            env.cpu_hz.map(|hz| format!("{:.2} GHz", hz / 1e9)),
        ),
        ("governor", env.frequency_governor.clone()),
        ("memory", Some(format!("{gib} MiB"))),
        ("hypervisor", env.hypervisor.clone()),
        ("clock source", Some(env.clock_source.clone())),
        ("CPU time from", Some(accounting.to_owned())),
        ("kernel options", Some(pairs(&env.kernel_options))),
        ("sysctls", Some(pairs(&env.sysctls))),
        ("mitigations", Some(pairs(&env.mitigations))),
        ("debug features", Some(env.debug_features.join(", "))),
    ];
    let known = facts
        .into_iter()
        .filter_map(|(what, value)| Some((what, value?)));
    known.filter(|(_, value)| !value.is_empty()).collect()
}

/// The devices that counted traffic in each cell.
pub(super) fn devices(report: &RunReport) -> Markup {
    let layout = Layout::of(&report.cells);
    let measured = report.cells.iter().filter(|c| c.is_measured());
    let measured: Vec<&CellReport> = measured.collect();
    html! {
        @if !measured.is_empty() {
            details {
                summary { "Packets by device, all windows together" }
                div.scroll.wrap tabindex="0" role="region" aria-label="Packets by device" {
                    table {
                        caption.heard { "Packets by device" }
                        thead { tr {
                            th scope="col" { "cell" } th scope="col" { "proved" } th scope="col" { "packets by device" }
                        } }
                        tbody { @for cell in measured {
                            tr {
                                th scope="row" { (plain::line(&layout.name(cell))) }
                                td { (if cell.way.proved { "yes" } else { "no" }) }
                                td { (moved(cell)) }
                            }
                        } }
                    }
                }
            }
        }
    }
}

fn moved(cell: &CellReport) -> String {
    let devices = cell.way.devices.iter();
    let each = devices.map(|d| {
        format!(
            "{}/{} {}",
            plain::line(&d.namespace),
            plain::line(&d.name),
            d.packets
        )
    });
    let mut named: Vec<String> = each.take(NAMED).collect();
    let more = cell.way.devices.len().saturating_sub(NAMED);
    if more > 0 {
        named.push(format!("{more} more"));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::model::{Cpus, SplitCpus};

    #[test]
    fn the_cpus_of_both_ends_are_named() {
        let mut env = fixture::run().run.environment;
        let shown = |env: &Environment| {
            let mut facts = facts(env).into_iter();
            facts.find(|(what, _)| *what == "CPUs under placement split")
        };
        assert_eq!(shown(&env), None);
        env.split_cpus = Some(SplitCpus {
            client: Cpus(vec![0, 1, 4, 5]),
            server: Cpus(vec![2, 3, 6, 7]),
        });
        let (_, value) = shown(&env).unwrap();
        assert_eq!(value, "client 0+1+4+5, server 2+3+6+7");
    }
}
