//! Reports of one run: for people, for scripts, and in netperf's layout.
//!
//! Everything here is a pure function of [`RunReport`]. Text and Markdown share one composition ([`document::Block`]s),
//! so they cannot contradict each other.

mod answer;
mod chains;
pub mod claims;
mod comment;
mod conclusion;
mod curves;
pub mod diff;
mod document;
mod exports;
mod fields;
mod figures;
pub mod flame;
pub mod functions;
mod gate;
mod group;
mod header;
pub mod kernels;
mod latency;
mod legend;
mod matrix;
mod notes;
mod number;
mod offers;
mod offloads;
pub mod openmetrics;
mod plot;
pub mod printed;
mod profile;
mod published;
mod quantity;
mod recommendation;
mod settling;
mod sweep;
mod table;
mod tidy;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use hopyard_analysis as assess;
use hopyard_model::{self as model, loads, plain, units};
use hopyard_stats as stats;
use serde_json::Value;

pub use self::exports::{EXPORTS, Export, JSON, TEXT, Writer, export, page_of, parquet_file};
pub use self::number::{percent, ratio};
pub use self::tidy::{Column, Values};
use document::{Block, harmless};
use group::{Group, Layout};
use model::{Observation, RunReport};
use plot::Gallery;

/// Name and version of the document that [`schema`] describes.
const SCHEMA: &str = "hopyard/run/1";

/// Columns of a terminal.
const TERMINAL: usize = 100;

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A picture of the HTML page.
    #[error("cannot draw `{title}`: {reason}; the other formats need no pictures")]
    Drawing {
        /// Its title.
        title: String,
        reason: String,
    },
    /// The table of samples.
    #[error("cannot write the samples as Parquet")]
    Parquet(#[from] ::parquet::errors::ParquetError),
}

/// The JSON schema (2020-12) of a run's report.
#[must_use]
pub fn schema() -> Value {
    crate::model::named_schema(schemars::schema_for!(RunReport), SCHEMA)
}

/// The parts of a report for people. A page has its own order.
struct Chapters {
    /// The title.
    title: Vec<Block>,
    /// The first sentence, which answers the run's question.
    answer: Vec<Block>,
    /// All comparisons in one table.
    matrix: Vec<Block>,
    /// What was done, on which machine.
    opening: Vec<Block>,
    figures: Vec<Block>,
    /// The meaning of the signs in tables.
    legend: Vec<Block>,
    /// The results as text.
    conclusion: Vec<Block>,
    /// Warnings.
    doubts: Vec<Block>,
    recommendation: Vec<Block>,
    /// What would change the recommendation.
    conditions: Vec<Block>,
    /// The path proof, and what else saw the traffic.
    proof: Vec<Block>,
}

impl Chapters {
    fn of(report: &RunReport, observations: &[Observation]) -> Self {
        let layout = group::Layout::of(&report.cells);
        let gallery = Gallery::of(report, observations);
        let mut figures: Vec<Block> = layout
            .groups
            .iter()
            .flat_map(|group| tables(group, report, &layout, &gallery))
            .collect();
        figures.extend(curves::blocks(report, &layout, &gallery));
        figures.extend(settling::blocks(&layout, &gallery));
        figures.extend(published::blocks(report, &layout, &gallery));
        figures.extend(profile::blocks(&layout));
        let mut doubts = notes::warnings(report);
        doubts.extend(notes::failures(report, &layout));
        let mut proof = notes::way(report, &layout);
        let offers = offers::blocks(report);
        if offers.is_empty() {
            proof.extend(notes::filters(report));
        }
        proof.extend(offers);
        proof.extend(chains::blocks(report));
        proof.extend(notes::datapaths(report));
        proof.extend(offloads::by_device(report));
        proof.extend(notes::link(report));
        let mut conclusion = match &report.offloads {
            Some(sweep) => offloads::findings(sweep),
            None => conclusion::blocks(&layout),
        };
        conclusion.extend(gate::of_run(report));
        let answer = match &report.offloads {
            Some(sweep) => offloads::now(report, sweep, &layout.groups),
            None => answer::blocks(report, &layout),
        };
        Self {
            title: header::title(report),
            answer,
            matrix: matrix::blocks(report, &layout),
            opening: header::blocks(report),
            figures,
            legend: legend::legend(report, &layout),
            conclusion,
            doubts,
            recommendation: recommendation::blocks(report, &layout),
            conditions: recommendation::conditions(report),
            proof,
        }
    }

    fn harmless(self) -> Self {
        Self {
            title: harmless(self.title),
            answer: harmless(self.answer),
            matrix: harmless(self.matrix),
            opening: harmless(self.opening),
            figures: harmless(self.figures),
            legend: harmless(self.legend),
            conclusion: harmless(self.conclusion),
            doubts: harmless(self.doubts),
            recommendation: harmless(self.recommendation),
            conditions: harmless(self.conditions),
            proof: harmless(self.proof),
        }
    }

    /// The order on a terminal: the answer first, the recommendation last.
    fn in_order(mut self) -> Vec<Block> {
        let (legend, later) = self.legends();
        let parts = [
            self.answer,
            self.matrix,
            legend,
            self.title,
            self.opening,
            self.figures,
        ];
        let rest = [
            later,
            self.conclusion,
            self.doubts,
            self.proof,
            self.conditions,
            self.recommendation,
        ];
        parts.into_iter().chain(rest).flatten().collect()
    }

    /// The same below the title.
    fn named_first(mut self) -> Vec<Block> {
        let title = std::mem::take(&mut self.title);
        title.into_iter().chain(self.in_order()).collect()
    }

    /// The legend: below the first table that needs it, or below all.
    fn legends(&mut self) -> (Vec<Block>, Vec<Block>) {
        let legend = std::mem::take(&mut self.legend);
        if self.matrix.is_empty() {
            (Vec::new(), legend)
        } else {
            (legend, Vec::new())
        }
    }
}

/// The tables of one load and peer, and pictures of them.
fn tables(
    group: &Group<'_>,
    report: &RunReport,
    layout: &Layout<'_>,
    gallery: &Gallery<'_>,
) -> Vec<Block> {
    if let Some(sweep) = &report.offloads {
        let blocks = offloads::tables(group, &sweep.survey);
        return pictured(blocks, gallery.rows(group));
    }
    let blocks = if sweep::fits(group) {
        sweep::blocks(group, layout)
    } else {
        figures::blocks(group, layout)
    };
    let curves = sweep::plots(group, report, gallery);
    let mut plots = curves.unwrap_or_else(|| gallery.rows(group));
    plots.extend(latency::plots(group, gallery));
    pictured(blocks, plots)
}

/// Pictures between the heading and the tables.
fn pictured(mut blocks: Vec<Block>, plots: Vec<plot::Plot>) -> Vec<Block> {
    let heading = blocks
        .iter()
        .position(|block| matches!(block, Block::Heading(_)));
    blocks.insert(heading.map_or(0, |at| at + 1), Block::Plots(plots));
    blocks
}
