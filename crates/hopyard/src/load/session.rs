//! One load at one end: its sockets, its threads, and the reading of its counters over the window.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use hdrhistogram::Histogram;
use hopyard_net::{clock, cpu, tcp_info};
use nix::sys::socket::{Shutdown, shutdown};
use socket2::Socket as Listener;

use super::flow::{self, Context, Responder, Socket, Times};
use super::protocol::{Tallied, Timetable};
use super::socket::Settings;
use super::spec::LoadSpec;
use super::tally::{Reading, Tally};
use crate::model::{Latency, LoadKind, TcpSummary};

/// The quantiles kept of every latency distribution.
const QUANTILES: [f64; 10] = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999];
/// How long a flow may take to notice that it is over.
const FAREWELL: Duration = Duration::from_secs(2);

/// A load at one end, from its sockets to its result.
pub(crate) struct Session {
    spec: LoadSpec,
    flows: Vec<Flow>,
    ended: Receiver<Ended>,
    stop: Arc<AtomicBool>,
}

/// What the controlling thread keeps of a flow.
struct Flow {
    tally: Arc<Tally>,
    start: Sender<Timetable>,
    /// The data socket once there is one, and the listener: both are shut down to end the flow.
    socket: Arc<Mutex<Option<OwnedFd>>>,
    listener: Option<Listener>,
    thread: Option<JoinHandle<()>>,
}

/// What a flow's thread says last.
struct Ended {
    outcome: Result<Option<Histogram<u64>>, String>,
}

/// How a flow gets its socket.
enum Origin {
    Client {
        server: SocketAddr,
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

impl Session {
    /// Listens, a port for each flow, with a thread waiting on each.
    ///
    /// # Errors
    /// A sentence: the address is not ours, no port is free.
    pub(crate) fn serve(
        spec: &LoadSpec,
        address: IpAddr,
        cpus: &[usize],
    ) -> Result<(Self, Vec<u16>), String> {
        let settings = Settings::of(spec);
        let mut ports = Vec::new();
        let mut origins = Vec::new();
        for _ in 0..spec.flows {
            let (listener, port) = settings
                .listen(address)
                .map_err(|e| format!("cannot listen at {address}: {e}"))?;
            ports.push(port);
            origins.push(Origin::Server { listener });
        }
        Ok((Self::start(spec, &settings, origins, cpus)?, ports))
    }

    /// Connects every flow.
    ///
    /// # Errors
    /// A sentence: the server does not answer within `patience`.
    pub(crate) fn connect(
        spec: &LoadSpec,
        address: IpAddr,
        ports: &[u16],
        cpus: &[usize],
        patience: Duration,
    ) -> Result<Self, String> {
        let settings = Settings::of(spec);
        let mut origins = Vec::new();
        for port in ports {
            let server = SocketAddr::new(address, *port);
            let connected = settings.connect_flow(server, patience)?;
            origins.push(if spec.kind == LoadKind::TcpCrr {
                // That was a trial: the loop connects without a time limit. The server passes over a
                // connection that ends without a request.
                Origin::Connector { server }
            } else {
                Origin::Client { server, connected }
            });
        }
        Self::start(spec, &settings, origins, cpus)
    }

    fn start(
        spec: &LoadSpec,
        settings: &Settings,
        origins: Vec<Origin>,
        cpus: &[usize],
    ) -> Result<Self, String> {
        let stop = Arc::new(AtomicBool::new(false));
        let (ended_tx, ended) = channel();
        let mut session = Self {
            spec: spec.clone(),
            flows: Vec::new(),
            ended,
            stop: stop.clone(),
        };
        for (index, origin) in origins.into_iter().enumerate() {
            let tally = Arc::new(Tally::default());
            let socket = Arc::new(Mutex::new(None));
            let listener = match &origin {
                Origin::Server { listener } => Some(
                    listener
                        .try_clone()
                        .map_err(|e| format!("cannot copy a socket: {e}"))?,
                ),
                _ => None,
            };
            let (start, started) = channel();
            let thread = FlowThread {
                spec: spec.clone(),
                settings: settings.clone(),
                origin,
                cpu: (!cpus.is_empty()).then(|| cpus[index % cpus.len()]),
                tally: tally.clone(),
                socket: socket.clone(),
                stop: stop.clone(),
                started,
            };
            let ended = ended_tx.clone();
            let thread = std::thread::Builder::new()
                .name(format!("flow-{index}"))
                .spawn(move || {
                    // A dropped receiver means that the session is gone: nobody to tell.
                    let _ = ended.send(Ended {
                        outcome: thread.run(),
                    });
                })
                .map_err(|e| format!("cannot start a thread for flow {index}: {e}"))?;
            session.flows.push(Flow {
                tally,
                start,
                socket,
                listener,
                thread: Some(thread),
            });
        }
        Ok(session)
    }

    /// Makes traffic by the timetable and gives back what this end counted in the window.
    ///
    /// `wait_until` sleeps to an instant; it fails when the controller is gone.
    ///
    /// # Errors
    /// A flow failed before the window was over.
    pub(crate) fn run(
        mut self,
        timetable: Timetable,
        mut wait_until: impl FnMut(u64) -> Result<(), String>,
    ) -> Result<Tallied, String> {
        for flow in &self.flows {
            // A thread that is gone has said why; `farewell` reads it.
            let _ = flow.start.send(timetable);
        }
        let span = timetable.close_ns.saturating_sub(timetable.open_ns);
        let mut readings = Vec::with_capacity(timetable.slices as usize + 1);
        let mut tcp = [TcpSummary::default(); 2];
        for edge in 0..=u64::from(timetable.slices) {
            wait_until(timetable.open_ns + span * edge / u64::from(timetable.slices.max(1)))?;
            readings.push((clock::monotonic_ns(), Reading::total(self.tallies())));
            match edge {
                0 => tcp[0] = self.tcp_summary()?,
                e if e == u64::from(timetable.slices) => tcp[1] = self.tcp_summary()?,
                _ => {}
            }
        }
        wait_until(timetable.stop_ns)?;
        let latency = self.farewell()?;
        let ((first_ns, first), (last_ns, last)) = match (readings.first(), readings.last()) {
            (Some(first), Some(last)) => (*first, *last),
            _ => return Err("a window needs at least one slice".to_owned()),
        };
        let counted = last.since(first);
        let stream = self.spec.kind.is_stream();
        Ok(Tallied {
            window_ns: last_ns - first_ns,
            received: counted.received,
            sent: counted.sent,
            send_errors: counted.send_errors,
            timeouts: counted.timeouts,
            slices: readings
                .windows(2)
                .map(|pair| {
                    let part = pair[1].1.since(pair[0].1).received;
                    if stream {
                        part.bytes
                    } else {
                        part.transactions
                    }
                })
                .collect(),
            latency,
            tcp: self
                .has_standing_connections()
                .then(|| since(tcp[1], tcp[0])),
        })
    }

    fn tallies(&self) -> impl Iterator<Item = &Tally> {
        self.flows.iter().map(|flow| &*flow.tally)
    }

    fn has_standing_connections(&self) -> bool {
        self.spec.kind.is_tcp() && self.spec.kind != LoadKind::TcpCrr
    }

    /// The `tcp_info` of all flows together.
    fn tcp_summary(&self) -> Result<TcpSummary, String> {
        let mut sum = TcpSummary::default();
        if !self.has_standing_connections() {
            return Ok(sum);
        }
        for flow in &self.flows {
            let socket = flow.socket.lock().unwrap_or_else(PoisonError::into_inner);
            let socket = socket
                .as_ref()
                .ok_or("a flow had no connection when the window opened")?;
            let info =
                tcp_info::read(socket.as_fd()).map_err(|e| format!("cannot read TCP_INFO: {e}"))?;
            sum.retransmits += u64::from(info.total_retransmits);
            sum.busy_ns += info.busy_time_us * 1000;
            sum.receive_window_limited_ns += info.receive_window_limited_us * 1000;
            sum.send_buffer_limited_ns += info.send_buffer_limited_us * 1000;
        }
        Ok(sum)
    }

    /// Ends every flow and gathers what they have to say.
    fn farewell(&mut self) -> Result<Option<Latency>, String> {
        self.hang_up();
        let mut all: Option<Histogram<u64>> = None;
        for _ in 0..self.flows.len() {
            let ended = self
                .ended
                .recv_timeout(FAREWELL)
                .map_err(|_| "a flow did not stop within 2 s".to_owned())?;
            let Some(one) = ended.outcome? else { continue };
            match &mut all {
                None => all = Some(one),
                Some(sum) => sum
                    .add(one)
                    .map_err(|e| format!("cannot add histograms: {e}"))?,
            }
        }
        for flow in &mut self.flows {
            if flow
                .thread
                .take()
                .is_some_and(|thread| thread.join().is_err())
            {
                return Err("a flow's thread panicked; its message is on stderr".to_owned());
            }
        }
        all.as_ref().map(summarise).transpose()
    }

    /// Tells the loops to stop and wakes those that wait in a socket call.
    fn hang_up(&self) {
        self.stop.store(true, Relaxed);
        for flow in &self.flows {
            // ENOTCONN is what a socket answers that nobody waits on: nothing to undo.
            if let Some(listener) = &flow.listener {
                let _ = listener.shutdown(std::net::Shutdown::Both);
            }
            let socket = flow.socket.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(socket) = socket.as_ref() {
                use std::os::fd::AsRawFd;
                let _ = shutdown(socket.as_raw_fd(), Shutdown::Both);
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.hang_up();
    }
}

fn since(end: TcpSummary, start: TcpSummary) -> TcpSummary {
    TcpSummary {
        retransmits: end.retransmits - start.retransmits,
        busy_ns: end.busy_ns - start.busy_ns,
        receive_window_limited_ns: end.receive_window_limited_ns - start.receive_window_limited_ns,
        send_buffer_limited_ns: end.send_buffer_limited_ns - start.send_buffer_limited_ns,
    }
}

fn summarise(histogram: &Histogram<u64>) -> Result<Latency, String> {
    let mut coarse =
        Histogram::<u64>::new(2).map_err(|e| format!("cannot make a histogram: {e}"))?;
    coarse
        .add(histogram)
        .map_err(|e| format!("cannot add histograms: {e}"))?;
    Ok(Latency {
        count: histogram.len(),
        min_ns: histogram.min(),
        mean_ns: histogram.mean(),
        max_ns: histogram.max(),
        quantiles: QUANTILES
            .map(|q| (q, histogram.value_at_quantile(q)))
            .to_vec(),
        histogram: coarse
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
            .collect(),
    })
}

/// What a flow's thread needs.
struct FlowThread {
    spec: LoadSpec,
    settings: Settings,
    origin: Origin,
    cpu: Option<usize>,
    tally: Arc<Tally>,
    socket: Arc<Mutex<Option<OwnedFd>>>,
    stop: Arc<AtomicBool>,
    started: Receiver<Timetable>,
}

impl FlowThread {
    fn run(self) -> Result<Option<Histogram<u64>>, String> {
        if let Some(cpu) = self.cpu {
            cpu::pin_current_thread(&[cpu]).map_err(|e| format!("cannot run on CPU {cpu}: {e}"))?;
        }
        let (is_server, socket, server) = match &self.origin {
            Origin::Connector { server } => (false, None, Some(*server)),
            Origin::Client { connected, server } => (false, Some(copy(connected)?), Some(*server)),
            Origin::Server { .. } if self.spec.kind == LoadKind::TcpCrr => (true, None, None),
            Origin::Server { listener } => (true, Some(self.settings.accept_flow(listener)?), None),
        };
        if let Some(socket) = &socket {
            *self.socket.lock().unwrap_or_else(PoisonError::into_inner) = Some(copy(socket)?);
        }
        let Ok(timetable) = self.started.recv() else {
            return Ok(None);
        };
        let context = Context {
            tally: &self.tally,
            stop: &self.stop,
            close_ns: timetable.close_ns,
        };
        let prepared = Prepared::new(&self.spec, timetable)?;
        clock::sleep_until_monotonic_ns(timetable.start_ns)
            .map_err(|e| format!("cannot sleep until the start: {e}"))?;
        match (socket.map(Socket), is_server) {
            (Some(socket), is_server) => prepared.standing(&socket, is_server, context),
            (None, false) => {
                let server = server.ok_or("a client without a server's address")?;
                prepared.connector(server, &self.settings, context)
            }
            (None, true) => match &self.origin {
                Origin::Server { listener } => prepared.acceptor(listener, context),
                _ => Err("a server without a listener".to_owned()),
            },
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
        })
    }

    fn standing(
        mut self,
        io: &impl flow::Io,
        is_server: bool,
        context: Context<'_>,
    ) -> Result<Option<Histogram<u64>>, String> {
        use LoadKind::{TcpCrr, TcpMaerts, TcpRr, TcpStream, UdpRr, UdpStream};
        match (self.spec.kind, is_server) {
            (TcpStream | UdpStream, false) | (TcpMaerts, true) => {
                flow::transmit(io, &self.message, context).map(|()| None)
            }
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

    fn connector(
        mut self,
        server: SocketAddr,
        settings: &Settings,
        context: Context<'_>,
    ) -> Result<Option<Histogram<u64>>, String> {
        flow::crr_client(
            server,
            settings,
            &mut self.responder,
            &mut self.times,
            context,
        )?;
        Ok(Some(self.times.histogram))
    }

    fn acceptor(
        mut self,
        listener: &Listener,
        context: Context<'_>,
    ) -> Result<Option<Histogram<u64>>, String> {
        flow::crr_server(listener, &mut self.responder, context).map(|()| None)
    }
}
