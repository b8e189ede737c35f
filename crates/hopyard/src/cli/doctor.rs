//! `hopyard doctor`: what this host can build, what distorts figures, how to fix it.

use hopyard_net::{NetNs, may_make_namespaces};
use hopyard_switch::{Bypassed, bypassed_rules};
use serde::Serialize;

use super::offloads::DoctorArgs;
use super::rootless::{self, NeedsRoot};
use super::{Done, Failure, pretty, print};
use crate::lab::PATHS;
use crate::lab::clean::Leftover;
use crate::measure::Sampler;
use crate::meter::environment;
use crate::model::{CpuAccounting, Environment};
use crate::plan;

#[derive(Debug, Serialize)]
struct Diagnosis {
    schema: &'static str,
    paths: Vec<PathState>,
    findings: Vec<Finding>,
    /// What needs root.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    without_root: Vec<NeedsRoot>,
    environment: Environment,
}

#[derive(Debug, Serialize)]
struct PathState {
    name: &'static str,
    available: bool,
    reason: Option<String>,
}

/// Something that distorts figures.
#[derive(Debug, Serialize)]
struct Finding {
    /// The problem.
    what: String,
    /// Its effect on figures.
    effect: String,
    /// The remedy.
    mend: String,
}

/// Clock sources that programs cannot read without the kernel (no `vdso_clock_mode`).
const SLOW_CLOCKS: [&str; 5] = ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"];

fn finding(what: impl Into<String>, effect: &str, mend: impl Into<String>) -> Finding {
    Finding {
        what: what.into(),
        effect: effect.to_owned(),
        mend: mend.into(),
    }
}

pub(super) fn doctor(args: &DoctorArgs) -> Done {
    let is_root = may_make_namespaces();
    // Before the namespaces of a user, in which `/run` has none of them.
    let leftovers = crate::lab::clean::find()?;
    // The view of `hopyard run`.
    let entered = rootless::enter();
    let paths = paths();
    let default = plan::find("paths")?;
    let sampler = Sampler::new(default.window, default.warm_up)?;
    let environment = environment::capture(&sampler.meter);
    let mut findings = of_environment(&environment);
    findings.extend(of_now(&sampler)?);
    findings.extend(of_leftovers(leftovers));
    findings.extend(of_rules(
        NetNs::current().map(|ns| bypassed_rules(&ns, |_, _| true)),
    ));
    let without_root = if is_root {
        Vec::new()
    } else {
        rootless::need_root(entered.err(), environment.cpu_accounting)
    };
    let diagnosis = Diagnosis {
        schema: "hopyard/doctor/1",
        paths,
        findings,
        without_root,
        environment,
    };
    if args.json {
        print(&pretty(&diagnosis)?)
    } else {
        print(&text(&diagnosis))
    }
}

/// Every path with the reason if it cannot be built: something is missing, or no privilege to find out.
fn paths() -> Vec<PathState> {
    PATHS
        .iter()
        .map(|path| {
            let reason = path.available().err().map(|e| e.lacks());
            PathState {
                name: path.name,
                available: reason.is_none(),
                reason,
            }
        })
        .collect()
}

/// Effects of the kernel and its settings on figures.
fn of_environment(environment: &Environment) -> Vec<Finding> {
    let mut findings = Vec::new();
    if environment.cpus < 2 {
        findings.push(finding(
            "one CPU",
            "both ends of a load share it; the default placement `split` needs two",
            "use --set placement=same, or a machine with two CPUs",
        ));
    }
    if environment.cpu_accounting == CpuAccounting::ProcStat {
        findings.push(finding(
            "/proc/timer_list cannot be read",
            "CPU time comes in steps of 10 ms: costs of short windows are uncertain by 5 to 10 %",
            "run as root, or use --window 10s",
        ));
    }
    if let Some(why) = &environment.others_hidden {
        findings.push(finding(
            why.clone(),
            "their CPU time counts as the paths' own, and nothing is measured again because of them",
            "run on the host, or with its PID namespace (docker run --pid=host, hostPID of a pod)",
        ));
    }
    if let Some(governor) = environment
        .frequency_governor
        .as_ref()
        .filter(|g| *g != "performance")
    {
        findings.push(finding(
            format!("CPU frequency governor `{governor}`"),
            "the CPU frequency varies, so ns of CPU are not comparable",
            "cpupower frequency-set -g performance",
        ));
    }
    if let Some(default) = environment.sysctls.get("net.ipv4.tcp_congestion_control")
        && default != "cubic"
    {
        findings.push(finding(
            format!("default congestion control is {default}"),
            "hopyard sets cubic unless told otherwise; programs of this host get other figures",
            format!("--set congestion={default} measures what they get"),
        ));
    }
    if !environment.debug_features.is_empty() {
        findings.push(finding(
            format!(
                "debug features in the kernel: {}",
                environment.debug_features.join(", ")
            ),
            "everything costs more than on a production kernel",
            "boot a kernel without them; end tracing with `echo nop > current_tracer`",
        ));
    }
    if SLOW_CLOCKS.contains(&&*environment.clock_source) {
        findings.push(finding(
            format!("clock source `{}`", environment.clock_source),
            "reading the clock costs a system call: it weighs on request/response loads",
            "use another one of /sys/devices/system/clocksource/clocksource0/available_clocksource; on x86, boot with \
             tsc=reliable if the hardware's TSC is",
        ));
    }
    if let Some(hypervisor) = &environment.hypervisor {
        findings.push(finding(
            format!("a virtual machine ({hypervisor})"),
            "other guests of its host use CPU time and caches: absolute figures drift, ratios within a run stay \
             comparable",
            "compare only within one run; watch steal in the warnings",
        ));
    }
    findings
}

/// Current use of the machine.
fn of_now(sampler: &Sampler) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    let state = sampler.idle_state()?;
    if state.foreign_ratio > 0.02 {
        findings.push(finding(
            format!(
                "other processes use {:.0} % of the machine now",
                state.foreign_ratio * 100.0
            ),
            "they take CPUs and caches from the load",
            "stop them, or measure when they are done",
        ));
    }
    if state.steal_ratio > 0.01 {
        findings.push(finding(
            format!(
                "the hypervisor takes {:.1} % of the CPU time now",
                state.steal_ratio * 100.0
            ),
            "blocks that lose more than 1 % are measured again",
            "use a quieter host",
        ));
    }
    Ok(findings)
}

/// A finding for each effect, with all that have it.
fn of_leftovers(leftovers: Vec<Leftover>) -> Vec<Finding> {
    let mut by_effect: Vec<(&str, Vec<String>)> = Vec::new();
    for Leftover { name, effect } in leftovers {
        match by_effect.iter_mut().find(|(known, _)| *known == effect) {
            Some((_, names)) => names.push(name),
            None => by_effect.push((effect, vec![name])),
        }
    }
    let found = by_effect.into_iter().map(|(effect, names)| {
        let what = format!("left by interrupted labs: {}", names.join(", "));
        finding(what, effect, "hopyard clean")
    });
    found.collect()
}

/// Rules that a switch in this namespace would bypass. Labs have namespaces of their own, without rules.
fn of_rules(found: hopyard_net::Result<Bypassed>) -> Vec<Finding> {
    const EFFECT: &str = "none on figures; but frames that `hopyard switch` forwards, between its ports and to the \
    wire, bypass these rules";
    let found = found.unwrap_or_else(|error| {
        let mut found = Bypassed::default();
        found.unknown = vec![format!("cannot look for bypassed rules: {error}")];
        found
    });
    let mut findings = Vec::new();
    // nftables and iptables may fail alike.
    let unknown: std::collections::BTreeSet<String> = found.unknown.into_iter().collect();
    for unknown in unknown {
        let mend = "run as root, with nftables installed";
        findings.push(finding(unknown, EFFECT, mend));
    }
    if !found.chains.is_empty() {
        let chains: Vec<String> = found.chains.into_iter().collect();
        findings.push(finding(
            format!("packet filter rules for forwarded frames: {}", chains.join(", ")),
            EFFECT,
            "filter in the guests or beyond the uplink, or leave the guests that need these rules on a bridge",
        ));
    }
    findings
}

fn text(diagnosis: &Diagnosis) -> String {
    let environment = &diagnosis.environment;
    let mut text = format!(
        "Linux {} · {}, {} CPUs\n\nPaths\n",
        environment.kernel_release, environment.cpu_model, environment.cpus
    );
    let states = diagnosis.paths.iter().map(|path| {
        let state = path.reason.as_deref().unwrap_or("ready");
        (path.name, state)
    });
    text += &in_columns(&states.collect::<Vec<_>>());
    text += "\nWhat would distort figures\n";
    for finding in &diagnosis.findings {
        text += &format!(
            "  {}\n    effect: {}\n    fix:    {}\n",
            finding.what, finding.effect, finding.mend
        );
    }
    if diagnosis.findings.is_empty() {
        text += "  nothing found\n";
    }
    if !diagnosis.without_root.is_empty() {
        text += "\nWhat needs root\n";
    }
    for needs in &diagnosis.without_root {
        text += &format!("  {}\n    why: {}\n", needs.what, needs.why);
    }
    text
}

/// Names and what is said of them, below each other.
fn in_columns(rows: &[(&str, &str)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let row = |(name, said): &(&str, &str)| format!("  {name:<width$} {said}\n");
    rows.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_sets_the_column() {
        let rows = [("veth", "ready"), ("netkit-redirect-l3", "no netkit")];
        let expected = "  veth               ready\n  netkit-redirect-l3 no netkit\n";
        assert_eq!(in_columns(&rows), expected);
    }

    #[test]
    fn leftovers_are_told_by_what_they_do() {
        let leftover = |name: &str, effect| Leftover {
            name: name.to_owned(),
            effect,
        };
        let found = of_leftovers(vec![
            leftover("1", "none"),
            leftover("2", "a card is away"),
            leftover("3", "none"),
        ]);
        let found: Vec<_> = found
            .iter()
            .map(|finding| (&*finding.what, &*finding.effect))
            .collect();
        let expected = [
            ("left by interrupted labs: 1, 3", "none"),
            ("left by interrupted labs: 2", "a card is away"),
        ];
        assert_eq!(found, expected);
        assert!(of_leftovers(Vec::new()).is_empty());
    }
}
