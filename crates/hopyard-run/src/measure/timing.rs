//! The timetable of a sample, and estimates of its duration.

use std::sync::OnceLock;
use std::time::Duration;

use hopyard_net::{clock, cpu};

use super::Sampler;
use crate::load::DATAGRAM_PATIENCE;
use crate::load::protocol::Timetable;
use crate::model::{Cell, Start};
use crate::units::ns;

/// Between the order to start and the start: both workers must receive it.
const LEAD: Duration = Duration::from_millis(10);
/// Additional time for each further client.
const LEAD_EACH: Duration = Duration::from_micros(500);
/// Traffic after the window, so that both ends are busy for all of it.
const TAIL: Duration = Duration::from_millis(20);
/// Additional traffic after the window of an open loop, whose late messages count by when they were due: long enough
/// for queues to drain.
const LATE: Duration = Duration::from_millis(100);
/// The same between machines, which a satellite may lie between: what is still on its way at the end counts as lost.
const LATE_ELSEWHERE: Duration = Duration::from_millis(500);
/// Additional time for each further client: all of them read their counters first.
const TAIL_EACH: Duration = Duration::from_millis(1);
/// Per CPU of this machine: idle clocks are read one CPU after another, and traffic must last until the last reading.
const READING_EACH: Duration = Duration::from_micros(100);
/// Equal parts of a window, to see whether it settles.
const SLICES: u32 = 10;

/// How long a reading of this machine's idle clocks takes at most.
pub(super) fn reading() -> Duration {
    static CPUS: OnceLock<usize> = OnceLock::new();
    // One where the kernel does not say.
    let cpus = *CPUS.get_or_init(|| cpu::online_cpus().map_or(1, |all| all.len()));
    reading_of(cpus)
}

/// How near to an edge of its window round trips are not timed ([`Timetable::edge_ns`]).
pub(super) fn edge(window: Duration) -> Duration {
    /// With many CPUs, reading takes longer than that; then most of the window is timed all the same.
    const MOST: u32 = 8;
    reading().min(window / MOST)
}

fn reading_of(cpus: usize) -> Duration {
    READING_EACH * u32::try_from(cpus).unwrap_or(u32::MAX)
}

impl Sampler {
    /// How long one sample of a cell takes, roughly.
    #[must_use]
    pub fn estimate(&self, cell: &Cell) -> Duration {
        let around = Self::around(cell);
        match cell.axes.search {
            Some(_) => around + self.search_estimate(cell),
            None => around + self.traffic(cell, self.window),
        }
    }

    /// How long traffic takes, including the time before and after the window.
    pub(super) fn traffic(&self, cell: &Cell, window: Duration) -> Duration {
        let timetable = self.timetable(cell, window);
        Duration::from_nanos(timetable.stop_ns - timetable.start_ns) + LEAD
    }

    /// How long it takes to build and remove a lab and its workers.
    pub fn around(cell: &Cell) -> Duration {
        /// Building, starting, removing: measured on two virtual CPUs.
        const AROUND: Duration = Duration::from_millis(70);
        /// Adding and removing a port, with the grace periods that the kernel waits for.
        const PORT: Duration = Duration::from_millis(30);
        /// Starting a process of the client, in a container or not.
        const CLIENT: Duration = Duration::from_millis(6);
        let idle = cell.axes.ports.unwrap_or(0).saturating_sub(2);
        let clients = cell.axes.client_processes() - 1;
        AROUND + PORT * idle + (CLIENT + LEAD_EACH) * clients
    }

    /// A timetable that begins soon. The window opens when the last flow has had its warm-up.
    pub(super) fn timetable(&self, cell: &Cell, window: Duration) -> Timetable {
        let others = cell.axes.client_processes() - 1;
        let late = if cell.load.keeps_instants() || cell.load.replays() {
            match self.endpoints {
                None => LATE,
                Some(_) => LATE_ELSEWHERE,
            }
        } else if cell.load.may_lose_requests() {
            // Long enough to give up every request of the window that gets no answer: some clients look for such requests only four
            // times in this span.
            DATAGRAM_PATIENCE * 5 / 4
        } else {
            Duration::ZERO
        };
        let apart = cell.axes.start.map_or(Duration::ZERO, Start::apart);
        let last = apart * (cell.axes.flows - 1);
        let start_ns = clock::monotonic_ns() + ns(LEAD + LEAD_EACH * others);
        let open_ns = start_ns + ns(last + self.warm_up);
        let close_ns = open_ns + ns(window);
        Timetable {
            start_ns,
            open_ns,
            close_ns,
            stop_ns: close_ns + ns(TAIL.max(reading()) + late + TAIL_EACH * others),
            slices: SLICES,
            other_behind_ns: 0,
            edge_ns: ns(edge(window)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::Endpoints;
    use crate::model::{Axes, LoadKind, Peer};

    #[test]
    fn a_reading_takes_as_long_as_there_are_cpus() {
        assert_eq!(reading_of(128), Duration::from_micros(12_800));
        assert!(reading() >= READING_EACH);
    }

    /// Milliseconds of traffic after a window of this load.
    fn after(load: LoadKind, endpoints: Option<Endpoints>) -> u64 {
        let span = Duration::from_millis(100);
        let sampler = Sampler {
            endpoints,
            ..Sampler::new(span, span).unwrap()
        };
        let cell = Cell {
            path: "as-is".to_owned(),
            peer: Peer::Local,
            load,
            axes: Axes::default(),
        };
        let timetable = sampler.timetable(&cell, span);
        (timetable.stop_ns - timetable.close_ns) / 1_000_000
    }

    #[test]
    fn late_datagrams_are_waited_for_longer_between_machines() {
        let elsewhere = || {
            let prefix = || "ssh host2".parse().unwrap();
            Some(Endpoints {
                client: prefix(),
                server: prefix(),
                server_address: None,
                uplink: None,
            })
        };
        assert_eq!(after(LoadKind::UdpPaced, None), 120);
        assert_eq!(after(LoadKind::UdpPaced, elsewhere()), 520);
        assert_eq!(after(LoadKind::TcpStream, elsewhere()), 20);
    }
}
