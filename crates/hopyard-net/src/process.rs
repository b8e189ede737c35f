//! Processes: others than our children are held by a descriptor, whose number is never that of a later process; children are
//! ended and waited for.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};
use std::{fs, io, ptr, thread};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getpgid};

use crate::error::{Error, Result};

/// A process (`pidfd_open(2)`, Linux 5.3).
#[derive(Debug)]
pub struct Process {
    pid: u32,
    file: OwnedFd,
}

impl Process {
    /// Holds a process; `None` where there is none of that number.
    ///
    /// # Errors
    /// [`Error::Kernel`] before Linux 5.3, or out of descriptors.
    pub fn open(pid: u32) -> Result<Option<Self>> {
        // SAFETY: pidfd_open(2) takes two integers and touches no memory of ours.
        let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        match Errno::result(opened) {
            Ok(number) => {
                let number = RawFd::try_from(number).unwrap_or(-1);
                // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
                let file = unsafe { OwnedFd::from_raw_fd(number) };
                Ok(Some(Self { pid, file }))
            }
            // EINVAL: a thread, or no number of a process.
            Err(Errno::ESRCH | Errno::EINVAL) => Ok(None),
            Err(errno) => Err(Error::from_errno(format!("hold process {pid}"), errno)),
        }
    }

    /// Process id, as the PID namespace of the caller counts.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The file that it runs; `None` where it has ended, or is not ours to see. Of a deleted file the name it had.
    #[must_use]
    pub fn executable(&self) -> Option<PathBuf> {
        let link = fs::read_link(format!("/proc/{}/exe", self.pid)).ok()?;
        let name = link.to_str()?;
        let name = name.strip_suffix(" (deleted)").unwrap_or(name);
        (!self.has_ended(Duration::ZERO)).then(|| name.into())
    }

    /// Its arguments, its own name first; none where it has ended.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let text = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        if self.has_ended(Duration::ZERO) {
            return Vec::new();
        }
        text.split(|byte| *byte == 0)
            .map(|argument| String::from_utf8_lossy(argument).into_owned())
            .collect()
    }

    /// Sends SIGKILL; one that has ended is no error.
    ///
    /// # Errors
    /// [`Error::Denied`] where it is not ours to end.
    pub fn kill(&self) -> Result<()> {
        let (file, signal) = (self.file.as_raw_fd(), libc::SIGKILL);
        let no_info = ptr::null::<libc::siginfo_t>();
        // SAFETY: pidfd_send_signal(2) takes a descriptor that is open for as long as `self` is, and no information.
        let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, file, signal, no_info, 0) };
        match Errno::result(sent) {
            Ok(_) | Err(Errno::ESRCH) => Ok(()),
            Err(errno) => Err(Error::from_errno(
                format!("end process {}", self.pid),
                errno,
            )),
        }
    }

    /// Waits for its end, for so long at most.
    #[must_use]
    pub fn has_ended(&self, within: Duration) -> bool {
        let mut ends = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
        let limit = PollTimeout::try_from(within).unwrap_or(PollTimeout::MAX);
        matches!(poll(&mut ends, limit), Ok(1..))
    }
}

/// Sends SIGKILL to all processes of the group that a process leads, if it leads one. Call it before anybody waits for the leader:
/// afterwards another process may have its id.
pub fn kill_group(leader: u32) {
    // To kill(2), 0 is the caller's own group, and 1 is every process there is.
    if let Ok(group @ 2..) = i32::try_from(leader) {
        // Fails only if there is no such group, or all of it ended meanwhile.
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
}

/// Whether any process of a group is still there. One that has ended and only waits for its parent to notice is not.
#[must_use]
pub fn group_lives(leader: u32) -> bool {
    let Some(group) = i32::try_from(leader).ok().map(Pid::from_raw) else {
        return false;
    };
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let of_group = |pid: &u32| {
        let pid = i32::try_from(*pid).ok().map(Pid::from_raw);
        pid.is_some_and(|pid| getpgid(Some(pid)) == Ok(group))
    };
    numbers.filter(of_group).any(|pid| !is_ending(pid))
}

/// Waits for a child that is about to end by itself, for so long at most; then kills it. Tells how it ended.
///
/// # Errors
/// Somebody else waited for it.
pub fn end_within(child: &mut Child, patience: Duration) -> io::Result<ExitStatus> {
    const LOOK: Duration = Duration::from_millis(2);
    let began = Instant::now();
    while began.elapsed() < patience {
        if let Some(how) = child.try_wait()? {
            return Ok(how);
        }
        thread::sleep(LOOK);
    }
    // Fails only if it ended meanwhile.
    let _ = child.kill();
    child.wait()
}

/// `PF_EXITING` (include/linux/sched.h).
const EXITING: u64 = 0x4;

/// Is a process past its last instruction, though not yet to be waited for?
#[must_use]
pub fn is_ending(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok();
    let found = pid.and_then(name_and_flags);
    found.is_some_and(|(_, flags)| flags & EXITING > 0)
}

/// Name and flags (`PF_…` in include/linux/sched.h) of a process; `None` where there is none of that number.
#[must_use]
pub fn name_and_flags(pid: i32) -> Option<(String, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (name, flags) = second_and_ninth(&text)?;
    Some((name.to_owned(), flags))
}

/// Fields of /proc/PID/stat; the second, the name, may hold spaces and parentheses.
fn second_and_ninth(stat: &str) -> Option<(&str, u64)> {
    let (head, rest) = stat.rsplit_once(") ")?;
    let (_, name) = head.split_once('(')?;
    let flags = rest.split_ascii_whitespace().nth(6)?.parse().ok()?;
    Some((name, flags))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Command, Stdio};

    #[test]
    fn a_group_lives_until_its_last_process_ends() {
        let mut leader = Command::new("sh");
        let command = leader.args(["-c", "sleep 100 & echo $!; exec sleep 100"]);
        let mut leader = command
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut other = String::new();
        let mut said = BufReader::new(leader.stdout.take().unwrap());
        said.read_line(&mut other).unwrap();
        let group = leader.id();
        assert!(group_lives(group));
        leader.kill().unwrap();
        leader.wait().unwrap();
        assert!(group_lives(group));
        let other = Process::open(other.trim().parse().unwrap())
            .unwrap()
            .unwrap();
        other.kill().unwrap();
        assert!(other.has_ended(Duration::from_secs(10)));
        assert!(!group_lives(group));
    }

    #[test]
    fn a_process_is_told_by_what_it_runs_and_ended_once() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let process = Process::open(child.id()).unwrap().unwrap();
        assert!(!process.has_ended(Duration::ZERO));
        // They are there a moment after the new program is.
        while process.arguments().len() < 2 {
            std::thread::yield_now();
        }
        assert_eq!(process.arguments()[1], "100");
        let file = process.executable().unwrap();
        assert!(file.is_absolute(), "{}", file.display());
        process.kill().unwrap();
        assert!(process.has_ended(Duration::from_secs(10)));
        child.wait().unwrap();
        assert_eq!(process.executable(), None);
        assert!(process.arguments().is_empty());
        process.kill().unwrap();
    }

    #[test]
    fn a_group_ends_with_all_that_its_leader_started() {
        let mut leader = Command::new("sh");
        leader.args(["-c", "sleep 100 & echo $!; wait"]);
        leader.stdout(Stdio::piped()).process_group(0);
        let mut leader = leader.spawn().unwrap();
        let mut line = String::new();
        let said = leader.stdout.take().unwrap();
        BufReader::new(said).read_line(&mut line).unwrap();
        let started = Process::open(line.trim().parse().unwrap())
            .unwrap()
            .unwrap();
        kill_group(leader.id());
        assert_eq!(leader.wait().unwrap().signal(), Some(libc::SIGKILL));
        assert!(started.has_ended(Duration::from_secs(10)));
    }

    #[test]
    fn a_child_ends_by_itself_or_is_killed() {
        let patience = Duration::from_secs(30);
        let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let how = end_within(&mut child, patience).unwrap();
        assert_eq!(how.code(), Some(3));
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let how = end_within(&mut child, Duration::from_millis(20)).unwrap();
        assert_eq!(how.signal(), Some(libc::SIGKILL));
    }

    #[test]
    fn nobody_has_process_id_zero() {
        assert!(Process::open(0).unwrap().is_none());
    }

    #[test]
    fn name_and_flags() {
        let text = "42 (a) b (c) S 1 42 42 0 -1 4194560 1000 0 0 0";
        assert_eq!(second_and_ninth(text), Some(("a) b (c", 4_194_560)));
        assert_eq!(second_and_ninth("garbage"), None);
    }

    #[test]
    fn who_ends_is_told_from_who_runs() {
        assert!(!is_ending(std::process::id()));
        let mut child = Command::new("true").spawn().unwrap();
        let began = std::time::Instant::now();
        while !is_ending(child.id()) {
            let took = began.elapsed();
            assert!(took.as_secs() < 30, "`true` still runs");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(child.wait().unwrap().success());
        assert!(!is_ending(child.id()), "it is gone");
    }
}
