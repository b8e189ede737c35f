//! The CPU cost by kernel subsystem, path by path, and what one path adds to another.

mod pictures;

use super::document::{Block, Cell, Column, Part, Row, Table};
use super::group::{Group, Layout};
use super::number::chosen;
use super::quantity::{Scale, scale};
use crate::model::{CellReport, ProfileReport, SubsystemCost, distinct};
use crate::plain;
use crate::stats::Estimate;
use crate::units::counted;

/// The most subsystems in a sentence about a difference.
const PARTS: usize = 7;
/// The most subsystems in a list of functions, and the most functions for each.
const COSTLIEST: usize = 5;
const FUNCTIONS: usize = 3;

/// A section for each set of cells that differ only in their path.
pub(super) fn blocks(layout: &Layout<'_>) -> Vec<Block> {
    layout.groups.iter().flat_map(of_group).collect()
}

fn of_group(group: &Group<'_>) -> Vec<Block> {
    let profiled: Vec<Profiled<'_>> = group.cells.iter().filter_map(|c| Profiled::of(c)).collect();
    let settings = distinct(profiled.iter().map(|p| group.values(p.cell)));
    settings
        .into_iter()
        .flat_map(|values| {
            let alike = profiled.iter().filter(|p| group.values(p.cell) == values);
            section(&title(group, &values), &alike.copied().collect::<Vec<_>>())
        })
        .collect()
}

fn title(group: &Group<'_>, values: &[String]) -> String {
    // The explanation of the load is above already.
    let short = group.title.split(" (").next().unwrap_or(&group.title);
    let mut facts = vec![short.to_owned()];
    facts.extend_from_slice(values);
    format!("Where the CPU time goes: {}", facts.join(" · "))
}

/// A cell with its profile and the cost that the profile divides.
#[derive(Clone, Copy)]
struct Profiled<'a> {
    cell: &'a CellReport,
    profile: &'a ProfileReport,
    whole: &'a Estimate,
}

impl<'a> Profiled<'a> {
    fn of(cell: &'a CellReport) -> Option<Self> {
        let profile = cell.profile.as_ref()?;
        let whole = cell.estimates.get(&profile.quantity)?;
        Some(Self {
            cell,
            profile,
            whole,
        })
    }

    fn path(&self) -> String {
        plain::line(&self.cell.path)
    }

    fn subsystem(&self, name: &str) -> Option<&'a SubsystemCost> {
        self.profile.subsystems.iter().find(|s| s.name == name)
    }
}

fn section(title: &str, cells: &[Profiled<'_>]) -> Vec<Block> {
    let Some(first) = cells.first() else {
        return Vec::new();
    };
    let most = cells.iter().map(|c| c.whole.value).fold(0.0, f64::max);
    let scale = scale(&first.profile.quantity, most);
    let mut blocks = vec![
        Block::Heading(title.to_owned()),
        Block::Table(table(cells, scale)),
        Block::Notes(sampling(cells)),
        Block::Plots(pictures::plots(cells, scale)),
    ];
    let differences: Vec<String> = cells.iter().filter_map(|c| adds(c, scale)).collect();
    if !differences.is_empty() {
        blocks.push(Block::List(differences));
    }
    let heading = format!("The costliest functions, {}", scale.unit);
    blocks.push(Block::Subheading(heading));
    let functions = cells.iter().map(|c| functions(c, scale));
    blocks.push(Block::List(functions.collect()));
    blocks
}

/// A row per subsystem, the costliest first; then their sum.
fn table(cells: &[Profiled<'_>], scale: Scale) -> Table {
    let mut columns = vec![Column::left(&["subsystem"])];
    columns.extend(
        cells
            .iter()
            .map(|c| Column::right(&[&c.path(), scale.unit])),
    );
    let named = |name: String, figures: Vec<Cell>| {
        let mut row = vec![Cell::lone(name)];
        row.extend(figures);
        row
    };
    let figure = |e: &Estimate| Cell(vec![Part::Point(scale.show(e.value)), half(e, scale)]);
    let mut rows: Vec<Row> = subsystems(cells)
        .into_iter()
        .map(|name| {
            let of = |c: &Profiled<'_>| c.subsystem(name).map(|s| figure(&s.cost));
            let none = || {
                Cell(vec![
                    Part::Point("0".to_owned()),
                    Part::Right(String::new()),
                ])
            };
            let figures = cells.iter().map(|c| of(c).unwrap_or_else(none));
            Row::Cells(named(plain::line(name), figures.collect()))
        })
        .collect();
    let measured = cells.iter().map(|c| figure(c.whole)).collect();
    rows.push(Row::Sum(named("sum: measured".to_owned(), measured)));
    Table {
        columns,
        keys: 1,
        rows,
    }
}

/// Every subsystem with samples, ordered by its greatest cost.
fn subsystems<'a>(cells: &[Profiled<'a>]) -> Vec<&'a str> {
    let all = cells.iter().flat_map(|c| &c.profile.subsystems);
    let mut names = distinct(all.map(|s| s.name.as_str()));
    let greatest = |name: &str| {
        let costs = cells.iter().filter_map(|c| c.subsystem(name));
        costs.map(|s| s.cost.value).fold(0.0, f64::max)
    };
    names.sort_by(|a, b| greatest(b).total_cmp(&greatest(a)));
    names
}

fn half(estimate: &Estimate, scale: Scale) -> Part {
    Part::Right(format!("±{}", scale.show_roughly(half_width(estimate))))
}

fn half_width(estimate: &Estimate) -> f64 {
    (estimate.high - estimate.value).max(estimate.value - estimate.low)
}

/// How the samples were taken, and their problems.
fn sampling(cells: &[Profiled<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    let how = |p: &ProfileReport| {
        let windows = counted(p.windows as usize, "window");
        let length = chosen(p.window_s);
        format!("{} Hz per CPU in {windows} of {length} s", p.frequency_hz)
    };
    for how_taken in distinct(cells.iter().map(|c| how(c.profile))) {
        let alike = cells.iter().filter(|c| how(c.profile) == how_taken);
        let counts: Vec<String> = alike
            .map(|c| format!("{} {}", c.path(), c.profile.busy_samples))
            .collect();
        notes.push(format!(
            "Sampled at {how_taken} beside the measured ones; busy samples: {}.",
            counts.join(", ")
        ));
    }
    notes.extend(cells.iter().filter_map(doubts));
    notes
}

fn doubts(cell: &Profiled<'_>) -> Option<String> {
    let profile = cell.profile;
    let mut remarks = Vec::new();
    if profile.lost_samples > 0 {
        remarks.push(format!("{} samples lost", profile.lost_samples));
    }
    if profile.thin_windows > 0 {
        let thin = counted(profile.thin_windows as usize, "window");
        remarks.push(format!("{thin} with too few busy samples to say much"));
    }
    let blocks = cell.whole.n.saturating_sub(profile.windows as usize);
    if blocks > 0 {
        let blocks = counted(blocks, "block");
        remarks.push(format!("{blocks} without a profile, split as the others"));
    }
    (!remarks.is_empty()).then(|| format!("{}: {}", cell.path(), remarks.join("; ")))
}

/// What a path adds to the base path, by subsystem.
fn adds(cell: &Profiled<'_>, scale: Scale) -> Option<String> {
    let difference = cell.profile.difference.as_ref()?;
    let total = &difference.total;
    let amount = |e: &Estimate, value: f64| {
        format!(
            "{} ±{}",
            scale.show(value),
            scale.show_roughly(half_width(e))
        )
    };
    let parts: Vec<String> = difference
        .subsystems
        .iter()
        .take(PARTS)
        .map(|part| {
            let sign = if part.cost.value < 0.0 { '−' } else { '+' };
            let size = amount(&part.cost, part.cost.value.abs());
            format!("{} {sign}{size}", plain::line(&part.name))
        })
        .collect();
    let (path, base, unit) = (cell.path(), plain::line(&difference.base), scale.unit);
    let size = amount(total, total.value.abs());
    let what = if total.value < 0.0 {
        format!("{path} takes {size} {unit} off {base}")
    } else {
        format!("{path} adds {size} {unit} to {base}")
    };
    Some(format!("{what}: {}", parts.join(", ")))
}

/// The costliest functions of the costliest subsystems.
fn functions(cell: &Profiled<'_>, scale: Scale) -> String {
    let parts: Vec<String> = cell
        .profile
        .subsystems
        .iter()
        .filter(|s| s.name != "user")
        .take(COSTLIEST)
        .map(|subsystem| {
            let named = subsystem.functions.iter().take(FUNCTIONS);
            let named: Vec<String> = named
                .map(|f| format!("{} {}", plain::line(&f.name), scale.show(f.cost)))
                .collect();
            format!("{} ({})", plain::line(&subsystem.name), named.join(", "))
        })
        .collect();
    format!("{}: {}", cell.path(), parts.join("; "))
}
