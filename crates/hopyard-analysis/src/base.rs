//! What each cell of a run is compared with.

use std::collections::BTreeSet;

use crate::model::stored::Header;
use crate::model::{AXES, Axis, Base, Cell, FOR_A_VERDICT};

use super::NATIVE;

/// The base of a cell and its index. The base itself is compared with nothing.
///
/// It is the user's, or the plan's. If the user gave none and the plan's is a path that was not measured with this peer
/// and load, it is replaced: see [`replacement`].
pub fn base_of(header: &Header, index: usize) -> Option<(String, usize)> {
    base_or(header, index, || replacement(header, index))
}

/// [`base_of`] for each cell, in their order. Cells of one load and peer share their replacement, which is looked for once.
pub fn bases(header: &Header) -> Vec<Option<(String, usize)>> {
    let mut replacements = Vec::new();
    let of = |index: usize| {
        let Cell { load, peer, .. } = header.cells[index].cell;
        base_or(header, index, || {
            let mut known = replacements.iter();
            if let Some((_, found)) = known.find(|(of, _)| *of == (load, peer)) {
                return *found;
            }
            let found = replacement(header, index);
            replacements.push(((load, peer), found));
            found
        })
    };
    (0..header.cells.len()).map(of).collect()
}

/// The base of a cell. `replacement` is asked for a path where the plan's was not measured.
fn base_or<'a>(
    header: &'a Header,
    index: usize,
    replacement: impl FnOnce() -> Option<&'a str>,
) -> Option<(String, usize)> {
    let name = match header.base.as_deref() {
        Some(text) if is_fixed(header, text, index) => text.to_owned(),
        _ => replacement()?.to_owned(),
    };
    let base = at(header, Base::parse(&name).ok()?, index).ok()?;
    (base != index).then_some((name, base))
}

/// The path that all cells of a load and a peer are compared with where nothing else is: `native`, else the first that all of them can
/// be compared with, else the one that most of them can.
fn replacement(header: &Header, index: usize) -> Option<&str> {
    let own = &header.cells[index].cell;
    let cells = header.cells.iter().enumerate();
    let alike = cells.filter(|(_, c)| (c.cell.peer, c.cell.load) == (own.peer, own.load));
    let alike: Vec<(usize, &str)> = alike.map(|(at, c)| (at, &*c.cell.path)).collect();
    let mut best = (0, None);
    let mut seen = BTreeSet::new();
    let paths = alike.iter().map(|(_, path)| *path);
    for path in std::iter::once(NATIVE).chain(paths) {
        if !seen.insert(path) {
            continue;
        }
        let is_compared =
            |(place, _): &&(usize, &str)| at(header, Base::Path(path), *place).is_ok();
        let compared = alike.iter().filter(is_compared).count();
        if compared == alike.len() || (path == NATIVE && compared > 0) {
            return Some(path);
        }
        if compared > best.0 {
            best = (compared, Some(path));
        }
    }
    best.1
}

/// Whether this base of a cell must not be replaced.
fn is_fixed(header: &Header, base: &str, index: usize) -> bool {
    let own = &header.cells[index].cell;
    let is_there = |path: &str| {
        let supported = header.cells.iter().filter(|c| c.unsupported.is_none());
        supported
            .map(|c| &c.cell)
            .any(|c| (&*c.path, c.peer, c.load) == (path, own.peer, own.load))
    };
    match Base::parse(base) {
        Ok(Base::Path(path)) => header.base_asked || is_there(path),
        Ok(Base::Value(..) | Base::Offload) => true,
        Err(_) => false,
    }
}

/// Why a cell cannot be compared with a base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Missing {
    /// The base has no such cell, or it was not measured.
    None,
    /// The base has several, which differ in these axes that the cell's path lacks.
    Several(Vec<&'static str>),
}

/// The cell that one is compared with: the same, or the only one that is the same apart from axes that one of the two
/// paths lacks.
fn at(header: &Header, base: Base<'_>, index: usize) -> Result<usize, Missing> {
    let cell = &header.cells[index].cell;
    let cells = || {
        let all = header.cells.iter().enumerate();
        all.filter(|(_, c)| c.unsupported.is_none())
    };
    if let Some((place, _)) = cells().find(|(_, c)| base.is_of(cell, &c.cell)) {
        return Ok(place);
    }
    let like: Vec<(usize, &Cell)> = cells()
        .filter(|(_, c)| base.is_like(cell, &c.cell))
        .map(|(place, c)| (place, &c.cell))
        .collect();
    match like[..] {
        [] => Err(Missing::None),
        [(place, _)] => Ok(place),
        [(_, first), ..] => {
            let differs = |axis: &&Axis| {
                let value = (axis.show)(&first.axes);
                like.iter().any(|(_, c)| (axis.show)(&c.axes) != value)
            };
            let differing = AXES.iter().filter(differs);
            Err(Missing::Several(differing.map(|axis| axis.name).collect()))
        }
    }
}

/// The cells that cannot be compared with the given base, and why.
///
/// If the base is a value of an axis, cells without that axis have no base. They count only if the user gave the base, or if no cell has
/// that value.
pub(super) fn without_base(header: &Header) -> Vec<(usize, Missing)> {
    let Some(text) = header.base.as_deref() else {
        return Vec::new();
    };
    let Ok(base) = Base::parse(text) else {
        return Vec::new();
    };
    let mut cells = header.cells.iter().map(|c| &c.cell);
    let is_there = cells.any(|cell| base.is(&cell.path, &cell.axes));
    if matches!(base, Base::Value(..) | Base::Offload) && is_there && !header.base_asked {
        return Vec::new();
    }
    let compared = |index: usize| {
        base.is(
            &header.cells[index].cell.path,
            &header.cells[index].cell.axes,
        )
    };
    let wanted = (0..header.cells.len()).filter(|index| {
        header.cells[*index].unsupported.is_none()
            && is_fixed(header, text, *index)
            && !compared(*index)
    });
    let uncompared = wanted.filter_map(|index| Some((index, at(header, base, index).err()?)));
    uncompared.collect()
}

/// What cannot be compared with the given base, and why, as a sentence without its end; `None` if everything can.
pub(super) fn missing(header: &Header) -> Option<String> {
    let text = header.base.as_deref()?;
    let mut cells: Vec<String> = Vec::new();
    let mut axes: Vec<&str> = Vec::new();
    for (index, why) in without_base(header) {
        let name = header.cells[index].cell.to_string();
        if !cells.contains(&name) {
            cells.push(name);
        }
        if let Missing::Several(differing) = why {
            axes.extend(differing);
        }
    }
    if cells.is_empty() {
        return None;
    }
    const NAMED: usize = 4;
    let more = cells.len().saturating_sub(NAMED);
    cells.truncate(NAMED);
    if more > 0 {
        cells.push(format!("and {more} more"));
    }
    axes.sort_unstable();
    axes.dedup();
    let why = if axes.is_empty() {
        "the run has no cell of it that is the same otherwise".to_owned()
    } else {
        let axes = axes.join(" and ");
        format!("it has several values of {axes}, which they do not have; set one value")
    };
    Some(format!(
        "not compared with {text}: {} ({why})",
        cells.join(", ")
    ))
}

/// Checks that a base given by the user is usable.
///
/// # Errors
/// No cell can be compared with it: why, and what to do.
pub fn check_base(header: &Header) -> Result<(), String> {
    let Some(text) = header.base.as_deref().filter(|_| header.base_asked) else {
        return Ok(());
    };
    let base = Base::parse(text).map_err(|e| e.to_string())?;
    let own = || {
        let all = header.cells.iter();
        all.filter(|c| base.is(&c.cell.path, &c.cell.axes))
    };
    if own().next().is_none() {
        let mut left_out = header.left_out.iter();
        if let Some((_, why)) = left_out.find(|(name, _)| name == text) {
            return Err(format!(
                "this host cannot build it: {why}; choose another --base"
            ));
        }
        let add = match base {
            Base::Path(_) => format!("add {text} to --paths"),
            Base::Value(axis, value) => format!("add {value} to the values of --set {}", axis.name),
            Base::Offload => "give offload=on,off to --set".to_owned(),
        };
        return Err(format!(
            "the run has no such cell: {add}, or choose another --base"
        ));
    }
    let cannot = own().find_map(|c| c.unsupported.as_deref());
    if let Some(why) = cannot
        && own().all(|c| c.unsupported.is_some())
    {
        return Err(format!(
            "this host cannot build it: {why}; choose another --base"
        ));
    }
    let all_are_bases = own().count() == header.cells.len();
    let some_compared = bases(header).iter().any(Option::is_some);
    match missing(header) {
        Some(why) if !some_compared && !all_are_bases => Err(why),
        _ => Ok(()),
    }
}

/// Checks that a run which is to decide something, for a gate or until differences are seen, can.
///
/// # Errors
/// It cannot: why, and what to do.
pub fn check_gate(header: &Header) -> Result<(), String> {
    let option = match (header.fail_on, header.decide) {
        (Some(_), _) => "--fail-on",
        (None, Some(_)) => "--decide",
        (None, None) => return Ok(()),
    };
    if header.blocks_max < FOR_A_VERDICT {
        return Err(format!(
            "{option} needs verdicts, which take at least {FOR_A_VERDICT} blocks, and the run has {} at most: give it more \
             by --blocks",
            header.blocks_max
        ));
    }
    if bases(header).iter().any(Option::is_some) {
        return Ok(());
    }
    Err(format!(
        "{option} looks at comparisons with a base, and the run has none: choose a --base that some cells are compared with"
    ))
}
