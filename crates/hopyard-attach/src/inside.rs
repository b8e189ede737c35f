//! The process that makes hosts and calls plugins: the first of a PID namespace, told what to do by its stdin.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::process::exit;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use hopyard_net::{allow_files, unshare_mount_and_cgroup};
use serde::{Deserialize, Serialize};

use crate::document::{Cleared, Visit};
use crate::error::{Error, Result};
use crate::host::{Host, Site};
use crate::order::Order;
use crate::plan::Plan;

/// What it is to do.
#[derive(Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) plan: Plan,
    pub(crate) seed: u64,
}

/// What it says, a line for each.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Said {
    /// A network does not work; nothing is measured.
    Refused {
        network: String,
        cause: String,
    },
    /// The hosts cannot be made.
    Host(String),
    /// What the plugins say of themselves.
    Plugins(BTreeMap<String, String>),
    /// The measuring of so many ports begins.
    Began {
        block: u32,
        ports: u32,
    },
    /// Hosts have ended. It waits for a line on stdin, which says that the kernel has removed their namespaces: the kernel's threads cannot be
    /// seen from this PID namespace.
    Emptied,
    Visit(Visit),
    /// All containers that stayed were removed, some side by side.
    Cleared(Cleared),
    /// All that the plan asks for is measured.
    Done,
}

/// Does the job that comes on stdin, and ends with stdin.
///
/// # Errors
/// There is no job, or nobody hears of it.
pub fn main() -> Result<()> {
    let began = unshare_mount_and_cgroup();
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    read.map_err(|error| Error::host("read the job", error))?;
    let job: Job =
        serde_json::from_str(&line).map_err(|error| Error::host("read the job", error))?;
    let (go_on, told) = mpsc::channel();
    // Whoever asked is gone when nothing can come any more; the kernel then ends all that this process started.
    thread::spawn(move || {
        let lines = io::stdin().lock().lines().map_while(io::Result::ok);
        let heard = lines.map_while(|_| go_on.send(()).ok());
        heard.for_each(drop);
        exit(0);
    });
    let began = began.map_err(|error| Error::host("make a mount namespace", error));
    let done = began.and_then(|()| measure(&job, &told));
    match done {
        Ok(()) => Ok(()),
        Err(Error::Refused { network, cause }) => say(&Said::Refused { network, cause }),
        Err(error) => say(&Said::Host(hopyard_model::plain::chain(&error))),
    }
}

fn say(said: &Said) -> Result<()> {
    let line = serde_json::to_string(said).map_err(|error| Error::host("write", error))? + "\n";
    let mut out = io::stdout().lock();
    let written = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Error::host("write", error))
}

fn measure(job: &Job, go_on: &Receiver<()>) -> Result<()> {
    let plan = &job.plan;
    let most = plan.ports.iter().max().unwrap_or(&1) + plan.beside.iter().max().unwrap_or(&1);
    let hosts = u64::try_from(plan.networks.len()).unwrap_or(u64::MAX);
    // A namespace and a socket each.
    allow_files(hosts.saturating_mul(u64::from(most) * 2 + 64))
        .map_err(|error| Error::host("open files for so many containers", error))?;
    let mut plugins = BTreeMap::new();
    for network in &plan.networks {
        let host = Host::make(plan, network)?;
        let tried = host.run(|site| {
            site.stand(1)?;
            site.visit(1)?;
            let about = site.about();
            site.clear().map(|_| about)
        });
        plugins.extend(tried.map_err(|cause| Error::Refused {
            network: network.name.clone(),
            cause,
        })?);
    }
    say(&Said::Plugins(plugins))?;
    let mut order = Order::new(job.seed);
    for block in 0..plan.blocks {
        for ports in order.of(&plan.ports) {
            say(&Said::Began { block, ports })?;
            group(plan, (block, ports), &mut order, go_on)?;
        }
    }
    say(&Said::Done)
}

/// A network that failed so often in a host is left alone there.
const MOST_FAILURES: u32 = 3;

/// The kernel removes the namespaces of this many containers before the next host's first visits are over.
const FEW: u32 = 8;

/// Do hosts leave more than that? Each has namespaces for those that stay and for those that come.
fn leave_much(plan: &Plan) -> bool {
    let most = |counts: &[u32]| counts.iter().copied().max().unwrap_or(0);
    most(&plan.ports) + most(&plan.beside) > FEW
}

/// Fresh hosts with so many containers, and all visits to them.
fn group(
    plan: &Plan,
    (block, ports): (u32, u32),
    order: &mut Order,
    go_on: &Receiver<()>,
) -> Result<()> {
    let mut hosts = Vec::new();
    for network in order.of(&plan.networks) {
        let host = Host::make(plan, &network)?;
        let all = plan.beside.clone();
        // Tries each kind of visit once, to see whether the network works.
        let ready = host.run(move |site| {
            site.stand(ports)?;
            all.iter()
                .try_for_each(|beside| site.visit(*beside).map(drop))
        });
        match ready {
            Ok(()) => hosts.push((network.name, host)),
            Err(cause) => {
                for beside in &plan.beside {
                    let at = (block, ports, *beside, 0);
                    say(&Said::Visit(failed(at, &network.name, cause.clone())))?;
                }
            }
        }
    }
    // The kernel removes the namespaces of earlier hosts, and of those that failed just now. Meanwhile it holds the lock that every plugin
    // takes (RTNL), for a second where there were a thousand containers.
    if leave_much(plan) {
        say(&Said::Emptied)?;
        let heard = go_on.recv();
        heard.map_err(|error| Error::host("wait for the kernel", error))?;
    }
    let all: Vec<usize> = (0..hosts.len()).collect();
    let mut failures = vec![0_u32; hosts.len()];
    for beside in order.of(&plan.beside) {
        // The first visits warm the caches, and nothing of them is kept. A failure is told when it comes again in a round.
        for at in order.of(&all) {
            let _not_kept = hosts[at].1.run(move |site| site.visit(beside));
        }
        for round in 0..plan.rounds(beside) {
            for at in order.of(&all) {
                if failures[at] == MOST_FAILURES {
                    continue;
                }
                let (network, host) = &hosts[at];
                let place = (block, ports, beside, round);
                let visit = match host.run(move |site| site.visit(beside)) {
                    Ok(times) => Visit {
                        add_ns: times.add,
                        answer_ns: times.answer,
                        del_ns: times.del,
                        cpu_ns: times.cpu,
                        rest_ns: times.rest,
                        failed: None,
                        ..failed(place, network, String::new())
                    },
                    Err(cause) => {
                        failures[at] += 1;
                        failed(place, network, cause)
                    }
                };
                say(&Said::Visit(visit))?;
            }
        }
    }
    // All hosts stay until the last one is cleared, so that no removal of namespaces is in the times.
    for (network, host) in &hosts {
        match host.run(Site::clear) {
            Ok(clear_ns) => say(&Said::Cleared(Cleared {
                block,
                ports,
                network: network.clone(),
                clear_ns,
            }))?,
            Err(cause) => {
                let at = (block, ports, plan.beside[0], plan.rounds(plan.beside[0]));
                say(&Said::Visit(failed(at, network, cause)))?;
            }
        }
    }
    Ok(())
}

fn failed(
    (block, ports, beside, round): (u32, u32, u32, u32),
    network: &str,
    cause: String,
) -> Visit {
    Visit {
        block,
        ports,
        beside,
        round,
        network: network.to_owned(),
        add_ns: Vec::new(),
        answer_ns: Vec::new(),
        del_ns: Vec::new(),
        cpu_ns: 0,
        rest_ns: 0,
        failed: Some(cause),
    }
}
