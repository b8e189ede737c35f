//! What /proc shows of a process.

use std::fs;
use std::io;
use std::sync::LazyLock;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

/// The machine's first time namespace (`PROC_TIME_INIT_INO`).
const FIRST_TIME: &str = "time:[4026531834]";
/// Clock ticks per second in /proc (`USER_HZ`, 100 on every architecture of hopyard).
const TICKS_PER_S: i64 = 100;

/// The PID namespace whose processes /proc shows: in a container, its own or one above it.
pub(super) fn shown_namespace() -> Option<u32> {
    // One pid for each namespace, from that of /proc down to the process's own.
    match pids_of("self").len() {
        0 => None,
        1 => namespace_of("self").ok(),
        _ => namespace_of("1").ok(),
    }
}

pub(super) fn namespace_of(process: &str) -> io::Result<u32> {
    let link = fs::read_link(format!("/proc/{process}/ns/pid"))?;
    link.to_str()
        .and_then(|text| text.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok())
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The pids of a process in its PID namespaces: that of /proc first, its own last.
pub(super) fn pids_of(process: &str) -> Vec<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    line.unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// When a process started: field 22 of /proc/PID/stat, clock ticks since boot by the reader's time namespace. `None`: it has ended.
///
/// # Errors
/// /proc does not show it.
pub(super) fn start_time(process: &str) -> io::Result<Option<u64>> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let started = || {
        let (_, rest) = stat.rsplit_once(") ")?;
        let mut fields = rest.split_ascii_whitespace();
        // A zombie holds nothing any more.
        if fields.next() == Some("Z") {
            return None;
        }
        fields.nth(18)?.parse().ok()
    };
    Ok(started())
}

/// Is there a process with this pid, whether /proc shows it or not?
pub(super) fn is_there(pid: u32) -> bool {
    // 0 is the caller's own process group.
    let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0);
    pid.is_some_and(|pid| kill(Pid::from_raw(pid), None) != Err(Errno::ESRCH))
}

/// A start time from this process's /proc, converted to the first time namespace; `None` if that is not possible.
pub(super) fn unshifted(shown: u64) -> Option<u64> {
    static OFFSET: LazyLock<Option<i64>> = LazyLock::new(|| match boot_offset() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(0),
        offset => offset.ok(),
    });
    (*OFFSET).and_then(|offset| without(shown, offset))
}

/// The kernel computes with a `u64` of nanoseconds: processes older than the boot of a time namespace appear near the
/// end of its range.
fn without(shown: u64, offset: i64) -> Option<u64> {
    const RANGE: i128 = (1 << 64) / (1_000_000_000 / TICKS_PER_S as i128);
    let started = (i128::from(shown) - i128::from(offset)).rem_euclid(RANGE);
    started.try_into().ok()
}

/// What the time namespace of this process adds to the time since boot, clock ticks (`time_namespaces(7)`).
///
/// # Errors
/// `NotFound` if the kernel has no time namespaces; otherwise if /proc does not show it.
fn boot_offset() -> io::Result<i64> {
    let own = fs::read_link("/proc/self/ns/time")?;
    if own.as_os_str() == FIRST_TIME {
        return Ok(0);
    }
    // The offsets in /proc are those of children. Older kernels do not enter the children's namespace with `exec`.
    if own != fs::read_link("/proc/self/ns/time_for_children")? {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let offsets = fs::read_to_string("/proc/self/timens_offsets")?;
    boot_offset_in(&offsets).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Reads the line `boottime SECONDS NANOSECONDS`.
fn boot_offset_in(offsets: &str) -> Option<i64> {
    let line = offsets
        .lines()
        .find_map(|line| line.strip_prefix("boottime"))?;
    let mut numbers = line.split_ascii_whitespace().map(str::parse::<i64>);
    let (seconds, ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    seconds
        .checked_mul(TICKS_PER_S)?
        .checked_add(ns / (1_000_000_000 / TICKS_PER_S))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_times_are_those_of_the_first_time_namespace() {
        let offsets =
            |boottime: &str| format!("monotonic           5         0\nboottime {boottime}\n");
        let ticks = |boottime: &str| boot_offset_in(&offsets(boottime));
        assert_eq!(ticks("      1000         0"), Some(100_000));
        assert_eq!(ticks("       -10 250000000"), Some(-975));
        assert_eq!(ticks("       -10"), None);
        assert_eq!(boot_offset_in("monotonic 0 0\n"), None);
        assert_eq!(without(1_438_439, 100_000), Some(1_338_439));
        assert_eq!(without(1_337_464, -975), Some(1_338_439));
        // 5 s after the boot of the host, seen from a namespace where this is -5 s.
        let shown = u64::MAX / 10_000_000 - 499;
        assert!(without(shown, -1000).unwrap().abs_diff(500) <= 1);
    }

    /// 0 is this process's own group, which a signal would reach.
    #[test]
    fn a_process_is_there_whatever_proc_shows() {
        let is_there = [std::process::id(), 1, 0, u32::MAX].map(is_there);
        assert_eq!(is_there, [true, true, false, false]);
        assert!(start_time("self").unwrap().is_some());
        assert!(start_time("0").is_err());
    }
}
