//! What sets cells apart, in words.

use crate::model::{AXES, Axis, Cell, LoadKind, axis};

/// A property that cells may differ in: its name, and its value in a cell.
type Property = (&'static str, fn(&Cell, &str) -> Option<String>);

fn properties() -> Vec<Property> {
    let mut all: Vec<Property> = vec![
        ("path", |cell, _| Some(cell.path.clone())),
        ("load", |cell, _| Some(cell.load.to_string())),
        ("peer", |cell, _| Some(cell.peer.to_string())),
    ];
    let of_axis = |cell: &Cell, name: &str| axis(name).ok().and_then(|a| (a.show)(&cell.axes));
    all.extend(AXES.iter().map(|axis: &Axis| (axis.name, of_axis as _)));
    all
}

/// Does a property mean anything for a cell? What goes with the load or the peer tells no others apart.
fn concerns(name: &str, cell: &Cell) -> bool {
    axis(name).map_or(true, |axis| (axis.fits)(cell.load, cell.peer))
}

/// What each cell is called among these: the properties that not all of them share, of axes those that not all of its load
/// share; paths, loads and peers by their value alone.
pub(super) fn apart(cells: &[&Cell]) -> Vec<String> {
    let properties = properties();
    let differs = |(name, of): &Property, load: LoadKind| {
        let beside = |cell: &&&Cell| axis(name).is_err() || cell.load == load;
        let concerned = cells
            .iter()
            .filter(|cell| beside(cell) && concerns(name, cell));
        let mut values = concerned.map(|cell| of(cell, name));
        let first = values.next();
        values.any(|value| Some(&value) != first.as_ref())
    };
    let called = |cell: &&Cell| {
        let differing = properties.iter().filter(|one| differs(one, cell.load));
        let value = |(name, of): &Property| {
            let value = of(cell, name)?;
            Some(match *name {
                "path" | "load" | "peer" => value,
                name => format!("{} {value}", name.replace('_', " ")),
            })
        };
        let words: Vec<String> = differing.filter_map(value).collect();
        words.join(" · ")
    };
    cells.iter().map(called).collect()
}

/// What one cell has that the other has not: `veth-route / native`, `flows 16 / 1`.
pub(super) fn versus(one: &Cell, other: &Cell) -> String {
    let differing = properties().into_iter().filter_map(|(name, of)| {
        let (own, theirs) = (of(one, name), of(other, name));
        if own == theirs {
            return None;
        }
        let show = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
        let values = format!("{} / {}", show(own), show(theirs));
        Some(match name {
            "path" | "load" | "peer" => values,
            name => format!("{} {values}", name.replace('_', " ")),
        })
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
    use crate::model::{Axes, Peer};

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
