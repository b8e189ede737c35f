//! What sets cells apart, in words.

use crate::model::{AXES, Axis, Cell, LoadKind};

/// A property that cells may differ in.
#[derive(Clone, Copy)]
enum Property {
    /// Its value says what it is.
    Named(fn(&Cell) -> String),
    Axis(&'static Axis),
}

impl Property {
    fn all() -> impl Iterator<Item = Self> {
        let named: [fn(&Cell) -> String; 3] = [
            |cell| cell.path.clone(),
            |cell| cell.load.to_string(),
            |cell| cell.peer.to_string(),
        ];
        let axes = AXES.iter().map(Self::Axis);
        named.into_iter().map(Self::Named).chain(axes)
    }

    fn value(self, cell: &Cell) -> Option<String> {
        match self {
            Self::Named(of) => Some(of(cell)),
            Self::Axis(axis) => (axis.show)(&cell.axes),
        }
    }

    /// A value, with the name where that takes one.
    fn say(self, value: &str) -> String {
        match self {
            Self::Named(_) => value.to_owned(),
            Self::Axis(axis) => format!("{} {value}", axis.name.replace('_', " ")),
        }
    }

    /// Does it tell cells of this load apart? What goes with the load or the peer tells no others apart.
    fn differs(self, cells: &[&Cell], load: LoadKind) -> bool {
        let is_concerned = |cell: &&&Cell| match self {
            Self::Named(_) => true,
            Self::Axis(axis) => cell.load == load && (axis.fits)(cell.load, cell.peer),
        };
        let mut values = cells
            .iter()
            .filter(is_concerned)
            .map(|cell| self.value(cell));
        let first = values.next();
        values.any(|value| Some(&value) != first.as_ref())
    }
}

/// What each cell is called among these: the properties that not all of them share, of axes those that not all of its load
/// share; paths, loads and peers by their value alone.
pub(super) fn apart(cells: &[&Cell]) -> Vec<String> {
    let mut by_load: Vec<(LoadKind, Vec<Property>)> = Vec::new();
    for cell in cells {
        if by_load.iter().all(|(load, _)| *load != cell.load) {
            let differing = Property::all().filter(|one| one.differs(cells, cell.load));
            by_load.push((cell.load, differing.collect()));
        }
    }
    let called = |cell: &&Cell| {
        let own = by_load.iter().filter(|(load, _)| *load == cell.load);
        let differing = own.flat_map(|(_, properties)| properties);
        let words = differing.filter_map(|one| Some(one.say(&one.value(cell)?)));
        words.collect::<Vec<_>>().join(" · ")
    };
    cells.iter().map(called).collect()
}

/// What one cell has that the other has not: `veth-route / native`, `flows 16 / 1`.
pub(super) fn versus(one: &Cell, other: &Cell) -> String {
    let differing = Property::all().filter_map(|property| {
        let (own, theirs) = (property.value(one), property.value(other));
        if own == theirs {
            return None;
        }
        let show = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
        Some(property.say(&format!("{} / {}", show(own), show(theirs))))
    });
    // A path may bring axes of its own; then it says it all.
    let all: Vec<String> = differing.collect();
    let first = if one.path == other.path { all.len() } else { 1 };
    all.into_iter().take(first).collect::<Vec<_>>().join(", ")
}

/// ` at flows 2`: where a figure is, behind the figure.
pub(super) fn at(place: &str) -> String {
    match place {
        "" => String::new(),
        said if said.starts_with("against") || said.starts_with('(') => format!(" {said}"),
        place => format!(" at {place}"),
    }
}

/// Words one after the other, as far as there are any.
pub(super) fn said(words: &[&str]) -> String {
    let there = words.iter().copied().filter(|words| !words.is_empty());
    there.collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Axes, Peer, axis};

    fn cell(peer: Peer, load: LoadKind, set: &[(&str, &str)]) -> Cell {
        let mut axes = Axes::default();
        for (name, value) in set {
            (axis(name).unwrap().set)(&mut axes, value).unwrap();
        }
        let axes = axes.for_cell(load, peer, &[]);
        Cell {
            path: "veth".to_owned(),
            peer,
            load,
            axes,
        }
    }

    #[test]
    fn what_every_cell_of_a_load_has_is_not_said() {
        use LoadKind::{TcpMaerts, TcpStream};
        let cells = [
            cell(Peer::Far, TcpStream, &[("message_size", "1400")]),
            cell(Peer::Far, TcpMaerts, &[("message_size", "87380")]),
        ];
        let names = apart(&cells.iter().collect::<Vec<_>>());
        assert_eq!(names, ["tcp_stream", "tcp_maerts"]);
    }

    /// A host has no wire and a round trip no message size: what goes with peer or load is not said again. What differs within a
    /// load is, though another load has nothing of it.
    #[test]
    fn cells_are_told_apart_by_what_concerns_them() {
        use LoadKind::{TcpRr, TcpStream};
        let cells = [
            cell(Peer::Far, TcpStream, &[("message_size", "512")]),
            cell(Peer::Far, TcpStream, &[("message_size", "16384")]),
            cell(Peer::Far, TcpRr, &[]),
            cell(Peer::Host, TcpRr, &[]),
            cell(Peer::Host, TcpRr, &[("offload", "off")]),
        ];
        let names = apart(&cells.iter().collect::<Vec<_>>());
        assert_eq!(
            names,
            [
                "tcp_stream · far · message size 512 B",
                "tcp_stream · far · message size 16 KiB",
                "tcp_rr · far",
                "tcp_rr · host",
                "tcp_rr · host · offload off",
            ]
        );
    }
}
