//! Has the plan carried out by a process of its own, and gathers what that says.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use hopyard_load::meter::let_namespaces_go;
use hopyard_model::stored::End;
use hopyard_model::units::counted;
use hopyard_net::{NetNs, start_first};

use crate::document::Run;
use crate::error::{Error, Result};
use crate::inside::{Job, Said};
use crate::plan::Plan;
use crate::steal;

/// How far it is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Which fresh hosts, from 0.
    pub block: u32,
    /// Of so many.
    pub blocks: u32,
    /// Containers that are there.
    pub ports: u32,
    /// Visits that are done.
    pub visits: usize,
    /// Of so many.
    pub of: usize,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "block {} of {}, {} there: {} of {} visits",
            self.block + 1,
            self.blocks,
            counted(self.ports as usize, "container"),
            self.visits,
            self.of
        )
    }
}

/// How often it is asked whether to stop.
const LOOK: Duration = Duration::from_millis(100);
/// The kernel is done with namespaces when it has removed none for so long.
const CLEAR: Duration = Duration::from_millis(100);

/// Carries a plan out. `program` runs [`crate::inside`]. Once `stop` says why, nothing more is measured, and what was measured before
/// is the result.
///
/// # Errors
/// A network does not work at all, or nothing was measured before it had to stop or could not go on. What was measured before it could not
/// go on is the result, with the reason ([`Run::broken`]).
pub fn measure(
    plan: &Plan,
    seed: u64,
    mut program: Command,
    stop: impl Fn() -> Option<End>,
    mut progress: impl FnMut(Progress),
) -> Result<Run> {
    let what = "start the process that calls the plugins";
    let here = NetNs::current().map_err(|error| Error::host(what, error))?;
    // Ctrl-C on a terminal ends this program, not the plugins in the middle of a call.
    program.process_group(0);
    program.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = start_first(&here, &mut program).map_err(|error| Error::host(what, error))?;
    let mut run = Run {
        plan: plan.clone(),
        seed,
        started: jiff::Timestamp::now().to_string(),
        kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")
            .map_err(|error| Error::host("read the kernel's version", error))?
            .trim()
            .to_owned(),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        plugins: BTreeMap::new(),
        steal: 0.0,
        unsettled: 0,
        visits: Vec::new(),
        cleared: Vec::new(),
        end: End::Complete,
        broken: None,
    };
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(Error::Ended("it has no pipes".to_owned()));
    };
    let job = Job {
        plan: plan.clone(),
        seed,
    };
    let line = serde_json::to_string(&job).map_err(|error| Error::host("write the job", error))?;
    // That it does not read shows below.
    let _written = writeln!(stdin, "{line}");
    let rounds: u32 = plan.beside.iter().map(|beside| plan.rounds(*beside)).sum();
    let of = plan.blocks as usize * plan.ports.len() * plan.networks.len() * rounds as usize;
    let mut result = None;
    let mut now = None;
    let mut before = None;
    let said = listen(stdout);
    while result.is_none() {
        if let Some(why) = stop() {
            run.end = why;
            result = Some(if run.visits.is_empty() {
                Err(Error::Nothing(why))
            } else {
                Ok(())
            });
            break;
        }
        let said = match said.recv_timeout(LOOK) {
            Ok(said) => said,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        match said {
            Said::Refused { network, cause } => {
                result = Some(Err(Error::Refused { network, cause }));
            }
            Said::Host(why) => result = Some(Err(Error::host("call plugins here", why))),
            Said::Plugins(plugins) => {
                run.plugins = plugins;
                before = Some(steal::read());
            }
            Said::Began { block, ports } => now = Some((block, ports)),
            Said::Emptied => {
                let pause = |time| {
                    thread::sleep(time);
                    stop().map_or(Ok(()), |why| Err(Error::Nothing(why)))
                };
                match let_namespaces_go(CLEAR, pause) {
                    Ok(are_gone) => run.unsettled += u32::from(!are_gone),
                    // The loop ends for the same reason.
                    Err(Error::Nothing(_)) => {}
                    Err(error) => result = Some(Err(error)),
                }
                // That it does not read shows below.
                let _written = writeln!(stdin);
            }
            Said::Visit(visit) => run.visits.push(visit),
            Said::Cleared(cleared) => run.cleared.push(cleared),
            Said::Done => result = Some(Ok(())),
        }
        if let Some((block, ports)) = now {
            progress(Progress {
                block,
                blocks: plan.blocks,
                ports,
                visits: run.visits.len(),
                of,
            });
        }
    }
    run.steal = before.map_or(0.0, steal::share_since);
    // The process ends with it, and all that it made.
    drop(stdin);
    let status = child
        .wait()
        .map_err(|error| Error::host("wait for a process", error))?;
    match result.unwrap_or_else(|| Err(Error::Ended(status.to_string()))) {
        Err(error @ (Error::Ended(_) | Error::Host { .. })) if !run.visits.is_empty() => {
            run.broken = Some(hopyard_model::plain::chain(&error));
            run.end = End::Interrupted;
        }
        done => done?,
    }
    Ok(run)
}

/// What the process says, as it says it, until it ends or says what nobody understands.
fn listen(said: impl Read + Send + 'static) -> Receiver<Said> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let lines = BufReader::new(said).lines().map_while(std::io::Result::ok);
        let understood = lines.map_while(|line| serde_json::from_str(&line).ok());
        // Nobody listens any more once it was stopped.
        understood
            .map_while(|said| sender.send(said).ok())
            .for_each(drop);
    });
    receiver
}
