//! Meter: what the machine spent and what its devices counted while a load ran.
//!
//! [`CpuMeter`] reads CPU use by idle subtraction (docs/method.md, "CPU cost"). Workers on other machines use it too,
//! so it is in the crate of the worker. [`devices`] reads the counters of every device of a lab; [`path_proof`]
//! compares them with what the traffic must have caused.

pub mod backlog;
pub mod devices;
pub mod environment;
pub mod path_proof;
pub(crate) mod vcpus;

use crate::load::meter::read;
pub use crate::load::meter::{Clocks, CpuMeter, CpuReading, Error, OwnProcesses};
pub(crate) use crate::load::meter::{
    PossiblyForeign, Whose, is_running, let_namespaces_go, namespaces_are_going, whose,
};
