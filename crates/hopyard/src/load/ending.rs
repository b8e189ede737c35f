//! Processes on their way out.

/// Is a process past its last instruction, though not yet to be waited for? `PF_EXITING` of `include/linux/sched.h`, in
/// the flags of `/proc/PID/stat` (`proc_pid_stat(5)`).
pub(super) fn is_ending(pid: u32) -> bool {
    const PF_EXITING: u32 = 0x4;
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    // After the name, which may hold anything: state, ppid, pgrp, session, tty, tpgid, flags.
    let flags = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_ascii_whitespace().nth(6));
    let flags: Option<u32> = flags.and_then(|flags| flags.parse().ok());
    flags.is_some_and(|flags| flags & PF_EXITING > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    #[test]
    fn who_ends_is_told_from_who_runs() {
        assert!(!is_ending(std::process::id()));
        let mut child = Command::new("true").spawn().unwrap();
        let began = Instant::now();
        while !is_ending(child.id()) {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "`true` still runs"
            );
            sleep(Duration::from_millis(1));
        }
        assert!(child.wait().unwrap().success());
        assert!(!is_ending(child.id()), "it is gone");
    }
}
