//! What can go wrong with a daemon.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

/// What can go wrong with a daemon. The text of an error never repeats its source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its directory.
    #[error("cannot {what}")]
    Home {
        /// Operation and object.
        what: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Processes cannot be looked at.
    #[error(transparent)]
    Process(#[from] hopyard_net::Error),
    /// It cannot be run at all.
    #[error("cannot run {program}: {remedy}, or choose another path")]
    Start {
        /// The program.
        program: &'static str,
        /// What would help.
        remedy: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It lives but cannot be spoken to.
    #[error("cannot {what}: {daemon} does not listen on {socket} after {after:?}: {said}")]
    Deaf {
        /// Operation and object.
        what: &'static str,
        /// The daemon.
        daemon: &'static str,
        /// Where it was to listen.
        socket: String,
        /// The time it had.
        after: Duration,
        /// Its diagnostics.
        said: String,
    },
    /// It is gone.
    #[error("{daemon} died ({how}): {said}; see `dmesg` for crashes or out-of-memory kills")]
    Died {
        /// The daemon, and whose.
        daemon: &'static str,
        /// How it ended.
        how: ExitStatus,
        /// Its diagnostics.
        said: String,
    },
}
