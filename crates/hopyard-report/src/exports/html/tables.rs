//! Tables: the parts of a cell are aligned as in text, by blanks in a fixed-width font. Each cell has its number, by
//! which the page's script sorts.

use maud::{Markup, html};

use crate::document::{Cell, Column, Part, Row, Side, Table, Tone};
use crate::exports::text::lined_up;
use crate::number::leading;

/// A table and its caption. A table that is wider than the screen scrolls by itself.
pub(super) fn table(table: &Table, caption: &str) -> Markup {
    // If the heading above says the same, only screen readers get the caption.
    let what = what(table);
    let label = what.map_or_else(|| caption.to_owned(), |what| format!("{what}: {caption}"));
    let (sorted, sums) = rows(table);
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table.sortable[sorted.len() > 1] {
                @match what {
                    Some(what) => caption { (what) span.heard { ": " (caption) } },
                    None => caption.heard { (caption) },
                }
                thead { tr { @for (index, column) in table.columns.iter().enumerate() {
                    th scope="col" class=[side(column)] { (header(table, index)) }
                } } }
                tbody { @for row in sorted { (row) } }
                @if !sums.is_empty() { tfoot { @for row in sums { (row) } } }
            }
        }
    }
}

/// For a grid: the quantity, which is the heading of its row names.
fn what(table: &Table) -> Option<&str> {
    match &table.columns.first()?.header[..] {
        [what, _] if !what.is_empty() => Some(what),
        _ => None,
    }
}

fn header(table: &Table, index: usize) -> Markup {
    let lines = table
        .columns
        .get(index)
        .map_or(&[][..], |column| &column.header[..]);
    let said = usize::from(index == 0 && what(table).is_some());
    let lines = lines.get(said..).unwrap_or_default();
    html! {
        @for (line, text) in lines.iter().filter(|text| !text.is_empty()).enumerate() {
            @if line > 0 { br; }
            (text)
        }
    }
}

fn side(column: &Column) -> Option<&'static str> {
    (column.side == Side::Right).then_some("number")
}

/// The rows that a reader may sort, and the rows with sums.
fn rows(table: &Table) -> (Vec<Markup>, Vec<Markup>) {
    let columns: Vec<Vec<Vec<String>>> = (0..table.columns.len())
        .map(|index| column(table, index))
        .collect();
    let fields = |cells: &[Cell], place: usize| {
        html! { tr {
            @for (index, cell) in cells.iter().enumerate() {
                (field(table, index, cell, &columns[index][place]))
            }
        } }
    };
    let (mut sorted, mut sums) = (Vec::new(), Vec::new());
    for (place, row) in table.rows.iter().enumerate() {
        match row {
            Row::Cells(cells) => sorted.push(fields(cells, place)),
            Row::Sum(cells) => sums.push(fields(cells, place)),
            Row::Instead { keys, text } => sorted.push(html! { tr {
                @for (index, key) in keys.iter().enumerate() {
                    (field(table, index, &Cell::lone(key), std::slice::from_ref(key)))
                }
                td.instead colspan=(table.columns.len().saturating_sub(keys.len())) { (text) }
            } }),
        }
    }
    (sorted, sums)
}

/// The texts of a column, row by row.
fn column(table: &Table, index: usize) -> Vec<Vec<String>> {
    let nothing = Cell(Vec::new());
    let cells: Vec<Cell> = table
        .rows
        .iter()
        .map(|row| match row {
            Row::Cells(cells) | Row::Sum(cells) => cells.get(index).unwrap_or(&nothing).clone(),
            Row::Instead { .. } => nothing.clone(),
        })
        .collect();
    lined_up(&cells)
}

fn field(table: &Table, index: usize, cell: &Cell, texts: &[String]) -> Markup {
    let class = table.columns.get(index).and_then(side);
    let whole = texts.len() == cell.0.len();
    let inside = html! {
        @for (place, text) in texts.iter().enumerate() {
            @if place > 0 { " " }
            @match cell.0.get(place) {
                Some(Part::Verdict(_, tone)) if whole => (verdict(text, *tone)),
                _ => (text),
            }
        }
    };
    let value = value(cell);
    html! {
        @if index < table.keys {
            th scope="row" class=[class] data-value=[value] { (inside) }
        } @else {
            td class=[class] data-value=[value] { (inside) }
        }
    }
}

/// The number by which a cell is sorted; `None` for text.
fn value(cell: &Cell) -> Option<f64> {
    match cell.0.first()?.text() {
        // The base is 1 among ratios.
        "base" => Some(1.0),
        text => leading(text),
    }
}

fn verdict(text: &str, tone: Tone) -> Markup {
    // The sign is the same for better and worse, so screen readers get the word.
    let (class, heard) = match tone {
        Tone::Better => ("better", " better"),
        Tone::Worse => ("worse", " worse"),
        Tone::Different => ("different", " different"),
        Tone::Same => ("same", " equivalent"),
        Tone::Open if text.trim_start().starts_with('?') => ("open", " inconclusive"),
        Tone::Open => return html! { (text) },
    };
    html! { span class=(class) { (text) } span.heard { (heard) } }
}
