//! Meter: what the machine spent and what its devices saw while a load ran.
//!
//! [`CpuMeter`] reads CPU use by idle subtraction (docs/method.md, "CPU cost"); workers on other machines read theirs with
//! it too, so it is part of the crate that they are made of. [`devices`] reads the counters of every device of a lab;
//! [`path_proof`] holds them against what the traffic must have caused.

pub mod backlog;
pub mod devices;
pub mod environment;
pub mod path_proof;
pub mod vcpus;

use crate::load::meter::read;
pub use crate::load::meter::{Clocks, CpuMeter, CpuReading, Error, OwnProcesses};
pub(crate) use crate::load::meter::{Whose, namespaces_are_going, possibly_foreign, whose};
