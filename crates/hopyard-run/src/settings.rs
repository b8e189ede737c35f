//! Switches this host between two settings by commands of the user, and restores it.
//!
//! The commands run in the host's own namespaces. Dropping a [`Host`] restores the host, at every end of a run except
//! SIGKILL and a second Ctrl-C.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use hopyard_net::Process;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::model::{Setting, Settings, SwitchedBetween};
use crate::signals;

/// If a switch takes at most this long, the host is switched between turns.
const SHORT: Duration = Duration::from_millis(10);
/// How often each command is tried before a run, unless that takes longer than `PILOT`.
const PILOTS: usize = 5;
const PILOT: Duration = Duration::from_millis(500);
/// Interval of checks on a running command.
const STEP: Duration = Duration::from_millis(100);
/// Time for a command to end after Ctrl-C, and then after SIGTERM.
const GRACE: Duration = Duration::from_secs(1);
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
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
}

/// This host, between the first command and the last.
#[derive(Debug)]
pub struct Host {
    commands: Settings,
    /// Whether a command has run since the host was last in its final state.
    is_changed: bool,
}

impl Host {
    /// Runs nothing yet.
    #[must_use]
    pub fn new(commands: Settings) -> Self {
        Self {
            commands,
            is_changed: false,
        }
    }

    /// A host that an earlier process may have left at A or B, so that it is restored even if nothing switches it again.
    #[must_use]
    pub fn left_changed(commands: Settings) -> Self {
        let mut host = Self::new(commands);
        host.is_changed = true;
        host
    }

    /// Tries both commands, and returns when to switch and how long a switch takes: the median of the slower command.
    ///
    /// # Errors
    /// One of them fails, or the user wants to stop.
    pub fn pilot(&mut self) -> Result<(SwitchedBetween, Duration), Error> {
        let began = Instant::now();
        let mut spans = [Vec::new(), Vec::new()];
        while spans[1].len() < PILOTS && began.elapsed() < PILOT {
            for (setting, spans) in Setting::ALL.into_iter().zip(&mut spans) {
                let started = Instant::now();
                self.set(setting, "")?;
                spans.push(started.elapsed());
            }
        }
        let median = |mut spans: Vec<Duration>| {
            spans.sort_unstable();
            spans.get(spans.len() / 2).copied().unwrap_or_default()
        };
        let switch = spans.map(median).into_iter().max().unwrap_or_default();
        let between = if switch <= SHORT {
            SwitchedBetween::Turns
        } else {
            SwitchedBetween::Generations
        };
        Ok((between, switch))
    }

    /// Switches to a setting. `labs`: the existing labs that are measured next, a line each.
    ///
    /// # Errors
    /// Its command fails, or the user wants to stop.
    pub fn set(&mut self, setting: Setting, labs: &str) -> Result<(), Error> {
        self.is_changed = true;
        let option = match setting {
            Setting::A => "--a",
            Setting::B => "--b",
        };
        let environment = [("HOPYARD_SETTING", setting.name()), ("HOPYARD_LABS", labs)];
        let command = self.commands.command(setting);
        run(option, command, &environment, signals::interrupted)
    }

    /// Runs the command of `--restore`, if there is one and the host was changed. Ctrl-C does not end it.
    ///
    /// # Errors
    /// The command fails.
    pub fn restore(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_changed) {
            return Ok(());
        }
        match &self.commands.restore {
            Some(command) => run("--restore", command, &[], || false),
            None => Ok(()),
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Err(error) = self.restore() {
            crate::note(format_args!("{}", crate::chain(&error)));
        }
    }
}

/// Runs a command to its end, or until `is_to_stop` returns true.
fn run(
    option: &'static str,
    command: &str,
    environment: &[(&str, &str)],
    is_to_stop: impl Fn() -> bool,
) -> Result<(), Error> {
    let not_started = |source| Error::Start {
        option,
        command: command.to_owned(),
        source,
    };
    let mut printed = output().map_err(not_started)?;
    let status = start(command, environment, &printed)
        .and_then(|child| ended(child, is_to_stop))
        .map_err(not_started)?;
    match status {
        None => Err(Error::Interrupted),
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(Error::Failed {
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

/// The exit status; `None` if the command did not end by itself after the user asked to stop.
fn ended(mut child: Child, is_to_stop: impl Fn() -> bool) -> io::Result<Option<ExitStatus>> {
    let process = Process::open(child.id()).map_err(io::Error::other)?;
    let within = |span| {
        process
            .as_ref()
            .is_none_or(|process| process.has_ended(span))
    };
    while !within(STEP) {
        if !is_to_stop() {
            continue;
        }
        let group = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            if within(GRACE) {
                break;
            }
            // It may end at this moment.
            let _ = killpg(group, signal);
        }
        child.wait()?;
        return Ok(None);
    }
    child.wait().map(Some)
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

    fn host(a: &str, b: &str, restore: Option<&str>) -> Host {
        Host::new(Settings {
            a: a.to_owned(),
            b: b.to_owned(),
            restore: restore.map(str::to_owned),
        })
    }

    #[test]
    fn a_command_learns_the_setting_and_the_labs() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("said");
        let log = format!(
            "echo \"$HOPYARD_SETTING:$HOPYARD_LABS\" >> {}",
            file.display()
        );
        let mut host = host(&log, &log, Some(&log));
        host.set(Setting::A, "one").unwrap();
        host.set(Setting::B, "").unwrap();
        drop(host);
        assert_eq!(std::fs::read_to_string(file).unwrap(), "a:one\nb:\n:\n");
    }

    #[test]
    fn what_failed_is_told_with_its_words() {
        let mut host = host("true", "echo no such knob >&2; exit 7", None);
        host.set(Setting::A, "").unwrap();
        let error = host.set(Setting::B, "").unwrap_err().to_string();
        assert_eq!(
            error,
            "the command of --b failed (exit status: 7): `echo no such knob >&2; exit 7`: no such knob"
        );
    }

    #[test]
    fn a_host_is_restored_once_and_only_where_it_was_changed() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("restored");
        let restore = format!("echo >> {}", file.display());
        drop(host("true", "true", Some(&restore)));
        assert!(!file.exists());
        let mut host = host("true", "true", Some(&restore));
        host.set(Setting::B, "").unwrap();
        host.restore().unwrap();
        let commands = host.commands.clone();
        drop(host);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "\n");
        // An earlier process may have changed it.
        drop(Host::left_changed(commands));
        assert_eq!(std::fs::read_to_string(file).unwrap(), "\n\n");
    }

    #[test]
    fn a_process_that_a_command_leaves_running_is_not_waited_for() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("pid");
        let mut host = host(
            &format!("sleep 300 & echo $! > {}", file.display()),
            "true",
            None,
        );
        let began = Instant::now();
        host.set(Setting::A, "").unwrap();
        let pid: i32 = std::fs::read_to_string(file)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        nix::sys::signal::kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
        assert!(began.elapsed() < Duration::from_secs(200));
    }

    #[test]
    fn slow_commands_are_run_between_generations() {
        let (between, switch) = host("true", "sleep 0.05", None).pilot().unwrap();
        assert_eq!(between, SwitchedBetween::Generations);
        assert!(switch >= Duration::from_millis(50));
    }
}
