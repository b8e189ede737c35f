//! hopyard: build every path between two endpoints, load it, and say what it costs.
//!
//! ```text
//! plan ──> lab ──> load ┐
//!                 meter ┴──> store ──> assess (stats) ──> report
//! ```
//!
//! Which module may use which is held by `tests/layers`; `docs/architecture.md` shows it.

pub mod assess;
mod bounded;
pub mod claims;
pub mod cli;
pub mod guest;
pub mod lab;
pub mod measure;
pub mod meter;
mod owner;
pub mod plan;
pub mod profile;
mod programs;
pub mod report;
pub mod run;
pub mod settings;
pub mod signals;
pub mod store;
pub mod tapswitch;

pub use hopyard_load as load;
pub(crate) use hopyard_model::loads;
pub use hopyard_model::{self as model, plain, plain::chain, units};
pub use hopyard_stats as stats;

/// Says something on stderr that is neither a result nor the end of the program, harmless wherever it is from.
pub fn note(message: std::fmt::Arguments<'_>) {
    use std::io::Write;
    // `2>&1 | head -1` has stopped listening; that is no reason to end, and none to panic as eprintln does.
    let _ = writeln!(
        std::io::stderr(),
        "hopyard: {}",
        plain::message(&message.to_string())
    );
}
