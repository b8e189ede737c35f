//! What a report for people consists of, whatever it is written as.

use super::plot::Plot;
pub(super) use super::table::{Cell, Column, Part, Row, Side, Table, Tone};
use crate::plain;

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
    /// Changes each text; pictures are a page's own affair.
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

    /// The mark of a note that several places may have.
    pub(super) fn shared_mark(&mut self, note: String) -> String {
        let same = |(index, there): &(usize, &String)| {
            **there == format!("{} {note}", superscript(index + 1))
        };
        match self.notes.iter().enumerate().find(same) {
            Some((index, _)) => superscript(index + 1),
            None => self.mark(Some(note)),
        }
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
