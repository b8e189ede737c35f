//! The one error type of the crate.

use std::io;
use std::path::PathBuf;

/// What went wrong. The text never contains the text of its [`source`](std::error::Error::source).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request cannot be met; found before anything was changed.
    #[error("cannot {what}: {why}")]
    Refused {
        /// Operation and object.
        what: String,
        /// What is in the way, and the way out.
        why: String,
    },
    /// There is no switch of that name.
    #[error("there is no switch `{name}`; {}", if .there.is_empty() { "there are none".to_owned() } else { format!("there are: {}", .there.join(", ")) })]
    NoSwitch {
        /// The name asked for.
        name: String,
        /// The switches there are.
        there: Vec<String>,
    },
    /// Reading or changing devices.
    #[error(transparent)]
    Net(#[from] hopyard_net::Error),
    /// The kernel refused a program, a map or a link.
    #[error("cannot {what}")]
    Bpf {
        /// Operation and object.
        what: String,
        /// Why it failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file of the state, below the BPF file system.
    #[error("cannot {what} {}", path.display())]
    File {
        /// The operation.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn refused(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Refused {
            what: what.into(),
            why: why.into(),
        }
    }

    /// Makes an error of the kernel's answer to a BPF call about `what`.
    pub(crate) fn bpf<E>(what: impl Into<String>) -> impl FnOnce(E) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let what = what.into();
        move |source| Self::Bpf {
            what,
            source: source.into(),
        }
    }

    /// Is it the caller's request that has to change (rather than the host or this program)?
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Refused { .. } | Self::NoSwitch { .. } => true,
            Self::Net(error) => matches!(
                error,
                hopyard_net::Error::Invalid { .. }
                    | hopyard_net::Error::Missing { .. }
                    | hopyard_net::Error::Unsupported { .. }
                    | hopyard_net::Error::Denied { .. }
            ),
            Self::Bpf { .. } | Self::File { .. } => false,
        }
    }
}

/// Result of everything here.
pub type Result<T> = std::result::Result<T, Error>;
