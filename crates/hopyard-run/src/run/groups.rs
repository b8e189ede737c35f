//! Which cells are measured side by side, by turns.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use crate::assess;
use crate::lab;
use crate::measure::turns::{self, MOST_CELLS, MOST_TURNS, takes_turns, turns_of_base};
use crate::model::{Cell, Peer, Setting, SwitchedBetween};
use crate::store::{Header, PlannedCell};
use crate::units::ns;

/// Cells that are visited together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    /// Their indices in the run's list.
    pub(super) cells: Vec<usize>,
    /// Whether they take turns, with their labs side by side; otherwise it is a single cell.
    pub(super) takes_turns: bool,
    /// The setting under which all of them are measured. `None` without settings, and if there are cells of both: then
    /// the host is switched between turns.
    pub(super) setting: Option<Setting>,
    /// The peer of all of them.
    pub(super) peer: Peer,
    /// The cells that others are compared with, with their turns in each round.
    pub(super) bases: HashMap<usize, u32>,
}

impl Group {
    /// The number of turns of a cell in each round.
    pub(super) fn turns(&self, cell: usize) -> u32 {
        self.bases.get(&cell).copied().unwrap_or(1)
    }

    /// Whether a cell would have so many turns that a sample could not be stored.
    fn is_too_long(&self, header: &Header) -> bool {
        let window = Duration::from_nanos(header.window_ns);
        let rounds = |cell: &usize| turns::rounds(&header.cells[*cell].cell, window);
        let rounds = self.cells.iter().map(rounds).max().unwrap_or(0);
        let each_round = self.bases.values().max().copied().unwrap_or(1);
        rounds.saturating_mul(each_round) > MOST_TURNS
    }

    /// Its cells one by one, in windows of their own.
    fn apart(self, header: &Header) -> impl Iterator<Item = Self> {
        let cells = self.cells.into_iter();
        cells.map(|index| Self::alone(index, &header.cells[index].cell))
    }

    /// A cell that takes no turns.
    fn alone(index: usize, cell: &Cell) -> Self {
        Self {
            cells: vec![index],
            takes_turns: false,
            setting: cell.axes.setting,
            peer: cell.peer,
            bases: HashMap::new(),
        }
    }
}

/// The groups of a run: cells of one load and peer are compared. Cells that cannot be built are in no group. A cell's
/// two settings are in one group only if the host is switched between turns. Cells whose window is too long for turns are apart.
pub(super) fn of_run(header: &Header) -> Vec<Group> {
    grouped(header, header.turn_ns.is_some())
}

fn grouped(header: &Header, with_turns: bool) -> Vec<Group> {
    let settings = header.settings.as_ref();
    let together = settings.is_none_or(|s| s.switched_between == SwitchedBetween::Turns);
    let mut storable = Vec::new();
    for mut group in groups(&header.cells, with_turns, together) {
        group.bases = bases(header, &group.cells);
        if group.takes_turns && group.is_too_long(header) {
            storable.extend(group.apart(header));
        } else {
            storable.push(group);
        }
    }
    storable
}

/// Stores how long the turns of a run are, if any of its cells take turns.
pub(super) fn note_turns(header: &mut Header) {
    let groups = grouped(header, true);
    let by_turns = groups.iter().filter(|group| group.takes_turns);
    let cells = by_turns.flat_map(|group| &group.cells);
    let windows: BTreeSet<u64> = cells
        .map(|cell| ns(turns::window(&header.cells[*cell].cell)))
        .collect();
    header.turn_ns = windows.last().copied();
    header.shortest_turn_ns = windows.first().copied().filter(|_| windows.len() > 1);
}

/// The bases among these cells, with their turns in each round.
fn bases(header: &Header, cells: &[usize]) -> HashMap<usize, u32> {
    let mut compared: HashMap<usize, usize> = HashMap::new();
    let bases = assess::bases(header);
    for (_, base) in cells.iter().filter_map(|cell| bases[*cell].as_ref()) {
        *compared.entry(*base).or_default() += 1;
    }
    compared.retain(|base, _| cells.contains(base));
    let turns = |(base, compared)| (base, turns_of_base(compared));
    compared.into_iter().map(turns).collect()
}

fn groups(cells: &[PlannedCell], with_turns: bool, together: bool) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for unit in units(cells, together) {
        let cell = &cells[unit[0]].cell;
        let takes_turns = with_turns && takes_turns(cell) && is_built(cell);
        if !takes_turns {
            let alone = |index: usize| Group::alone(index, &cells[index].cell);
            groups.extend(unit.into_iter().map(alone));
            continue;
        }
        let same = |other: &usize| {
            let other = &cells[*other].cell;
            let alike = together || other.axes.setting == cell.axes.setting;
            alike && (other.load, other.peer) == (cell.load, cell.peer)
        };
        let open = groups.iter_mut().rfind(|group| {
            group.takes_turns
                && group.cells.len() + unit.len() <= MOST_CELLS
                && group.cells.iter().all(same)
        });
        match open {
            Some(group) => group.cells.extend(unit),
            None => groups.push(Group {
                cells: unit,
                takes_turns,
                setting: cell.axes.setting.filter(|_| !together),
                peer: cell.peer,
                bases: HashMap::new(),
            }),
        }
    }
    groups
}

/// Whether the cell's lab is built. If nothing is built, each sample has two workers and a connection of its own.
fn is_built(cell: &Cell) -> bool {
    lab::path(&cell.path).is_ok_and(|path| path.is_built)
}

/// The cells that can be built; with `together`, cells that differ only in the setting are one unit.
fn units(cells: &[PlannedCell], together: bool) -> Vec<Vec<usize>> {
    let mut units: Vec<Vec<usize>> = Vec::new();
    let mut places: HashMap<Cell, usize> = HashMap::new();
    for (index, planned) in cells.iter().enumerate() {
        if planned.unsupported.is_some() {
            continue;
        }
        let mut alike = planned.cell.clone();
        if !together || alike.axes.setting.take().is_none() {
            units.push(vec![index]);
            continue;
        }
        match places.entry(alike) {
            Entry::Occupied(place) => units[*place.get()].push(index),
            Entry::Vacant(place) => {
                place.insert(units.len());
                units.push(vec![index]);
            }
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Axes, Cell, LoadKind};

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
            chains: None,
            rules_instead: None,
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
            let groups = groups(&cells, with_turns, true);
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
        let sizes: Vec<_> = groups(&cells, true, true)
            .iter()
            .map(|group| group.cells.len())
            .collect();
        assert_eq!(sizes, [MOST_CELLS, 1]);
    }

    #[test]
    fn a_window_of_too_many_turns_is_one_window() {
        let load = LoadKind::TcpRr;
        let mut header = crate::assess::testing::run(&["veth"]).header;
        header.cells = ["veth", "bridge", "netkit", "direct", "vxlan"]
            .map(|path| planned(path, load))
            .into();
        let mut of = |window_s: u64| {
            header.window_ns = window_s * 1_000_000_000;
            note_turns(&mut header);
            (of_run(&header).len(), header.turn_ns)
        };
        // Turns of 10 ms: 2,000 are 20 s, and veth, with which four are compared, has two in each round.
        assert_eq!(of(10), (1, Some(10_000_000)));
        assert_eq!(of(11), (5, None));
        assert_eq!(of(120), (5, None));
    }

    #[test]
    fn both_settings_of_a_cell_are_in_one_group_or_in_two() {
        let of = |setting, path: &str, load| {
            let mut cell = planned(path, load);
            cell.cell.axes.setting = Some(setting);
            cell
        };
        let mut cells = Vec::new();
        for setting in Setting::ALL {
            cells.extend(
                (0..MOST_CELLS - 1).map(|n| of(setting, &format!("path{n}"), LoadKind::TcpRr)),
            );
            cells.push(of(setting, "veth", LoadKind::UdpFlood));
        }
        // The test's paths do not exist, so they take no turns.
        for planned in &mut cells {
            let n: u32 = planned
                .cell
                .path
                .trim_start_matches("path")
                .parse()
                .unwrap_or(0);
            planned.cell.path = "veth".to_owned();
            planned.cell.axes.mtu_bytes = 1500 + n;
        }
        let setting = |index: &usize| cells[*index].cell.axes.setting;
        let together = groups(&cells, true, true);
        for group in &together {
            assert!(group.cells.len() <= MOST_CELLS);
            let of = |wanted| {
                group
                    .cells
                    .iter()
                    .filter(|c| setting(c) == Some(wanted))
                    .count()
            };
            if group.takes_turns {
                assert_eq!((of(Setting::A), group.setting), (of(Setting::B), None));
            } else {
                assert_eq!(group.setting, setting(&group.cells[0]));
            }
        }
        assert_eq!(together.len(), 4);
        let apart = groups(&cells, true, false);
        for group in &apart {
            assert!(group.setting.is_some());
            assert!(
                group
                    .cells
                    .iter()
                    .all(|cell| setting(cell) == group.setting)
            );
        }
        assert_eq!(apart.len(), 4);
    }
}
