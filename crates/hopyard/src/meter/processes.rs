//! CPU time of other people's processes, by their own CPU clocks (scheduler time, not ticks).

use std::collections::{HashMap, HashSet};

use hopyard_net::clock;

use super::{Error, read};

/// `PF_KTHREAD` (include/linux/sched.h): kernel threads work for the network as often as not, so they
/// are never foreign.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// CPU time of every process that is neither ours nor a kernel thread: pid → ns.
#[derive(Debug, Clone, Default)]
pub(super) struct Foreign(HashMap<i32, u64>);

impl Foreign {
    /// Reads every process's clock, leaving out `ours`.
    pub(super) fn read(ours: &HashSet<i32>) -> Result<Self, Error> {
        let entries = std::fs::read_dir("/proc").map_err(|source| Error::Read {
            file: "/proc".to_owned(),
            source,
        })?;
        let mut clocks = HashMap::new();
        for entry in entries.flatten() {
            let Some(pid) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<i32>().ok())
            else {
                continue;
            };
            // A process that ends while we look has no clock any more: leave it out.
            if !ours.contains(&pid)
                && is_user_process(pid)
                && let Ok(ns) = clock::process_cpu_ns(pid)
            {
                clocks.insert(pid, ns);
            }
        }
        Ok(Self(clocks))
    }

    /// ns used since an earlier reading. A process that was not there then has used all of its time
    /// since; one that has ended takes its last stretch with it.
    pub(super) fn since(&self, start: &Self) -> u64 {
        self.0
            .iter()
            .map(|(pid, now)| now.saturating_sub(start.0.get(pid).copied().unwrap_or(0)))
            .sum()
    }
}

fn is_user_process(pid: i32) -> bool {
    read(&format!("/proc/{pid}/stat"))
        .is_ok_and(|text| flags(&text).is_some_and(|f| f & KERNEL_THREAD == 0))
}

/// The ninth field of /proc/PID/stat; the second may hold spaces and parentheses.
fn flags(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split_ascii_whitespace().nth(6)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_behind_an_odd_name() {
        let text = "42 (a) b (c) S 1 42 42 0 -1 4194560 1000 0 0 0";
        assert_eq!(flags(text), Some(4_194_560));
        assert_eq!(
            flags("42 (kworker/0:1) I 2 0 0 0 -1 69238880 0").map(|f| f & KERNEL_THREAD),
            Some(KERNEL_THREAD)
        );
        assert_eq!(flags("garbage"), None);
    }

    #[test]
    fn a_process_that_came_later_counts_whole() {
        let start = Foreign([(1, 100), (2, 50)].into());
        let end = Foreign([(1, 150), (3, 30)].into());
        assert_eq!(end.since(&start), 80);
    }
}
