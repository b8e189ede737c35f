//! One sample: a fresh lab, fresh workers, one window. The result is raw.

mod again;
mod aux_counters;
mod chains;
mod connections;
mod counts;
mod disturbance;
mod elsewhere;
mod ends;
mod error;
mod machines;
mod merge;
mod missed;
mod own_lab;
mod places;
mod profile;
mod proof_segments;
mod quiet;
mod search;
mod timing;
pub mod turns;
mod used_cpus;

use std::path::PathBuf;
use std::time::Duration;

use hopyard_net::{clock, cpu};

use self::aux_counters::AuxCounters;
use self::counts::{Counts, Observed, assemble};
use self::disturbance::RetakeBudget;
use self::ends::Ends;
pub use self::error::Error;
use self::machines::Machines;
use self::own_lab::in_own_lab;
pub(crate) use self::own_lab::{let_netns_cleanup_end, let_netns_cleanup_end_to_restore};
pub use self::places::{Places, places};
pub use self::quiet::{IdleState, QuietCores, QuietReading};
use self::used_cpus::UsedCpus;
use crate::lab::{self, Endpoint, Endpoints, Lab, Topology};
use crate::load::protocol::{Request, Timetable};
use crate::load::remote::Remote;
use crate::load::{Place, least_load, pace_of};
use crate::meter::path_proof::Watched;
use crate::meter::{self, CpuMeter, OwnProcesses, devices};
use crate::model::{Axes, Cell, LoadKind, Measurement};
use crate::plan::spec_of;
use crate::signals;
use crate::units::{float, ns, seconds};

/// Time in which a flow must connect.
const PATIENCE: Duration = Duration::from_secs(2);

/// Takes samples.
#[derive(Debug)]
pub struct Sampler {
    /// The program to run as worker: hopyard itself.
    pub program: PathBuf,
    /// Reads the CPUs.
    pub meter: CpuMeter,
    /// Length of a window.
    pub window: Duration,
    /// Traffic before the window.
    pub warm_up: Duration,
    /// Length of a profile's window, if the plan gives one.
    pub profile_window: Option<Duration>,
    /// Self-timed work of the responder, for experiments with a known answer.
    pub service_time: Duration,
    /// Self-timed work of a requester before each request, outside the round trip, for the same purpose.
    pub pause: Duration,
    /// The endpoints of path `as-is`.
    pub endpoints: Option<Endpoints>,
    retakes: RetakeBudget,
}

impl Sampler {
    /// A sampler that runs this program as worker.
    ///
    /// # Errors
    /// The program cannot be found, or the CPUs cannot be read.
    pub fn new(window: Duration, warm_up: Duration) -> Result<Self, Error> {
        let program = std::env::current_exe().map_err(|source| meter::Error::Read {
            file: "the own program's name".to_owned(),
            source,
        })?;
        let meter = CpuMeter::new()?;
        Ok(Self {
            program,
            meter,
            window,
            warm_up,
            profile_window: None,
            service_time: Duration::ZERO,
            pause: Duration::ZERO,
            endpoints: None,
            retakes: RetakeBudget::default(),
        })
    }

    /// Measures a cell in a lab of its own. A window that is repeated has a new lab, since connections and caches of the one before
    /// would make it another sample. The trials of a search share a lab.
    ///
    /// `quiet` is what the machine uses by itself.
    ///
    /// # Errors
    /// Anything that would make the figures wrong.
    pub fn measure(&self, cell: &Cell, quiet: impl Into<QuietCores>) -> Result<Measurement, Error> {
        let quiet = quiet.into();
        let endpoints = self.endpoints.as_ref();
        if cell.axes.search.is_some() {
            return in_own_lab(cell, endpoints, |lab| self.measure_in(lab, cell, quiet));
        }
        again::if_disturbed(&self.retakes, self.window, |window| {
            in_own_lab(cell, endpoints, |lab| {
                self.try_window_in(lab, cell, window, quiet)
            })
        })
    }

    /// Measures a cell in an existing lab, which the caller may have changed: windows are repeated in it.
    ///
    /// # Errors
    /// As [`Sampler::measure`].
    pub fn measure_in(
        &self,
        lab: &Lab,
        cell: &Cell,
        quiet: impl Into<QuietCores>,
    ) -> Result<Measurement, Error> {
        let quiet = quiet.into();
        match cell.axes.search {
            Some(wanted) => self.search_in(lab, cell, wanted, quiet),
            None => again::if_disturbed(&self.retakes, self.window, |window| {
                self.try_window_in(lab, cell, window, quiet)
            }),
        }
    }

    /// Measures one window of a given length. If the machine missed it, it is repeated in the same lab.
    fn window_in(
        &self,
        lab: &Lab,
        cell: &Cell,
        window: Duration,
        quiet: QuietCores,
    ) -> Result<Measurement, Error> {
        again::if_missed(window, |window| {
            self.try_window_in(lab, cell, window, quiet)
        })
    }

    fn try_window_in(
        &self,
        lab: &Lab,
        cell: &Cell,
        window: Duration,
        quiet: QuietCores,
    ) -> Result<Measurement, Error> {
        let counted = self.ends(lab, cell).and_then(|mut ends| {
            let distance = ends.compare_clocks(lab.has_one_clock())?;
            let timetable = distance.allow_for(self.timetable(cell, window));
            let watched = self.watch(lab, &mut ends, timetable);
            watched.map_err(|error| ends.cause_of(error))
        });
        // A dead switch explains any other failure, and figures of half a window are useless.
        if let Some(death) = lab.death() {
            return Err(lab::Error::from(death).into());
        }
        let assembled = counted.and_then(|counted| assemble(cell, lab, counted, quiet));
        assembled.map_err(|error| connections::cause_of(error, lab))
    }

    /// Workers at both ends of a lab, with every flow connected.
    fn ends(&self, lab: &Lab, cell: &Cell) -> Result<Ends, Error> {
        let Topology { client, server, .. } = &lab.topology;
        let allowed_cpus = cpu::current_affinity()?;
        let mut places = elsewhere::place(lab, cell.axes.placement, &allowed_cpus)?;
        for (end, cpus) in [(client, &mut places.client), (server, &mut places.server)] {
            // A guest's CPUs are its own.
            if let Some(own) = end.guest_cpus {
                *cpus = (0..own as usize).collect();
            }
        }
        if let Some(chosen) = &cell.axes.client_cpus {
            places.client = chosen.among(&places.client, &allowed_cpus);
        }
        let is_elsewhere = elsewhere::is_other_machine(lab);
        let of_end = |end: &Endpoint, chosen: &[usize]| match chosen {
            _ if end.guest_cpus.is_some() || is_elsewhere => Vec::new(),
            [] => allowed_cpus.clone(),
            chosen => chosen.to_vec(),
        };
        let cpus = UsedCpus {
            client: of_end(client, &places.client),
            server: of_end(server, &places.server),
            allowed: allowed_cpus.clone(),
        };
        let mut spec = spec_of(cell.load, &cell.axes)?.over(lab.path.sockets);
        (spec.service_time_ns, spec.pause_ns) = (ns(self.service_time), ns(self.pause));
        let mut ends = Ends {
            is_crowded: spec.crowded,
            clients: lab.start_clients(&self.program)?,
            server: lab.start_worker(server, &self.program)?,
            is_received_by_server: cell.load.is_stream() && !cell.load.is_from_server(),
            cpus,
            machines: Machines::Here,
        };
        ends.machines = Machines::of(lab, &mut ends.clients, &mut ends.server)
            .map_err(|error| ends.cause_of(error))?;
        let place = lab.server_place(&cell.axes);
        let publish = |ports: &[u16]| match &place {
            Place::Address(address) => {
                let protocol = cell.load.info().protocol;
                Ok(lab.publish(*address, ports, protocol)?.into())
            }
            Place::Directory(_) => Ok(place.clone()),
        };
        ends.connect(&spec, &place, &places, publish)
            .map_err(|error| ends.cause_of(error))?;
        Ok(ends)
    }

    /// Makes connected ends produce traffic, and reads all counters of it.
    fn watch(&self, lab: &Lab, ends: &mut Ends, timetable: Timetable) -> Result<Counts, Error> {
        ends.run(timetable)?;
        let mut pids = lab.daemons();
        pids.extend(ends.pids());
        let ours = OwnProcesses {
            pids: &pids,
            cgroup: lab.cgroup(),
        };
        let guests = ends.guests(&lab.topology);
        let beside = || AuxCounters::read(lab, &guests);
        // The load may fill every CPU.
        let prompt = ends.is_crowded.then(cpu::RealtimeGuard::new);
        let cpus = ends.cpus.clone();
        let wait = |instant_ns| ends.wait_until(instant_ns);
        let observed = self.observe(lab, ours, timetable, beside, &cpus, wait)?;
        drop(prompt);
        let (clients, server) = ends.done()?;
        let clocks = ends.check_clocks(timetable.window_ns(), lab.has_one_clock())?;
        let counts = Counts {
            observed,
            client: merge::merged(&clients).map_err(Error::Merge)?,
            clients,
            server,
            machines: ends.machines.clone(),
            clocks,
            planned_ns: timetable.window_ns(),
        };
        missed::check(&counts, ends.is_crowded)?;
        Ok(counts)
    }

    /// Reads CPUs and devices at the window's two edges.
    fn observe(
        &self,
        lab: &Lab,
        ours: OwnProcesses<'_>,
        timetable: Timetable,
        beside: impl Fn() -> Result<AuxCounters, Error>,
        cpus: &UsedCpus<Vec<usize>>,
        mut wait_until: impl FnMut(u64) -> Result<(), Error>,
    ) -> Result<Observed, Error> {
        let counters = || -> Result<_, Error> {
            let began_ns = clock::monotonic_ns();
            let counts = counts::read_devices(lab)?;
            Ok((counts, began_ns..clock::monotonic_ns()))
        };
        self.meter.stand_by();
        wait_until(timetable.open_ns)?;
        // Counters before the slow reading of CPUs, which may wait to be scheduled on a busy machine.
        let (before, first_read) = counters()?;
        let opened = self.meter.open(ours)?;
        let first = beside()?;
        // While the traffic goes: after the slow reading at the other edge the ends may have closed their sockets.
        let unix_connections = lab.unix_connections()?;
        let leaving = lab.leaving_connections()?;
        self.meter.stand_by();
        wait_until(timetable.close_ns)?;
        let (after, last_read) = counters()?;
        let closed = self.meter.close(ours)?;
        let last = beside()?;
        Ok(Observed {
            connections: lab.connections()?.map(|c| c.with_earlier(leaving)),
            unix_connections,
            beside: last.since(&first),
            cpu: closed.since(&opened),
            busy: cpus.map(|cpus| closed.busy(&opened, cpus)),
            devices: devices::since(&after, &before),
            late_ns: timetable.lateness(first_read.end, last_read.end),
            watched: Watched::between(first_read, last_read),
        })
    }

    /// What the generator can do without any path: units per second of its main figure (bytes of a TCP stream,
    /// datagrams, transactions), one flow.
    ///
    /// # Errors
    /// The worker fails.
    pub fn ceiling(&self, load: LoadKind, axes: &Axes) -> Result<f64, Error> {
        use std::os::unix::process::CommandExt;
        const SPAN: Duration = Duration::from_millis(30);
        let mut command = std::process::Command::new(&self.program);
        // A process group of its own, as in a lab: Ctrl-C at the terminal is for the controller.
        command.arg("worker").process_group(0);
        let mut worker = Remote::start("ceiling", command, &signals::interrupted)?;
        // Only the size of messages matters. For datagrams at given instants, any pace gives the same.
        let mut axes = axes.of_message();
        if load.is_open_loop() && !load.replays() {
            axes = axes.at_pace(pace_of(&axes, least_load(&axes)));
        }
        let request = Request::Ceiling {
            spec: spec_of(load, &axes)?,
            span_ms: u64::try_from(SPAN.as_millis()).unwrap_or(u64::MAX),
            cpu: None,
        };
        let reply = worker.ask(&request, "try the loops with no path")?;
        let tallied = worker.tallied(reply)?;
        let count = |counted| load.info().unit.count(counted);
        let count = count(tallied.received).max(count(tallied.sent));
        Ok(float(count) / seconds(tallied.window_ns))
    }
}

/// Sleeps until an instant, and checks every 100 ms whether the user wants to stop.
fn wait_until(instant_ns: u64) -> Result<(), Error> {
    if signals::sleep_until(instant_ns).map_err(Error::Clock)? {
        Ok(())
    } else {
        Err(Error::Interrupted)
    }
}
