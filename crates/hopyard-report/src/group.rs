//! Which cells belong in one table, and what is stated once for all of them.

use super::quantity::{self, Scale};
use crate::model::{AXES, Axes, Axis, Base, CellReport, LoadKind, Peer, distinct};
use crate::plain;

/// Sizes and the wire's rate belong to a load or a peer, so they are in each table's title.
const IN_TITLE: [&str; 4] = ["message_size", "request_size", "response_size", "rate"];

/// A title explains its load if the explanation fits.
const LONGEST_TITLE: usize = 100;

/// Longest value of an axis in a column, in characters. Switches of several devices are longer.
const LONGEST_KEY: usize = 40;

/// All cells, table by table, in the plan's order.
pub(super) struct Layout<'a> {
    /// The tables.
    pub(super) groups: Vec<Group<'a>>,
    /// What others are compared with in every table, if anything: a path, `AXIS=VALUE`, or `offload`. A path that has no cells of some
    /// peer or load is replaced there; then tables have bases of their own, and this is none.
    pub(super) base: Option<&'a str>,
}

/// A path and its peer.
pub(super) fn with_peer(path: &str, peer: Peer) -> String {
    format!("{} ({peer})", plain::line(path))
}

/// What separates tables: load, peer, and whether a rate is searched for, which has figures of its own.
pub(super) type Kind = (LoadKind, Peer, bool);

/// The table that a cell belongs to.
pub(super) fn kind(load: LoadKind, peer: Peer, axes: &Axes) -> Kind {
    (load, peer, axes.search.is_some())
}

fn kind_of(cell: &CellReport) -> Kind {
    kind(cell.load, cell.peer, &cell.axes)
}

/// The cells of one kind.
pub(super) struct Group<'a> {
    kind: Kind,
    /// The load.
    pub(super) load: LoadKind,
    /// Where the other end is.
    pub(super) peer: Peer,
    /// Its main figure.
    pub(super) main: &'static str,
    /// What its cells are compared with, if anything.
    pub(super) base: Option<&'a str>,
    /// The table's title: load, peer and values that only this table shares.
    pub(super) title: String,
    /// The axes with more than one value in this group.
    pub(super) varying: Vec<&'static Axis>,
    /// Axes of which a value is too long for a column, each with all its values: there, numbers stand for them.
    long: Vec<(&'static str, Vec<String>)>,
    pub(super) cells: Vec<&'a CellReport>,
}

impl<'a> Layout<'a> {
    /// Sorts cells into tables.
    pub(super) fn of(cells: &'a [CellReport]) -> Self {
        let mut groups: Vec<Group<'a>> = Vec::new();
        for cell in cells {
            let same = |g: &&mut Group<'_>| g.kind == kind_of(cell);
            match groups.iter_mut().find(same) {
                Some(group) => group.cells.push(cell),
                None => groups.push(Group {
                    kind: kind_of(cell),
                    load: cell.load,
                    peer: cell.peer,
                    main: quantity::main_figure(cell.load, &cell.axes),
                    base: None,
                    title: String::new(),
                    varying: Vec::new(),
                    long: Vec::new(),
                    cells: vec![cell],
                }),
            }
        }
        for group in &mut groups {
            group.varying = varying(&group.cells);
            group.long = long(group);
            group.title = title(group, cells);
            let verdicts = group.cells.iter().flat_map(|cell| cell.verdicts.values());
            group.base = verdicts.map(|verdict| verdict.base.as_str()).next();
        }
        let base = match distinct(groups.iter().filter_map(|group| group.base)).as_slice() {
            [one] => Some(*one),
            _ => None,
        };
        Self { groups, base }
    }

    /// Whether others are compared with this cell.
    pub(super) fn is_base(&self, cell: &CellReport) -> bool {
        let own = self.groups.iter().find(|group| group.kind == kind_of(cell));
        let base = own.and_then(|group| group.base).or(self.base);
        let base = base.and_then(|text| Base::parse(text).ok());
        base.is_some_and(|base| base.is(&cell.path, &cell.axes))
    }

    /// What distinguishes this cell from all others: `bridge · tcp_stream · local · 64 B messages`.
    pub(super) fn name(&self, cell: &CellReport) -> String {
        format!("{} · {}", cell.path, self.place(cell))
    }

    /// The same without the path.
    pub(super) fn place(&self, cell: &CellReport) -> String {
        let mut facts = vec![cell.load.to_string(), cell.peer.to_string()];
        let own = |g: &&Group<'_>| g.kind == kind_of(cell);
        if let Some(group) = self.groups.iter().find(own) {
            facts.extend(group.values(cell));
        }
        facts.join(" · ")
    }

    /// The same without the axes that only some paths have.
    pub(super) fn shared_place(&self, cell: &CellReport) -> String {
        let mut facts = vec![cell.load.to_string(), cell.peer.to_string()];
        let own = |g: &&Group<'_>| g.kind == kind_of(cell);
        let axes = self
            .groups
            .iter()
            .find(own)
            .into_iter()
            .flat_map(|group| &group.varying);
        let shared = axes.filter(|axis| !axis.of_path);
        facts.extend(
            shared.filter_map(|axis| Some(phrase(axis.name, &axis.value(cell.load, &cell.axes)?))),
        );
        facts.join(" · ")
    }
}

impl<'a> Group<'a> {
    /// Every path of the group, in the plan's order.
    pub(super) fn paths(&self) -> Vec<&'a str> {
        distinct(self.cells.iter().map(|cell| cell.path.as_str()))
    }

    /// The values of the varying axes as text.
    pub(super) fn values(&self, cell: &CellReport) -> Vec<String> {
        self.varying
            .iter()
            .filter_map(|axis| Some(phrase(axis.name, &axis.value(cell.load, &cell.axes)?)))
            .collect()
    }

    /// A value of an axis in a column: itself, or the number that stands for it.
    pub(super) fn in_column(&self, axis: &Axis, value: String) -> String {
        let mut long = self.long.iter();
        let values = long.find(|(name, _)| *name == axis.name);
        let at = values.and_then(|(_, values)| values.iter().position(|other| *other == value));
        at.map_or(value, numbered)
    }

    /// What the numbers in columns stand for.
    pub(super) fn told_numbers(&self) -> Vec<String> {
        let told = |(name, values): &(&str, Vec<String>)| {
            let each = values.iter().enumerate();
            let each = each.map(|(at, value)| format!("{name} {}: {value}.", numbered(at)));
            each.collect::<Vec<_>>()
        };
        self.long.iter().flat_map(told).collect()
    }

    /// Whether it has comparisons.
    pub(super) fn is_compared(&self) -> bool {
        self.cells.iter().any(|cell| !cell.verdicts.is_empty())
    }
}

/// The axes of a group of which a value is too long for a column, with all their values.
fn long(group: &Group<'_>) -> Vec<(&'static str, Vec<String>)> {
    let values = |axis: &&'static Axis| {
        let cells = group.cells.iter();
        let values = cells.filter_map(|cell| axis.value(cell.load, &cell.axes));
        let values = distinct(values.map(|value| plain::line(&value)));
        let mut lengths = values.iter().map(|value| value.chars().count());
        lengths
            .any(|length| length > LONGEST_KEY)
            .then_some((axis.name, values))
    };
    group.varying.iter().filter_map(values).collect()
}

fn numbered(place: usize) -> String {
    format!("#{}", place + 1)
}

/// The axis values that every cell of the run shares, as text.
pub(super) fn shared(cells: &[CellReport]) -> Vec<String> {
    AXES.iter()
        .filter_map(|axis| common(axis, cells).map(|value| phrase(axis.name, &value)))
        .collect()
}

/// An axis' value if all cells to which it applies share it.
fn common(axis: &Axis, cells: &[CellReport]) -> Option<String> {
    if IN_TITLE.contains(&axis.name) {
        return None;
    }
    // Which paths have an axis of their own shows in their cells.
    let concerned =
        |c: &&CellReport| (axis.fits)(c.load, c.peer) && !axis.is_lacked(c.load, &c.axes);
    let values = cells
        .iter()
        .filter(concerned)
        .map(|cell| (axis.show)(&cell.axes));
    match distinct(values).as_slice() {
        [Some(value)] => Some(value.clone()),
        _ => None,
    }
}

fn varying(cells: &[&CellReport]) -> Vec<&'static Axis> {
    let varies = |axis: &&Axis| {
        // A path that has no such thing as TCP or an MTU is beside all values of it.
        let concerned =
            |cell: &&&CellReport| axis.of_path || !axis.is_lacked(cell.load, &cell.axes);
        let values = cells.iter().filter(concerned);
        distinct(values.map(|cell| (axis.show)(&cell.axes))).len() > 1
    };
    AXES.iter().filter(varies).collect()
}

fn title(group: &Group<'_>, all: &[CellReport]) -> String {
    let mut facts = vec![group.load.to_string(), group.peer.to_string()];
    let varies = |name: &str| group.varying.iter().any(|axis| axis.name == name);
    let value = |axis: &Axis| {
        let first = group.cells.first()?;
        (!varies(axis.name))
            .then(|| (axis.show)(&first.axes))
            .flatten()
    };
    let size = |name: &str| AXES.iter().find(|a| a.name == name).and_then(value);
    let alike = size("request_size").filter(|bytes| size("response_size").as_ref() == Some(bytes));
    if let Some(bytes) = &alike {
        facts.push(format!("{bytes} requests and responses"));
    }
    for axis in AXES {
        let said = alike.is_some() && matches!(axis.name, "request_size" | "response_size");
        if said || common(axis, all).is_some() {
            continue;
        }
        facts.extend(value(axis).map(|value| phrase(axis.name, &value)));
    }
    let short = facts.join(" · ");
    let long = format!("{short} ({})", group.load.summary());
    if long.chars().count() <= LONGEST_TITLE {
        long
    } else {
        short
    }
}

/// The text for an axis value.
pub(super) fn phrase(name: &str, value: &str) -> String {
    // A name of congestion control is text from outside.
    let value = &*plain::line(value);
    match (name, value) {
        ("flows", "1") => "1 flow".to_owned(),
        ("flows", _) => format!("{value} flows"),
        ("message_size", _) => format!("{value} messages"),
        ("request_size", _) => format!("{value} requests"),
        ("response_size", _) => format!("{value} responses"),
        ("outstanding", "1") => "1 request in flight".to_owned(),
        ("outstanding", _) => format!("{value} requests in flight"),
        ("socket_buffer", _) => format!("socket buffers of {value}"),
        ("congestion", _) => format!("TCP {value}"),
        ("placement", "same") => "both ends on one CPU".to_owned(),
        ("placement", "split") => "ends on different CPUs".to_owned(),
        ("placement", "free") => "ends on any CPU".to_owned(),
        ("family", _) => format!("IPv{value}"),
        ("mtu", _) => format!("MTU {value}"),
        ("search", _) => format!("{} searched for", value.to_uppercase()),
        ("start", _) => format!("{value} start"),
        ("pace", "none") => "no pace".to_owned(),
        ("pace", _) => format!("{} offered", rate(value)),
        ("ports", _) => format!("{value} ports"),
        ("connection_rate", _) => format!("{value} connections/s"),
        ("rules", "0") => "no rules".to_owned(),
        ("rules", "1") => "1 rule".to_owned(),
        ("rules", _) => format!("{value} rules"),
        ("rate", "none") => "unshaped wire".to_owned(),
        ("rate", _) => format!("wire at {}", rate(value)),
        _ => format!("{name} {value}"),
    }
}

/// `100mbit` as tables write it: `100 Mbit/s`.
fn rate(value: &str) -> String {
    [("gbit", "Gbit/s"), ("mbit", "Mbit/s"), ("kbit", "kbit/s")]
        .iter()
        .find_map(|(suffix, unit)| Some(format!("{} {unit}", value.strip_suffix(suffix)?)))
        .unwrap_or_else(|| value.to_owned())
}

/// The values of a quantity in the cells of a group.
pub(super) fn values<'a>(group: &Group<'a>, name: &'static str) -> impl Iterator<Item = f64> {
    measured(group)
        .filter_map(move |cell| cell.estimates.get(name))
        .map(|estimate| estimate.value)
}

/// The cells of a group that have figures.
pub(super) fn measured<'a>(group: &Group<'a>) -> impl Iterator<Item = &'a CellReport> {
    let cells = group.cells.iter().copied();
    cells.filter(|cell| cell.is_measured())
}

/// The unit for a whole column.
pub(super) fn scale(group: &Group<'_>, name: &'static str) -> Scale {
    quantity::scale(name, values(group, name).map(f64::abs).fold(0.0, f64::max))
}
