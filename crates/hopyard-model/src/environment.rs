//! The state of the machine during a run; captured once.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axes::Cpus;

/// Source of busy time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CpuAccounting {
    /// The idle clock in ns (`/proc/timer_list`).
    IdleClock,
    /// CPUs do not halt: the time for which a thread of the lowest class ran on each is idle (`--keep-awake`).
    KeptAwake,
    /// The idle column of `/proc/stat` in 10 ms steps: windows of 10 s and more only.
    ProcStat,
}

/// CPUs of the two ends, in the order in which their flows get them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SplitCpus {
    /// Those of the client.
    pub client: Cpus,
    /// Those of the server.
    pub server: Cpus,
}

/// The machine and the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Version of hopyard that made the run.
    pub hopyard_version: String,
    /// Its source revision, `-dirty` if the tree had changes; absent outside a checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hopyard_revision: Option<String>,
    /// Host name.
    pub hostname: String,
    /// `uname -r`.
    pub kernel_release: String,
    /// `uname -v`.
    pub kernel_version: String,
    /// `uname -m`.
    pub architecture: String,
    /// Kernel command line.
    pub kernel_command_line: String,
    /// Model name of the CPU, as the kernel prints it.
    pub cpu_model: String,
    /// Its frequency, Hz, if that is fixed; under a hypervisor the nominal one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_hz: Option<f64>,
    /// Number of online CPUs.
    pub cpus: u32,
    /// CPUs that placement `split` gives to ends on this machine; absent where it has one CPU, and in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split_cpus: Option<SplitCpus>,
    /// Number of NUMA nodes.
    pub numa_nodes: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Hypervisor, as the CPU names it; absent on bare metal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypervisor: Option<String>,
    /// Clock source that the kernel uses: `tsc`, `kvm-clock`, …
    pub clock_source: String,
    /// Frequency governor; absent if the kernel does not scale the frequency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_governor: Option<String>,
    /// CPU vulnerability → state.
    pub mitigations: BTreeMap<String, String>,
    /// Source of busy time.
    pub cpu_accounting: CpuAccounting,
    /// Why other processes of the machine cannot be seen, whose CPU time then counts as the load's; absent where they can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_hidden: Option<String>,
    /// Kernel options that decide what CPU time means (HZ, NO_HZ, IRQ_TIME_ACCOUNTING, …), if known.
    pub kernel_options: BTreeMap<String, String>,
    /// sysctl → value, of the host, for those that matter for networking.
    pub sysctls: BTreeMap<String, String>,
    /// Generic debug features that are on and slow the kernel down.
    pub debug_features: Vec<String>,
}

impl Environment {
    /// The first fact that differs between the two machines or kernels: its name, its value here, its value in `other`.
    #[must_use]
    pub fn differs_from(&self, other: &Self) -> Option<(&'static str, String, String)> {
        // Of some twenty, those that the other has not.
        let mitigations = |env: &Self, other: &Self| {
            let own = env.mitigations.iter();
            let own = own.filter(|(what, state)| other.mitigations.get(*what) != Some(*state));
            let own: Vec<String> = own
                .map(|(what, state)| format!("{what}: {state}"))
                .collect();
            own.join("; ")
        };
        let facts = |env: &Self, other: &Self| {
            [
                ("host", env.hostname.clone()),
                ("kernel", env.kernel_release.clone()),
                ("kernel build", env.kernel_version.clone()),
                ("CPU", env.cpu_model.clone()),
                ("machine", format!("{} CPUs", env.cpus)),
                ("mitigations", mitigations(env, other)),
                ("CPU accounting", format!("{:?}", env.cpu_accounting)),
            ]
        };
        let both = facts(self, other).into_iter().zip(facts(other, self));
        let mut unlike = both.filter(|(here, there)| here != there);
        unlike
            .next()
            .map(|((what, here), (_, there))| (what, here, there))
    }

    /// The first setting of the same machine that differs (clock source, frequency governor, sysctls): its name, its value here, and
    /// the other one.
    #[must_use]
    pub fn setting_unlike(&self, other: &Self) -> Option<(String, String, String)> {
        let facts = |env: &Self| {
            let governor = env.frequency_governor.clone();
            [
                ("clock source", Some(env.clock_source.clone())),
                ("frequency governor", governor),
            ]
        };
        let set = facts(self).into_iter().zip(facts(other));
        let set = set.map(|((what, here), (_, there))| (what, here, there));
        let sysctls = self.sysctls.iter();
        // A sysctl that only one of them has may belong to a module that is not loaded in the other.
        let sysctls = sysctls
            .filter(|(key, _)| *key != Self::GROWS)
            .filter_map(|(key, here)| {
                Some((
                    &**key,
                    Some(here.clone()),
                    Some(other.sysctls.get(key)?.clone()),
                ))
            });
        let mut unlike = set.chain(sysctls).filter(|(_, here, there)| here != there);
        let named = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
        let (what, here, there) = unlike.next()?;
        Some((what.to_owned(), named(here), named(there)))
    }

    /// A list, no setting: each module that is loaded makes it longer, also one that a lab loads.
    const GROWS: &str = "net.ipv4.tcp_available_congestion_control";

    /// Whether the CPU was emulated (QEMU without KVM). Then no absolute figure means anything.
    #[must_use]
    pub fn is_emulated(&self) -> bool {
        let signs = ["QEMU TCG", "QEMU Virtual CPU"];
        signs.iter().any(|sign| self.cpu_model.contains(sign))
    }
}
