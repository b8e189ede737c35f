//! What can go wrong with Open vSwitch.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

/// What can go wrong with Open vSwitch. The text of an error never repeats its source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A daemon of it, or the daemons' directory.
    #[error(transparent)]
    Daemon(#[from] super::daemon::Error),
    /// A program of it cannot be run at all.
    #[error("cannot run {program}: repair package `openvswitch-switch`, or choose another path")]
    Start {
        program: String,
        #[source]
        source: io::Error,
    },
    /// A program of it ran and failed.
    #[error("cannot {what}: {program} failed ({how}): {said}; repair that, or choose another path")]
    Failed {
        /// Operation and object.
        what: String,
        program: String,
        how: ExitStatus,
        /// Its diagnostics.
        said: String,
    },
    /// A program of it does not come to an end.
    #[error(
        "cannot {what}: {program} did not end within {after:?}: check that the machine is not overloaded and that \
         this program belongs to Open vSwitch"
    )]
    Silent {
        /// Operation and object.
        what: String,
        program: String,
        /// The time it had.
        after: Duration,
    },
}
