//! What can go wrong.

use std::io;

use hopyard_model::stored::End;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A plan or configuration asks for what is none.
    #[error("{0}")]
    Wrong(String),
    /// A file cannot be read.
    #[error("cannot read {file}")]
    Read {
        file: String,
        #[source]
        source: io::Error,
    },
    /// A plugin said no, or nothing that can be used, before anything was measured.
    #[error("network `{network}`: {cause}")]
    Refused {
        network: String,
        /// The call, and what came of it.
        cause: String,
    },
    /// The host for the plugins cannot be made.
    #[error("cannot {what}")]
    Host {
        what: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It was stopped before anything was measured.
    #[error("nothing was measured: {}", match .0 {
        End::TimeLimit => "the time limit came before the first attachment: give more time, or fewer containers (--ports)",
        End::Interrupted | End::Complete => "it was interrupted before the first attachment",
    })]
    Nothing(End),
    /// The process that measures ended before it was done.
    #[error("the process that calls the plugins ended early ({0})")]
    Ended(String),
}

impl From<hopyard_load::meter::Error> for Error {
    fn from(error: hopyard_load::meter::Error) -> Self {
        Self::host("see whether the kernel removes namespaces", error)
    }
}

impl Error {
    pub(crate) fn host(
        what: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Host {
            what: what.into(),
            source: source.into(),
        }
    }

    /// Is it the request that is wrong, or something that this host cannot do?
    #[must_use]
    pub fn is_request(&self) -> bool {
        !matches!(self, Self::Ended(_))
    }
}

/// With the error of this crate.
pub type Result<T> = std::result::Result<T, Error>;
