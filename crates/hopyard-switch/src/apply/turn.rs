//! One `apply` at a time.

use std::fs::File;
use std::path::Path;

use hopyard_net::owned;
use nix::fcntl::Flock;

use crate::error::Result;
use crate::lock::wait_for;

/// The right to compare a description with its switch and to carry out what differs: one holder at a time on this host, so that the next one
/// sees the changes of this one. Ends with this value or with the process.
#[derive(Debug)]
pub struct Turn {
    _held: Flock<File>,
}

/// Only root can open it, so nobody else can hold it up.
const FILE: &str = "/run/hopyard-switch-apply.lock";

impl Turn {
    /// Waits until nobody else has it.
    ///
    /// # Errors
    /// The file of the lock cannot be opened: the caller is not root.
    pub fn take() -> Result<Self> {
        Ok(Self {
            _held: wait_for(Path::new(FILE))?.0,
        })
    }
}

impl Drop for Turn {
    /// Best effort: a file that stays does no harm.
    fn drop(&mut self) {
        // Still under the lock, so that whoever waits for it finds out.
        let _ = owned::remove_file(Path::new(FILE));
    }
}
