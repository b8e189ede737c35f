//! Two runs without a common cell: what differs, and what to do.

use crate::model::{AXES, Cell};

/// The nearest two cells are searched among this many of each run.
const LOOKED_AT: usize = 200;

/// A cell and the values of its axes, in the order of the registry.
struct Shown<'a> {
    cell: &'a Cell,
    values: Vec<Option<String>>,
}

/// The difference between two runs, as the end of a sentence.
pub(super) fn why(a: &[Cell], b: &[Cell]) -> String {
    for (name, cells) in [("A", a), ("B", b)] {
        if cells.is_empty() {
            return format!("run {name} has no cells; measure both with the same plan");
        }
    }
    let [a, b] = [a, b].map(|cells| {
        let shown = |cell| Shown {
            cell,
            values: AXES.iter().map(|axis| (axis.show)(&cell.axes)).collect(),
        };
        cells.iter().take(LOOKED_AT).map(shown).collect::<Vec<_>>()
    });
    let pairs = a
        .iter()
        .flat_map(|one| b.iter().map(move |other| (one, other)));
    let Some((one, other)) = pairs.min_by_key(|(one, other)| distance(one, other)) else {
        return String::new();
    };
    if one.cell.to_string() == other.cell.to_string() {
        return by_axes(one, other);
    }
    let nearest = format!("the nearest are {} of A and {} of B", one.cell, other.cell);
    let mut words = Vec::new();
    let (own, theirs) = (one.cell, other.cell);
    if own.path != theirs.path {
        words.push("--paths");
    }
    if own.peer != theirs.peer {
        words.push("--peer");
    }
    if own.load != theirs.load {
        words.push("--loads");
    }
    let in_one_run = if words == ["--paths"] {
        let (a, b) = (&own.path, &theirs.path);
        format!(", or compare the paths in one run (--paths {a},{b} --base {a})")
    } else {
        String::new()
    };
    format!(
        "{nearest}; measure both runs with the same {}{in_one_run}",
        words.join(" and ")
    )
}

/// How different two cells are: path, peer and load count most.
fn distance(one: &Shown<'_>, other: &Shown<'_>) -> (usize, usize) {
    let (own, theirs) = (one.cell, other.cell);
    let names = [
        own.path != theirs.path,
        own.peer != theirs.peer,
        own.load != theirs.load,
    ];
    let values = one.values.iter().zip(&other.values);
    (
        names.iter().filter(|differs| **differs).count(),
        values.filter(|(a, b)| a != b).count(),
    )
}

/// The same path, peer and load: the axes that differ, with their values.
fn by_axes(one: &Shown<'_>, other: &Shown<'_>) -> String {
    let values = AXES.iter().zip(one.values.iter().zip(&other.values));
    let differing: Vec<_> = values.filter(|(_, (a, b))| a != b).collect();
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    let told: Vec<String> = differing
        .iter()
        .map(|(axis, (a, b))| format!("{} ({} in A, {} in B)", axis.name, shown(a), shown(b)))
        .collect();
    let advice = match differing[..] {
        [(axis, (Some(a), Some(b)))] => {
            let name = axis.name;
            format!(
                "measure both runs with the same value (--set {name}={a}), or compare the values in one run (--set \
                 {name}={a},{b} --base {name}={a})"
            )
        }
        _ => "measure both runs with the same values (--set)".to_owned(),
    };
    format!(
        "the nearest are {} of A and of B, which differ in {}; {advice}",
        one.cell,
        told.join(" and ")
    )
}
