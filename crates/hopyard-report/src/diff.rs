//! Two sides of repeated runs compared, as text to be pasted into a message: narrow, plain, the machine first.

mod comment;
mod facts;
mod sentences;
mod tables;
#[cfg(test)]
mod tests;

use serde_json::Value;

use super::comment::Comment;
use super::document::{Block, headed};
use crate::model::{DiffReport, named_schema};

/// Name and version of the document that [`schema`] describes.
const SCHEMA: &str = "hopyard/diff/2";

/// Width of a message that can be quoted twice without breaking lines.
pub(super) const MESSAGE: usize = 76;

/// The JSON schema (2020-12) of a comparison.
#[must_use]
pub fn schema() -> Value {
    named_schema(schemars::schema_for!(DiffReport), SCHEMA)
}

/// The text for people, in order: what was compared and what else differs, the ratios, results, warnings.
pub(super) fn compose(report: &DiffReport) -> Vec<Block> {
    let mut blocks = facts::runs(report);
    blocks.extend(facts::differences(report));
    blocks.extend(facts::caution(report));
    blocks.extend(tables::blocks(report));
    blocks.push(facts::legend(report));
    blocks.extend(sentences::changes(report));
    blocks.extend(sentences::gate(report));
    blocks.extend(facts::left_out(report));
    blocks.extend(headed("Warnings", facts::warnings(report)));
    blocks
}

/// The comparison as a comment on a pull request.
pub(super) fn comment(report: &DiffReport) -> Comment {
    comment::compose(report)
}

/// The text in ASCII, one character for one, so that columns stay aligned.
pub(super) fn ascii(text: &str) -> String {
    let plain = |c: char| match c {
        c if c.is_ascii() => c,
        '─' | '–' | '·' | '−' => '-',
        'µ' | 'μ' => 'u',
        '×' => 'x',
        '…' => '.',
        _ => '?',
    };
    text.chars().map(plain).collect()
}
