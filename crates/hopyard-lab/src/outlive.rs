//! Mounts that are to outlive the process that made them.

use std::fs;

use super::processes;

/// What to do, as the end of a sentence.
pub(super) const INSTEAD: &str = "only this process has its mount namespace, whose mounts end with it (`ip netns exec`, PrivateTmp= of a \
     unit): enter a network namespace by `nsenter --net=FILE` instead";

/// Whether another process shares this one's mount namespace, so that mounts stay when this one ends; true where that cannot be seen.
/// Processes that this one started do not count.
pub(super) fn mounts_outlive_us() -> bool {
    let Ok(own) = fs::read_link("/proc/self/ns/mnt") else {
        return true;
    };
    let me = std::process::id();
    processes::with_namespace("mnt")
        .any(|(pid, mounts)| mounts == own && pid != me && parent(pid) != Some(me))
}

/// The parent's process id, as `/proc/PID/status` has it.
fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_started_these_tests_has_their_mounts() {
        assert!(mounts_outlive_us());
    }
}
