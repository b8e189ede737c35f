//! What labs could leave behind, as counted now.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use hopyard_net::{Cgroup, Handle, NetNs};

use super::apart::is_apart;
use super::procs;

/// How long the kernel may take to end what it ends in the background.
const SOON: Duration = Duration::from_secs(3);
/// How long a test beside this one may keep a macvtap.
const OTHERS: Duration = Duration::from_secs(60);

/// Everything of ours that could stay: taken before and after, it must be the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Traces {
    /// Devices of the namespace that the tests run in.
    links: BTreeSet<String>,
    /// Network namespaces that this process and those below it live in or hold.
    namespaces: BTreeSet<u64>,
    /// Mounts, whole lines.
    mounts: BTreeSet<String>,
    /// Control groups below `hopyard/`.
    groups: BTreeSet<String>,
    /// Processes below this one, dead ones that nobody waited for included.
    processes: BTreeSet<u32>,
    /// Descriptors of this process.
    descriptors: usize,
    /// Threads of this process, by name, without those of the test harness.
    threads: Vec<String>,
    /// What there is in /run/hopyard.
    kept: BTreeSet<String>,
    /// What there is in the directories of labs' daemons.
    daemons: BTreeSet<String>,
    /// Files that the kernel makes for macvtaps. Everybody sees them, also who is apart.
    macvtaps: BTreeSet<String>,
}

impl Traces {
    pub(crate) fn now() -> Self {
        let me = std::process::id();
        let own = Handle::new(&NetNs::current().unwrap()).unwrap();
        let links = own.links().unwrap();
        drop(own);
        let processes: BTreeSet<u32> = procs::below(me).iter().map(|p| p.pid).collect();
        let mut namespaces = procs::namespaces(me);
        for pid in &processes {
            namespaces.extend(procs::namespaces(*pid));
        }
        let count = |directory: &str| fs::read_dir(directory).unwrap().count();
        Self {
            links: links
                .iter()
                .map(|l| format!("{} {} {:?}", l.index, l.name, l.kind))
                .collect(),
            namespaces,
            mounts: fs::read_to_string("/proc/self/mountinfo")
                .unwrap()
                .lines()
                .map(str::to_owned)
                .collect(),
            groups: groups(),
            processes,
            descriptors: count("/proc/self/fd"),
            threads: threads(),
            kept: entries("/run/hopyard"),
            daemons: homes(),
            macvtaps: macvtaps(),
        }
    }

    /// Is everything as it was, within a moment? Where others run beside, a macvtap that is new may be theirs: it goes, as one that
    /// was left behind does not.
    pub(crate) fn unchanged(&self) -> Result<(), String> {
        let began = Instant::now();
        // New at every look until now.
        let mut suspects = None;
        loop {
            let looked = Instant::now();
            let mut now = Self::now();
            if is_apart() {
                let mut new = &now.macvtaps - &self.macvtaps;
                if let Some(suspects) = &suspects {
                    new = &new & suspects;
                }
                now.macvtaps = &self.macvtaps | &new;
                suspects = Some(new);
            }
            if now == *self {
                return Ok(());
            }
            let waits_for_others = suspects.as_ref().is_some_and(|new| !new.is_empty());
            let patience = if waits_for_others { OTHERS } else { SOON };
            if began.elapsed() > patience {
                return Err(format!("left behind:\n  before {self:?}\n  after  {now:?}"));
            }
            super::pause_after(looked.elapsed());
        }
    }
}

fn entries(directory: &str) -> BTreeSet<String> {
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    fs::read_dir(directory)
        .map(|entries| entries.flatten().map(name).collect())
        .unwrap_or_default()
}

/// What there is in each `/run/hopyard-…`.
fn homes() -> BTreeSet<String> {
    let mut kinds = entries("/run");
    kinds.retain(|kind| kind.starts_with("hopyard-"));
    let inside = |kind: String| {
        let names = entries(&format!("/run/{kind}")).into_iter();
        names.map(move |name| format!("{kind}/{name}"))
    };
    kinds.into_iter().flat_map(inside).collect()
}

fn macvtaps() -> BTreeSet<String> {
    let mut names = entries("/dev");
    names.retain(|name| name.starts_with("tap"));
    names
}

/// The threads that are not the harness's: it starts and ends its own (named after their tests) at
/// any time, while the product gives each of its threads a name. A thread starts under the name of the
/// process and has its own a moment later. Of a test's name the kernel keeps 15 bytes, which may end between the two
/// colons after its module; the product's have none.
fn threads() -> Vec<String> {
    let process = fs::read_to_string("/proc/self/comm").unwrap();
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let mut names: Vec<String> = tasks
        .filter(|task| !ends(&task.path()))
        .filter_map(|task| fs::read_to_string(task.path().join("comm")).ok())
        .filter(|name| *name != process && !name.contains(':'))
        .map(|name| name.trim_end().to_owned())
        .collect();
    names.sort();
    names
}

/// Is this thread past its last instruction? Whoever joins it goes on before the kernel has taken it
/// out of /proc.
fn ends(task: &Path) -> bool {
    /// `PF_EXITING` of include/linux/sched.h.
    const EXITING: u32 = 0x4;
    let stat = fs::read_to_string(task.join("stat")).unwrap_or_default();
    // proc_pid_stat(5): the name in parentheses, then the state; the flags are the seventh from there.
    let flags = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.split_ascii_whitespace().nth(6)?.parse::<u32>().ok());
    flags.is_none_or(|flags| flags & EXITING != 0)
}

/// Control groups of labs, without those of other people's living programs and, in a PID namespace of a test's own, of all
/// others.
fn groups() -> BTreeSet<String> {
    let me = std::process::id();
    let is_foreign = |name: &String| {
        // `PID.START.NAMESPACE.NUMBER`.
        let numbers: Vec<u64> = name.split('.').map_while(|n| n.parse().ok()).collect();
        let lives = |pid: u64| {
            let pid = u32::try_from(pid).unwrap_or(0);
            pid != me && procs::find(pid).is_some()
        };
        match numbers[..] {
            [_, _, namespace, _] if is_apart() && namespace != pid_namespace() => true,
            [pid, ..] => lives(pid),
            // No lab's: a test beside this one makes such a group.
            [] => is_apart(),
        }
    };
    let mut groups: BTreeSet<String> = Cgroup::list().unwrap_or_default().into_iter().collect();
    groups.retain(|name| !is_foreign(name));
    groups
}

fn pid_namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").unwrap().ino()
}

/// The control groups that a process made for its labs. Tests beside this one have process ids of their own, and may have the same.
pub(crate) fn groups_of(pid: u32) -> Vec<String> {
    let (pid, space) = (pid.to_string(), pid_namespace().to_string());
    let mut groups = Cgroup::list().unwrap_or_default();
    groups.retain(|name| {
        let parts: Vec<&str> = name.split('.').collect();
        matches!(parts[..], [owner, _, of, _] if owner == pid && of == space)
    });
    groups
}
