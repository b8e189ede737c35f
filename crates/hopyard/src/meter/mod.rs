//! Meter: what the machine spent and what its devices saw while a load ran.
//!
//! [`CpuMeter`] reads CPU use by idle subtraction (docs/method.md, "CPU cost"); [`devices`] reads the
//! counters of every device of a lab; [`path_proof`] holds them against what the traffic must have caused.

mod cpu;
pub mod devices;
pub mod environment;
mod idle;
pub mod path_proof;
mod processes;
mod stat;
pub mod vcpus;

pub use cpu::{CpuMeter, CpuReading, OwnProcesses};
pub use processes::Clocks;
pub(crate) use processes::{Whose, namespaces_are_going, possibly_foreign, whose};

/// What a meter could not read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the kernel's cannot be read.
    #[error("cannot read {file}: {source}")]
    Read {
        /// Path of the file.
        file: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file of the kernel's does not look as known.
    #[error("cannot make sense of {file}: {what}")]
    Parse {
        /// Path of the file.
        file: &'static str,
        /// What the file lacks, or what is not understood.
        what: String,
    },
    /// A kernel interface beside /proc cannot be read.
    #[error(transparent)]
    Net(#[from] hopyard_net::Error),
}

fn read(file: &str) -> Result<String, Error> {
    std::fs::read_to_string(file).map_err(|source| Error::Read {
        file: file.to_owned(),
        source,
    })
}
