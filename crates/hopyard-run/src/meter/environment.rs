//! The state of the machine, captured once per run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::CpuMeter;
use crate::load::kernel_files::{clock_source, cpu_model, field, hostname, line, text};
use crate::load::meter::sees_all_processes;
use crate::model::Environment;

/// sysctls of the host that also affect traffic in new namespaces.
const SYSCTLS: &[&str] = &[
    "net.core.busy_poll",
    "net.core.default_qdisc",
    "net.core.dev_weight",
    "net.core.netdev_budget",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.rps_sock_flow_entries",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "kernel.sched_autogroup_enabled",
];

/// Kernel options that decide what CPU time means or what a path costs.
const OPTIONS: &[&str] = &[
    "CONFIG_HZ",
    "CONFIG_NO_HZ_IDLE",
    "CONFIG_NO_HZ_FULL",
    "CONFIG_PREEMPT_NONE",
    "CONFIG_PREEMPT_VOLUNTARY",
    "CONFIG_PREEMPT",
    "CONFIG_PREEMPT_LAZY",
    "CONFIG_PREEMPT_RT",
    "CONFIG_TICK_CPU_ACCOUNTING",
    "CONFIG_VIRT_CPU_ACCOUNTING_GEN",
    "CONFIG_IRQ_TIME_ACCOUNTING",
    "CONFIG_BRIDGE_NETFILTER",
];

/// Options that slow a kernel down, for finding bugs in it.
const DEBUG_OPTIONS: &[&str] = &[
    "CONFIG_KASAN",
    "CONFIG_KCSAN",
    "CONFIG_PROVE_LOCKING",
    "CONFIG_LOCK_STAT",
    "CONFIG_DEBUG_ATOMIC_SLEEP",
    "CONFIG_SLUB_DEBUG_ON",
    "CONFIG_DEBUG_PAGEALLOC",
    "CONFIG_KMEMLEAK",
];

/// Reads everything in [`Environment`]. What this kernel does not report stays empty.
#[must_use]
pub fn capture(meter: &CpuMeter) -> Environment {
    let cpuinfo = text("/proc/cpuinfo").unwrap_or_default();
    let options = kernel_options();
    Environment {
        hopyard_version: env!("CARGO_PKG_VERSION").to_owned(),
        hopyard_revision: option_env!("HOPYARD_REVISION").map(str::to_owned),
        hostname: hostname().unwrap_or_default(),
        kernel_release: line("/proc/sys/kernel/osrelease").unwrap_or_default(),
        kernel_version: line("/proc/sys/kernel/version").unwrap_or_default(),
        architecture: std::env::consts::ARCH.to_owned(),
        kernel_command_line: line("/proc/cmdline").unwrap_or_default(),
        cpu_model: cpu_model(&cpuinfo).unwrap_or_else(|| "unknown".to_owned()),
        cpu_hz: cpu_hz(&cpuinfo),
        cpus: u32::try_from(meter.cpus().len()).unwrap_or(u32::MAX),
        // `run::prepare` fills it in: the meter knows no placements.
        split_cpus: None,
        numa_nodes: numa_nodes(),
        memory_bytes: memory_bytes(),
        hypervisor: hypervisor(&cpuinfo),
        clock_source: clock_source().unwrap_or_else(|| "unknown".to_owned()),
        frequency_governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        mitigations: mitigations(),
        cpu_accounting: meter.accounting(),
        others_hidden: sees_all_processes().err(),
        kernel_options: chosen(&options, OPTIONS),
        sysctls: SYSCTLS
            .iter()
            .filter_map(|key| {
                let value = line(&format!("/proc/sys/{}", key.replace('.', "/")))?;
                Some((
                    (*key).to_owned(),
                    value.split_whitespace().collect::<Vec<_>>().join(" "),
                ))
            })
            .collect(),
        debug_features: debug_features(&options),
    }
}

fn cpu_hz(cpuinfo: &str) -> Option<f64> {
    // A frequency that scales is only valid for an instant.
    if line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").is_some() {
        return None;
    }
    let mhz: f64 = field(cpuinfo, "cpu MHz")?.parse().ok()?;
    Some(mhz * 1e6)
}

fn numa_nodes() -> u32 {
    let nodes = fs::read_dir("/sys/devices/system/node").map_or(0, |entries| {
        entries
            .flatten()
            .filter(|e| {
                e.file_name()
                    .to_str()
                    .and_then(|n| n.strip_prefix("node"))
                    .is_some_and(|n| n.parse::<u32>().is_ok())
            })
            .count()
    });
    u32::try_from(nodes.max(1)).unwrap_or(1)
}

fn memory_bytes() -> u64 {
    text("/proc/meminfo")
        .and_then(|t| field(&t, "MemTotal"))
        .and_then(|v| v.trim_end_matches(" kB").parse::<u64>().ok())
        .map_or(0, |kib| kib * 1024)
}

/// The hypervisor by its CPUID name, else by its DMI vendor; detected by the CPU flag.
fn hypervisor(cpuinfo: &str) -> Option<String> {
    let flagged =
        field(cpuinfo, "flags").is_some_and(|f| f.split(' ').any(|flag| flag == "hypervisor"));
    flagged.then(|| {
        cpuid_hypervisor()
            .or_else(|| line("/sys/hypervisor/type"))
            .or_else(|| line("/sys/class/dmi/id/sys_vendor"))
            .unwrap_or_else(|| "unnamed".to_owned())
    })
}

#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
fn cpuid_hypervisor() -> Option<String> {
    use raw_cpuid::{CpuId, Hypervisor};
    let info = CpuId::new().get_hypervisor_info()?;
    Some(match info.identify() {
        Hypervisor::Unknown(..) => return None,
        known => format!("{known:?}"),
    })
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
fn cpuid_hypervisor() -> Option<String> {
    None
}

fn mitigations() -> BTreeMap<String, String> {
    let Ok(entries) = fs::read_dir("/sys/devices/system/cpu/vulnerabilities") else {
        return BTreeMap::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let state = fs::read_to_string(entry.path()).ok()?;
            Some((
                entry.file_name().to_str()?.to_owned(),
                state.trim().to_owned(),
            ))
        })
        .collect()
}

/// All options of the running kernel: /boot/config-RELEASE, or /proc/config.gz through `zcat`.
fn kernel_options() -> BTreeMap<String, String> {
    let release = line("/proc/sys/kernel/osrelease").unwrap_or_default();
    let config = text(&format!("/boot/config-{release}"))
        .or_else(|| text(&format!("/lib/modules/{release}/config")))
        .or_else(|| gunzipped("/proc/config.gz"));
    config
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.trim_matches('"').to_owned()))
        .collect()
}

fn gunzipped(path: &str) -> Option<String> {
    if !Path::new(path).exists() {
        return None;
    }
    let output = std::process::Command::new("zcat").arg(path).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn chosen(options: &BTreeMap<String, String>, names: &[&str]) -> BTreeMap<String, String> {
    names
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), options.get(*name)?.clone())))
        .collect()
}

fn debug_features(options: &BTreeMap<String, String>) -> Vec<String> {
    let mut features: Vec<String> = DEBUG_OPTIONS
        .iter()
        .filter(|name| options.get(**name).is_some_and(|v| v == "y"))
        .map(|name| (*name).to_owned())
        .collect();
    let tracer = line("/sys/kernel/tracing/current_tracer")
        .or_else(|| line("/sys/kernel/debug/tracing/current_tracer"));
    if let Some(tracer) = tracer.filter(|t| t != "nop" && !t.is_empty()) {
        features.push(format!("tracer `{tracer}`"));
    }
    features
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let environment = capture(&CpuMeter::new().unwrap());
        assert!(!environment.kernel_release.is_empty());
        assert!(environment.cpus > 0);
        assert!(environment.memory_bytes > 0);
        assert!(
            environment
                .sysctls
                .contains_key("net.ipv4.tcp_congestion_control")
        );
        assert!(!environment.mitigations.is_empty());
    }

    #[test]
    fn the_hypervisor_flag_decides() {
        assert_eq!(hypervisor("flags\t: fpu vme\n"), None);
        assert!(hypervisor("flags\t: fpu hypervisor vme\n").is_some());
    }
}
