//! A table of a report, independent of its format.

use crate::model::VerdictReport;
use crate::stats::Verdict;

/// A table: key columns that name the row, then figures.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    /// Every column, keys first.
    pub(super) columns: Vec<Column>,
    /// How many of them are keys.
    pub(super) keys: usize,
    pub(super) rows: Vec<Row>,
}

/// A column: its header in one or two lines, and its alignment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    /// From top to bottom; a unit is last.
    pub(super) header: Vec<String>,
    /// Alignment of the header and of single cells.
    pub(super) side: Side,
    /// Whether it belongs to the column before and must stay beside it.
    pub(super) follows: bool,
}

/// Left or right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Row {
    /// A cell per column.
    Cells(Vec<Cell>),
    /// The sum of the rows above, a cell per column: stays below them in any sort order.
    Sum(Vec<Cell>),
    /// The keys, then one text in place of figures.
    Instead {
        /// A text per key column.
        keys: Vec<String>,
        /// Why there are no figures.
        text: String,
    },
}

/// A cell of parts that are aligned down the column: `21.4` `±1.2 %` `≠`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cell(pub(super) Vec<Part>);

/// A part of a cell and its alignment with the same part of the other rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    /// At its left end.
    Left(String),
    /// At its right end.
    Right(String),
    /// At the decimal point.
    Point(String),
    /// The sign of a verdict, at its left end.
    Verdict(String, Tone),
}

/// What a verdict means for the choice of a path. Colour may show it; the sign before it always does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// Different, for the better.
    Better,
    /// Different, for the worse.
    Worse,
    /// Different, but neither side is better.
    Different,
    /// Equivalent.
    Same,
    /// Inconclusive, or no verdict.
    Open,
}

impl Tone {
    /// For a comparison of this quantity.
    pub(super) fn of(name: &str, verdict: &VerdictReport) -> Self {
        let better = crate::assess::quantity(name)
            .ok()
            .and_then(crate::assess::Quantity::more_is_better);
        match (verdict.verdict, better) {
            (Some(Verdict::Different), Some(more)) if (verdict.ratio.value > 1.0) == more => {
                Self::Better
            }
            (Some(Verdict::Different), Some(_)) => Self::Worse,
            (Some(Verdict::Different), None) => Self::Different,
            (Some(Verdict::Equivalent), _) => Self::Same,
            (Some(Verdict::Inconclusive) | None, _) => Self::Open,
        }
    }
}

impl Part {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Left(text) | Self::Right(text) | Self::Point(text) | Self::Verdict(text, _) => {
                text
            }
        }
    }

    fn text_mut(&mut self) -> &mut String {
        match self {
            Self::Left(text) | Self::Right(text) | Self::Point(text) | Self::Verdict(text, _) => {
                text
            }
        }
    }
}

impl Cell {
    /// A cell with one text.
    pub(super) fn lone(text: impl Into<String>) -> Self {
        Self(vec![Part::Left(text.into())])
    }

    /// All parts in a line, not aligned with other rows.
    pub(super) fn plain(&self) -> String {
        let parts: Vec<_> = self.0.iter().map(Part::text).collect();
        parts.join(" ").trim().to_owned()
    }
}

impl Column {
    /// A column of text.
    pub(super) fn left(header: &[&str]) -> Self {
        Self::new(header, Side::Left)
    }

    /// A column of numbers.
    pub(super) fn right(header: &[&str]) -> Self {
        Self::new(header, Side::Right)
    }

    fn new(header: &[&str], side: Side) -> Self {
        Self {
            header: header.iter().map(|&line| line.to_owned()).collect(),
            side,
            follows: false,
        }
    }

    /// The same column, kept beside the one before.
    pub(super) fn following(mut self) -> Self {
        self.follows = true;
        self
    }
}

impl Table {
    pub(super) fn each_text(&mut self, change: &mut dyn FnMut(&mut String)) {
        for column in &mut self.columns {
            column.header.iter_mut().for_each(&mut *change);
        }
        for row in &mut self.rows {
            match row {
                Row::Cells(cells) | Row::Sum(cells) => {
                    for part in cells.iter_mut().flat_map(|cell| &mut cell.0) {
                        change(part.text_mut());
                    }
                }
                Row::Instead { keys, text } => {
                    keys.iter_mut().for_each(&mut *change);
                    change(text);
                }
            }
        }
    }
}
