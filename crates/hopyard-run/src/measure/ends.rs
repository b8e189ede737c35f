//! The workers at the two ends of a lab.

use std::time::Duration;

use super::machines::Machines;
use super::used_cpus::UsedCpus;
use super::{Error, PATIENCE, Places};
use crate::lab::Topology;
use crate::load::protocol::{Reply, Request, Tallied, Timetable};
use crate::load::remote::{self, Remote};
use crate::load::{LoadSpec, Place};
use crate::signals;

/// The workers at the two ends: one client for all flows, or one for each.
pub(super) struct Ends {
    /// As [`LoadSpec::crowded`].
    pub(super) is_crowded: bool,
    pub(super) clients: Vec<Remote>,
    pub(super) server: Remote,
    /// Whether the server counts what arrives. Then the clients need not read their counters during the window.
    pub(super) is_received_by_server: bool,
    /// CPUs of this machine; none for an end that is a guest or on another one.
    pub(super) cpus: UsedCpus<Vec<usize>>,
    /// What reads the CPU time of their machines.
    pub(super) machines: Machines,
}

impl Ends {
    pub(super) fn connect(
        &mut self,
        spec: &LoadSpec,
        place: &Place,
        places: &Places,
        publish: impl FnOnce(&[u16]) -> Result<Place, Error>,
    ) -> Result<(), Error> {
        let serve = Request::Serve {
            spec: spec.clone(),
            address: place.clone(),
            cpus: places.server.clone(),
        };
        let ports = match self.server.ask(&serve, "listen")? {
            Reply::Serving { ports } if ports.len() == spec.flows as usize => ports,
            other => return Err(self.server.out_of_turn(&other).into()),
        };
        let address = publish(&ports)?;
        // Flows connect one after another, and each has this time.
        let patience = PATIENCE * (spec.flows + 1);
        let one = match &*self.clients {
            [_] => PATIENCE,
            many => PATIENCE + many.len() as u32 * Duration::from_millis(10),
        };
        let each = ports.len().div_ceil(self.clients.len().max(1)).max(1);
        for (index, (client, ports)) in self.clients.iter_mut().zip(ports.chunks(each)).enumerate()
        {
            let request = Request::Connect {
                spec: spec.part(index * each, ports.len()),
                address: address.clone(),
                ports: ports.to_vec(),
                cpus: places.of_client(index * each),
                patience_ms: millis(one),
            };
            client.tell(&request, "connect")?;
        }
        for client in &mut self.clients {
            match client.hear("connect", patience, &signals::interrupted)? {
                Reply::Connected => {}
                other => return Err(client.out_of_turn(&other).into()),
            }
        }
        // A kernel accepts connections before its program does, and every flow needs its own when the window opens.
        let doing = "take its connections";
        let accept = Request::Accept {
            patience_ms: millis(one),
        };
        self.server.tell(&accept, doing)?;
        match self.server.hear(doing, patience, &signals::interrupted)? {
            Reply::Connected => Ok(()),
            other => Err(self.server.out_of_turn(&other).into()),
        }
    }

    /// Processes of the ends that are guests.
    pub(super) fn guests(&self, topology: &Topology) -> Vec<u32> {
        let clients = topology.clients().zip(&self.clients);
        let ends = clients.chain([(&topology.server, &self.server)]);
        let guests = ends.filter(|(end, _)| end.guest_cpus.is_some());
        guests.map(|(_, worker)| worker.pid()).collect()
    }

    /// Makes all ends produce traffic by a timetable, and end their connections.
    pub(super) fn run(&mut self, timetable: Timetable) -> Result<(), Error> {
        self.tell(timetable, Request::Run, "run")
    }

    /// Makes all ends produce traffic by a timetable, over connections that stay.
    pub(super) fn turn(&mut self, timetable: Timetable) -> Result<(), Error> {
        self.tell(timetable, Request::Turn, "take a turn")
    }

    fn tell(
        &mut self,
        timetable: Timetable,
        request: fn(Timetable) -> Request,
        doing: &'static str,
    ) -> Result<(), Error> {
        let (server, client) = (self.server.clock(), self.clients.first().map(Remote::clock));
        let own = self
            .server
            .by_its_clock(timetable, client.unwrap_or_default());
        self.server.tell(&request(own), doing)?;
        let many = self.clients.len() > 1;
        for client in &mut self.clients {
            let mut own = client.by_its_clock(timetable, server);
            // Reading its counters wakes each of them, and takes time from the senders on its CPU.
            if many && self.is_received_by_server {
                own.slices = 1;
            }
            client.tell(&request(own), doing)?;
        }
        Ok(())
    }

    /// Makes all ends close their connections, and returns what they counted in all turns.
    pub(super) fn finish(&mut self) -> Result<(Vec<Tallied>, Tallied), Error> {
        self.server.tell(&Request::Finish, "finish")?;
        for client in &mut self.clients {
            client.tell(&Request::Finish, "finish")?;
        }
        self.done()
    }

    /// What all ends counted: the clients, in the order of their flows, and the server.
    pub(super) fn done(&mut self) -> Result<(Vec<Tallied>, Tallied), Error> {
        let clients = self
            .clients
            .iter_mut()
            .map(done)
            .collect::<Result<_, _>>()?;
        Ok((clients, done(&mut self.server)?))
    }

    pub(super) fn pids(&self) -> impl Iterator<Item = u32> {
        let clients = self.clients.iter().flat_map(Remote::pids);
        clients.chain(self.server.pids())
    }

    /// The cause of a failure: if an end died, the other end can only report that its connections were reset.
    pub(super) fn cause_of(&mut self, error: Error) -> Error {
        use remote::Error::{Failed, Silent};
        if !matches!(error, Error::Worker(Failed { .. } | Silent { .. })) {
            return error;
        }
        // Checking many takes time; if another one died, it shows where the server's flow ended.
        let clients = self.clients.iter_mut().take(MOST_LOOKED_AT);
        let mut ends = clients.chain([&mut self.server]);
        let death = ends.find_map(Remote::death);
        death.map_or(error, Error::Worker)
    }
}

/// The most clients that are checked for the cause of a failure.
const MOST_LOOKED_AT: usize = 16;

impl Drop for Ends {
    /// All of them end in parallel.
    fn drop(&mut self) {
        self.server.dismiss();
        self.clients.iter_mut().for_each(Remote::dismiss);
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn done(worker: &mut Remote) -> Result<Tallied, Error> {
    const AFTER: Duration = Duration::from_secs(5);
    let reply = worker.hear("report what it counted", AFTER, &signals::interrupted)?;
    Ok(worker.tallied(reply)?)
}
