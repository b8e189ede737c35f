//! What sets cells apart, in words.

use crate::model::{AXES, Axis, Cell};

/// A property that cells may differ in: its name, and its value in a cell.
type Property = (String, fn(&Cell, &str) -> Option<String>);

fn properties() -> Vec<Property> {
    let mut all: Vec<Property> = vec![
        ("path".to_owned(), |cell, _| Some(cell.path.clone())),
        ("load".to_owned(), |cell, _| Some(cell.load.to_string())),
        ("peer".to_owned(), |cell, _| Some(cell.peer.to_string())),
    ];
    let of_axis = |cell: &Cell, name: &str| {
        crate::model::axis(name)
            .ok()
            .and_then(|a| (a.show)(&cell.axes))
    };
    all.extend(
        AXES.iter()
            .map(|axis: &Axis| (axis.name.to_owned(), of_axis as _)),
    );
    all
}

/// What each cell is called among these: the properties that not all of them share; paths, loads and peers
/// by their value alone.
pub(super) fn apart(cells: &[&Cell]) -> Vec<String> {
    let properties = properties();
    let loads_differ = cells.iter().any(|cell| cell.load != cells[0].load);
    let differing: Vec<&Property> = properties
        .iter()
        .filter(|(name, of)| {
            // What only some of the loads have comes with the load.
            if loads_differ && cells.iter().any(|cell| of(cell, name).is_none()) {
                return false;
            }
            let mut values = cells.iter().map(|cell| of(cell, name));
            let first = values.next();
            values.any(|value| Some(&value) != first.as_ref())
        })
        .collect();
    let called = |cell: &&Cell| {
        let value = |(name, of): &&Property| {
            let value = of(cell, name)?;
            Some(match name.as_str() {
                "path" | "load" | "peer" => value,
                name => format!("{} {value}", name.replace('_', " ")),
            })
        };
        let words: Vec<String> = differing.iter().filter_map(value).collect();
        words.join(" · ")
    };
    cells.iter().map(called).collect()
}

/// What one cell has that the other has not: `veth-route / native`, `flows 16 / 1`.
pub(super) fn versus(one: &Cell, other: &Cell) -> String {
    let differing = properties().into_iter().filter_map(|(name, of)| {
        let (own, theirs) = (of(one, &name), of(other, &name));
        if own == theirs {
            return None;
        }
        let show = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
        let values = format!("{} / {}", show(own), show(theirs));
        Some(match name.as_str() {
            "path" | "load" | "peer" => values,
            name => format!("{} {values}", name.replace('_', " ")),
        })
    });
    // A path may bring axes of its own; then it says it all.
    let all: Vec<String> = differing.collect();
    let first = if one.path == other.path { all.len() } else { 1 };
    all.into_iter().take(first).collect::<Vec<_>>().join(", ")
}
