//! Lengths of a turn and of its parts, by what the cell's traffic does.

use std::time::Duration;

use crate::load::protocol::Timetable;
use crate::measure::timing::{edge, reading};
use crate::model::{Cell, LoadKind, Pause};
use crate::units::ns;

/// Traffic of a turn before its window.
const WARM_UP: Duration = Duration::from_millis(6);
/// Traffic after the window, so that both ends are busy for all of it.
const TAIL: Duration = Duration::from_millis(2);
/// Time of a turn in which nothing is sent, besides the rest: waking both ends, and hearing what they counted. Measured on two
/// virtual CPUs.
const AROUND: Duration = Duration::from_millis(2);
/// A process that does nothing for so long has nothing left to do.
const REST: Duration = Duration::from_micros(500);

/// Pauses of a wire, or of a sender, that a window has at least. One more or less at an edge is a small part of it.
const PAUSES: u32 = 25;
/// What a wire with pauses may have to send when a turn begins or ends: its queue holds 15 ms
/// (`hopyard_net::Pauses`), and what is ahead of it two pauses.
const QUEUE: Duration = Duration::from_millis(15);

/// The longest pause with which cells take turns: with longer ones, windows would be longer than the bursts that they must avoid.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_millis(4);

/// Lengths of the parts of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lengths {
    /// Traffic before the window.
    warm_up: Duration,
    pub(super) window: Duration,
    /// Traffic after the window.
    tail: Duration,
    /// How long the ends do nothing before the turn is over.
    pub(super) rest: Duration,
}

impl Lengths {
    /// A turn of a cell that counts. A window is a whole number of pauses long, so that windows differ by few of them.
    pub(super) fn of(cell: &Cell) -> Self {
        let window = window_of(cell.load);
        let tail = TAIL.max(reading());
        let Some(pause) = pause_of(cell) else {
            return Self {
                warm_up: WARM_UP,
                window,
                tail,
                rest: REST,
            };
        };
        let queue = cell.axes.wire_pause_ns.map_or(Duration::ZERO, |_| QUEUE);
        let pauses = window.as_nanos().div_ceil(pause.as_nanos().max(1));
        let pauses = u32::try_from(pauses).unwrap_or(u32::MAX).max(PAUSES);
        Self {
            warm_up: WARM_UP + queue + 2 * pause,
            window: pause * pauses,
            tail: tail + pause,
            rest: REST + 2 * pause,
        }
    }

    /// The turn in which connections adapt, and which does not count.
    pub(super) fn of_first(cell: &Cell) -> Self {
        let counted = Self::of(cell);
        Self {
            warm_up: counted.warm_up + Duration::from_millis(14),
            window: Duration::from_millis(5),
            ..counted
        }
    }

    /// Approximate duration of a turn, everything included.
    pub(super) fn whole(self) -> Duration {
        self.warm_up + self.window + self.tail + self.rest + AROUND
    }

    /// The timetable of a turn whose traffic starts at an instant of the monotonic clock.
    pub(super) fn from(self, start_ns: u64) -> Timetable {
        let open_ns = start_ns + ns(self.warm_up);
        let close_ns = open_ns + ns(self.window);
        Timetable {
            start_ns,
            open_ns,
            close_ns,
            stop_ns: close_ns + ns(self.tail),
            slices: 1,
            other_behind_ns: 0,
            edge_ns: ns(edge(self.window)),
        }
    }
}

/// The longest pause that a cell's traffic makes while it keeps a rate.
pub(super) fn pause_of(cell: &Cell) -> Option<Duration> {
    let pauses = [cell.axes.wire_pause_ns, cell.axes.pace_pause_ns];
    pauses.into_iter().flatten().map(Pause::time).max()
}

/// The window of a load's turn without pauses; zero if its cells take no turns.
fn window_of(load: LoadKind) -> Duration {
    load.turn().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Axes, Peer};

    fn cell(load: LoadKind, wire: Option<&str>, sender: Option<&str>) -> Cell {
        let pause = |text: &str| text.parse::<Pause>().unwrap();
        let mut axes = Axes::default().for_cell(load, Peer::Far, &[]);
        axes.wire_pause_ns = wire.map(pause);
        axes.pace_pause_ns = sender.map(pause);
        Cell {
            path: "native".to_owned(),
            peer: Peer::Far,
            load,
            axes,
        }
    }

    #[test]
    fn a_window_has_whole_pauses_and_enough_of_them() {
        for load in [LoadKind::TcpStream, LoadKind::TcpRr] {
            for (wire, sender) in [
                (Some("50us"), None),
                (Some("1900us"), None),
                (None, Some("3ms")),
                (Some("1ms"), Some("4ms")),
            ] {
                let cell = cell(load, wire, sender);
                let (lengths, pause) = (Lengths::of(&cell), pause_of(&cell).unwrap());
                assert_eq!(lengths.window.as_nanos() % pause.as_nanos(), 0);
                assert!(lengths.window >= PAUSES * pause);
                assert!(lengths.window >= window_of(load));
                assert!(lengths.rest > pause);
            }
        }
    }

    #[test]
    fn traffic_goes_on_until_the_clock_of_the_last_cpu_is_read() {
        let tail = Lengths::of(&cell(LoadKind::TcpRr, None, None)).tail;
        assert!(tail >= TAIL && tail >= reading());
    }

    #[test]
    fn the_queue_of_a_wire_is_full_before_the_window() {
        let lengths = |wire, sender| Lengths::of(&cell(LoadKind::TcpStream, wire, sender));
        let plain = lengths(None, None);
        assert_eq!((plain.warm_up, plain.rest), (WARM_UP, REST));
        assert!(lengths(Some("2ms"), None).warm_up > QUEUE);
        assert!(lengths(None, Some("2ms")).warm_up < QUEUE);
    }
}
