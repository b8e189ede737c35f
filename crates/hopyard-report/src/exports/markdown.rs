//! GitHub-flavoured Markdown, readable as source too.

use super::markup::{Width, pieces};
use super::{Export, Writer, comment};
use crate::claims::{self, Page};
use crate::document::{Block, harmless};
use crate::plain;
use crate::{Chapters, diff};

pub(super) static EXPORT: Export = Export {
    name: "markdown",
    title: "Markdown",
    summary: "The same content as GitHub-flavoured Markdown",
    extension: "md",
    run: Writer::Text(|report, seen| Ok(render(Chapters::of(report, seen).named_first()))),
    coloured: None,
    // A comparison is written for a pull request.
    diff: Some(|report| comment::render(diff::comment(report))),
    claims: Some(|report, detail| render(claims::blocks(report, detail, Page::Wide))),
    published: Some(|title, mut blocks| {
        blocks.insert(0, Block::Title(title.to_owned()));
        Ok(render(blocks))
    }),
};

/// The whole document.
fn render(blocks: Vec<Block>) -> String {
    let blocks = harmless(blocks);
    let parts: Vec<String> = blocks
        .iter()
        .filter(|block| !matches!(block, Block::Plots(_)))
        .map(|block| pieces(block, Width::Aligned).concat())
        .collect();
    plain::document(&parts.join("\n")).into_owned()
}
