//! Mounts that are to outlive the process that made them.

use std::fs;
use std::path::Path;

/// What to do, as the end of a sentence.
pub(super) const INSTEAD: &str = "this process alone has its mounts, and they end with it (`ip netns exec`, PrivateTmp= of a unit): enter a \
     network namespace by `nsenter --net=FILE` instead";

/// Whether another process has the mounts of this one, or nobody can say. Those that this one started do not count. In a container its
/// first process has them.
pub(super) fn mounts_outlive_us() -> bool {
    let mounts = |process: &Path| fs::read_link(process.join("ns/mnt")).ok();
    let Some(own) = mounts(Path::new("/proc/self")) else {
        return true;
    };
    let Ok(processes) = fs::read_dir("/proc") else {
        return true;
    };
    let me = std::process::id();
    let is_another = |pid: u32, process: &Path| pid != me && parent(process) != Some(me);
    processes.flatten().any(|entry| {
        // Not `self`, which is there too.
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let process = entry.path();
        pid.is_some_and(|pid| mounts(&process).as_ref() == Some(&own) && is_another(pid, &process))
    })
}

/// The parent's process id, as `/proc/PID/status` has it.
fn parent(process: &Path) -> Option<u32> {
    let status = fs::read_to_string(process.join("status")).ok()?;
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
