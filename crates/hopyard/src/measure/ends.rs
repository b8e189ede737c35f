//! The workers at the two ends of a lab.

use std::time::Duration;

use super::{Error, PATIENCE, Places};
use crate::lab::Topology;
use crate::load::LoadSpec;
use crate::load::protocol::{Reply, Request, Tallied, Timetable};
use crate::load::remote::{self, Remote};
use crate::signals;

/// The workers at the two ends.
pub(super) struct Ends {
    pub(super) client: Remote,
    pub(super) server: Remote,
}

impl Ends {
    pub(super) fn connect(
        &mut self,
        spec: &LoadSpec,
        address: std::net::IpAddr,
        places: &Places,
    ) -> Result<(), Error> {
        let serve = Request::Serve {
            spec: spec.clone(),
            address,
            cpus: places.server.clone(),
        };
        let ports = match self.server.ask(&serve, "listen")? {
            Reply::Serving { ports } => ports,
            other => return Err(self.server.out_of_turn(&other).into()),
        };
        let request = Request::Connect {
            spec: spec.clone(),
            address,
            ports,
            cpus: places.client.clone(),
            patience_ms: u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX),
        };
        // Flows connect one after another, and each may take its time.
        let patience = PATIENCE * (spec.flows + 1);
        self.client.tell(&request, "connect")?;
        match self
            .client
            .hear("connect", patience, &signals::interrupted)?
        {
            Reply::Connected => Ok(()),
            other => Err(self.client.out_of_turn(&other).into()),
        }
    }

    /// Processes of those that are guests.
    pub(super) fn guests(&self, topology: &Topology) -> Vec<u32> {
        let ends = [
            (&topology.client, self.client.pid()),
            (&topology.server, self.server.pid()),
        ];
        let guests = ends.iter().filter(|(end, _)| end.guest_cpus.is_some());
        guests.map(|(_, pid)| *pid).collect()
    }

    /// Has both make traffic by a timetable.
    pub(super) fn run(&mut self, timetable: Timetable) -> Result<(), Error> {
        for end in [&mut self.server, &mut self.client] {
            let timetable = end.by_its_clock(timetable);
            end.tell(&Request::Run(timetable), "run")?;
        }
        Ok(())
    }

    /// What lies behind a failure: an end that died takes the connections of the other along, which
    /// can only tell that they were reset.
    pub(super) fn cause_of(&mut self, error: Error) -> Error {
        use remote::Error::{Failed, Silent};
        if !matches!(error, Error::Worker(Failed { .. } | Silent { .. })) {
            return error;
        }
        let mut ends = [&mut self.client, &mut self.server].into_iter();
        let death = ends.find_map(Remote::death);
        death.map_or(error, Error::Worker)
    }
}

pub(super) fn done(worker: &mut Remote) -> Result<Tallied, Error> {
    const AFTER: Duration = Duration::from_secs(5);
    let reply = worker.hear("report what it counted", AFTER, &signals::interrupted)?;
    Ok(worker.tallied(reply)?)
}
