//! CPU time of the machine that a process runs on: of the controller's, and of a worker's on another machine.
//!
//! [`CpuMeter`] reads CPU use by idle subtraction (docs/method.md, "CPU cost").

mod awake;
mod cpu;
mod idle;
mod machine;
mod processes;
mod stat;

pub use cpu::{CpuMeter, CpuReading, OwnProcesses};
pub(crate) use machine::MachineMeter;
pub use machine::sees_all_processes;
pub use processes::{
    Clocks, PossiblyForeign, Whose, is_running, let_namespaces_go, namespaces_are_going, whose,
};

/// What a meter could not read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the kernel's cannot be read.
    #[error("cannot read {file}: {source}")]
    Read {
        file: String,
        #[source]
        source: std::io::Error,
    },
    /// A file of the kernel's does not look as known.
    #[error("cannot make sense of {file}: {what}")]
    Parse {
        file: &'static str,
        /// What the file lacks, or what is not understood.
        what: String,
    },
    /// A thread that keeps a CPU awake cannot be started.
    #[error("cannot start a thread that keeps a CPU awake: {0}")]
    Awake(#[source] std::io::Error),
    /// CPUs cannot be kept awake here, and why.
    #[error("cannot keep CPUs awake: {0}; or leave --keep-awake out")]
    NotAwake(&'static str),
    /// A kernel interface beside /proc cannot be read.
    #[error(transparent)]
    Net(#[from] hopyard_net::Error),
}

/// A file of the kernel's.
///
/// # Errors
/// It cannot be read.
pub fn read(file: &str) -> Result<String, Error> {
    std::fs::read_to_string(file).map_err(|source| Error::Read {
        file: file.to_owned(),
        source,
    })
}
