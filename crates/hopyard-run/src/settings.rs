//! Switches this host between two settings by commands of the user, and restores it.
//!
//! The commands run in the host's own namespaces. Dropping a [`Host`] restores the host, at every end of a run except
//! SIGKILL and a second Ctrl-C.

mod command;

use std::time::{Duration, Instant};

use crate::model::{Setting, Settings, SwitchedBetween};
use crate::signals;

pub use self::command::Error;
use self::command::run;

/// If a switch takes at most this long, the host is switched between turns.
const SHORT: Duration = Duration::from_millis(10);
/// How often each command is tried before a run, unless that takes longer than `PILOT`.
const PILOTS: usize = 5;
const PILOT: Duration = Duration::from_millis(500);
/// The most that a command may take in a run whose time the user has not limited.
const LONGEST: Duration = Duration::from_secs(60);
/// What a command may take at least, however little of the time limit is left: the switch that is under way when it ends is no failure.
const ALWAYS: Duration = Duration::from_secs(10);

/// This host, between the first command and the last.
#[derive(Debug)]
pub struct Host {
    commands: Settings,
    /// Whether a command has run since the host was last in its final state.
    is_changed: bool,
    /// When the run must end, if it has a time limit.
    run_end: Option<Instant>,
    /// The most that a command may take.
    longest: Duration,
    /// The longest that a switch has taken.
    slowest: Duration,
}

impl Host {
    /// Runs nothing yet.
    #[must_use]
    pub fn new(commands: Settings) -> Self {
        Self {
            commands,
            is_changed: false,
            run_end: None,
            longest: LONGEST,
            slowest: Duration::ZERO,
        }
    }

    /// Gives the commands no more time than a run has from now on.
    pub fn limit(&mut self, time_limit: Option<Duration>) {
        self.run_end = time_limit.and_then(|limit| Instant::now().checked_add(limit));
    }

    /// Lets a command take all that is left of a run's time, for a limit that the user gave.
    pub fn allow_all_of_the_limit(&mut self) {
        self.longest = Duration::MAX;
    }

    /// How long a switch may take now.
    fn patience(&self) -> Duration {
        match self.run_end {
            Some(end) => end
                .saturating_duration_since(Instant::now())
                .min(self.longest)
                .max(ALWAYS)
                .max(2 * self.slowest),
            None => LONGEST,
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
    /// Its command fails or does not end in time, or the user wants to stop.
    pub fn set(&mut self, setting: Setting, labs: &str) -> Result<(), Error> {
        self.is_changed = true;
        signals::note_to_restore(self.commands.restore.is_some());
        let option = match setting {
            Setting::A => "--a",
            Setting::B => "--b",
        };
        let environment = [("HOPYARD_SETTING", setting.name()), ("HOPYARD_LABS", labs)];
        let command = self.commands.command(setting);
        let began = Instant::now();
        let patience = Some(self.patience());
        run(
            option,
            command,
            &environment,
            patience,
            signals::interrupted,
        )?;
        self.slowest = self.slowest.max(began.elapsed());
        Ok(())
    }

    /// Whether a command is to restore this host.
    #[must_use]
    pub fn is_to_restore(&self) -> bool {
        self.is_changed && self.commands.restore.is_some()
    }

    /// Runs the command of `--restore`, if there is one and the host was changed. Neither Ctrl-C nor a time limit
    /// ends it.
    ///
    /// # Errors
    /// The command fails.
    pub fn restore(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_changed) {
            return Ok(());
        }
        let Some(command) = &self.commands.restore else {
            return Ok(());
        };
        signals::note_to_restore(true);
        run("--restore", command, &[], None, || false)?;
        signals::note_to_restore(false);
        Ok(())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Err(error) = self.restore() {
            crate::note(format_args!("{}", crate::chain(&error)));
        }
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::Signal;
    use nix::unistd::Pid;

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
    fn a_command_has_the_rest_of_the_time_limit() {
        let mut host = host("true", "true", None);
        assert_eq!(host.patience(), LONGEST);
        host.limit(Some(Duration::from_secs(1000)));
        assert_eq!(host.patience(), LONGEST);
        host.allow_all_of_the_limit();
        let rest = host.patience();
        assert!(rest > 10 * ALWAYS && rest <= Duration::from_secs(1000));
        host.limit(Some(Duration::ZERO));
        assert_eq!(host.patience(), ALWAYS);
        host.slowest = ALWAYS;
        assert_eq!(host.patience(), 2 * ALWAYS);
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
