//! Names of cells for programs that compare runs by name.

use super::{AXES, Axes, CellReport, CellStatus};
use crate::plain;

impl CellReport {
    /// Whether it was measured: one that failed in some samples has figures of the others.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.status == CellStatus::Ok || !self.estimates.is_empty()
    }

    /// Whether it has figures without a path proof: traffic went another way.
    #[must_use]
    pub fn is_unproved(&self) -> bool {
        self.is_measured() && !self.way.proved
    }

    /// Whether it had a guest with an emulated CPU.
    #[must_use]
    pub fn has_emulated_guest(&self) -> bool {
        self.guest.as_ref().is_some_and(|guest| guest.emulated)
    }

    /// `path=bridge/load=udp_stream/mtu=9000/peer=far`: path, load, the axes that are not at their default, and peer.
    /// The name does not depend on the other cells, so a cell has the same name in every run. It has no blanks, and `/`
    /// only between its parts.
    #[must_use]
    pub fn name(&self) -> String {
        let usual = Axes::default().for_cell(self.load, self.peer, &[]);
        let mut parts = vec![
            format!("path={}", value(&self.path)),
            format!("load={}", self.load),
        ];
        for axis in AXES {
            let shown = (axis.show)(&self.axes);
            if shown != (axis.show)(&usual) {
                let shown = shown.unwrap_or_else(|| "none".to_owned());
                parts.push(format!("{}={}", axis.name, value(&shown)));
            }
        }
        // The peer is last because it never ends in a number: Go's readers take `-8` at the end of a name for a number
        // of CPUs.
        parts.push(format!("peer={}", self.peer));
        parts.join("/")
    }
}

fn value(text: &str) -> String {
    plain::line(text).replace([' ', '/'], "_")
}
