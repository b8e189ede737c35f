//! A guest that runs, from its first sign of life to its end.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hopyard_net::{end_with_starter, end_within};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::init::Job;
use super::qemu::{Accelerator, Console, Guest, start};
use super::{Error, Result};
use crate::load::lines;
use crate::signals;

/// A kernel that KVM can run has said something by then.
const FIRST_SIGN: Duration = Duration::from_secs(5);
/// How often to look whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(100);
/// For a process that may be about to end by itself.
const MOMENT: Duration = Duration::from_millis(500);
const KVM: &str = "/dev/kvm";
/// What a guest is to do first.
const BOOT: &str = "boot and greet";

/// A guest that runs and has greeted. Dropping it ends it.
#[derive(Debug)]
pub struct Machine<Reply> {
    child: Child,
    stdin: Option<ChildStdin>,
    replies: Receiver<io::Result<Reply>>,
    console: Console,
    pub accelerator: Accelerator,
}

/// How long a guest may take to boot.
pub(super) fn patience(accelerator: Accelerator) -> Duration {
    match accelerator {
        Accelerator::Kvm => Duration::from_secs(30),
        Accelerator::Tcg => Duration::from_secs(90),
    }
}

/// Who carries out a guest's instructions, if nobody says: found out once per process and kernel, by having KVM run such a
/// guest, without its job and its devices, as far as its greeting. Where that fails, the user is told why.
pub(super) fn accelerator(guest: &Guest<'_>) -> Result<Accelerator> {
    // One kernel that does not boot says nothing of the others.
    static FOUND: Mutex<BTreeMap<PathBuf, Accelerator>> = Mutex::new(BTreeMap::new());
    let found_by_now = || FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let image = guest.kernel.image.clone();
    if let Some(found) = found_by_now().get(&image) {
        return Ok(*found);
    }
    let append = format!("{} ignore_loglevel", guest.append);
    let guest = Guest {
        append: &append,
        job: vec![Job::Runner.word().to_owned()],
        devices: Vec::new(),
        ..*guest
    };
    let failure = match OpenOptions::new().read(true).write(true).open(KVM) {
        Ok(_) => {
            let mut machine = Machine::<IgnoredAny>::start(&guest, Accelerator::Kvm)?;
            machine
                .failure_to_greet()?
                .map(|error| crate::chain(&error))
        }
        Err(error) => Some(format!("cannot open {KVM}: {error}")),
    };
    let found = match failure {
        None => Accelerator::Kvm,
        Some(_) => Accelerator::Tcg,
    };
    // Of threads that tried at once, one tells.
    let mut known = found_by_now();
    let is_first = !known.contains_key(&image);
    let found = *known.entry(image).or_insert(found);
    drop(known);
    if is_first && let Some(why) = failure {
        crate::note(format_args!(
            "guests are emulated, since KVM does not run them: {why}"
        ));
    }
    Ok(found)
}

impl<Reply: DeserializeOwned + Send + 'static> Machine<Reply> {
    /// Boots a guest and hears its greeting. Without an order it tries KVM, and emulates where no guest
    /// comes to greet under it.
    ///
    /// # Errors
    /// QEMU cannot be started; the guest dies or stays silent; the user wants to stop.
    pub fn boot(guest: &Guest<'_>, ordered: Option<Accelerator>) -> Result<(Self, Reply)> {
        let accelerator = match ordered {
            Some(ordered) => ordered,
            None => accelerator(guest)?,
        };
        let mut machine = Self::start(guest, accelerator)?;
        let greeting = machine.hear(BOOT, patience(accelerator))?;
        Ok((machine, greeting))
    }

    fn start(guest: &Guest<'_>, accelerator: Accelerator) -> Result<Self> {
        let (command, console) = guest.command(accelerator)?;
        Self::spawn(command, console, accelerator)
    }

    fn spawn(mut command: Command, console: Console, accelerator: Accelerator) -> Result<Self> {
        // Ctrl-C at the terminal is for hopyard, which ends its guests; so does the kernel if it cannot.
        command.process_group(0);
        end_with_starter(&mut command);
        let cannot = start(command.get_program());
        let mut child = command.spawn().map_err(&cannot)?;
        let stdin = child.stdin.take();
        let replies = match child.stdout.take() {
            Some(stdout) => lines::hear("guest output", stdout),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        let replies = replies.map_err(|error| {
            let _ = end_within(&mut child, MOMENT);
            cannot(error)
        })?;
        Ok(Self {
            child,
            stdin,
            replies,
            console,
            accelerator,
        })
    }

    /// Why it does not come to greet, if it does not: where KVM cannot run it, it says nothing, dies, or stops somewhere on
    /// the way.
    fn failure_to_greet(&mut self) -> Result<Option<Error>> {
        let began = Instant::now();
        loop {
            let patience = if self.console.has_kernel_spoken() {
                patience(self.accelerator)
            } else {
                FIRST_SIGN
            };
            if began.elapsed() >= patience {
                return Ok(Some(self.silence(BOOT, patience)));
            }
            match self.hear(BOOT, LOOK) {
                Err(Error::Silent { .. }) => {}
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                heard => return Ok(heard.err()),
            }
        }
    }

    /// Says something, to one that may have stopped reading.
    pub fn tell(&mut self, message: &impl Serialize, doing: &'static str) -> Result<()> {
        let sent = match &mut self.stdin {
            Some(stdin) => lines::say_within(stdin, message, patience(self.accelerator)),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        sent.map_err(|_| self.death(doing))
    }

    /// Hears what comes next.
    pub(super) fn hear(&mut self, doing: &'static str, patience: Duration) -> Result<Reply> {
        self.hear_until(doing, Instant::now(), patience)
    }

    /// Hears what comes next of something that began at an instant and may take so long.
    pub fn hear_until(
        &mut self,
        doing: &'static str,
        began: Instant,
        patience: Duration,
    ) -> Result<Reply> {
        let deadline = began + patience;
        loop {
            if signals::interrupted() {
                return Err(Error::Interrupted);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.replies.recv_timeout(left.min(LOOK)) {
                Ok(Ok(reply)) => return Ok(reply),
                Ok(Err(error)) => {
                    return Err(Error::OutOfTurn {
                        doing,
                        answer: lines::excerpt(&error.to_string()),
                    });
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.death(doing)),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    return Err(self.silence(doing, patience));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn silence(&self, doing: &'static str, after: Duration) -> Error {
        Error::Silent {
            doing,
            after,
            said: self.console.last_words(),
        }
    }

    /// How it ended, now that its port is closed.
    fn death(&mut self, doing: &'static str) -> Error {
        Error::Died {
            doing,
            how: end_within(&mut self.child, MOMENT).unwrap_or_default(),
            said: self.console.last_words(),
        }
    }
}

impl<Reply> Drop for Machine<Reply> {
    fn drop(&mut self) {
        // It has nothing to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::process::Stdio;

    use super::*;

    /// In the place of QEMU, a shell.
    fn machine(script: &str) -> Machine<IgnoredAny> {
        let console = Console::new(OsStr::new("sh")).unwrap();
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(console.of_qemu().unwrap());
        Machine::spawn(command, console, Accelerator::Kvm).unwrap()
    }

    #[test]
    fn a_guest_that_does_not_greet_leaves_its_reason() {
        let greets = machine("echo '{}'; exec sleep 60").failure_to_greet();
        assert!(greets.unwrap().is_none());
        let dies = machine("echo 'no KVM here' >&2; exit 3").failure_to_greet();
        let why = dies.unwrap().unwrap().to_string();
        assert!(why.contains("exit status: 3"), "{why}");
        assert!(why.contains("no KVM here"), "{why}");
    }
}
