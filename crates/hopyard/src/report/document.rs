//! What a report for people consists of, whatever it is written as.

use super::plot::Plot;
use crate::model::VerdictReport;
use crate::plain;
use crate::stats::Verdict;

/// One piece of a report.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Block {
    /// The name of the whole.
    Title(String),
    /// The sentence that answers what the run asks.
    Answer(String),
    /// Short facts side by side.
    Facts(Vec<String>),
    /// The name of what follows.
    Heading(String),
    /// The name of a part of it.
    Subheading(String),
    /// Sentences.
    Paragraph(String),
    /// Figures.
    Table(Table),
    /// Remarks on the table above, a line each.
    Notes(Vec<String>),
    /// Sentences side by side.
    List(Vec<String>),
    /// Sentences by what they are about, which a page folds.
    Folds(Vec<(String, Vec<String>)>),
    /// Pictures of figures that are in tables too; pages without pictures leave them out.
    Plots(Vec<Plot>),
}

/// A table: key columns that name the row, then figures.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    /// Every column, keys first.
    pub(super) columns: Vec<Column>,
    /// How many of them are keys.
    pub(super) keys: usize,
    /// The rows.
    pub(super) rows: Vec<Row>,
}

/// A column: its header in one or two lines, and the side its text keeps to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    /// From top to bottom; a unit comes last.
    pub(super) header: Vec<String>,
    /// Where header and lone cells stand.
    pub(super) side: Side,
    /// Says something about the column before and is never parted from it.
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

/// A row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Row {
    /// A cell per column.
    Cells(Vec<Cell>),
    /// What the rows above sum to, a cell per column: stays below them however they are sorted.
    Sum(Vec<Cell>),
    /// The keys, then one text instead of figures.
    Instead {
        /// A text per key column.
        keys: Vec<String>,
        /// Why there are no figures.
        text: String,
    },
}

/// A cell made of parts that line up down the column: `21.4` `±1.2 %` `≠`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cell(pub(super) Vec<Part>);

/// A part of a cell and how it lines up with the same part of the other rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    /// At its left end.
    Left(String),
    /// At its right end.
    Right(String),
    /// At the decimal point.
    Point(String),
    /// What a comparison came to, at its left end.
    Verdict(String, Tone),
}

/// What a verdict means for who chooses a path. Colour may tell it; the sign before it always does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// Different, for the better.
    Better,
    /// Different, for the worse.
    Worse,
    /// Different, and nobody says which side is better.
    Different,
    /// Equivalent.
    Same,
    /// Inconclusive, or no verdict.
    Open,
}

impl Tone {
    /// Of a comparison of this quantity.
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
    /// The text.
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
    /// A cell that is one text.
    pub(super) fn lone(text: impl Into<String>) -> Self {
        Self(vec![Part::Left(text.into())])
    }

    /// All parts in a line, not lined up with other rows.
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

    /// The same, kept with the column before.
    pub(super) fn following(mut self) -> Self {
        self.follows = true;
        self
    }
}

/// The same blocks with each text plain and in one line, wherever it is from. Pictures are a page's own affair.
pub(super) fn harmless(mut blocks: Vec<Block>) -> Vec<Block> {
    for block in &mut blocks {
        block.each_text(&mut |text| {
            if !text.chars().all(plain::is_plain) {
                *text = plain::line(text);
            }
        });
    }
    blocks
}

impl Block {
    fn each_text(&mut self, change: &mut dyn FnMut(&mut String)) {
        match self {
            Self::Title(text)
            | Self::Answer(text)
            | Self::Heading(text)
            | Self::Subheading(text)
            | Self::Paragraph(text) => change(text),
            Self::Facts(texts) | Self::Notes(texts) | Self::List(texts) => {
                texts.iter_mut().for_each(change);
            }
            Self::Folds(folds) => {
                for (name, texts) in folds {
                    change(name);
                    texts.iter_mut().for_each(&mut *change);
                }
            }
            Self::Table(table) => table.each_text(change),
            Self::Plots(_) => {}
        }
    }
}

impl Table {
    fn each_text(&mut self, change: &mut dyn FnMut(&mut String)) {
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

/// At most `width` characters, the cut shown.
pub(super) fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Footnotes of one table.
#[derive(Debug, Default)]
pub(super) struct Footnotes {
    notes: Vec<String>,
}

impl Footnotes {
    /// Adds a note and gives its mark, `¹`; no note, no mark.
    pub(super) fn mark(&mut self, note: Option<String>) -> String {
        let Some(note) = note else {
            return String::new();
        };
        let mark = superscript(self.notes.len() + 1);
        self.notes.push(format!("{mark} {note}"));
        mark
    }

    /// The notes as a block, where there are any.
    pub(super) fn block(self) -> Option<Block> {
        self.with(Vec::new())
    }

    /// The same with remarks that no row is marked with.
    pub(super) fn with(mut self, remarks: Vec<String>) -> Option<Block> {
        self.notes.extend(remarks);
        (!self.notes.is_empty()).then_some(Block::Notes(self.notes))
    }
}

fn superscript(number: usize) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    number
        .to_string()
        .bytes()
        .filter_map(|digit| DIGITS.get(usize::from(digit.wrapping_sub(b'0'))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_visibly() {
        assert_eq!(shorten("exactly", 7), "exactly");
        assert_eq!(shorten("too long by far", 9), "too long…");
        assert_eq!(shorten("µµµµ", 2), "µ…");
    }

    #[test]
    fn notes_count_from_one() {
        let mut notes = Footnotes::default();
        assert_eq!(notes.mark(None), "");
        for _ in 0..9 {
            notes.mark(Some("n".to_owned()));
        }
        assert_eq!(notes.mark(Some("ten".to_owned())), "¹⁰");
    }
}
