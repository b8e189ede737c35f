//! Has the plan carried out by a process of its own, and gathers what that says.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use hopyard_net::{NetNs, start_first};

use crate::document::Run;
use crate::error::{Error, Result};
use crate::inside::{Job, Said};
use crate::plan::Plan;

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

/// Carries a plan out. `program` runs [`crate::inside`].
///
/// # Errors
/// A network does not work at all, or no host can be made.
pub fn measure(
    plan: &Plan,
    seed: u64,
    mut program: Command,
    mut progress: impl FnMut(Progress),
) -> Result<Run> {
    let what = "start the process that calls the plugins";
    let here = NetNs::current().map_err(|error| Error::host(what, error))?;
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
        visits: Vec::new(),
        cleared: Vec::new(),
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
    for line in BufReader::new(stdout).lines() {
        let Ok(line) = line else { break };
        let Ok(said) = serde_json::from_str::<Said>(&line) else {
            break;
        };
        match said {
            Said::Refused { network, cause } => {
                result = Some(Err(Error::Refused { network, cause }));
            }
            Said::Host(why) => result = Some(Err(Error::host("call plugins here", why))),
            Said::Plugins(plugins) => run.plugins = plugins,
            Said::Began { block, ports } => now = Some((block, ports)),
            Said::Visit(visit) => run.visits.push(visit),
            Said::Cleared(cleared) => run.cleared.push(cleared),
            Said::Done { steal, all } => {
                // Of ten thousand: a short number, which is read as it was written.
                let share = (steal * 10_000 / all.max(1)).min(10_000);
                run.steal = f64::from(u32::try_from(share).unwrap_or(10_000)) / 10_000.0;
                result = Some(Ok(()));
            }
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
    drop(stdin);
    let status = child
        .wait()
        .map_err(|error| Error::host("wait for a process", error))?;
    result.unwrap_or_else(|| Err(Error::Ended(status.to_string())))?;
    Ok(run)
}
