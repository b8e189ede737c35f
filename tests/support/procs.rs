//! Processes: who is there, whose they are, what they hold.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

/// A process as /proc shows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) state: char,
    pub(crate) arguments: Vec<String>,
}

impl Process {
    fn read(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, rest) = stat.rsplit_once(") ")?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        Some(Self {
            pid,
            parent,
            state,
            arguments: arguments
                .split(|byte| *byte == 0)
                .filter(|part| !part.is_empty())
                .map(|part| String::from_utf8_lossy(part).into_owned())
                .collect(),
        })
    }

    /// Is it `hopyard worker`?
    pub(crate) fn is_worker(&self) -> bool {
        self.arguments.get(1).is_some_and(|word| word == "worker")
    }

    /// Does it have a handler for this signal?
    pub(crate) fn catches(&self, signal: i32) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))
            .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
    }
}

/// Every process of the machine.
pub(crate) fn all() -> Vec<Process> {
    pids().filter_map(Process::read).collect()
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

pub(crate) fn find(pid: u32) -> Option<Process> {
    Process::read(pid)
}

/// Living processes whose environment carries `word`, a mark that children take over.
pub(crate) fn marked(word: &str) -> Vec<Process> {
    // Before anything else is read: most processes are others'.
    let carries = |pid: &u32| {
        fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| {
            environment
                .split(|byte| *byte == 0)
                .any(|entry| entry == word.as_bytes())
        })
    };
    pids()
        .filter(carries)
        .filter_map(Process::read)
        .filter(|process| process.state != 'Z')
        .collect()
}

/// CPU time that a process has used, by all its threads (`proc_pid_stat(5)`).
pub(crate) fn cpu_time(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    Some(ticks(fields.next()?) + ticks(fields.next()?))
}

/// USER_HZ is 100 on every architecture of this project.
pub(crate) fn ticks(text: &str) -> Duration {
    Duration::from_millis(10 * text.parse::<u64>().unwrap())
}

/// The processes below this one.
pub(crate) fn below(pid: u32) -> Vec<Process> {
    let all = all();
    let mut wanted = BTreeSet::from([pid]);
    let mut found = Vec::new();
    while let Some(next) = all
        .iter()
        .find(|p| wanted.contains(&p.parent) && !wanted.contains(&p.pid))
    {
        wanted.insert(next.pid);
        found.push(next.clone());
    }
    found
}

/// Network namespaces that a process lives in or holds by a descriptor, by inode.
pub(crate) fn namespaces(pid: u32) -> BTreeSet<u64> {
    let mut links = vec![format!("/proc/{pid}/ns/net").into()];
    if let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) {
        links.extend(descriptors.flatten().map(|entry| entry.path()));
    }
    links
        .iter()
        .filter_map(|link: &std::path::PathBuf| fs::read_link(link).ok())
        .filter_map(|target| inode(target.to_str()?))
        .collect()
}

/// `net:[4026531840]`.
fn inode(link: &str) -> Option<u64> {
    link.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}

/// Network namespaces that are mounted on a file, by inode: (inode, file).
pub(crate) fn mounted_namespaces() -> BTreeSet<(u64, String)> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ');
            let inode = inode(fields.nth(3)?)?;
            Some((inode, fields.next()?.to_owned()))
        })
        .collect()
}

/// Those of these namespaces that something still holds: a process, a descriptor or a mount. The kernel gives a number again,
/// so what tests beside this one hold does not count where a program's mark is given: this process, others of the same program
/// (a test that is killed at each call runs itself), and programs with another test's mark.
pub(crate) fn held(namespaces: &BTreeSet<u64>, mark: Option<&str>) -> Vec<String> {
    let mut holders = Vec::new();
    let own = fs::read_link("/proc/self/exe").ok();
    let is_test = |pid: u32| own.is_some() && fs::read_link(format!("/proc/{pid}/exe")).ok() == own;
    let is_another_s = |process: &Process| {
        let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        let mut entries = environment.split(|byte| *byte == 0);
        let is_other = |mark: &str| {
            entries.any(|entry| entry.starts_with(b"HOPYARD_TEST=") && entry != mark.as_bytes())
        };
        is_test(process.pid) || mark.is_some_and(is_other)
    };
    for process in all() {
        if mark.is_some() && is_another_s(&process) {
            continue;
        }
        for inode in self::namespaces(process.pid).intersection(namespaces) {
            holders.push(format!("net:[{inode}] by {process:?}"));
        }
    }
    for (inode, file) in mounted_namespaces() {
        if namespaces.contains(&inode) {
            holders.push(format!("net:[{inode}] by mount {file}"));
        }
    }
    holders
}
