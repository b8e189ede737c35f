//! When what happens in a sample, and how long it takes.

use std::time::Duration;

use hopyard_net::clock;

use super::Sampler;
use crate::load::protocol::Timetable;
use crate::model::{Cell, Start};

/// Between the order to start and the start: both workers have to hear it.
const LEAD: Duration = Duration::from_millis(10);
/// So much longer for each further client.
const LEAD_EACH: Duration = Duration::from_micros(500);
/// Traffic goes on after the window for so long, so that both ends are busy for all of it.
const TAIL: Duration = Duration::from_millis(20);
/// And for so much longer where what is late counts by when it was due (an open loop): long enough for queues to drain.
const LATE: Duration = Duration::from_millis(100);
/// So much longer for each further client: all of them look at their counters first.
const TAIL_EACH: Duration = Duration::from_millis(1);
/// Equal parts of a window, to see whether it settles.
const SLICES: u32 = 10;

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

    /// How long traffic takes, with what goes before and after the window.
    pub(super) fn traffic(&self, cell: &Cell, window: Duration) -> Duration {
        let timetable = self.timetable(cell, window);
        Duration::from_nanos(timetable.stop_ns - timetable.start_ns) + LEAD
    }

    /// A lab and its workers come and go.
    pub fn around(cell: &Cell) -> Duration {
        /// Building, starting, taking down: as measured on two virtual CPUs.
        const AROUND: Duration = Duration::from_millis(70);
        /// A port comes and goes, with the grace periods that the kernel waits for.
        const PORT: Duration = Duration::from_millis(30);
        /// A process of the client's starts, in a container or not.
        const CLIENT: Duration = Duration::from_millis(6);
        let idle = cell.axes.ports.unwrap_or(0).saturating_sub(2);
        let clients = cell.axes.client_processes() - 1;
        AROUND + PORT * idle + (CLIENT + LEAD_EACH) * clients
    }

    /// A timetable that begins soon. The window opens when the last flow has had its warm-up.
    pub(super) fn timetable(&self, cell: &Cell, window: Duration) -> Timetable {
        let ns = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let others = cell.axes.client_processes() - 1;
        let late = if cell.load.keeps_instants() {
            LATE
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
            stop_ns: close_ns + ns(TAIL + late + TAIL_EACH * others),
            slices: SLICES,
            other_behind_ns: 0,
        }
    }
}
