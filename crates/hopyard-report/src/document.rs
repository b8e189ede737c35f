//! The parts of a report for people, independent of its format.

use super::plot::Plot;
pub(super) use super::table::{Cell, Column, Part, Row, Side, Table, Tone};
use crate::plain;

/// One piece of a report.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Block {
    /// The title of the report.
    Title(String),
    /// The sentence that answers what the run asks.
    Answer(String),
    /// Short facts in a row.
    Facts(Vec<String>),
    /// A heading.
    Heading(String),
    /// A heading of the next level.
    Subheading(String),
    /// Sentences.
    Paragraph(String),
    Table(Table),
    /// Remarks on the table above, a line each.
    Notes(Vec<String>),
    /// A list of sentences.
    List(Vec<String>),
    /// Sentences by subject, which a page folds.
    Folds(Vec<(String, Vec<String>)>),
    /// Pictures of figures that are in tables too; formats without pictures leave them out.
    Plots(Vec<Plot>),
}

/// Sentences under a heading; nothing if there are none.
pub(super) fn headed(heading: impl Into<String>, sentences: Vec<String>) -> Vec<Block> {
    if sentences.is_empty() {
        return Vec::new();
    }
    vec![Block::Heading(heading.into()), Block::List(sentences)]
}

/// The same blocks with every text sanitized and in one line. Pictures are left to the page.
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
    /// Changes each text; pictures are left to the page.
    pub(super) fn each_text(&mut self, change: &mut dyn FnMut(&mut String)) {
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

/// At most `width` characters, with a mark where it was cut.
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
    /// Adds a note and returns its mark, `¹`; empty without a note.
    pub(super) fn mark(&mut self, note: Option<String>) -> String {
        let Some(note) = note else {
            return String::new();
        };
        let mark = superscript(self.notes.len() + 1);
        self.notes.push(format!("{mark} {note}"));
        mark
    }

    /// The mark of a note that may be used several times.
    pub(super) fn shared_mark(&mut self, note: String) -> String {
        let same = |(index, there): &(usize, &String)| {
            **there == format!("{} {note}", superscript(index + 1))
        };
        match self.notes.iter().enumerate().find(same) {
            Some((index, _)) => superscript(index + 1),
            None => self.mark(Some(note)),
        }
    }

    /// The notes as a block, if there are any.
    pub(super) fn block(self) -> Option<Block> {
        self.with(Vec::new())
    }

    /// The notes with further remarks that no row refers to.
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
