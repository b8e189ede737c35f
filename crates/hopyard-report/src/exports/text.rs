//! Text for a terminal or a message, coloured if requested, and at most as wide as a page if the figures allow it.
//!
//! The tables are laid out here and not by a table library, because their cells are aligned inside (value at the
//! decimal point, half-width, verdict), and a row without figures is one running text.

use super::{Export, Writer};
use crate::claims::{self, Page};
use crate::document::{Block, Cell, Column, Part, Row, Side, Table, Tone, harmless, shorten};
use crate::plain;
use crate::{Chapters, TERMINAL, diff};

const GAP: &str = "  ";

pub static EXPORT: Export = Export {
    name: "text",
    title: "plain text",
    summary: "Tables in plain text, for a terminal",
    extension: "txt",
    run: Writer::Text(|report, seen| Ok(render(Chapters::of(report, seen).in_order(), TERMINAL))),
    coloured: Some(|report| coloured(Chapters::of(report, &[]).in_order(), TERMINAL)),
    diff: Some(|report| diff::ascii(&render(diff::compose(report), diff::MESSAGE))),
    claims: Some(|report, detail| render(claims::blocks(report, detail, Page::Terminal), TERMINAL)),
    published: Some(|_, blocks| Ok(render(blocks, TERMINAL))),
};

/// Blocks only, for a terminal.
pub(crate) fn page(blocks: Vec<Block>) -> String {
    render(blocks, TERMINAL)
}

/// The whole document, on a page with this many columns.
fn render(blocks: Vec<Block>, page: usize) -> String {
    plain::document(&compose(blocks, page, Ink::None)).into_owned()
}

/// The same with coloured verdicts. All texts of blocks are sanitized, so terminal commands come only from here.
fn coloured(blocks: Vec<Block>, page: usize) -> String {
    compose(blocks, page, Ink::Colours)
}

/// How text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ink {
    None,
    Colours,
}

impl Ink {
    /// A text in one of the terminal's colours; blanks at its ends stay outside.
    fn paint(self, text: &str, code: &str) -> String {
        let inner = text.trim();
        if self == Self::None || inner.is_empty() {
            return text.to_owned();
        }
        text.replacen(inner, &format!("\u{1b}[{code}m{inner}\u{1b}[0m"), 1)
    }

    fn verdict(self, text: &str, tone: Tone) -> String {
        let code = match tone {
            Tone::Better => "32",
            Tone::Worse => "31",
            Tone::Different => "1",
            Tone::Same => "36",
            Tone::Open => "33",
        };
        self.paint(text, code)
    }
}

fn compose(blocks: Vec<Block>, page: usize, ink: Ink) -> String {
    let blocks = harmless(blocks);
    let mut lines = Vec::new();
    let mut before: Option<&Block> = None;
    let mut title = None;
    let words = |block: &&Block| !matches!(block, Block::Plots(_));
    for block in blocks.iter().filter(words) {
        if before.is_some_and(|before| apart(before, block)) {
            lines.push(String::new());
        }
        lines.extend(match block {
            Block::Title(text) => {
                title = Some(text.clone());
                Vec::new()
            }
            Block::Heading(text) | Block::Subheading(text) | Block::Paragraph(text) => {
                wrap(text, "", "", page)
            }
            // A title is the first of the facts that follow it.
            Block::Facts(facts) => wrap_at(title.take().iter().chain(facts), " · ", page),
            Block::Answer(text) => {
                let lines = wrap(text, "", "", page);
                lines.iter().map(|line| ink.paint(line, "1")).collect()
            }
            Block::Folds(folds) => folds
                .iter()
                .flat_map(|(name, items)| {
                    wrap(&format!("{name}: {}", items.join(" ")), "- ", "  ", page)
                })
                .collect(),
            Block::Table(one) => table(one, page, ink),
            Block::Notes(notes) => notes.iter().flat_map(|n| wrap(n, "", "  ", page)).collect(),
            Block::List(items) => items
                .iter()
                .flat_map(|i| wrap(i, "- ", "  ", page))
                .collect(),
            Block::Plots(_) => Vec::new(),
        });
        before = Some(block);
    }
    lines.iter().fold(String::new(), |mut text, line| {
        text.push_str(line.trim_end());
        text.push('\n');
        text
    })
}

/// Whether there is an empty line between the two.
fn apart(before: &Block, block: &Block) -> bool {
    let belongs = matches!(
        (before, block),
        (Block::Title(_) | Block::Facts(_), Block::Facts(_))
            | (Block::Heading(_) | Block::Subheading(_), _)
            | (Block::Table(_), Block::Notes(_))
    );
    !belongs
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// Words wrapped to the width of a page; a longer word has a line of its own.
fn wrap(text: &str, first: &str, others: &str, page: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if !empty && width(&line) + 1 + width(word) > page {
            lines.push(std::mem::replace(&mut line, others.to_owned()));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    lines.push(line);
    lines
}

/// Pieces wrapped to the width of a page, broken only between pieces.
fn wrap_at<'a>(
    pieces: impl Iterator<Item = &'a String>,
    between: &str,
    page: usize,
) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces {
        match lines.last_mut() {
            Some(line) if width(line) + width(between) + width(piece) <= page => {
                line.push_str(between);
                line.push_str(piece);
            }
            _ => lines.push(piece.clone()),
        }
    }
    lines
}

/// The lines of a table, split into several tables below each other if it is wider than the page.
fn table(table: &Table, page: usize, ink: Ink) -> Vec<String> {
    let columns: Vec<Laid> = (0..table.columns.len())
        .map(|i| Laid::of(table, i, ink))
        .collect();
    let (keys, figures) = columns.split_at(table.keys.min(columns.len()));
    let room = page.saturating_sub(total(keys));
    let mut parts: Vec<Vec<&Laid>> = vec![Vec::new()];
    let mut used = 0;
    for together in figures.chunk_by(|_, next| next.follows) {
        let wide = total(together);
        // The gap before the first column is counted with the keys.
        if used > 0 && used + wide > room + GAP.len() {
            parts.push(Vec::new());
            used = 0;
        }
        if let Some(part) = parts.last_mut() {
            part.extend(together);
        }
        used += wide;
    }
    let mut lines = Vec::new();
    for (i, part) in parts.into_iter().enumerate() {
        if i > 0 {
            lines.push(String::new());
        }
        let all: Vec<&Laid> = keys.iter().chain(part).collect();
        lines.extend(draw(table, &all, page));
    }
    lines
}

fn total(columns: &[Laid]) -> usize {
    columns.iter().map(|c| c.width + GAP.len()).sum::<usize>()
}

fn draw(table: &Table, columns: &[&Laid], page: usize) -> Vec<String> {
    let depth = columns.iter().map(|c| c.header.len()).max().unwrap_or(0);
    let mut lines: Vec<String> = (0..depth)
        .map(|line| {
            let cells: Vec<_> = columns.iter().map(|c| c.header_line(line, depth)).collect();
            cells.join(GAP)
        })
        .collect();
    let across = columns.iter().map(|c| c.width).sum::<usize>()
        + GAP.len() * columns.len().saturating_sub(1);
    lines.push("─".repeat(across));
    for (index, row) in table.rows.iter().enumerate() {
        lines.push(match row {
            Row::Cells(_) | Row::Sum(_) => {
                let cells: Vec<_> = columns.iter().map(|c| c.row(index)).collect();
                cells.join(GAP)
            }
            Row::Instead { text, .. } => {
                let keys: Vec<_> = columns
                    .iter()
                    .take(table.keys)
                    .map(|c| c.row(index))
                    .collect();
                let start = keys.join(GAP);
                let room = page.saturating_sub(width(&start) + GAP.len());
                format!("{start}{GAP}{}", shorten(text, room))
            }
        });
    }
    lines
}

/// A column with its texts aligned.
struct Laid {
    width: usize,
    side: Side,
    follows: bool,
    header: Vec<String>,
    rows: Vec<String>,
    /// The rows in colours.
    inked: Vec<String>,
}

impl Laid {
    fn of(table: &Table, index: usize, ink: Ink) -> Self {
        let nothing = Cell(Vec::new());
        let named: Vec<Cell> = table
            .rows
            .iter()
            .map(|row| match row {
                Row::Cells(cells) | Row::Sum(cells) => cells.get(index).unwrap_or(&nothing).clone(),
                Row::Instead { keys, .. } => {
                    keys.get(index).map_or_else(|| nothing.clone(), Cell::lone)
                }
            })
            .collect();
        let texts = lined_up(&named);
        let rows: Vec<String> = texts.iter().map(|parts| parts.join(" ")).collect();
        let inked = named.iter().zip(&texts);
        let inked = inked
            .map(|(cell, texts)| inked_row(cell, texts, ink))
            .collect();
        let column = table.columns.get(index);
        let header = column.map_or_else(Vec::new, |c: &Column| c.header.clone());
        let widest = header.iter().chain(&rows).map(|text| width(text)).max();
        Self {
            width: widest.unwrap_or(0),
            side: column.map_or(Side::Left, |c| c.side),
            follows: column.is_some_and(|c| c.follows),
            header,
            rows,
            inked,
        }
    }

    /// Headers are directly above the rule: a short one starts lower.
    fn header_line(&self, line: usize, depth: usize) -> String {
        let text = (line + self.header.len())
            .checked_sub(depth)
            .and_then(|own| self.header.get(own));
        let text = text.map_or("", String::as_str);
        self.padded(text, width(text))
    }

    fn row(&self, index: usize) -> String {
        let wide = self.rows.get(index).map_or(0, |text| width(text));
        self.padded(self.inked.get(index).map_or("", String::as_str), wide)
    }

    /// A text padded to a width on the screen.
    fn padded(&self, text: &str, wide: usize) -> String {
        let fill = " ".repeat(self.width.saturating_sub(wide));
        match self.side {
            Side::Left => format!("{text}{fill}"),
            Side::Right => format!("{fill}{text}"),
        }
    }
}

/// The parts of a cell, already aligned, with its verdicts in colours.
fn inked_row(cell: &Cell, texts: &[String], ink: Ink) -> String {
    let whole = texts.len() == cell.0.len();
    let parts = texts
        .iter()
        .enumerate()
        .map(|(place, text)| match cell.0.get(place) {
            Some(Part::Verdict(_, tone)) if whole => ink.verdict(text, *tone),
            _ => text.clone(),
        });
    parts.collect::<Vec<_>>().join(" ")
}

/// The cells of a column with their parts padded so that they are aligned when joined by a blank. A cell with fewer
/// parts than the others (`base`, `–`) is a single text.
pub(super) fn lined_up(cells: &[Cell]) -> Vec<Vec<String>> {
    let parts = cells.iter().map(|cell| cell.0.len()).max().unwrap_or(0);
    if parts <= 1
        && cells
            .iter()
            .flat_map(|c| &c.0)
            .all(|p| matches!(p, Part::Left(_) | Part::Verdict(..)))
    {
        return cells.iter().map(|cell| vec![cell.plain()]).collect();
    }
    let full: Vec<&Cell> = cells.iter().filter(|cell| cell.0.len() == parts).collect();
    let slots: Vec<(usize, usize)> = (0..parts)
        .map(|i| {
            let slot = full.iter().filter_map(|cell| cell.0.get(i)).map(split);
            slot.fold((0, 0), |(b, a), (before, after)| {
                (b.max(width(before)), a.max(width(after)))
            })
        })
        .collect();
    cells
        .iter()
        .map(|cell| {
            if cell.0.len() < parts {
                return vec![cell.plain()];
            }
            cell.0
                .iter()
                .zip(&slots)
                .map(|(part, &(before, after))| {
                    let (left, right) = split(part);
                    format!("{left:>before$}{right:<after$}")
                })
                .collect()
        })
        .collect()
}

/// The text before and after the point at which a part is aligned.
fn split(part: &Part) -> (&str, &str) {
    match part {
        Part::Left(text) | Part::Verdict(text, _) => ("", text),
        Part::Right(text) => (text, ""),
        Part::Point(text) => {
            let end = text.find(|c: char| !(c.is_ascii_digit() || c == '-'));
            text.split_at(end.unwrap_or(text.len()))
        }
    }
}
