//! Which cells are measured side by side, by turns.

use crate::measure::turns::{MOST_CELLS, takes_turns};
use crate::store::PlannedCell;

/// Cells that are visited together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    /// Their places in the run's list.
    pub(super) cells: Vec<usize>,
    /// By turns, with their labs side by side; else it is one cell alone.
    pub(super) takes_turns: bool,
}

/// The groups of a run: cells of one load and peer are what is compared. Cells that cannot be built are in none.
pub(super) fn groups(cells: &[PlannedCell], with_turns: bool) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (index, planned) in cells.iter().enumerate() {
        let cell = &planned.cell;
        if planned.unsupported.is_some() {
            continue;
        }
        let takes_turns = with_turns && takes_turns(cell);
        let same = |other: &usize| {
            let other = &cells[*other].cell;
            (other.load, other.peer) == (cell.load, cell.peer)
        };
        let open = groups.iter_mut().rfind(|group| {
            takes_turns
                && group.takes_turns
                && group.cells.len() < MOST_CELLS
                && group.cells.iter().all(same)
        });
        match open {
            Some(group) => group.cells.push(index),
            None => groups.push(Group {
                cells: vec![index],
                takes_turns,
            }),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Axes, Cell, LoadKind, Peer};

    fn planned(path: &str, load: LoadKind) -> PlannedCell {
        let cell = Cell {
            path: path.to_owned(),
            peer: Peer::Local,
            load,
            axes: Axes::default().for_cell(load, Peer::Local, &[]),
        };
        PlannedCell {
            cell,
            unsupported: None,
            filter_sees: None,
            offers: None,
            ceiling_per_s: None,
        }
    }

    #[test]
    fn what_is_compared_stands_side_by_side() {
        use LoadKind::{TcpRr, UdpFlood, UdpRr};
        let mut cells = vec![
            planned("veth", TcpRr),
            planned("bridge", TcpRr),
            planned("veth", UdpRr),
            planned("vm", TcpRr),
            planned("netkit", TcpRr),
            planned("direct", TcpRr),
            planned("veth", UdpFlood),
        ];
        cells[4].unsupported = Some("no netkit".to_owned());
        let of = |with_turns| {
            let groups = groups(&cells, with_turns);
            groups
                .into_iter()
                .map(|group| (group.cells, group.takes_turns))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of(true),
            [
                (vec![0, 1, 5], true),
                (vec![2], true),
                (vec![3], false),
                (vec![6], false)
            ]
        );
        assert_eq!(of(false).len(), 6);
    }

    #[test]
    fn a_group_is_no_larger_than_what_can_stand() {
        let cells: Vec<_> = (0..=MOST_CELLS)
            .map(|_| planned("veth", LoadKind::TcpRr))
            .collect();
        let sizes: Vec<_> = groups(&cells, true)
            .iter()
            .map(|group| group.cells.len())
            .collect();
        assert_eq!(sizes, [MOST_CELLS, 1]);
    }
}
