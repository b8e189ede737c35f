//! Runs: what is measured, in which order, and where it is stored.
//!
//! ```text
//! plan ──> lab ──> load ┐
//!                 meter ┴──> store
//! ```
//!
//! [`run`] executes a [`plan`], block by block; [`measure`] brings lab, load and [`meter`] together for one sample.

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
