//! Endpoints that stand already: reached by commands of the user, and left as they were.

mod address;
mod carried;

use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use self::carried::Carried;
use super::endpoints::{Endpoints, Prefix};
use super::far::FarMachine;
use super::part::{Part, Undone};
use super::topology::{Addresses, Endpoint, Topology, role};
use super::{Builder, Error, Lab, Result};
use crate::load::endpoint::{Attendance, HostFacts, WayFound};
use crate::load::protocol::{Reply, Request};
use crate::load::remote::{self, ClockOffset, Remote};
use crate::model::{EndpointUsed, EndpointsUsed, Family, Hop};
use crate::signals;

/// How long a connection to an endpoint may take to be made: name service, key exchange, a login shell.
pub const CONNECT: Duration = Duration::from_secs(30);
/// Shorter than what proxies before `kubectl exec` take for an idle stream, longer than what a network may lose and
/// repeat.
const ATTENDANCE: Attendance = Attendance {
    silence_ms: 15_000,
    beat_ms: 3_000,
};

/// The program that is looked for at an endpoint.
const WORKER: &str = "hopyard";

/// The two endpoints of a lab that nothing is built for.
#[derive(Debug)]
pub(super) struct Reached {
    client: End,
    server: End,
    /// For results.
    used: EndpointsUsed,
}

/// One of them.
#[derive(Debug)]
struct End {
    role: &'static str,
    prefix: Prefix,
    /// What becomes the worker there.
    program: String,
    facts: HostFacts,
    /// The other end's address.
    to: IpAddr,
    way: WayFound,
    /// Its clock beside ours.
    clock: ClockOffset,
    /// A worker that nobody has taken yet.
    waiting: Mutex<Option<Remote>>,
}

impl Part for Reached {
    /// Its workers end; nothing else of it is ours.
    fn undo(&mut self) -> Undone {
        for end in [&mut self.client, &mut self.server] {
            let waiting = end.waiting.get_mut();
            *waiting.unwrap_or_else(PoisonError::into_inner) = None;
        }
        Undone::default()
    }
}

impl Builder {
    /// Connects to both endpoints and finds the way between them.
    pub(super) fn reach(&mut self, path: &'static str) -> Result<Topology> {
        if self.is_to_keep() {
            return Err(Error::Kept(format!(
                "path `{path}` cannot be kept: nothing of it is built"
            )));
        }
        let endpoints = self.endpoints.clone().ok_or(Error::NoEndpoints { path })?;
        let family = self.axes().family;
        let reached = Reached::new(&endpoints, family)?;
        let topology = reached.topology(family);
        self.push(reached);
        Ok(topology)
    }
}

impl Builder {
    /// Connects to both ends of what was built across a cable, as to endpoints that stand.
    pub(super) fn reach_built(&mut self, topology: &Topology) -> Result<()> {
        let (client, server) = (&topology.client, &topology.server);
        let gone = |role: &str| Error::Kept(format!("namespace `{role}` is gone"));
        let near = self.handle(client.role).ok_or_else(|| gone(client.role))?;
        let near = format!("nsenter --net={}", near.ns().proc_path().display());
        let far = self
            .parts::<FarMachine>()
            .next()
            .ok_or_else(|| gone(server.role))?;
        let Some(endpoints) = &self.endpoints else {
            return Err(gone(server.role));
        };
        let far = format!("{} nsenter --net={}", endpoints.server, far.namespace());
        let parsed = |text: &str| {
            text.parse::<Prefix>()
                .map_err(|e| Error::Kept(format!("`{text}`: {e}")))
        };
        let program = std::env::current_exe().map_err(|source| Error::File {
            what: "find this program".to_owned(),
            source,
        })?;
        let here = HostFacts::of_this_process().map_err(Error::Here)?;
        let own = program.to_string_lossy();
        let near = Started::new(client.role, &parsed(&near)?, &own, &here)?;
        let far = Started::new(server.role, &parsed(&far)?, WORKER, &here)?;
        let to = server.addresses.of(self.axes().family);
        let reached = Reached::between(near, far, to, &here)?;
        self.push(reached);
        Ok(())
    }

    /// Did the endpoints stand already?
    pub(super) fn endpoints_are_reached(&self) -> bool {
        self.parts::<Reached>().next().is_some()
    }
}

impl Lab {
    /// The endpoints, where nothing was built.
    pub(super) fn reached(&self) -> Option<&Reached> {
        self.builder.parts::<Reached>().next()
    }

    /// The endpoints that stood already, for results.
    #[must_use]
    pub fn endpoints_used(&self) -> Option<EndpointsUsed> {
        self.reached().map(|reached| reached.used.clone())
    }

    /// The machines of client and server, where they stood already.
    #[must_use]
    pub fn hosts(&self) -> Option<(&HostFacts, &HostFacts)> {
        let reached = self.reached()?;
        Some((&reached.client.facts, &reached.server.facts))
    }

    /// Do both ends read one clock? A guest's is its own, and so is that of another machine or time namespace.
    #[must_use]
    pub fn has_one_clock(&self) -> bool {
        let Topology { client, server, .. } = &self.topology;
        let guests = [client, server].map(|end| end.guest_cpus.is_some());
        let one = self.reached().is_none_or(|reached| {
            let (client, server) = (&reached.client, &reached.server);
            client.facts.is_with(&server.facts) && client.clock.may_be(server.clock)
        });
        guests == [false, false] && one
    }
}

impl Reached {
    fn new(endpoints: &Endpoints, family: Family) -> Result<Self> {
        let here = HostFacts::of_this_process().map_err(Error::Here)?;
        let mut client = Started::new(role::CLIENT, &endpoints.client, WORKER, &here)?;
        let mut server = Started::new(role::SERVER, &endpoints.server, WORKER, &here)?;
        let address = match endpoints.server_address {
            Some(given) => address::given(&mut server, given, family)?,
            None => address::find(&mut client, &mut server, family)?,
        };
        Self::between(client, server, address, &here)
    }

    /// Two workers that greeted, with the way from the one to the other.
    fn between(
        mut client: Started,
        mut server: Started,
        address: IpAddr,
        here: &HostFacts,
    ) -> Result<Self> {
        let way = client.way(address)?;
        let source = way.source.ok_or(Error::NoSource { to: address })?;
        let back = server.way(source)?;
        let used = EndpointsUsed {
            server_address: address.to_string(),
            client: client.used(&way, here),
            server: server.used(&back, here),
            are_one_machine: Some(client.facts.is_with(&server.facts)),
        };
        Ok(Self {
            client: client.end(address, way),
            server: server.end(source, back),
            used,
        })
    }

    fn topology(&self, family: Family) -> Topology {
        let endpoint = |end: &End, own: IpAddr| {
            let mut addresses = Addresses::LOOPBACK;
            match own {
                IpAddr::V4(ip) => addresses.v4 = ip,
                IpAddr::V6(ip) => addresses.v6 = ip,
            }
            debug_assert_eq!(addresses.of(family), own, "it is of the family asked for");
            Endpoint::new(end.role, &end.way.device, addresses)
        };
        let (client, server) = (&self.client, &self.server);
        let in_one_namespace =
            client.facts.is_with(&server.facts) && client.facts.net_ns == server.facts.net_ns;
        let way = if in_one_namespace && client.way.device == "lo" {
            vec![Hop::loopback(client.role, &client.way.device)]
        } else {
            vec![
                Hop::tx(client.role, &client.way.device),
                Hop::rx(server.role, &server.way.device),
            ]
        };
        Topology::pair(
            endpoint(client, server.to),
            endpoint(server, client.to),
            way,
        )
    }

    /// A worker at one of them, ready to be asked for a load.
    pub(super) fn worker(&self, role: &str) -> Result<Remote> {
        let end = if role == self.client.role {
            &self.client
        } else {
            &self.server
        };
        let waiting = &end.waiting;
        let waiting = waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        waiting.map_or_else(|| end.again(), Ok)
    }
}

impl End {
    /// Another worker there: where the same command leads elsewhere now, that is no sample of the same cell.
    fn again(&self) -> Result<Remote> {
        let here = HostFacts::of_this_process().map_err(Error::Here)?;
        let mut started = Started::new(self.role, &self.prefix, &self.program, &here)?;
        let way = started.way(self.to)?;
        let same = |facts: &HostFacts| (facts.boot_id.clone(), facts.net_ns);
        if same(&started.facts) != same(&self.facts) || way.device != self.way.device {
            return Err(Error::Moved {
                role: self.role,
                prefix: self.prefix.to_string(),
            });
        }
        Ok(started.remote)
    }
}

/// A worker that greeted, with what it told of its endpoint.
struct Started {
    role: &'static str,
    prefix: Prefix,
    program: String,
    remote: Remote,
    facts: HostFacts,
}

impl Started {
    fn new(role: &'static str, prefix: &Prefix, program: &str, here: &HostFacts) -> Result<Self> {
        let reached = |source| {
            unless_interrupted(source, |source| Error::Reach {
                role,
                prefix: prefix.to_string(),
                source,
            })
        };
        let command = command(prefix, &[program, "worker"]);
        let started = Remote::start_within(role, command, CONNECT, &signals::interrupted);
        let mut remote = match started {
            Err(error) if error.found_no_program() => carry(role, prefix, error)?,
            started => started.map_err(reached)?,
        };
        let facts = (|| {
            remote.attend(ATTENDANCE)?;
            remote.compare_clocks()?;
            host_of(&mut remote)
        })()
        .map_err(reached)?;
        if facts.is_with(here) {
            if remote.clock().may_be_none() {
                remote.has_our_clock();
            }
            if let Some(pid) = facts.process().seen_here() {
                remote.is_process(pid);
            }
        }
        Ok(Self {
            role,
            prefix: prefix.clone(),
            program: program.to_owned(),
            remote,
            facts,
        })
    }

    fn way(&mut self, to: IpAddr) -> Result<WayFound> {
        let reply = self.remote.ask(&Request::Way { to }, "find its route")?;
        let Reply::Way(way) = reply else {
            return Err(self.remote.out_of_turn(&reply).into());
        };
        match way.check() {
            Ok(()) => Ok(way),
            Err(why) => Err(self.remote.unbelievable(&why).into()),
        }
    }

    fn used(&self, way: &WayFound, here: &HostFacts) -> EndpointUsed {
        EndpointUsed {
            connect: self.prefix.to_string(),
            kernel: self.facts.kernel.clone(),
            device: way.device.clone(),
            is_on_this_kernel: self.facts.is_with(here),
            round_trip_ns: self.remote.clock().round_trip_ns,
            machine: Some(self.facts.machine.clone()),
            interface: Some(way.interface.clone()),
        }
    }

    fn end(self, to: IpAddr, way: WayFound) -> End {
        End {
            role: self.role,
            prefix: self.prefix,
            program: self.program,
            facts: self.facts,
            to,
            way,
            clock: self.remote.clock(),
            waiting: Mutex::new(Some(self.remote)),
        }
    }
}

/// Takes the small worker to where no hopyard was found.
fn carry(role: &'static str, prefix: &Prefix, missing: remote::Error) -> Result<Remote> {
    let carried = match Carried::find() {
        Ok(carried) => carried,
        Err(why) => {
            return Err(Error::NoWorker {
                role,
                prefix: prefix.to_string(),
                why,
                source: Box::new(missing),
            });
        }
    };
    let mut shell = command(prefix, &["sh"]);
    let shell = Remote::piped(&mut shell).spawn();
    let script = carried.script();
    let bytes = carried.into_bytes();
    let interrupt = &signals::interrupted;
    Remote::carry(role, shell, &script, bytes, CONNECT, interrupt).map_err(|source| {
        unless_interrupted(source, |source| Error::Carry {
            role,
            prefix: prefix.to_string(),
            source,
        })
    })
}

/// A command to run there, whose complaints are read.
fn command(prefix: &Prefix, arguments: &[&str]) -> Command {
    let mut command = prefix.command(arguments);
    command.stderr(Stdio::piped());
    command
}

/// An error with what it was about; that the user wants to stop is about nothing.
fn unless_interrupted(
    error: remote::Error,
    about: impl FnOnce(Box<remote::Error>) -> Error,
) -> Error {
    match error {
        remote::Error::Interrupted => Error::Worker(error),
        error => about(Box::new(error)),
    }
}

/// What a worker tells of its machine.
fn host_of(remote: &mut Remote) -> std::result::Result<HostFacts, remote::Error> {
    let reply = remote.ask(&Request::Host, "tell where it is")?;
    let Reply::Host(facts) = reply else {
        return Err(remote.out_of_turn(&reply));
    };
    match facts.check() {
        Ok(()) => Ok(*facts),
        Err(why) => Err(remote.unbelievable(&why)),
    }
}
