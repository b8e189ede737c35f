//! GitHub-flavoured Markdown, readable as source too.

use super::{Export, Writer};
use crate::plain;
use crate::report::claims::{self, Page};
use crate::report::document::{Block, Column, Row, Side, Table, harmless};
use crate::report::notes::instead_short;
use crate::report::{Chapters, diff};

/// Columns of sentences are not lined up: their source is read by nobody.
const PADDED: usize = 60;

pub(super) static EXPORT: Export = Export {
    name: "markdown",
    title: "Markdown",
    summary: "The same content as GitHub-flavoured Markdown",
    extension: "md",
    run: Writer::Text(|report, seen| Ok(render(Chapters::of(report, seen).named_first()))),
    coloured: None,
    diff: Some(|report| render(diff::compose(report))),
    claims: Some(|report, detail| render(claims::blocks(report, detail, Page::Wide))),
};

/// The whole document.
fn render(blocks: Vec<Block>) -> String {
    let blocks = harmless(blocks);
    let parts: Vec<String> = blocks
        .iter()
        .filter(|block| !matches!(block, Block::Plots(_)))
        .map(|block| match block {
            Block::Plots(_) => String::new(),
            Block::Title(text) => format!("# {}\n", escape(text)),
            Block::Answer(text) => format!("**{}**\n", escape(text)),
            Block::Heading(text) => format!("## {}\n", escape(text)),
            Block::Subheading(text) => format!("### {}\n", escape(text)),
            Block::Paragraph(text) => format!("{}\n", escape(text)),
            Block::Facts(facts) => format!("{}\n", escape(&facts.join(" · "))),
            Block::Folds(folds) => folds
                .iter()
                .map(|(name, items)| format!("- {}: {}\n", escape(name), escape(&items.join(" "))))
                .collect(),
            Block::Table(one) => table(one),
            Block::Notes(items) | Block::List(items) => items
                .iter()
                .map(|item| format!("- {}\n", escape(item)))
                .collect(),
        })
        .collect();
    plain::document(&parts.join("\n")).into_owned()
}

/// What would be read as markup; underscores inside words are none on GitHub, and back-ticks in
/// messages are meant as code.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('*', "\\*")
        .replace('[', "\\[")
        .replace('<', "&lt;")
}

fn table(table: &Table) -> String {
    let header: Vec<String> = table
        .columns
        .iter()
        .map(|c| field(&c.header.join(" ")))
        .collect();
    let rows: Vec<Vec<String>> = table.rows.iter().map(|row| fields(row, table)).collect();
    let widths: Vec<usize> = header
        .iter()
        .enumerate()
        .map(|(i, title)| {
            let cells = rows.iter().filter_map(|row| row.get(i));
            let widest = cells.chain([title]).map(|text| text.chars().count()).max();
            widest.unwrap_or(0).clamp(3, PADDED)
        })
        .collect();
    let rule: Vec<String> = table
        .columns
        .iter()
        .zip(&widths)
        .map(|(column, &width)| match column.side {
            Side::Left => "-".repeat(width),
            Side::Right => format!("{}:", "-".repeat(width - 1)),
        })
        .collect();
    let mut text = line(&header, &widths, &table.columns);
    text.push_str(&line(&rule, &widths, &table.columns));
    for row in &rows {
        text.push_str(&line(row, &widths, &table.columns));
    }
    text
}

/// Markdown has no running rows: the text goes into the first column of figures.
fn fields(row: &Row, table: &Table) -> Vec<String> {
    match row {
        Row::Cells(cells) | Row::Sum(cells) => {
            cells.iter().map(|cell| field(&cell.plain())).collect()
        }
        Row::Instead { keys, text } => {
            let mut fields: Vec<String> = keys.iter().map(|key| field(key)).collect();
            fields.push(field(&instead_short(text)));
            fields.resize(table.columns.len(), String::new());
            fields
        }
    }
}

fn field(text: &str) -> String {
    escape(text).replace('|', "\\|")
}

fn line(fields: &[String], widths: &[usize], columns: &[Column]) -> String {
    let cells: Vec<String> = fields
        .iter()
        .zip(widths)
        .zip(columns)
        .map(|((text, &width), column)| match column.side {
            Side::Left => format!("{text:<width$}"),
            Side::Right => format!("{text:>width$}"),
        })
        .collect();
    format!("| {} |\n", cells.join(" | "))
}
