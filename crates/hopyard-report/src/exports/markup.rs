//! Blocks as GitHub-flavoured Markdown, for a whole document and for a comment.

use crate::document::{Block, Column, Row, Side, Table};
use crate::notes::instead_short;

/// Layout of table columns in the source.
#[derive(Debug, Clone, Copy)]
pub(super) enum Width {
    /// Aligned, for readers of the source.
    Aligned,
    /// As narrow as possible.
    Narrow,
}

impl Width {
    /// Width up to which a column is padded. Columns of sentences are not padded, because nobody reads their source.
    fn most(self) -> usize {
        match self {
            Self::Aligned => 60,
            Self::Narrow => 0,
        }
    }
}

/// The lines of a block, in pieces that can be left out from the end: for a table, its head with the first row, then
/// each further row. Each ends with a newline.
pub(super) fn pieces(block: &Block, width: Width) -> Vec<String> {
    let one = |text: String| vec![text];
    match block {
        Block::Plots(_) => Vec::new(),
        Block::Title(text) => one(format!("# {}\n", escape(text))),
        Block::Answer(text) => one(format!("**{}**\n", escape(text))),
        Block::Heading(text) => one(format!("## {}\n", escape(text))),
        Block::Subheading(text) => one(format!("### {}\n", escape(text))),
        Block::Paragraph(text) => one(format!("{}\n", escape(text))),
        Block::Facts(facts) => one(format!("{}\n", escape(&facts.join(" · ")))),
        Block::Folds(folds) => folds
            .iter()
            .map(|(name, items)| format!("- {}: {}\n", escape(name), escape(&items.join(" "))))
            .collect(),
        Block::Table(one) => table(one, width),
        Block::Notes(items) | Block::List(items) => items
            .iter()
            .map(|item| format!("- {}\n", escape(item)))
            .collect(),
    }
}

/// Escapes what would be read as markup, a link, or a mention (`@name`), but for what stands between two back-ticks: that is code, in
/// which nothing is read as markup and an escape would be printed. Code with a `<` is `<code>`: some readers of Markdown let HTML pass.
///
/// Where back-ticks have no partner or stand side by side, others may pair them in another way, and they are escaped too.
pub(super) fn escape(text: &str) -> String {
    let pieces: Vec<&str> = text.split('`').collect();
    let is_paired = pieces.len() % 2 == 1 && !text.contains("``") && !text.contains('\n');
    if !is_paired {
        return escape_all(text, true).replace('`', "&#96;");
    }
    let each = pieces.iter().enumerate();
    let each = each.map(|(at, piece)| match at % 2 {
        1 if piece.contains('<') => format!("<code>{}</code>", escape_all(piece, false)),
        1 => format!("`{piece}`"),
        _ => escape_all(piece, at == 0),
    });
    each.collect()
}

/// GitHub and GitLab look for mentions after they removed escapes, but not within `<code>`. Underscores inside words are harmless on
/// GitHub.
fn escape_all(text: &str, begins_line: bool) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    let mut is_first = begins_line;
    while let Some(c) = rest.next() {
        let before_a_word = rest.peek().is_some_and(|next| next.is_alphanumeric());
        let before_a_number = rest.peek().is_some_and(char::is_ascii_digit);
        match c {
            '\\' | '*' | '[' => escaped.extend(['\\', c]),
            '<' => escaped.push_str("&lt;"),
            '&' if before_a_number => escaped.push_str("<code>&amp;</code>"),
            '&' => escaped.push_str("&amp;"),
            '@' | '#' | '~' if before_a_word => escaped.push_str(&format!("<code>{c}</code>")),
            // References of GitLab to merge requests, epics and snippets.
            '!' | '$' if before_a_number => escaped.push_str(&format!("<code>{c}</code>")),
            // GitLab takes a line that begins with a slash for a command.
            '/' if is_first => escaped.push_str("\\/"),
            c => escaped.push(c),
        }
        is_first = false;
    }
    escaped
        .replace("://", ":<code>//</code>")
        .replace("www.", "www<code>.</code>")
        .replace("GH-", "GH<code>-</code>")
}

fn table(table: &Table, width: Width) -> Vec<String> {
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
            widest.unwrap_or(0).clamp(3, width.most().max(3))
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
    let widths = match width {
        Width::Aligned => widths,
        Width::Narrow => vec![0; widths.len()],
    };
    let mut lines =
        vec![line(&header, &widths, &table.columns) + &line(&rule, &widths, &table.columns)];
    for (place, row) in rows.iter().enumerate() {
        let row = line(row, &widths, &table.columns);
        match (place, lines.first_mut()) {
            // A head without rows is not a table.
            (0, Some(head)) => head.push_str(&row),
            _ => lines.push(row),
        }
    }
    lines
}

/// Markdown has no rows of running text: the text goes into the first column of figures.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_stay_as_they_are_typed() {
        assert_eq!(
            escape("A: `modprobe -r x && modprobe x a=*[1]` <b>"),
            "A: `modprobe -r x && modprobe x a=*[1]` &lt;b>"
        );
        assert_eq!(field("`a | b`"), "`a \\| b`");
        assert_eq!(escape("`a <b> *`"), "<code>a &lt;b> \\*</code>");
        // Markdown pairs these in another way, or in none.
        for text in ["```<b>`", "` <b> ``", "one ` <b>", "`a\n<b>`"] {
            let escaped = escape(text);
            assert!(
                !escaped.contains("<b>") && !escaped.contains('`'),
                "{escaped}"
            );
        }
        assert_eq!(escape("/close"), "\\/close");
        assert_eq!(escape("`a`/b"), "`a`/b");
    }
}
