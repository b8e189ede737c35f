//! One sample: a fresh test bed, one tool, one window.

use std::time::{Duration, Instant};

use hopyard::load::protocol::{Reply, Request, Tallied, Timetable};
use hopyard::load::remote::Remote;
use hopyard::load::{LoadSpec, Place};
use hopyard::measure::QuietCores;
use hopyard::meter::CpuMeter;
use hopyard::model::{Counted, LoadKind};
use hopyard::signals;
use hopyard_net::clock;
use serde::Serialize;

use crate::bed::Bed;
use crate::error::{Error, Result};
use crate::process::Process;
use crate::scenario::Scenario;
use crate::tools::{Peer, Printed, Reported, Task, Tool};
use crate::window::{Counters, Window, observe, wait_until};
use hopyard::units::ns;

/// Traffic before the window.
const WARM_UP: Duration = Duration::from_millis(200);
/// Traffic after it.
const TAIL: Duration = Duration::from_millis(150);
/// Time for a server to listen, and for a client to begin.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// The largest difference between a tool's own count and the kernel's.
pub(crate) const AGREEMENT: f64 = 0.05;
/// The largest share of the machine for other processes, or for the hypervisor. (Stolen time comes in steps of 10 ms:
/// one step in a window of 400 ms on two CPUs is already 1.25 %.)
const DISTURBANCE: f64 = 0.02;

/// The figures of a sample.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figures {
    /// Bytes, transactions or datagrams per second that arrived.
    pub(crate) rate: f64,
    /// The sent rate (datagrams).
    pub(crate) sent: f64,
    /// CPU time per unit that arrived, ns.
    pub(crate) cost_ns: f64,
    /// CPUs' worth of work in the window, minus other processes and the idle machine's own use.
    pub(crate) cores: f64,
    /// The tool's own count over the kernel's, of what arrived.
    pub(crate) own_count: f64,
    /// Whether others used the machine during part of the window.
    pub(crate) disturbed: bool,
    /// Remarks for the reader.
    pub(crate) flags: Vec<String>,
}

/// Takes samples.
#[derive(Debug)]
pub(crate) struct Sampler {
    pub(crate) meter: CpuMeter,
    pub(crate) window: Duration,
    /// This program, which is also the worker.
    pub(crate) program: std::path::PathBuf,
}

impl Sampler {
    /// Measures one tool in a bed of its own; `quiet` is what the idle machine uses.
    pub(crate) fn measure(
        &self,
        scenario: &Scenario,
        tool: Tool,
        quiet: QuietCores,
    ) -> Result<Figures> {
        let bed = Bed::build(scenario)?;
        let mut flags = Vec::new();
        let (mut window, own_count) = match tool.peer() {
            None => self.own(&bed, scenario, &mut flags)?,
            Some(peer) => self.peer(&bed, scenario, peer, &mut flags)?,
        };
        quiet.note_in(&mut window.cpu);
        if window.work.received < 1.0 {
            return Err(Error::Program {
                program: tool.to_string(),
                what: "moved nothing in the window".to_owned(),
            });
        }
        if !((1.0 - AGREEMENT)..=(1.0 + AGREEMENT)).contains(&own_count) {
            return Err(Error::Program {
                program: tool.to_string(),
                what: format!("counted {own_count:.3} of what the kernel counted"),
            });
        }
        let cpu = window.cpu;
        let machine = cpu.elapsed_ns * f64::from(cpu.cpus);
        let shares = [
            ("other processes", cpu.foreign_ns / machine),
            ("the hypervisor", cpu.steal_ns / machine),
        ];
        for (who, share) in shares.iter().filter(|(_, share)| *share > DISTURBANCE) {
            flags.push(format!(
                "{who} had more than {:.0} % of the machine ({:.1} %)",
                DISTURBANCE * 100.0,
                share * 100.0
            ));
        }
        let rate = window.work.received * 1e9 / window.span_ns;
        let cores = cpu.net().middle_ns() / cpu.elapsed_ns;
        Ok(Figures {
            rate,
            sent: window.work.sent * 1e9 / window.span_ns,
            cost_ns: cores * 1e9 / rate,
            cores,
            own_count,
            disturbed: shares.iter().any(|(_, share)| *share > DISTURBANCE),
            flags,
        })
    }

    /// hopyard's own generator, through its worker, as `hopyard measure` runs it.
    fn own(
        &self,
        bed: &Bed,
        scenario: &Scenario,
        flags: &mut Vec<String>,
    ) -> Result<(Window, f64)> {
        let axes = scenario.axes();
        let spec = LoadSpec::new(scenario.load, &axes);
        let mut near = bed.lab.start_worker(bed.client(), &self.program)?;
        let mut far = bed.lab.start_worker(bed.server(), &self.program)?;
        let address = Place::from(bed.server().addresses.of(axes.family));
        let serve = Request::Serve {
            spec: spec.clone(),
            address: address.clone(),
            cpus: bed.places.server.clone(),
        };
        let ports = match far.ask(&serve, "listen")? {
            Reply::Serving { ports } => ports,
            other => return Err(far.out_of_turn(&other).into()),
        };
        let connect = Request::Connect {
            spec,
            address,
            ports,
            cpus: bed.places.client.clone(),
            patience_ms: 2000,
        };
        match near.ask(&connect, "connect")? {
            Reply::Connected => {}
            other => return Err(near.out_of_turn(&other).into()),
        }
        let accept = Request::Accept { patience_ms: 2000 };
        match far.ask(&accept, "take the connections")? {
            Reply::Connected => {}
            other => return Err(far.out_of_turn(&other).into()),
        }
        let start_ns = clock::monotonic_ns() + 10_000_000;
        let open_ns = start_ns + ns(WARM_UP);
        let close_ns = open_ns + ns(self.window);
        let timetable = Timetable {
            start_ns,
            open_ns,
            close_ns,
            stop_ns: close_ns + ns(TAIL),
            slices: 1,
            other_behind_ns: 0,
            edge_ns: 0,
        };
        far.tell(&Request::Run(timetable), "run")?;
        near.tell(&Request::Run(timetable), "run")?;
        let pids = [near.pid(), far.pid()];
        let window = observe(bed, scenario, &self.meter, &pids, (open_ns, close_ns))?;
        flag_congestion(bed, scenario, flags)?;
        let (client, server) = (done(&mut near)?, done(&mut far)?);
        // Its window and ours differ by the time of reading the meters, so compare rates.
        let said = own_rate(scenario, &client, &server);
        let seen = window.work.received / window.span_ns;
        Ok((window, said / seen))
    }

    /// Another tool: server, client, wait for traffic, window, end.
    fn peer(
        &self,
        bed: &Bed,
        scenario: &Scenario,
        peer: &dyn Peer,
        flags: &mut Vec<String>,
    ) -> Result<(Window, f64)> {
        let lasting = WARM_UP + self.window + TAIL + Duration::from_millis(100);
        let task = Task {
            scenario,
            server: bed.server().addresses.v4.into(),
            seconds: lasting.as_millis().div_ceil(1000) as u64,
        };
        let zero = Counters::read(bed)?;
        let [mut client, mut server] = start(bed, peer, task)?;
        let mut flow = Flow::new(bed, scenario, &zero);
        until(&mut client, "made no traffic", || flow.runs())?;

        let open_ns = clock::monotonic_ns() + ns(WARM_UP);
        let edges = (open_ns, open_ns + ns(self.window));
        let pids = [client.pid(), server.pid()];
        let window = observe(bed, scenario, &self.meter, &pids, edges)?;
        if client.ended()?.is_some() {
            return Err(client.trouble("ended before the window did"));
        }
        flag_congestion(bed, scenario, flags)?;

        let lasts = Duration::from_secs(task.seconds) + PATIENCE;
        let printed = finish(peer, [&mut client, &mut server], lasts)?;
        let all = Counters::read(bed)?.since(&zero, bed, scenario);
        let own = peer
            .reported(scenario, &printed)
            .map_err(|what| client.trouble(&what))?;
        flag_sent(own, all.sent, flags);
        Ok((window, own.received / all.received))
    }
}

/// Starts a tool's server, and its client once the server listens; returns client and server.
pub(crate) fn start(bed: &Bed, peer: &dyn Peer, task: Task<'_>) -> Result<[Process; 2]> {
    let places = &bed.places;
    let mut server = Process::start(&bed.lab, bed.server(), &places.server, &peer.server(task))?;
    until(&mut server, "did not listen", || {
        bed.listening(peer.listens(task.scenario))
    })?;
    // Some listen shortly before they are ready to answer.
    wait_until(clock::monotonic_ns() + 20_000_000)?;
    let client = Process::start(&bed.lab, bed.client(), &places.client, &peer.client(task))?;
    Ok([client, server])
}

/// Output of client and server after both have ended; the client may take at most this long.
pub(crate) fn finish(
    peer: &dyn Peer,
    [client, server]: [&mut Process; 2],
    lasts: Duration,
) -> Result<Printed> {
    let client = client.finish(lasts)?;
    let server = if peer.one_shot() {
        server.finish(PATIENCE)?
    } else {
        server.interrupt(PATIENCE)?
    };
    Ok(Printed { client, server })
}

/// Waits for a condition while a program must keep running.
pub(crate) fn until(
    process: &mut Process,
    trouble: &str,
    mut holds: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !holds()? {
        if signals::interrupted() {
            return Err(Error::Interrupted);
        }
        if process.ended()?.is_some() || Instant::now() >= deadline {
            return Err(process.trouble(trouble));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Detects traffic, beyond the greetings with which some tools begin.
struct Flow<'a> {
    bed: &'a Bed,
    scenario: &'a Scenario,
    last: Counters,
    /// Consecutive readings with traffic.
    streak: u32,
}

impl<'a> Flow<'a> {
    fn new(bed: &'a Bed, scenario: &'a Scenario, last: &Counters) -> Self {
        Self {
            bed,
            scenario,
            last: last.clone(),
            streak: 0,
        }
    }

    fn runs(&mut self) -> Result<bool> {
        /// Far below what any load does between two readings, and far above a greeting.
        const LEAST_UNITS: f64 = 20.0;
        let now = Counters::read(self.bed)?;
        let work = now.since(&self.last, self.bed, self.scenario);
        self.streak = if work.sent >= LEAST_UNITS {
            self.streak + 1
        } else {
            0
        };
        self.last = now;
        Ok(self.streak >= 3)
    }
}

fn flag_congestion(bed: &Bed, scenario: &Scenario, flags: &mut Vec<String>) -> Result<()> {
    if !scenario.load.is_tcp() {
        return Ok(());
    }
    let seen = bed.connections()?;
    if seen.as_asked < seen.all || seen.all < scenario.flows as usize {
        flags.push(format!(
            "{} of {} connections were seen under cubic",
            seen.as_asked, seen.all
        ));
    }
    Ok(())
}

fn flag_sent(own: Reported, sent: f64, flags: &mut Vec<String>) {
    if let Some(own) = own.sent
        && (own / sent - 1.0).abs() > AGREEMENT
    {
        flags.push(format!(
            "its own count of what it sent is {:.3} of the kernel's",
            own / sent
        ));
    }
}

fn done(worker: &mut Remote) -> Result<Tallied> {
    match worker.hear("report what it counted", PATIENCE, &signals::interrupted)? {
        Reply::Done(tallied) => Ok(*tallied),
        other => Err(worker.out_of_turn(&other).into()),
    }
}

/// hopyard's own count, units per ns.
fn own_rate(scenario: &Scenario, client: &Tallied, server: &Tallied) -> f64 {
    let Tallied {
        received: Counted {
            bytes, messages, ..
        },
        window_ns,
        ..
    } = server;
    let (units, window_ns) = match scenario.load {
        LoadKind::TcpStream | LoadKind::TcpMaerts => (*bytes, *window_ns),
        load if load.is_udp_stream() => (*messages, *window_ns),
        _ => (client.received.transactions, client.window_ns),
    };
    units as f64 / window_ns as f64
}
