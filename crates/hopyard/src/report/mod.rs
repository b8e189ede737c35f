//! Reports: one run, written for people, for scripts, and for eyes used to netperf.
//!
//! Everything here is a pure function of [`RunReport`]. Text and Markdown share one composition
//! ([`document::Block`]s), so they cannot say different things.

mod conclusion;
mod csv;
pub mod diff;
mod document;
mod figures;
pub mod flame;
mod group;
mod header;
mod markdown;
mod netperf;
mod notes;
mod number;
mod offloads;
mod profile;
mod published;
mod quantity;
mod sweep;
mod text;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::model::RunReport;
use document::Block;

/// The name and version of the document that [`schema`] describes.
const SCHEMA: &str = "hopyard/run/1";

/// Columns of a terminal.
const TERMINAL: usize = 100;

/// How a report is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Format {
    /// Tables for a terminal of 100 columns.
    #[default]
    Text,
    /// The same content as GitHub-flavoured Markdown.
    Markdown,
    /// The whole document, see `hopyard schema`.
    Json,
    /// A row per cell and quantity.
    Csv,
    /// The classic layout of netperf 2, with hopyard's figures.
    Netperf,
}

/// The report of a run. Ends with a newline; reads nothing but its arguments.
#[must_use]
pub fn render(report: &RunReport, format: Format) -> String {
    match format {
        Format::Text => text::render(&compose(report), TERMINAL),
        Format::Markdown => markdown::render(&compose(report)),
        Format::Json => json(report),
        Format::Csv => csv::render(report),
        Format::Netperf => netperf::render(report),
    }
}

/// The JSON schema (2020-12) of [`Format::Json`].
#[must_use]
pub fn schema() -> Value {
    named(schemars::schema_for!(RunReport), SCHEMA)
}

/// A schema whose documents carry its name.
fn named(schema: schemars::Schema, name: &str) -> Value {
    let mut schema = schema.to_value();
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".to_owned(), name.into());
    }
    if let Some(field) = schema.pointer_mut("/properties/schema") {
        field["const"] = name.into();
    }
    schema
}

fn json(report: &impl serde::Serialize) -> String {
    // Maps with text keys and finite numbers cannot fail to serialise; should that ever change, the
    // reader gets JSON that says so.
    let mut text = serde_json::to_string_pretty(report)
        .unwrap_or_else(|error| serde_json::json!({ "error": error.to_string() }).to_string());
    text.push('\n');
    text
}

/// What a person reads, in order: what was done, the figures, what they show, what to doubt.
fn compose(report: &RunReport) -> Vec<Block> {
    let mut blocks = header::blocks(report);
    let layout = group::Layout::of(&report.cells);
    for group in &layout.groups {
        blocks.extend(if let Some(sweep) = &report.offloads {
            offloads::tables(group, &sweep.survey)
        } else if sweep::fits(group) {
            sweep::blocks(group, &layout)
        } else {
            figures::blocks(group, &layout)
        });
    }
    blocks.extend(published::blocks(report, &layout));
    blocks.extend(profile::blocks(&layout));
    blocks.extend(notes::legend(report, &layout));
    blocks.extend(match &report.offloads {
        Some(sweep) => offloads::findings(sweep),
        None => conclusion::blocks(&layout),
    });
    blocks.extend(notes::warnings(report));
    blocks.extend(notes::failures(report, &layout));
    blocks.extend(notes::way(report, &layout));
    blocks.extend(notes::filters(report));
    blocks.extend(notes::datapaths(report));
    blocks
}
