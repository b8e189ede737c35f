//! hopyard: build every path between two endpoints, load it, and say what it costs.
//!
//! ```text
//! plan ──> lab ──> load ┐
//!                 meter ┴──> store ──> assess (stats) ──> report
//! ```
//!
//! `tests/layers` enforces which module may use which; `docs/architecture.md` shows it.

pub mod cli;
#[cfg(test)]
mod hostile;

pub use hopyard_analysis as assess;
pub use hopyard_claims as claims;
use hopyard_host::bounded;
pub use hopyard_host::{note, signals};
pub use hopyard_lab::{self as lab, guest, tapswitch};
pub use hopyard_load as load;
pub use hopyard_model::{self as model, plain, plain::chain, units};
pub use hopyard_report as report;
use hopyard_report::openmetrics;
pub use hopyard_run::{measure, meter, plan, profile, run, settings, store};
pub use hopyard_stats as stats;
