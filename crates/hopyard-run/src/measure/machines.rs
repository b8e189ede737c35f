//! CPU time of other machines, read by their workers over each window.

use std::time::Duration;

use super::{Error, QuietCores};
use crate::lab::Lab;
use crate::load::endpoint::ProcessAt;
use crate::load::lines::excerpt;
use crate::load::protocol::{CpuSpan, Reply, Request, Tallied};
use crate::load::remote::{PROMPT, Remote};
use crate::model::{CpuUse, EndsOn, MachineUse};
use crate::signals;

/// How long a worker reads what its machine uses by itself, before each window.
const QUIET: Duration = Duration::from_millis(200);
const DOING: &str = "read the CPU time of its machine";

/// What reads the CPU time of the machines that a load runs on, and what each used by itself before.
#[derive(Debug, Clone, Default)]
pub(super) enum Machines {
    /// hopyard itself: the whole load is on its own machine.
    #[default]
    Here,
    /// The client's worker: both ends are on one machine, but not on hopyard's.
    ByClient(CpuSpan),
    /// The server's worker, in the same case.
    ByServer(CpuSpan),
    /// Each end's worker: they are on two machines.
    Each { client: CpuSpan, server: CpuSpan },
}

impl Machines {
    /// Makes the workers of existing endpoints read their machines.
    pub(super) fn of(
        lab: &Lab,
        clients: &mut [Remote],
        server: &mut Remote,
    ) -> Result<Self, Error> {
        let (Some((client_host, server_host)), [client, ..]) = (lab.hosts(), clients) else {
            return Ok(Self::Here);
        };
        if lab
            .endpoints_used()
            .is_none_or(|used| used.are_on_this_kernel())
        {
            return Ok(Self::Here);
        }
        if !client_host.is_with(server_host) {
            // In parallel.
            ask(client, Vec::new())?;
            ask(server, Vec::new())?;
            return Ok(Self::Each {
                client: answer(client)?,
                server: answer(server)?,
            });
        }
        ask(client, vec![server_host.process()])?;
        match answer(client)? {
            CpuSpan::Unknown(_) => {}
            quiet => return Ok(Self::ByClient(quiet)),
        }
        ask(server, vec![client_host.process()])?;
        Ok(Self::ByServer(answer(server)?))
    }

    /// CPU use of the whole load, and of each machine that a worker read. `here` is the use of hopyard's own machine.
    pub(super) fn used(
        &self,
        here: CpuUse,
        client: &Tallied,
        server: &Tallied,
    ) -> (CpuUse, Vec<MachineUse>) {
        let machines = match self {
            Self::Here => return (here, Vec::new()),
            Self::ByClient(quiet) => vec![one(EndsOn::Both, quiet, client)],
            Self::ByServer(quiet) => vec![one(EndsOn::Both, quiet, server)],
            Self::Each {
                client: by_client,
                server: by_server,
            } => vec![
                one(EndsOn::Client, by_client, client),
                one(EndsOn::Server, by_server, server),
            ],
        };
        let all = machines.iter().map(|machine| machine.cpu);
        let all = all.reduce(|one, two| one.zip(two).map(|(one, two)| one.beside(two)));
        let partial = CpuUse {
            is_partial: true,
            ..here
        };
        (all.flatten().unwrap_or(partial), machines)
    }
}

fn ask(worker: &mut Remote, others: Vec<ProcessAt>) -> Result<(), Error> {
    let request = Request::Meter {
        others,
        quiet_ms: u64::try_from(QUIET.as_millis()).unwrap_or(u64::MAX),
    };
    Ok(worker.tell(&request, DOING)?)
}

fn answer(worker: &mut Remote) -> Result<CpuSpan, Error> {
    let reply = worker.hear(DOING, PROMPT, &signals::interrupted)?;
    let Reply::Metered { quiet } = reply else {
        return Err(worker.out_of_turn(&reply).into());
    };
    match quiet.check() {
        Ok(()) => Ok(quiet),
        Err(why) => Err(worker.unbelievable(&why.to_string()).into()),
    }
}

/// What a machine used in a window, with its own use when idle.
fn one(ends: EndsOn, quiet: &CpuSpan, read: &Tallied) -> MachineUse {
    let read = match (quiet, &read.cpu) {
        (CpuSpan::Unknown(why), _) | (_, Some(CpuSpan::Unknown(why))) => Err(excerpt(why)),
        (_, None) => Err("its worker did not report it".to_owned()),
        (CpuSpan::Used(quiet), Some(CpuSpan::Used(used))) => {
            let mut used = *used;
            QuietCores::of(quiet).note_in(&mut used);
            Ok(used)
        }
    };
    MachineUse {
        ends,
        unknown: read.as_ref().err().cloned(),
        cpu: read.ok(),
    }
}
