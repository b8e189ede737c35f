//! The table of one load: a row per path, or per path and axis values.

use super::document::{Block, Cell, Column, Footnotes, Part, Row, Table, Tone};
use super::group::{Group, Layout, measured, scale, values};
use super::notes;
use super::number::{ABSENT, percent, ratio};
use super::quantity::{
    self, BUSY_CORES, BYTES_PER_SKB, CONNECT_P50, CONNECT_P99, FIRST_EXCHANGE_MAX,
    FIRST_EXCHANGE_P50, GUEST_STEAL, LATENCY_MAX, LATENCY_P50, LATENCY_P99, LATENCY_P999, PDV,
    QUEUE_CHANGES, QUEUES_IN_USE, RECEIVER_BUSY, RECEIVER_DROPPED, REORDERED, RETRANSMITS,
    RUN_LENGTH, SENDER_LATE, Scale, THROUGHPUT, THROUGHPUT_BITS, THROUGHPUT_LOWER,
    THROUGHPUT_UPPER, TRIALS, ZERO_COPY_COPIED, capital, symbol,
};
use crate::model::{Axis, CellReport, VerdictReport, distinct};
use crate::plain;
use crate::stats::{Estimate, Verdict};

/// What a column shows of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Show {
    /// The value ± its half-width.
    Figure,
    /// The ratio to the base path and its verdict.
    Comparison,
    /// The value alone.
    Value,
}

/// Packet sizes that differ by less than this share count as equal.
const ALIKE: f64 = 0.02;

/// Heading, table and footnotes.
pub(super) fn blocks(group: &Group<'_>, layout: &Layout<'_>) -> Vec<Block> {
    let mut footnotes = Footnotes::default();
    let figures = Figures::of(group);
    let mut without_column = figures.notes(group);
    let (figures, alike) = figures.without_alike(group);
    without_column.extend(alike);
    let mut columns = key_columns(group);
    let keys = columns.len();
    let base = group.base.or(layout.base);
    let base = base.map_or_else(|| "base".to_owned(), plain::line);
    columns.extend(figures.columns(&base));
    let rows = group
        .cells
        .iter()
        .map(|cell| {
            let mark = footnotes.mark(notes::doubts(cell));
            let names = key_texts(group, cell, &mark);
            if let Some(text) = notes::instead(cell) {
                return Row::Instead { keys: names, text };
            }
            let mut cells: Vec<Cell> = names.into_iter().map(Cell::lone).collect();
            cells.extend(figures.fields(cell, layout.is_base(cell)));
            Row::Cells(cells)
        })
        .collect();
    let table = Table {
        columns,
        keys,
        rows,
    };
    let mut blocks = vec![Block::Heading(group.title.clone()), Block::Table(table)];
    blocks.extend(footnotes.with(without_column));
    blocks.extend(notes::no_base(group, layout));
    blocks
}

/// The columns of figures of a table.
pub(super) struct Figures {
    columns: Vec<(Show, &'static str, Scale)>,
}

impl Figures {
    /// The columns for a load.
    pub(super) fn of(group: &Group<'_>) -> Self {
        let with_scale = |(show, name)| (show, name, scale(group, name));
        Self {
            columns: columns(group).into_iter().map(with_scale).collect(),
        }
    }

    /// Quantities without a column: not measured, zero everywhere, or known for a few cells only.
    fn notes(&self, group: &Group<'_>) -> Vec<String> {
        let any = measured(group).next().is_some();
        let missing = |show: Show, name: &str| {
            any && !self.columns.iter().any(|&(s, n, _)| s == show && n == name)
        };
        let wanted = wanted(group).into_iter();
        let (mut absent, mut zero, mut rare) = (Vec::new(), Vec::new(), Vec::new());
        for (show, name) in wanted.filter(|&(show, name)| missing(show, name)) {
            let everywhere = values(group, name).count() == measured(group).count();
            match show {
                Show::Figure => absent.push(quantity::words(name)),
                Show::Value if everywhere && is_zero(group, name) => {
                    zero.push(quantity::words(name));
                }
                Show::Value => rare.extend(told_of(group, name)),
                Show::Comparison => {}
            }
        }
        let note = |what: &str, names: Vec<String>| {
            (!names.is_empty()).then(|| format!("{what}: {}.", names.join(", ")))
        };
        let notes = [note("Not measured", absent), note("Zero everywhere", zero)];
        group
            .told_numbers()
            .into_iter()
            .chain(rare)
            .chain(Self::too_few_for_p99(group))
            .chain(notes.into_iter().flatten())
            .collect()
    }

    /// The cells whose latencies were measured, but too few of them in a block for their 99th percentile.
    fn too_few_for_p99(group: &Group<'_>) -> Option<String> {
        wanted(group)
            .iter()
            .find(|(_, name)| *name == LATENCY_P99)?;
        let is_short = |cell: &&CellReport| {
            cell.latency.is_some() && !cell.estimates.contains_key(LATENCY_P99)
        };
        let short: Vec<&CellReport> = measured(group).filter(is_short).collect();
        let whose = match short.len() {
            0 => return None,
            n if n == measured(group).count() => String::new(),
            _ => {
                let names = distinct(short.iter().map(|cell| plain::line(&cell.path)));
                format!(" for {}", names.join(", "))
            }
        };
        let what = quantity::words(LATENCY_P99);
        Some(format!(
            "No {what}{whose}: it takes 1000 observations in a block, and more than a tenth of the blocks had fewer."
        ))
    }

    /// The columns without packet size if it is the same everywhere, and that size as text.
    fn without_alike(self, group: &Group<'_>) -> (Self, Option<String>) {
        let (least, most) = values(group, BYTES_PER_SKB)
            .fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), value| {
                (least.min(value), most.max(value))
            });
        let several = measured(group).count() > 1;
        let everywhere = values(group, BYTES_PER_SKB).count() == measured(group).count();
        if !several || !everywhere || least < (1.0 - ALIKE) * most {
            return (self, None);
        }
        let scale = scale(group, BYTES_PER_SKB);
        let size = match (scale.show(least), scale.show(most)) {
            (least, most) if least == most => most,
            (least, most) => format!("{least} to {most}"),
        };
        let words = capital(&quantity::words(BYTES_PER_SKB));
        let note = format!("{words}: {size} everywhere.");
        (self.without(&[BYTES_PER_SKB]), Some(note))
    }

    /// The columns without some quantities.
    pub(super) fn without(mut self, names: &[&str]) -> Self {
        self.columns.retain(|(_, name, _)| !names.contains(name));
        self
    }

    /// Their heads, in a table of comparisons with `base`.
    pub(super) fn columns(&self, base: &str) -> impl Iterator<Item = Column> {
        self.columns
            .iter()
            .map(move |&(show, name, scale)| column(show, name, scale, base))
    }

    /// A row of them.
    pub(super) fn fields(&self, cell: &CellReport, is_base: bool) -> impl Iterator<Item = Cell> {
        self.columns
            .iter()
            .map(move |&(show, name, scale)| field(cell, show, name, scale, is_base))
    }
}

/// The columns that distinguish cells.
pub(super) fn key_columns(group: &Group<'_>) -> Vec<Column> {
    let axes = group.varying.iter();
    axes.map(|axis| Column::right(&[axis.name]))
        .chain([Column::left(&["path"])])
        .collect()
}

/// The texts of a cell in those columns, the path with its mark.
pub(super) fn key_texts(group: &Group<'_>, cell: &CellReport, mark: &str) -> Vec<String> {
    let text = |axis: &&'static Axis| match axis.value(cell.load, &cell.axes) {
        None => ABSENT.to_owned(),
        Some(value) => group.in_column(axis, plain::line(&value)),
    };
    let mut texts: Vec<String> = group.varying.iter().map(text).collect();
    let path = plain::line(&cell.path);
    texts.push(format!("{path} {mark}").trim_end().to_owned());
    texts
}

/// The columns of a load that have relevant values.
fn columns(group: &Group<'_>) -> Vec<(Show, &'static str)> {
    let mut list = wanted(group);
    list.retain(|&(show, name)| match show {
        Show::Figure => values(group, name).next().is_some(),
        Show::Comparison => group.cells.iter().any(|c| c.verdicts.contains_key(name)),
        Show::Value => !is_zero(group, name) && !is_rare(group, name),
    });
    list
}

/// The cells with a relevant value of a quantity.
fn news<'a>(group: &Group<'a>, name: &'static str) -> Vec<(&'a CellReport, f64)> {
    measured(group)
        .filter_map(|cell| Some((cell, cell.estimates.get(name)?.value)))
        .filter(|(_, value)| *value >= least(name))
        .collect()
}

/// Whether most rows of its column would be empty.
fn is_rare(group: &Group<'_>, name: &'static str) -> bool {
    2 * news(group, name).len() < measured(group).count()
}

/// A quantity of a few cells as text: `Queue changes of a flow: tap-mq 0.310 /s.`
fn told_of(group: &Group<'_>, name: &'static str) -> Option<String> {
    let scale = scale(group, name);
    let cells: Vec<String> = news(group, name)
        .into_iter()
        .map(|(cell, value)| {
            let values = group.values(cell);
            let values = match &values[..] {
                [] => String::new(),
                _ => format!(" ({})", values.join(", ")),
            };
            let path = plain::line(&cell.path);
            format!("{path}{values} {}", scale.show(value))
        })
        .collect();
    let what = quantity::words(name);
    let text = format!("{what}: {} {}", cells.join(", "), scale.unit);
    (!cells.is_empty()).then(|| capital(text.trim_end()) + ".")
}

/// Whether it is zero everywhere.
fn is_zero(group: &Group<'_>, name: &'static str) -> bool {
    values(group, name).all(|value| value == 0.0)
}

/// All columns that a load can have.
fn wanted(group: &Group<'_>) -> Vec<(Show, &'static str)> {
    let main = group.main;
    let cpu = quantity::cpu_cost(group.load);
    let mut list = vec![(Show::Figure, main), (Show::Comparison, main)];
    let shown = &group.load.info().shown;
    let beside = if main == THROUGHPUT {
        &[THROUGHPUT_BITS, THROUGHPUT_LOWER, THROUGHPUT_UPPER, TRIALS]
    } else {
        shown.beside
    };
    list.extend(beside.iter().map(|name| (Show::Value, *name)));
    list.extend([(Show::Figure, cpu), (Show::Comparison, cpu)]);
    list.extend(quantity::costs_of_ends(group.load).map(|name| (Show::Value, name)));
    // At a rate that was found, the delay matters.
    let found = (main == THROUGHPUT).then_some(LATENCY_P99);
    let own = found.into_iter().chain(shown.columns.iter().copied());
    list.extend(own.map(|name| (Show::Value, name)));
    list.extend([QUEUE_CHANGES, QUEUES_IN_USE, GUEST_STEAL].map(|name| (Show::Value, name)));
    list
}

/// The least relevant value.
fn least(name: &str) -> f64 {
    match name {
        RETRANSMITS => 0.1,
        REORDERED | RECEIVER_DROPPED | QUEUE_CHANGES | GUEST_STEAL => f64::MIN_POSITIVE,
        _ => f64::NEG_INFINITY,
    }
}

fn column(show: Show, name: &str, scale: Scale, base: &str) -> Column {
    match (show, name) {
        (Show::Comparison, _) => Column::left(&[&format!("vs {base}")]).following(),
        (_, BUSY_CORES) => Column::right(&["busy", "cores"]),
        (_, BYTES_PER_SKB) => Column::right(&["bytes", "per skb"]),
        (_, GUEST_STEAL) => Column::right(&["guest", "steal %"]),
        (_, SENDER_LATE) => Column::right(&["sent late", &format!("p99 {}", scale.unit)]),
        (_, ZERO_COPY_COPIED) => Column::right(&["copied", "all the same %"]),
        (_, QUEUE_CHANGES) => Column::right(&["queue changes", &format!("/flow {}", scale.unit)]),
        (_, QUEUES_IN_USE) => Column::right(&["queues", "in use"]),
        (_, RETRANSMITS) => Column::right(&["resent", "/s"]),
        (_, PDV) => Column::right(&["PDV", &format!("p99.9 {}", scale.unit)]),
        (_, RUN_LENGTH) => Column::right(&["run", "length"]),
        (_, REORDERED) => Column::right(&["reord.", scale.unit]),
        (_, RECEIVER_BUSY) => Column::right(&["receiver", "busy %"]),
        (_, RECEIVER_DROPPED) => Column::right(&["receiver", "drops %"]),
        (_, THROUGHPUT_LOWER) => Column::right(&["lower", scale.unit]),
        (_, THROUGHPUT_UPPER) => Column::right(&["upper", scale.unit]),
        (_, TRIALS) => Column::right(&["trials"]),
        (_, LATENCY_P999) => Column::right(&["latency", &format!("p99.9 {}", scale.unit)]),
        (_, LATENCY_MAX) => Column::right(&["latency", &format!("max {}", scale.unit)]),
        (_, LATENCY_P50) => Column::right(&["latency", &format!("p50 {}", scale.unit)]),
        (_, LATENCY_P99) => Column::right(&["latency", &format!("p99 {}", scale.unit)]),
        (_, CONNECT_P50) => Column::right(&["connect", &format!("p50 {}", scale.unit)]),
        (_, CONNECT_P99) => Column::right(&["connect", &format!("p99 {}", scale.unit)]),
        (_, FIRST_EXCHANGE_P50) => Column::right(&["first ex.", &format!("p50 {}", scale.unit)]),
        (_, FIRST_EXCHANGE_MAX) => Column::right(&["first ex.", &format!("max {}", scale.unit)]),
        _ => Column::right(&[&quantity::words(name), scale.unit]),
    }
}

fn field(cell: &CellReport, show: Show, name: &str, scale: Scale, is_base: bool) -> Cell {
    let absent = || Cell::lone(ABSENT);
    let estimate = cell.estimates.get(name);
    match show {
        Show::Figure => estimate.map_or_else(absent, |e| Cell(figure(e, scale))),
        Show::Value => {
            estimate.map_or_else(absent, |e| Cell(vec![Part::Point(scale.show(e.value))]))
        }
        Show::Comparison => match cell.verdicts.get(name) {
            _ if is_base => Cell::lone("base"),
            Some(verdict) => Cell(vec![
                Part::Point(ratio(verdict.ratio.value)),
                verdict_part(name, verdict),
            ]),
            None => absent(),
        },
    }
}

/// A value and its half-width.
pub(super) fn figure(estimate: &Estimate, scale: Scale) -> Vec<Part> {
    let ratio = estimate.half_width_ratio();
    // One sample has no spread, and a width of 0 would be wrong. A half-width relative to 0 does not exist either.
    let half = if estimate.n < 2 || !ratio.is_finite() {
        String::new()
    } else {
        format!("±{}", percent(ratio))
    };
    vec![Part::Point(scale.show(estimate.value)), Part::Right(half)]
}

/// A comparison's verdict as a part of its cell.
pub(super) fn verdict_part(name: &str, verdict: &VerdictReport) -> Part {
    Part::Verdict(verdict_mark(verdict), Tone::of(name, verdict))
}

/// `≠`, `=`, or `?` with the smallest detectable difference.
pub(super) fn verdict_mark(verdict: &VerdictReport) -> String {
    match verdict.verdict {
        Some(Verdict::Inconclusive) => match verdict.smallest_detectable {
            Some(smallest) => format!("? {}", percent(smallest)),
            None => symbol(verdict.verdict).to_owned(),
        },
        other => symbol(other).to_owned(),
    }
}
