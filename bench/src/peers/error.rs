//! Why a sample failed.

use hopyard::{lab, load::remote, meter};

/// Why a sample gave no figure.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Lab(#[from] lab::Error),
    #[error(transparent)]
    Name(#[from] hopyard::model::UnknownName),
    #[error(transparent)]
    Meter(#[from] meter::Error),
    #[error(transparent)]
    Measure(#[from] hopyard::measure::Error),
    #[error(transparent)]
    Net(#[from] hopyard_net::Error),
    #[error(transparent)]
    Worker(#[from] remote::Error),
    #[error("cannot run `{program}`: {source}")]
    Start {
        program: String,
        #[source]
        source: std::io::Error,
    },
    #[error("`{program}` {what}")]
    Program { program: String, what: String },
    #[error("{doing}: {source}")]
    Io {
        doing: &'static str,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot {what}")]
    Bpf {
        what: &'static str,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Turns the kernel's answer to a BPF call into an error.
    pub(crate) fn bpf<E>(what: &'static str) -> impl FnOnce(E) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        move |source| Self::Bpf {
            what,
            source: source.into(),
        }
    }
}

pub(crate) type Result<T> = std::result::Result<T, Error>;
