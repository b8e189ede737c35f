//! What can go wrong before or beside the measurements. A pair that fails is no error: it is a result.

use std::io;

/// Why there is no fleet, or none any more.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or a request asks for what is none.
    #[error("{0}")]
    Wrong(String),
    /// A file or directory cannot be used.
    #[error("cannot {what} {file}")]
    File {
        /// `read`, `make`, `write to`, …
        what: &'static str,
        /// Its name, for people.
        file: String,
        #[source]
        source: io::Error,
    },
    /// This program cannot go on.
    #[error("cannot {what}")]
    Internal {
        /// What it was about to do.
        what: &'static str,
        #[source]
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn file(what: &'static str, file: &std::path::Path, source: io::Error) -> Self {
        Self::File {
            what,
            file: hopyard_model::plain::line(&file.display().to_string()),
            source,
        }
    }

    /// Is it the request that is wrong, or something that this host cannot do?
    #[must_use]
    pub fn is_request(&self) -> bool {
        !matches!(self, Self::Internal { .. })
    }
}

/// With the error of this crate.
pub type Result<T> = std::result::Result<T, Error>;
