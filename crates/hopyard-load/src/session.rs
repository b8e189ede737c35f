//! One load at one end: its sockets, its threads, and the reading of its counters over the window.

mod beside;
mod first_exchange;
mod parting;
mod readings;
mod turns;

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hopyard_net::cpu;
use nix::sys::socket::{Shutdown, shutdown};
use socket2::Socket as Listener;

pub(crate) use self::beside::Beside;
use self::beside::CpuWindow;
use self::readings::Edge;
use super::endpoint::DeviceMeter;
use super::flow::SharedSocket;
use super::flow_thread::{FlowThread, Lane, flow_threads};
use super::loops::{Origin, Outcome};
use super::protocol::{CpuSpan, Tallied, Timetable};
use super::receiver::SharedTid;
use super::scheduling::Watch;
use super::socket::Settings;
use super::sockets::{Place, SocketFile};
use super::spec::{LoadSpec, allowed_cpus};
use super::summary::{DIGITS, Timings, summarise_any};
use super::tally::{Reading, Tally};

/// A load at one end, from its sockets to its result.
pub(crate) struct Session {
    spec: LoadSpec,
    flows: Vec<Flow>,
    threads: Vec<Thread>,
    /// A message from each thread, once its flows have their connections.
    placed: Receiver<Result<(), String>>,
    /// How many have not been heard.
    unplaced: usize,
    ended: Receiver<Outcome>,
    /// Ends the loops for good.
    stop: Arc<AtomicBool>,
    /// Ends the loops that begin traffic, until the next turn.
    pause: Arc<AtomicBool>,
    watch: Watch,
    /// Round trips of the first datagrams of fresh sockets, where the load times them.
    first_packets: Option<Timings>,
    /// Those of listening Unix sockets.
    files: Vec<SocketFile>,
    /// When the first of several turns began, and what had been counted then.
    first_turn: Option<(u64, Reading, Edge)>,
}

/// What the controlling thread keeps of a flow.
struct Flow {
    tally: Arc<Tally>,
    /// The data socket once there is one, and the listener: both are shut down to end the flow.
    socket: SharedSocket,
    listener: Option<Listener>,
}

/// What it keeps of a thread.
struct Thread {
    start: Sender<Timetable>,
    tid: SharedTid,
    /// Does it send what the other end waits for? Only such threads pause between turns.
    begins: bool,
    handle: JoinHandle<()>,
}

impl Session {
    /// Listens, a port for each flow, with threads waiting on them.
    ///
    /// # Errors
    /// A sentence: the address is not ours, no port is free.
    pub(crate) fn serve(
        spec: &LoadSpec,
        place: &Place,
        cpus: &[usize],
    ) -> Result<(Self, Vec<u16>), String> {
        let settings = Settings::of(spec, spec.loops().set());
        let mut ports = Vec::new();
        let mut files = Vec::new();
        let mut origins = Vec::new();
        for flows in shares(spec, cpus.len()) {
            let last = ports.last().copied().unwrap_or(0);
            let (listener, port, file) = settings
                .listen(place, last)
                .map_err(|e| format!("cannot listen at {place}: {e}"))?;
            files.extend(file);
            ports.extend(std::iter::repeat_n(port, flows as usize));
            origins.push(if spec.kind.is_numbered() {
                Origin::Gatherer {
                    socket: listener,
                    flows,
                }
            } else {
                Origin::Server { listener }
            });
        }
        let mut session = Self::start(spec, &settings, origins, cpus)?;
        session.files = files;
        Ok((session, ports))
    }

    /// Connects every flow.
    ///
    /// # Errors
    /// A sentence: the server does not answer within `patience`.
    pub(crate) fn connect(
        spec: &LoadSpec,
        place: &Place,
        ports: &[u16],
        cpus: &[usize],
        patience: Duration,
    ) -> Result<Self, String> {
        let settings = Settings::of(spec, spec.loops().set());
        let servers = ports.iter().map(|port| place.port(*port));
        let servers: Vec<_> = servers
            .collect::<Result<_, _>>()
            .map_err(|e| format!("{place} is no place for a server: {e}"))?;
        let first_packets = spec
            .kind
            .times_first_exchanges()
            .then(|| first_exchange::of_flows(&settings, &servers, cpus))
            .transpose()?;
        let mut origins = Vec::new();
        for (place, server) in (spec.first_flow..).zip(servers) {
            let (connected, number) = settings.connect_flow(&server, patience)?;
            origins.push(if spec.kind.connects_anew() {
                // That was a trial: the loop connects without a time limit. The server passes over a
                // connection that ends without a request.
                Origin::Connector { server, place }
            } else {
                Origin::Client {
                    connected,
                    number,
                    place,
                }
            });
        }
        let mut session = Self::start(spec, &settings, origins, cpus)?;
        session.first_packets = first_packets;
        session.accept(patience)?;
        Ok(session)
    }

    /// Waits until every flow has its connection: threads that wait for their CPU may be late to take theirs.
    ///
    /// # Errors
    /// A sentence: a flow cannot have one, or has none within `patience`.
    pub(crate) fn accept(&mut self, patience: Duration) -> Result<(), String> {
        let deadline = Instant::now() + patience;
        while self.unplaced > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            let placed = self.placed.recv_timeout(left).map_err(|error| {
                let late = format!("a flow has no connection after {} ms", patience.as_millis());
                self.why_silent(error, late)
            })?;
            self.unplaced -= 1;
            placed?;
        }
        Ok(())
    }

    fn start(
        spec: &LoadSpec,
        settings: &Settings,
        origins: Vec<Origin>,
        cpus: &[usize],
    ) -> Result<Self, String> {
        // Before the threads.
        let watch = Watch::new(spec.cache_misses);
        let (stop, pause) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        let (ended_tx, ended) = channel();
        let (placed_tx, placed) = channel();
        let mut lanes = Vec::new();
        let mut flows = Vec::new();
        for origin in origins {
            let lane = Lane::new(origin);
            flows.push(Flow {
                tally: lane.tally.clone(),
                socket: lane.socket.clone(),
                listener: lane.listener()?,
            });
            lanes.push(lane);
        }
        let mut session = Self {
            spec: spec.clone(),
            flows,
            threads: Vec::new(),
            placed,
            unplaced: 0,
            ended,
            stop: stop.clone(),
            pause: pause.clone(),
            watch,
            first_packets: None,
            files: Vec::new(),
            first_turn: None,
        };
        for (cpu, lanes) in flow_threads(spec, lanes, cpus) {
            let (start, started) = channel();
            let tid = SharedTid::default();
            let index = session.threads.len();
            // Staggered flows have a thread each.
            let begins = lanes.iter().all(|lane| lane.begins(spec.kind));
            let flow_thread = FlowThread {
                after_ns: if begins {
                    spec.begins_after_ns(index)
                } else {
                    0
                },
                tid: tid.clone(),
                spec: spec.clone(),
                settings: settings.clone(),
                lanes,
                cpu,
                stop: if begins { &pause } else { &stop }.clone(),
                placed: placed_tx.clone(),
                started,
            };
            let ended = ended_tx.clone();
            let handle = std::thread::Builder::new()
                .name(format!("flow-{index}"))
                .spawn(move || flow_thread.run(&ended))
                .map_err(|e| format!("cannot start thread {index} of the flows: {e}"))?;
            session.unplaced += 1;
            session.threads.push(Thread {
                start,
                tid,
                begins,
                handle,
            });
        }
        Ok(session)
    }

    /// Makes traffic by the timetable, ends the connections, and gives back what this end counted in the window.
    ///
    /// `wait_until` sleeps to an instant; it fails when the controller is gone.
    ///
    /// # Errors
    /// A flow failed before the window was over.
    pub(crate) fn run(
        mut self,
        timetable: Timetable,
        beside: Beside<'_>,
        mut wait_until: impl FnMut(u64) -> Result<(), String>,
    ) -> Result<Tallied, String> {
        // A thousand senders may be before it in the queue for a CPU.
        let is_crowded = self.spec.is_crowded_on(allowed_cpus());
        let _prompt = is_crowded.then(cpu::RealtimeGuard::new);
        for thread in &self.threads {
            // A thread that is gone has said why; `farewell` reads it.
            let _ = thread.start.send(timetable);
        }
        let mut edges = Vec::with_capacity(2);
        let mut efforts = Vec::with_capacity(2);
        let mut devices = Vec::with_capacity(2);
        let mut cpu = CpuWindow::new(beside.machine);
        let window = self.watch_window(timetable, &mut wait_until, |session| {
            devices.extend(beside.device.map(DeviceMeter::read).transpose()?);
            edges.push(session.edge()?);
            efforts.extend(session.effort()?);
            // Last: it takes its time.
            cpu.at_edge();
            Ok(())
        })?;
        wait_until(timetable.stop_ns)?;
        let parting = self.farewell()?;
        // By now every request that began in the window was answered or given up.
        let lost = Reading::total(self.tallies()).lost_of_window;
        let told = match (parting.journal, &efforts[..]) {
            (Some(journal), [start, end]) => Some(journal.tell(self.spec.kind, end.since(start))?),
            _ => None,
        };
        let finished = parting.finished;
        let due = parting.due.or(told.as_ref().and_then(|told| told.due));
        let (one_way, arrivals) =
            told.map_or((None, None), |told| (told.latency, Some(told.arrivals)));
        let round_trips = summarise_any(parting.round_trips.as_ref(), DIGITS)?;
        let first = parting
            .first_packets
            .as_ref()
            .or(self.first_packets.as_ref());
        let first_packet = summarise_any(first, DIGITS)?;
        Ok(Tallied {
            device: match &devices[..] {
                [opened, closed] => Some(closed.since(opened)),
                _ => None,
            },
            cpu: cpu.used.map(CpuSpan::from),
            latency: round_trips.or(one_way),
            first_packet,
            arrivals,
            due,
            finished,
            timeouts: lost,
            ..self.edges_counted(window, &edges)
        })
    }

    fn tallies(&self) -> impl Iterator<Item = &Tally> {
        self.flows.iter().map(|flow| &*flow.tally)
    }

    /// Tells the loops to stop and wakes those that wait in a socket call.
    fn hang_up(&self) {
        self.stop.store(true, Relaxed);
        self.pause.store(true, Relaxed);
        for flow in &self.flows {
            // ENOTCONN is what a socket answers that nobody waits on: nothing to undo.
            if let Some(listener) = &flow.listener {
                let _ = listener.shutdown(std::net::Shutdown::Both);
            }
            let socket = flow.socket.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(socket) = socket.as_ref() {
                let _ = shutdown(socket.as_fd().as_raw_fd(), Shutdown::Both);
            }
        }
    }
}

/// Over how many sockets the flows of a server are spread, and how many each has: numbered datagrams share one on
/// each CPU, every other flow has its own.
fn shares(spec: &LoadSpec, cpus: usize) -> Vec<u32> {
    if !spec.kind.is_numbered() {
        return vec![1; spec.flows as usize];
    }
    let sockets = u32::try_from(cpus).unwrap_or(1).clamp(1, spec.flows);
    (0..sockets)
        .map(|nth| spec.flows / sockets + u32::from(nth < spec.flows % sockets))
        .collect()
}

impl Drop for Session {
    fn drop(&mut self) {
        self.hang_up();
    }
}
