//! A program of another tool in an endpoint's namespace: pinned, in the lab's control group, and ended with the sample.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hopyard::lab::{Endpoint, Lab};
use hopyard::signals;
use hopyard_net::{Cgroup, cpu};

use crate::error::{Error, Result};

/// A running program. Dropping it kills and reaps it.
#[derive(Debug)]
pub(crate) struct Process {
    program: String,
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
}

impl Process {
    /// Starts a command line at an endpoint, all its threads on `cpus`.
    pub(crate) fn start(
        lab: &Lab,
        endpoint: &Endpoint,
        cpus: &[usize],
        line: &[String],
    ) -> Result<Self> {
        let program = line.first().cloned().unwrap_or_default();
        let mut command = confined(line, lab.cgroup());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C at the terminal is for this program, which ends the others.
            .process_group(0);
        let space = lab.space(endpoint.role)?;
        // The child inherits namespace and CPUs of the temporary thread.
        let child = space.handle.ns().run(|| -> Result<Child> {
            cpu::pin_current_thread(cpus)?;
            command.spawn().map_err(|source| Error::Start {
                program: program.clone(),
                source,
            })
        })??;
        let mut process = Self {
            program,
            child,
            stdout: None,
            stderr: None,
        };
        process.stdout = process.child.stdout.take().map(drain);
        process.stderr = process.child.stderr.take().map(drain);
        Ok(process)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its exit status, if it has ended.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().map_err(|source| Error::Start {
            program: self.program.clone(),
            source,
        })
    }

    /// An error about it, with the last line of its output.
    pub(crate) fn trouble(&mut self, what: &str) -> Error {
        self.end();
        let said = self.take_stderr();
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        Error::Program {
            program: self.program.clone(),
            what: match last {
                Some(line) => format!("{what}; it said `{}`", line.trim()),
                None => what.to_owned(),
            },
        }
    }

    /// Waits for its end and returns its output.
    pub(crate) fn finish(&mut self, patience: Duration) -> Result<String> {
        let deadline = Instant::now() + patience;
        while self.ended()?.is_none() {
            if signals::interrupted() {
                return Err(Error::Interrupted);
            }
            if Instant::now() >= deadline {
                return Err(self.trouble("did not end in time"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(self.take_stdout())
    }

    /// Interrupts it as Ctrl-C would, and returns its output.
    pub(crate) fn interrupt(&mut self, patience: Duration) -> Result<String> {
        if self.ended()?.is_none() {
            // If this fails, the program has ended meanwhile; if it does not end, that is reported below.
            let _ = Command::new("sh")
                .args(["-c", "kill -s INT \"$1\"", "sh"])
                .arg(self.pid().to_string())
                .stderr(Stdio::null())
                .status();
        }
        self.finish(patience)
    }

    fn take_stdout(&mut self) -> String {
        joined(self.stdout.take())
    }

    fn take_stderr(&mut self) -> String {
        joined(self.stderr.take())
    }

    fn end(&mut self) {
        // Fails only if it has ended already; it is reaped in either case.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// The command line, run from inside the control group: otherwise the child of a server that forks at once (nuttcp)
/// would be outside.
fn confined(line: &[String], group: Option<&Cgroup>) -> Command {
    let mut command = Command::new("sh");
    match group {
        Some(group) => {
            const ENTER: &str = "echo $$ >\"$1\"/cgroup.procs && shift && exec \"$@\"";
            command.args(["-c", ENTER, "sh"]).arg(group.path());
        }
        None => {
            command.args(["-c", "exec \"$@\"", "sh"]);
        }
    }
    command.args(line);
    command
}

fn joined(thread: Option<JoinHandle<String>>) -> String {
    thread
        .and_then(|thread| thread.join().ok())
        .unwrap_or_default()
}

/// Reads to the end in parallel, so that no program waits on a full pipe.
fn drain(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // Data before an error is still useful.
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
