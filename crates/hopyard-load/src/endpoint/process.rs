//! A worker's process, and how it is seen from elsewhere on its machine.

use std::fs;
use std::os::unix::fs::MetadataExt;

use serde::{Deserialize, Serialize};

/// A process by the id that it has in its own PID namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessAt {
    /// Inode number of the PID namespace.
    pub pid_ns: u64,
    /// Its id there.
    pub pid: u32,
}

/// Inode number of a namespace of this process.
pub(super) fn own_namespace(name: &str) -> Result<u64, String> {
    let file = format!("/proc/self/ns/{name}");
    fs::metadata(&file)
        .map(|of| of.ino())
        .map_err(|e| format!("cannot read {file}: {e}"))
}

impl ProcessAt {
    /// The id that it has for this process, on the same machine: it may be in a container's PID namespace. `None` where it
    /// cannot be seen.
    #[must_use]
    pub fn seen_here(self) -> Option<u32> {
        if own_namespace("pid") == Ok(self.pid_ns) {
            return Some(self.pid);
        }
        let is_it = |pid: &u32| {
            let namespace = fs::metadata(format!("/proc/{pid}/ns/pid"));
            let status = || fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            namespace.is_ok_and(|of| of.ino() == self.pid_ns)
                && innermost_pid(&status()) == Some(self.pid)
        };
        let entries = fs::read_dir("/proc").ok()?.flatten();
        let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.find(is_it)
    }
}

/// The last of the ids in line `NSpid` (Linux 4.1).
fn innermost_pid(status: &str) -> Option<u32> {
    let mut lines = status.lines();
    let pids = lines.find_map(|line| line.strip_prefix("NSpid:"))?;
    pids.split_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_pids_the_innermost_is_the_processs_own() {
        let status = "Name:\tworker\nPid:\t4711\nNSpid:\t4711\t12\t1\nThreads:\t1\n";
        assert_eq!(innermost_pid(status), Some(1));
        assert_eq!(innermost_pid("Name:\tworker\n"), None);
    }

    #[test]
    fn this_process_is_found_by_its_own_id() {
        let here = ProcessAt {
            pid_ns: own_namespace("pid").unwrap(),
            pid: std::process::id(),
        };
        assert_eq!(here.seen_here(), Some(std::process::id()));
        assert_eq!(ProcessAt { pid_ns: 1, ..here }.seen_here(), None);
    }
}
