//! Runs: what is measured, by whom, and where it is kept.
//!
//! ```text
//! plan ──> lab ──> load ┐
//!                 meter ┴──> store
//! ```
//!
//! [`run`] carries a [`plan`] out, block by block; [`measure`] is where lab, load and [`meter`] meet for one sample.

pub mod measure;
pub mod meter;
pub mod plan;
pub mod profile;
pub mod run;
pub mod settings;
pub mod store;

use hopyard_analysis as assess;
use hopyard_host::{bounded, note, signals};
use hopyard_lab::{self as lab, guest};
use hopyard_load as load;
use hopyard_model::{self as model, loads, plain::chain, units};
use hopyard_stats as stats;
