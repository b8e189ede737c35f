//! Many machines measured in pairs, never one machine in two measurements at once.
//!
//! ```text
//! endpoints ──> schedule ──> plan
//!                             │
//!     dispatch ──> drive ──> engine: a child `hopyard run` for each pair
//!                    │
//!           fleet, store ──> rank ──> document, report
//!                    │
//!                 samples ──> query ──> assess ──> page
//! ```
//!
//! The store has a line for each pair that ended, so a killed fleet can go on. Whatever is printed is computed from it.

mod assess;
mod children;
mod dispatch;
mod document;
mod drive;
mod endpoints;
mod error;
mod fleet;
mod kubernetes;
mod matrix;
mod outcome;
mod page;
mod plan;
mod query;
mod rank;
mod relays;
mod report;
mod samples;
mod schedule;
mod slurm;
mod store;

pub use assess::{Assessed, CONFIDENCE, MARGIN, assess};
pub use children::Children;
pub use document::{
    Assessment, Document, SCHEMA, assessment, assessment_schema, document, schema, write,
};
pub use drive::{Answer, Ended, Engine, Job, Progress, drive};
pub use endpoints::{Endpoint, FOR_CELLS, FOR_PAIRS, read as read_endpoints};
pub use error::{Error, Result};
pub use fleet::{Fleet, is_fleet};
pub use kubernetes::{Manifest, pods};
pub use matrix::{
    Matrix, MatrixCell, MatrixDocument, carry_out, matrix_schema, matrix_text, over_nodes,
    read_matrix,
};
pub use outcome::{End, Outcome, State};
pub use page::{Page, Point, page, points};
pub use plan::{AT_ONCE, Column, Plan, Preview, Settings};
pub use query::DuckDb;
pub use rank::{Machine, Ranks};
pub use relays::{Relays, remove_abandoned as remove_abandoned_relays, serve as serve_relay};
pub use report::{plan_text, text, verdicts_text};
pub use samples::{SCHEMA as SAMPLES_SCHEMA, Sample};
pub use schedule::{Pair, Pairs, rounds};
pub use slurm::endpoints as slurm_endpoints;
pub use store::Store;
