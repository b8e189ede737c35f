//! What can go wrong with a worker.

use std::process::ExitStatus;
use std::time::Duration;

use hopyard_model::InvalidSample;

use super::LastWords;

/// What can go wrong with a worker.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be started.
    #[error("cannot start the worker at `{endpoint}`: {source}")]
    Start {
        /// Name of the endpoint: `a`, `b`, …
        endpoint: String,
        #[source]
        source: std::io::Error,
    },
    /// The worker's process has ended.
    #[error("the worker at `{endpoint}` died while hopyard waited for it to {doing}: {how}{said}")]
    Died {
        endpoint: String,
        doing: &'static str,
        /// Exit status or signal.
        how: ExitStatus,
        /// What it said last on its stderr, where that is heard.
        said: LastWords,
    },
    /// It lives, but cannot be spoken to any more.
    #[error(
        "the worker at `{endpoint}` closed its {stream} while hopyard waited for it to {doing}, though it still \
         runs: whatever starts it must leave that open until it ends"
    )]
    Closed {
        endpoint: String,
        /// Which of its ends of the pipe.
        stream: &'static str,
        doing: &'static str,
    },
    /// It does not answer.
    #[error("the worker at `{endpoint}` did not {doing} within {after:?}")]
    Silent {
        endpoint: String,
        doing: &'static str,
        /// The time it had.
        after: Duration,
    },
    /// It answered something else, or speaks another version.
    #[error("unexpected reply of the worker at `{endpoint}`: {answer}")]
    Protocol {
        endpoint: String,
        /// The reply that came instead, for people.
        answer: String,
    },
    /// Nothing is heard of it any more, though nothing was closed.
    #[error(
        "the connection to the worker at `{endpoint}` is cut: nothing was heard of it for {after:?} while hopyard waited \
         for it to {doing}"
    )]
    Cut {
        endpoint: String,
        doing: &'static str,
        /// How long both ends may be silent.
        after: Duration,
    },
    /// It counted what cannot be.
    #[error(
        "the worker at `{endpoint}` reports an impossible count; start the same version of \
         hopyard at both ends"
    )]
    InvalidSample {
        endpoint: String,
        /// Which count is impossible, and why.
        #[source]
        source: InvalidSample,
    },
    /// It says that it cannot.
    #[error("at `{endpoint}`: {cause}")]
    Failed {
        endpoint: String,
        /// Operation, object and way out, as the worker reports it.
        cause: String,
    },
    /// The run was interrupted by the user.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Did what was to become the worker end because there is no such program?
    #[must_use]
    pub fn found_no_program(&self) -> bool {
        // As a shell tells it: not found, or not to be run (POSIX, "Exit Status for Commands").
        matches!(self, Self::Died { doing: "start", how, said, .. }
            if matches!(how.code(), Some(126 | 127)) || said.names_no_program())
    }
}
