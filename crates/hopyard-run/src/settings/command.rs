//! One command of the user: from its start to its end, and what it said.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use hopyard_net::{Process, group_lives};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::units::show_duration;

/// Interval of checks on a running command.
const STEP: Duration = Duration::from_millis(100);
/// The same while it is being ended.
const LOOK: Duration = Duration::from_millis(10);
/// Time for a command to end after Ctrl-C, then after SIGTERM, and then after SIGKILL.
const GRACE: Duration = Duration::from_secs(1);
/// After this time, the user is told which command is still running.
const LONG: Duration = Duration::from_secs(5);
/// The most of a command's output that is shown, from its end, bytes.
const SHOWN: u64 = 2000;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be started.
    #[error("cannot run the command of {option}, `{command}`")]
    Start {
        /// The option with the command.
        option: &'static str,
        command: String,
        #[source]
        source: io::Error,
    },
    /// It failed.
    #[error("the command of {option} failed ({status}): `{command}`{said}")]
    Failed {
        /// The option with the command.
        option: &'static str,
        command: String,
        status: ExitStatus,
        /// Its output.
        said: String,
    },
    /// It did not end in time.
    #[error("the command of {option} took longer than {}: `{command}`{said}", show_duration(*.limit))]
    TooLong {
        /// The option with the command.
        option: &'static str,
        command: String,
        /// The time it had.
        limit: Duration,
        /// Its output.
        said: String,
    },
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Runs a command to its end, or until `is_to_stop` returns true, for at most `limit`.
pub(super) fn run(
    option: &'static str,
    command: &str,
    environment: &[(&str, &str)],
    limit: Option<Duration>,
    is_to_stop: impl Fn() -> bool,
) -> Result<(), Error> {
    let not_started = |source| Error::Start {
        option,
        command: command.to_owned(),
        source,
    };
    let mut printed = output().map_err(not_started)?;
    let still_running = |span| {
        let span = show_duration(span);
        crate::note(format_args!(
            "the command of {option} is still running after {span}: `{command}`"
        ));
    };
    let ended = start(command, environment, &printed)
        .and_then(|child| ended(child, limit, is_to_stop, still_running))
        .map_err(not_started)?;
    match ended {
        Ended::Stopped => Err(Error::Interrupted),
        Ended::TooLong(limit) => Err(Error::TooLong {
            option,
            command: command.to_owned(),
            limit,
            said: said(&mut printed),
        }),
        Ended::ByItself(status) if status.success() => Ok(()),
        Ended::ByItself(status) => Err(Error::Failed {
            option,
            command: command.to_owned(),
            status,
            said: said(&mut printed),
        }),
    }
}

/// A file for a command's output. Unlike a pipe, it needs no wait for end of file, which never comes if the command
/// leaves a process running.
fn output() -> io::Result<File> {
    Ok(memfd_create("hopyard-setting", MFdFlags::MFD_CLOEXEC)?.into())
}

/// In a process group of its own, so that Ctrl-C on the terminal does not end it.
fn start(command: &str, environment: &[(&str, &str)], printed: &File) -> io::Result<Child> {
    Command::new("sh")
        .args(["-c", command])
        .env_remove("HOPYARD_SETTING")
        .env_remove("HOPYARD_LABS")
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(printed.try_clone()?)
        .stderr(printed.try_clone()?)
        .process_group(0)
        .spawn()
}

/// How a command ended.
enum Ended {
    ByItself(ExitStatus),
    /// The user asked to stop.
    Stopped,
    /// It did not end within this time.
    TooLong(Duration),
}

/// Waits for a command, and calls `still_running` once if that takes long.
fn ended(
    mut child: Child,
    limit: Option<Duration>,
    is_to_stop: impl Fn() -> bool,
    still_running: impl FnOnce(Duration),
) -> io::Result<Ended> {
    let began = Instant::now();
    let mut still_running = Some(still_running);
    let process = Process::open(child.id())
        .map_err(io::Error::other)
        .inspect_err(|_| end_group(&child))?;
    let within = |span| {
        process
            .as_ref()
            .is_none_or(|process| process.has_ended(span))
    };
    while !within(STEP) {
        let ended = if is_to_stop() {
            Ended::Stopped
        } else if let Some(limit) = limit.filter(|limit| began.elapsed() >= *limit) {
            Ended::TooLong(limit)
        } else {
            if let Some(tell) = still_running.take_if(|_| began.elapsed() >= LONG) {
                tell(LONG);
            }
            continue;
        };
        if !within(GRACE) {
            end_group(&child);
        }
        // One that waits in the kernel cannot be ended, and is not waited for.
        if within(Duration::ZERO) {
            child.wait()?;
        }
        return Ok(ended);
    }
    child.wait().map(Ended::ByItself)
}

/// Ends a command with all that it started in its process group: what is left of it could change the host after that was restored.
fn end_group(child: &Child) {
    let group = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        // It may end at this moment.
        let _ = killpg(group, signal);
        let began = Instant::now();
        while began.elapsed() < GRACE {
            if !group_lives(child.id()) {
                return;
            }
            thread::sleep(LOOK);
        }
    }
    crate::note(format_args!(
        "process group {group}, which a command began, does not end, and may still change this host"
    ));
}

/// The end of a command's output, as the end of a sentence.
fn said(printed: &mut File) -> String {
    let mut bytes = Vec::new();
    let end = printed.metadata().map_or(0, |file| file.len());
    let read = printed
        .seek(SeekFrom::Start(end.saturating_sub(SHOWN)))
        .and_then(|_| printed.take(SHOWN).read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    match read {
        Ok(1..) if !text.trim().is_empty() => format!(": {}", text.trim()),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shell ends at SIGTERM, what it runs does not.
    #[test]
    fn what_a_command_runs_is_ended_with_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().display();
        let command =
            format!("(trap '' TERM; echo > {path}/begun; sleep 3; echo > {path}/late) & wait");
        let begun = || home.path().join("begun").exists();
        let error = run("--b", &command, &[], None, begun).unwrap_err();
        assert!(matches!(error, Error::Interrupted), "{error}");
        thread::sleep(Duration::from_millis(2500));
        assert!(!home.path().join("late").exists());
    }

    #[test]
    fn a_command_that_does_not_end_is_ended() {
        let limit = Some(Duration::from_millis(200));
        let command = "echo waiting for a lock; trap '' TERM; sleep 1000 & wait";
        let began = Instant::now();
        let error = run("--b", command, &[], limit, || false).unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(100));
        assert_eq!(
            error.to_string(),
            format!("the command of --b took longer than 200ms: `{command}`: waiting for a lock")
        );
        let restored = run("--restore", "sleep 0.3", &[], None, || false);
        restored.unwrap();
    }
}
