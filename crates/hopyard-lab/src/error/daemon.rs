//! What can go wrong with a daemon.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

/// What can go wrong with a daemon. The text of an error never repeats its source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory of the daemon cannot be made, read or removed.
    #[error("cannot {what}")]
    Home {
        /// Operation and object.
        what: String,
        #[source]
        source: io::Error,
    },
    /// Processes cannot be looked at.
    #[error(transparent)]
    Process(#[from] hopyard_net::Error),
    /// It cannot be run at all.
    #[error("cannot run {program}: {remedy}, or choose another path")]
    Start {
        program: &'static str,
        /// How to make the program available.
        remedy: &'static str,
        /// Why it does not start.
        #[source]
        source: io::Error,
    },
    /// It lives but cannot be spoken to.
    #[error("cannot start {of}: {daemon} {lacks} after {after:?}: {said}")]
    Deaf {
        /// The switch whose daemon it is.
        of: &'static str,
        /// What the daemon is called in messages.
        daemon: &'static str,
        /// What does not show that it is ready.
        lacks: String,
        /// The time it had.
        after: Duration,
        /// What the daemon printed.
        said: String,
    },
    /// The daemon ended while the lab was in use.
    #[error("{daemon} died ({how}): {said}; see `dmesg` for crashes or out-of-memory kills")]
    Died {
        /// The daemon, and whose.
        daemon: &'static str,
        /// Exit status or signal of the daemon.
        how: ExitStatus,
        /// What the daemon printed.
        said: String,
    },
}
