//! The threads of a session: which flows each of them serves, and how.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use hdrhistogram::Histogram;
use hopyard_net::{clock, cpu};
use socket2::{SockRef, Socket as Listener};

use super::flow::{self, Context, Responder, Socket, Times};
use super::protocol::Timetable;
use super::socket::Settings;
use super::spec::LoadSpec;
use super::tally::Tally;
use crate::model::LoadKind;

/// What a thread says last: the round trips of a client, or what went wrong.
pub(super) type Outcome = Result<Option<Histogram<u64>>, String>;

/// A flow's data socket, once there is one, for the controlling thread.
pub(super) type SharedSocket = Arc<Mutex<Option<OwnedFd>>>;

/// How a flow gets its socket.
pub(super) enum Origin {
    Client {
        connected: OwnedFd,
    },
    /// `tcp_crr` connects anew for each transaction.
    Connector {
        server: SocketAddr,
    },
    Server {
        listener: Listener,
    },
}

/// A flow as its thread has it.
pub(super) struct Lane {
    origin: Origin,
    pub(super) tally: Arc<Tally>,
    pub(super) socket: SharedSocket,
}

/// A thread and its flows.
pub(super) struct Crew {
    pub(super) spec: LoadSpec,
    pub(super) settings: Settings,
    pub(super) lanes: Vec<Lane>,
    /// `None` leaves it to the scheduler.
    pub(super) cpu: Option<usize>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) started: Receiver<Timetable>,
}

/// Shares flows out to threads, over the CPUs in turn.
///
/// The streams of one CPU have one thread, which costs them fewer switches and wake-ups (see
/// [`flow::transmit_in_turns`]). Every other flow has a thread of its own: in turns, the time of a transaction
/// would hold the work on the others'; a paced flow sleeps. Without CPUs the scheduler is to have something to place.
pub(super) fn crews<L>(
    spec: &LoadSpec,
    flows: Vec<L>,
    cpus: &[usize],
) -> Vec<(Option<usize>, Vec<L>)> {
    let in_turns = spec.kind.is_stream() && spec.pace_bps.is_none();
    let mut crews: Vec<(Option<usize>, Vec<L>)> = Vec::new();
    for (index, flow) in flows.into_iter().enumerate() {
        let cpu = (!cpus.is_empty()).then(|| cpus[index % cpus.len()]);
        let shared = crews
            .iter_mut()
            .find(|(of, _)| in_turns && cpu.is_some() && *of == cpu);
        match shared {
            Some((_, crew)) => crew.push(flow),
            None => crews.push((cpu, vec![flow])),
        }
    }
    crews
}

impl Lane {
    pub(super) fn new(origin: Origin) -> Self {
        Self {
            origin,
            tally: Arc::default(),
            socket: Arc::default(),
        }
    }

    /// A copy of its listener, if it is a server.
    pub(super) fn listener(&self) -> Result<Option<Listener>, String> {
        let Origin::Server { listener } = &self.origin else {
            return Ok(None);
        };
        let listener = listener
            .try_clone()
            .map_err(|e| format!("cannot copy a socket: {e}"))?;
        Ok(Some(listener))
    }

    fn is_server(&self) -> bool {
        matches!(self.origin, Origin::Server { .. })
    }

    /// The standing connection, also for the controlling thread. `tcp_crr` has none.
    fn connection(&self, settings: &Settings, kind: LoadKind) -> Result<Option<Socket>, String> {
        let socket = match &self.origin {
            Origin::Connector { .. } => return Ok(None),
            Origin::Server { .. } if kind == LoadKind::TcpCrr => return Ok(None),
            Origin::Server { listener } => settings.accept_flow(listener)?,
            Origin::Client { connected } => copy(connected)?,
        };
        *self.socket.lock().unwrap_or_else(PoisonError::into_inner) = Some(copy(&socket)?);
        Ok(Some(Socket(socket)))
    }
}

impl Crew {
    /// Serves the flows from their first connection to the end of traffic.
    pub(super) fn run(self) -> Outcome {
        if let Some(cpu) = self.cpu {
            cpu::pin_current_thread(&[cpu]).map_err(|e| format!("cannot run on CPU {cpu}: {e}"))?;
        }
        let connections = self
            .lanes
            .iter()
            .map(|lane| lane.connection(&self.settings, self.spec.kind))
            .collect::<Result<Vec<_>, _>>()?;
        let Ok(timetable) = self.started.recv() else {
            return Ok(None);
        };
        let prepared = Prepared::new(&self.spec, timetable)?;
        if self.spec.round_robin && !self.lanes.iter().any(Lane::is_server) {
            cpu::schedule_current_thread(cpu::Policy::RoundRobin).map_err(|e| crate::chain(&e))?;
        }
        clock::sleep_until_monotonic_ns(timetable.start_ns)
            .map_err(|e| format!("cannot sleep until the start: {e}"))?;
        match (&*self.lanes, &*connections) {
            ([lane], [connection]) => {
                let context = self.context(lane, timetable);
                self.alone(lane, connection.as_ref(), prepared, context)
            }
            (lanes, connections) => {
                let contexts = lanes.iter().map(|lane| self.context(lane, timetable));
                let flows: Vec<_> = connections.iter().flatten().zip(contexts).collect();
                prepared.in_turns(&flows, lanes.iter().any(Lane::is_server))
            }
        }
    }

    fn context<'a>(&'a self, lane: &'a Lane, timetable: Timetable) -> Context<'a> {
        Context {
            tally: &lane.tally,
            stop: &self.stop,
            close_ns: timetable.close_ns,
        }
    }

    fn alone(
        &self,
        lane: &Lane,
        connection: Option<&Socket>,
        prepared: Prepared<'_>,
        context: Context<'_>,
    ) -> Outcome {
        match (connection, &lane.origin) {
            (Some(socket), _) => prepared.standing(socket, lane.is_server(), context),
            (None, Origin::Connector { server }) => {
                prepared.connector(*server, &self.settings, context)
            }
            (None, Origin::Server { listener }) => prepared.acceptor(listener, context),
            (None, Origin::Client { .. }) => Err("a client without a connection".to_owned()),
        }
    }
}

fn copy(socket: &OwnedFd) -> Result<OwnedFd, String> {
    socket
        .try_clone()
        .map_err(|e| format!("cannot copy a socket: {e}"))
}

/// Everything a loop writes to, made before the start.
struct Prepared<'a> {
    spec: &'a LoadSpec,
    message: Vec<u8>,
    buffer: Vec<u8>,
    responder: Responder,
    times: Times,
    start_ns: u64,
}

impl<'a> Prepared<'a> {
    fn new(spec: &'a LoadSpec, timetable: Timetable) -> Result<Self, String> {
        let receive = if spec.kind.is_tcp() {
            flow::RECEIVE_BYTES
        } else {
            spec.message_size as usize
        };
        Ok(Self {
            spec,
            message: vec![0x5a; spec.message_size as usize],
            buffer: vec![0; receive],
            responder: Responder {
                request: vec![0x5a; spec.request_size as usize],
                response: vec![0x5a; spec.response_size as usize],
                datagrams: !spec.kind.is_tcp(),
                service_time_ns: spec.service_time_ns,
            },
            times: Times {
                histogram: flow::histogram()?,
                open_ns: timetable.open_ns,
                close_ns: timetable.close_ns,
            },
            start_ns: timetable.start_ns,
        })
    }

    fn standing(mut self, io: &impl flow::Io, is_server: bool, context: Context<'_>) -> Outcome {
        use LoadKind::{TcpCrr, TcpMaerts, TcpRr, TcpStream, UdpRr, UdpStream};
        match (self.spec.kind, is_server) {
            (TcpStream | UdpStream, false) | (TcpMaerts, true) => match self.spec.interval_ns() {
                Some(interval_ns) => {
                    flow::transmit_paced(io, &self.message, context, self.start_ns, interval_ns)
                }
                None => flow::transmit(io, &self.message, context),
            }
            .map(|()| None),
            (TcpStream | UdpStream, true) | (TcpMaerts, false) => {
                flow::receive(io, &mut self.buffer, context).map(|()| None)
            }
            (TcpRr | TcpCrr | UdpRr, true) => {
                flow::rr_server(io, &mut self.responder, context).map(|()| None)
            }
            (TcpRr | TcpCrr | UdpRr, false) => {
                flow::rr_client(io, &mut self.responder, &mut self.times, context)?;
                Ok(Some(self.times.histogram))
            }
        }
    }

    /// Streams only: several of one thread.
    fn in_turns(mut self, flows: &[(&Socket, Context<'_>)], is_server: bool) -> Outcome {
        for (socket, _) in flows {
            SockRef::from(&socket.0.as_fd())
                .set_nonblocking(true)
                .map_err(|e| format!("cannot make a socket non-blocking: {e}"))?;
        }
        if is_server == (self.spec.kind == LoadKind::TcpMaerts) {
            flow::transmit_in_turns(flows, &self.message).map(|()| None)
        } else {
            flow::receive_in_turns(flows, &mut self.buffer).map(|()| None)
        }
    }

    fn connector(
        mut self,
        server: SocketAddr,
        settings: &Settings,
        context: Context<'_>,
    ) -> Outcome {
        flow::crr_client(
            server,
            settings,
            &mut self.responder,
            &mut self.times,
            context,
        )?;
        Ok(Some(self.times.histogram))
    }

    fn acceptor(mut self, listener: &Listener, context: Context<'_>) -> Outcome {
        flow::crr_server(listener, &mut self.responder, context).map(|()| None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Axes, Peer};
    use LoadKind::{TcpRr, TcpStream};

    #[test]
    fn streams_of_one_cpu_share_a_thread_unless_they_sleep() {
        let spec = |kind| LoadSpec::new(kind, &Axes::default().for_cell(kind, Peer::Local, &[]));
        let of = |kind, cpus| crews(&spec(kind), vec!["a", "b", "c"], cpus);
        assert_eq!(of(TcpStream, &[5]), [(Some(5), vec!["a", "b", "c"])]);
        assert_eq!(
            of(TcpStream, &[5, 6]),
            [(Some(5), vec!["a", "c"]), (Some(6), vec!["b"])]
        );
        let apart = |cpu| [(cpu, vec!["a"]), (cpu, vec!["b"]), (cpu, vec!["c"])];
        assert_eq!(of(TcpRr, &[5]), apart(Some(5)));
        assert_eq!(of(TcpStream, &[]), apart(None));
        let paced = LoadSpec {
            pace_bps: Some(1_000_000),
            ..spec(TcpStream)
        };
        assert_eq!(crews(&paced, vec!["a", "b", "c"], &[5]), apart(Some(5)));
    }
}
