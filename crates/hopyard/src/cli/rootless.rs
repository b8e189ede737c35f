//! Measuring without root: in a user namespace of its own, as far as the kernel permits.

use hopyard_net::cpu::{self, RealtimeGuard};
use hopyard_net::{Cgroup, enter_own_user_namespace, may_make_namespaces};
use serde::Serialize;

use super::Failure;
use crate::lab::LabId;
use crate::model::CpuAccounting;
use crate::profile;

/// Something that needs root.
#[derive(Debug, Serialize)]
pub(super) struct NeedsRoot {
    /// The figure or the command, and the effect.
    pub(super) what: String,
    /// What the kernel reserves for root.
    pub(super) why: String,
}

/// Call this before labs are built: if this user may not make namespaces, the process enters a user namespace of its
/// own, where it may.
///
/// # Errors
/// This user may not have one.
pub(super) fn enter() -> Result<(), Failure> {
    if may_make_namespaces() {
        return Ok(());
    }
    enter_own_user_namespace().map_err(|error| Failure::asked(&error))?;
    crate::note(format_args!(
        "not root (no CAP_SYS_ADMIN): labs are built in a user namespace of this run's own; CPU costs are coarser, and paths \
         that use eBPF or services of the host are left out or refused (`hopyard doctor` says what needs root, and why)"
    ));
    Ok(())
}

/// Refuses a command that cannot do without root. Call it before the command changes anything.
///
/// # Errors
/// This process may not make namespaces of the host.
pub(super) fn only_with_root(command: &str) -> Result<(), Failure> {
    if may_make_namespaces() {
        return Ok(());
    }
    let what = format!("carry out {command}");
    Err(Failure::asked(&hopyard_net::Error::Denied { what }))
}

/// What this process cannot do, found by trying; `refused` is why it has no user namespace.
pub(super) fn need_root(refused: Option<Failure>, accounting: CpuAccounting) -> Vec<NeedsRoot> {
    let needs = |what: &str, why: String| NeedsRoot {
        what: what.to_owned(),
        why,
    };
    let mut all = Vec::new();
    if let Some(failure) = refused {
        all.push(needs("every path", failure.message));
    }
    if accounting == CpuAccounting::ProcStat {
        all.push(needs(
            "CPU costs in ns: they come in steps of 10 ms, so those of short windows are uncertain by 5 to 10 % (use --window 10s)",
            "/proc/timer_list, which has the idle clocks".to_owned(),
        ));
    }
    if RealtimeGuard::new().is_none() {
        all.push(needs(
            "edges of windows on full CPUs: more windows are read late and measured again",
            "real-time priority (CAP_SYS_NICE)".to_owned(),
        ));
    }
    let profiles = cpu::online_cpus().map(|cpus| profile::check(&cpus));
    if let Ok(Err(error)) = profiles {
        all.push(needs("profiles (--profile)", crate::chain(&error)));
    }
    let group = Cgroup::create(&LabId::next().to_string());
    if let Err(error) = group.and_then(|group| group.remove()) {
        all.push(needs(
            "control groups of labs, so `scheduler=groups`; processes of the load are told by their ids instead",
            crate::chain(&error),
        ));
    }
    all.push(needs(
        "settings of this host (--a, --b), labs that stay (`hopyard lab up`), and `hopyard switch`",
        "they change the host, which a user namespace has no right to".to_owned(),
    ));
    all
}
