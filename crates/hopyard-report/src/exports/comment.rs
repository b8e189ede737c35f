//! A comment on a pull request or merge request: a sentence that answers, the differences, and everything else folded.
//!
//! GitHub refuses a comment of more than 65,536 characters, GitLab one of more than a million.

use super::markup::{self, Width};
use super::{Export, Writer};
use crate::comment::{self, Comment};
use crate::diff;
use crate::document::{Block, harmless, shorten};
use crate::plain;

/// Most UTF-16 units of a comment. The rest up to 65,536 is for the poster's own mark above.
const MOST: usize = 65_000;
/// Part of these, reserved for the sentence that counts what did not fit.
const LAST_WORDS: usize = 300;
/// Longest single text, characters, so that one failure's cause does not take the room of all figures.
const LONGEST: usize = 2_000;

pub(super) static EXPORT: Export = Export {
    name: "comment",
    title: "a comment in Markdown",
    summary: "A comment on a pull request: the answer, what differs, the rest folded, at most 65,000 characters",
    extension: "comment.md",
    diff: Some(|report| render(diff::comment(report))),
    ..Export::of_runs(Writer::Text(|report, seen| {
        Ok(render(comment::of_run(report, seen)))
    }))
};

/// The comment, sanitized, ending with a newline.
pub(super) fn render(comment: Comment) -> String {
    let mut page = Page::default();
    page.write(vec![Block::Answer(comment.answer)]);
    page.write(comment.open);
    for (name, blocks) in comment.folded {
        page.fold(&name, blocks);
    }
    page.finish()
}

/// A comment being written, with the number of things that did not fit.
#[derive(Default)]
struct Page {
    text: String,
    used: usize,
    /// Room reserved for the end of an open fold.
    kept: usize,
    /// If a fold does not fit, all of it is skipped.
    skips: bool,
    rows: usize,
    sentences: usize,
}

impl Page {
    /// Appends a text if it fits.
    fn push(&mut self, text: &str) -> bool {
        let size = size(text);
        let fits = !self.skips && self.used + size + self.kept + LAST_WORDS <= MOST;
        if fits {
            self.text.push_str(text);
            self.used += size;
        }
        fits
    }

    /// Appends blocks, separated by empty lines, as long as there is room.
    fn write(&mut self, blocks: Vec<Block>) {
        for block in tamed(blocks) {
            let is_table = matches!(block, Block::Table(_));
            let pieces = markup::pieces(&block, Width::Narrow);
            let gap = if self.text.is_empty() { "" } else { "\n" };
            let mut left = pieces.iter().enumerate();
            let missing = left.by_ref().find(|(place, piece)| {
                let gap = if *place == 0 { gap } else { "" };
                !self.push(&format!("{gap}{piece}"))
            });
            if missing.is_some() {
                let count = 1 + left.count();
                *(if is_table {
                    &mut self.rows
                } else {
                    &mut self.sentences
                }) += count;
            }
        }
    }

    /// Appends blocks in a fold with this name.
    fn fold(&mut self, name: &str, blocks: Vec<Block>) {
        const CLOSED: &str = "\n</details>\n";
        if blocks.is_empty() {
            return;
        }
        let name = markup::escape(&plain::line(&shorten(name, LONGEST)));
        self.kept = size(CLOSED);
        let is_open = self.push(&format!("\n<details><summary>{name}</summary>\n"));
        self.skips = !is_open;
        self.write(blocks);
        (self.kept, self.skips) = (0, false);
        if is_open {
            self.push(CLOSED);
        }
    }

    /// The complete comment, with what did not fit.
    fn finish(mut self) -> String {
        let counted = [
            (self.rows, "rows of tables"),
            (self.sentences, "paragraphs"),
        ];
        let counted = counted.iter().filter(|(count, _)| *count > 0);
        let missing: Vec<String> = counted.map(|(n, what)| format!("{n} {what}")).collect();
        if !missing.is_empty() {
            self.text.push_str(&format!(
                "\n**Left out: {}, for which a comment has no room.** The formats `text` and `json` have all of it.\n",
                missing.join(" and ")
            ));
        }
        plain::document(&self.text).into_owned()
    }
}

/// UTF-16 units, which are at least as many as characters: the documented limits do not say what is counted.
fn size(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Sanitized blocks without pictures, with each text cut to a limit, and with smaller headings for a comment.
fn tamed(blocks: Vec<Block>) -> Vec<Block> {
    let mut blocks = harmless(blocks);
    blocks.retain(|block| !matches!(block, Block::Plots(_)));
    for block in &mut blocks {
        block.each_text(&mut |text| *text = shorten(text, LONGEST));
        if let Block::Title(text) | Block::Heading(text) = block {
            *block = Block::Subheading(std::mem::take(text));
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Cell, Column, Row, Table};

    fn table(rows: usize) -> Block {
        let row = |n: usize| Row::Cells(vec![Cell::lone(format!("a|b {n}")), Cell::lone("1.00")]);
        Block::Table(Table {
            columns: vec![Column::left(&["cell"]), Column::right(&["B/A"])],
            keys: 1,
            rows: (0..rows).map(row).collect(),
        })
    }

    fn comment(rows: usize) -> Comment {
        Comment {
            answer: "Nothing differs.".to_owned(),
            open: vec![Block::Heading("Different".to_owned()), table(2)],
            folded: vec![
                ("All <cells>".to_owned(), vec![table(rows)]),
                (
                    "Warnings".to_owned(),
                    vec![Block::List(vec!["one".to_owned(), "two".to_owned()])],
                ),
                ("Nothing".to_owned(), Vec::new()),
            ],
        }
    }

    #[test]
    fn what_fits_is_there() {
        insta::assert_snapshot!(render(comment(1)), @r"
        **Nothing differs.**

        ### Different

        | cell | B/A |
        | --- | --: |
        | a\|b 0 | 1.00 |
        | a\|b 1 | 1.00 |

        <details><summary>All &lt;cells></summary>

        | cell | B/A |
        | --- | --: |
        | a\|b 0 | 1.00 |

        </details>

        <details><summary>Warnings</summary>

        - one
        - two

        </details>
        ");
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        for rows in [100, 3_000, 3_300, 3_400, 3_500, 5_000, 100_000] {
            let text = render(comment(rows));
            assert!(size(&text) <= MOST, "{rows}: {}", size(&text));
            assert_eq!(
                text.matches("<details>").count(),
                text.matches("</details>").count(),
                "{rows}"
            );
            let shown = text.matches("a\\|b").count() - 2;
            let left_out = text.split_once("Left out: ").map_or(0, |(_, rest)| {
                rest.split(' ').next().unwrap().parse().unwrap()
            });
            assert_eq!(shown + left_out, rows);
            assert!(shown >= rows.min(2_500), "{rows}: {shown}");
        }
    }

    #[test]
    fn one_text_does_not_take_all_the_room() {
        let mut long = comment(1);
        long.open.push(Block::Paragraph("word ".repeat(100_000)));
        let text = render(long);
        assert!(size(&text) < 4_000 && text.contains("- two"), "{text}");
    }
}
