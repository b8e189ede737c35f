//! The threads of a session: which flows each of them serves, and how.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, PoisonError};

use hopyard_net::{clock, cpu};
use nix::unistd::gettid;
use socket2::Socket as Listener;

use super::flow::{Context, SharedSocket, Socket};
use super::greeting::{self, Greeted};
use super::loops::{self, Origin, Outcome, Work};
use super::protocol::Timetable;
use super::receiver::SharedTid;
use super::socket::Settings;
use super::spec::LoadSpec;
use super::tally::Tally;
use hopyard_model::LoadKind;

/// After this many rounds without a greeting (2 s) nobody is looked for any more. A thread that still woke would disturb the turns of
/// other labs.
const SILENT: u32 = 40;

/// A flow as its thread has it.
pub(super) struct Lane {
    origin: Origin,
    pub(super) tally: Arc<Tally>,
    pub(super) socket: SharedSocket,
}

/// What a flow has once it is placed.
#[derive(Default)]
struct Connection {
    /// `tcp_crr` has none that stands.
    socket: Option<Socket>,
    /// Clients that a server of datagrams has answered.
    greeted: Greeted,
}

/// A thread and its flows.
pub(super) struct FlowThread {
    pub(super) spec: LoadSpec,
    pub(super) settings: Settings,
    pub(super) lanes: Vec<Lane>,
    /// `None` leaves it to the scheduler.
    pub(super) cpu: Option<usize>,
    /// How long after the start they begin, ns.
    pub(super) after_ns: u64,
    pub(super) stop: Arc<AtomicBool>,
    /// Told once every flow has its connection, or that one cannot have it.
    pub(super) placed: Sender<Result<(), String>>,
    pub(super) started: Receiver<Timetable>,
    /// For the controlling thread.
    pub(super) tid: SharedTid,
}

/// Shares flows out to threads, over the CPUs in turn.
///
/// The streams of one CPU have one thread, which costs them fewer switches and wake-ups (see
/// [`super::flow::transmit_in_turns`]). Every other flow has a thread of its own: in turns, the time of a transaction
/// would hold the work on the others'; a paced flow sleeps, as does one that begins later; and which sender of a flood runs is the scheduler's to say. Without CPUs the scheduler is to have something to place.
pub(super) fn flow_threads<L>(
    spec: &LoadSpec,
    flows: Vec<L>,
    cpus: &[usize],
) -> Vec<(Option<usize>, Vec<L>)> {
    let is_plain = spec.pace_bps.is_none() && spec.stagger_ns == 0;
    let in_turns = spec.loops().share_threads() && is_plain;
    let mut flow_threads: Vec<(Option<usize>, Vec<L>)> = Vec::new();
    for (index, flow) in flows.into_iter().enumerate() {
        let cpu = (!cpus.is_empty()).then(|| cpus[index % cpus.len()]);
        let shared = flow_threads
            .iter_mut()
            .find(|(of, _)| in_turns && cpu.is_some() && *of == cpu);
        match shared {
            Some((_, flow_thread)) => flow_thread.push(flow),
            None => flow_threads.push((cpu, vec![flow])),
        }
    }
    flow_threads
}

impl Lane {
    pub(super) fn new(origin: Origin) -> Self {
        Self {
            origin,
            tally: Arc::default(),
            socket: Arc::default(),
        }
    }

    /// The socket to which clients come, if it is a server.
    fn served(&self) -> Option<&Listener> {
        match &self.origin {
            Origin::Server { listener: socket } | Origin::Gatherer { socket, .. } => Some(socket),
            Origin::Client { .. } | Origin::Connector { .. } => None,
        }
    }

    /// A copy of its listener, if it is a server.
    pub(super) fn listener(&self) -> Result<Option<Listener>, String> {
        let listener = self.served().map(Listener::try_clone).transpose();
        listener.map_err(|e| format!("cannot copy a socket: {e}"))
    }

    /// Does it send what the other end waits for?
    pub(super) fn begins(&self, kind: LoadKind) -> bool {
        !self.gathers() && self.is_server() == kind.is_from_server()
    }

    fn is_server(&self) -> bool {
        matches!(self.origin, Origin::Server { .. })
    }

    /// Does it take the numbered datagrams of several flows?
    fn gathers(&self) -> bool {
        matches!(self.origin, Origin::Gatherer { .. })
    }

    /// The standing connection, also for the controlling thread; of a server, what it accepted, if anything.
    fn connection(
        &self,
        settings: &Settings,
        accepted: Option<(OwnedFd, Greeted)>,
    ) -> Result<Connection, String> {
        let has = match &self.origin {
            Origin::Connector { .. } => None,
            Origin::Server { .. } => accepted,
            Origin::Gatherer { socket, flows } => Some(settings.gather_flows(socket, *flows)?),
            Origin::Client { connected, .. } => Some((copy(connected)?, Greeted::default())),
        };
        let Some((socket, greeted)) = has else {
            return Ok(Connection::default());
        };
        let shared = Arc::new(Socket(copy(&socket)?));
        *self.socket.lock().unwrap_or_else(PoisonError::into_inner) = Some(shared);
        Ok(Connection {
            socket: Some(Socket(socket)),
            greeted,
        })
    }

    /// Answers clients that greet once more; did any?
    fn answer_again(&self, connection: &Connection) -> bool {
        let answered = self
            .served()
            .map(|socket| connection.greeted.answer_again(socket));
        // A socket that fails here fails again when traffic starts, and is reported then.
        matches!(answered, Some(Ok(true)))
    }
}

impl FlowThread {
    /// Serves the flows by each timetable that comes, until none will; the outcome of each goes to `ended`.
    pub(super) fn run(self, ended: &Sender<Outcome>) {
        let connections = self.take_place();
        // A dropped receiver means that the session is gone: nobody to tell.
        let _ = self
            .placed
            .send(connections.as_ref().map(drop).map_err(String::clone));
        let connections = match connections {
            Ok(connections) => connections,
            Err(why) => {
                let _ = ended.send(Err(why));
                return;
            }
        };
        while let Some(timetable) = self.next_timetable(&connections) {
            let outcome = self.make_traffic(&connections, timetable);
            let failed = outcome.is_err();
            if ended.send(outcome).is_err() || failed {
                return;
            }
        }
    }

    /// Waits for the next timetable; `None` if none will come.
    ///
    /// The answer to a greeting may be lost. Its client greets again, and is answered meanwhile.
    fn next_timetable(&self, connections: &[Connection]) -> Option<Timetable> {
        let mut silent = 0;
        while silent < SILENT && connections.iter().any(|one| !one.greeted.is_empty()) {
            match self.started.recv_timeout(greeting::EVERY) {
                Err(RecvTimeoutError::Timeout) => {}
                next => return next.ok(),
            }
            let flows = self.lanes.iter().zip(connections);
            let answered = flows.filter(|(lane, one)| lane.answer_again(one)).count();
            silent = if answered > 0 { 0 } else { silent + 1 };
        }
        self.started.recv().ok()
    }

    /// One turn of traffic, from its start until it is told to stop.
    fn make_traffic(&self, connections: &[Connection], timetable: Timetable) -> Outcome {
        let start_ns = timetable.start_ns + self.after_ns;
        let flows = self.lanes.iter().zip(connections);
        let flows = flows.map(|(lane, connection)| loops::Flow {
            origin: &lane.origin,
            socket: connection.socket.as_ref(),
            shared: &lane.socket,
            context: Context {
                tally: &lane.tally,
                stop: &self.stop,
                close_ns: timetable.close_ns,
            },
        });
        let run = self.spec.loops().prepare(Work {
            spec: &self.spec,
            settings: &self.settings,
            timetable,
            start_ns,
            flows: flows.collect(),
        })?;
        if self.spec.round_robin && !self.lanes.iter().any(Lane::is_server) {
            cpu::schedule_current_thread(cpu::Policy::RoundRobin)
                .map_err(|e| hopyard_model::plain::chain(&e))?;
        }
        clock::sleep_until_monotonic_ns(start_ns)
            .map_err(|e| format!("cannot sleep until the start: {e}"))?;
        run()
    }

    /// Goes to the CPU where its flows are to be served, and takes their standing connections, where they have any.
    fn take_place(&self) -> Result<Vec<Connection>, String> {
        self.tid.store(gettid().as_raw(), Relaxed);
        if let Some(cpu) = self.cpu {
            cpu::pin_current_thread(&[cpu]).map_err(|e| format!("cannot run on CPU {cpu}: {e}"))?;
        }
        let mut accepted = self.accept()?.into_iter();
        self.lanes
            .iter()
            .map(|lane| lane.connection(&self.settings, accepted.next()))
            .collect()
    }

    /// The standing flows that come to its servers.
    fn accept(&self) -> Result<Vec<(OwnedFd, Greeted)>, String> {
        if self.spec.kind.connects_anew() || !self.lanes.iter().all(Lane::is_server) {
            return Ok(Vec::new());
        }
        let listeners: Vec<_> = self.lanes.iter().filter_map(Lane::served).collect();
        self.settings.accept_flows(&listeners)
    }
}

fn copy(socket: &OwnedFd) -> Result<OwnedFd, String> {
    socket
        .try_clone()
        .map_err(|e| format!("cannot copy a socket: {e}"))
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, UdpSocket};
    use std::time::Duration;

    use super::*;
    use crate::session::Session;
    use LoadKind::{TcpRr, TcpStream};
    use hopyard_model::{Axes, Peer};

    fn spec(kind: LoadKind) -> LoadSpec {
        LoadSpec::new(kind, &Axes::default().for_cell(kind, Peer::Local, &[]))
    }

    #[test]
    fn a_client_whose_answer_was_lost_is_answered_again() {
        for kind in [LoadKind::UdpRr, LoadKind::UdpPaced] {
            let one = LoadSpec {
                flows: 1,
                ..spec(kind)
            };
            let here = IpAddr::from(Ipv4Addr::LOCALHOST).into();
            let (_server, ports) = Session::serve(&one, &here, &[]).unwrap();
            let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            client.connect((Ipv4Addr::LOCALHOST, ports[0])).unwrap();
            let patience = Some(Duration::from_secs(2));
            client.set_read_timeout(patience).unwrap();
            let answers = [(); 3].map(|()| {
                let mut buffer = [0; 16];
                client.send(b"hopyard?").unwrap();
                let bytes = client.recv(&mut buffer).unwrap();
                buffer[..bytes].to_vec()
            });
            assert!(answers[0].starts_with(b"hopyard!"), "{kind}: {answers:?}");
            assert!(answers.iter().all(|one| *one == answers[0]), "{answers:?}");
        }
    }

    #[test]
    fn streams_of_one_cpu_share_a_thread_unless_they_sleep() {
        let of = |kind, cpus| flow_threads(&spec(kind), vec!["a", "b", "c"], cpus);
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
        assert_eq!(
            flow_threads(&paced, vec!["a", "b", "c"], &[5]),
            apart(Some(5))
        );
        assert_eq!(of(LoadKind::UdpFlood, &[5]), apart(Some(5)));
    }
}
