//! Removes a switch. The caller holds the lock. What was killed half-way is removed by whoever gets the lock next.

use std::error::Error as _;
use std::io;
use std::path::Path;

use nix::errno::Errno;

use crate::attached::{attached, detach_classifiers};
use crate::bpffs::{self, is_directory};
use crate::error::{Error, Result};
use crate::layout::{Config, LAYOUT_VERSION, PortRecord, STATE_BUSY};
use crate::shortcut;
use crate::state::State;

impl State {
    /// From here on the programs drop what the devices of ports send, and nobody sends to ports. The records stay: they say which
    /// devices have programs.
    fn silence(&mut self) -> Result<()> {
        let ports = self.ports()?;
        // Before addresses are forgotten: a port that still sends could use those of another.
        for (slot, record) in &ports {
            self.forget_device(record.device, *slot)?;
        }
        for (slot, _) in &ports {
            self.stop_frames_to(*slot)?;
        }
        Ok(())
    }

    /// Lets no frame come to a port any more, and gives its record.
    pub(crate) fn stop_frames_to(&mut self, slot: u32) -> Result<PortRecord> {
        self.untie(slot)?;
        let record = self.port(slot)?;
        self.set_port(
            slot,
            PortRecord {
                ifindex: 0,
                state: STATE_BUSY,
                ..record
            },
        )?;
        self.forget(slot, record.holdings)?;
        Ok(record)
    }

    /// Takes off the programs that do not go with their links. A device without its program talks to the host's stack. So all ports
    /// are silent before: if this is killed half-way, no port forwards any more.
    fn end(&mut self, directory: &Path) -> Result<()> {
        let config = self.config()?;
        // Records of another version may mean something else.
        if config.version == LAYOUT_VERSION {
            // If this process is killed from here on, whoever gets the lock next finishes.
            self.set_config(Config {
                state: STATE_BUSY,
                ..config
            })?;
            self.silence()?;
        }
        detach_classifiers(directory, &config, &attached(self, &config)?)
    }
}

/// Removes everything in the directory of a switch. Links end with their files. Classifiers go before, while the maps that list
/// their devices are there.
pub(crate) fn all(directory: &Path) -> Result<()> {
    // What a link leads to is no switch.
    if !is_directory(directory) {
        return Ok(());
    }
    match State::open(directory) {
        Ok(mut state) => state.end(directory)?,
        // Its maps hold the only list of its devices, so they must not be removed.
        Err(error) if lacks_resources(&error) => return Err(error),
        // Unfinished, or of another version.
        Err(_) => {}
    }
    // Sockets that are joined keep its programs: they are to know that it is over.
    shortcut::turn_off(directory)?;
    bpffs::remove_directory(directory)
}

/// Whether this process could not open what may be there.
fn lacks_resources(error: &Error) -> bool {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    let mut errors = causes.filter_map(|cause| cause.downcast_ref::<io::Error>());
    errors.any(|error| {
        let number = error.raw_os_error().map(Errno::from_raw);
        matches!(
            number,
            Some(Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::EPERM | Errno::EACCES)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn want_of_resources_is_told_from_what_is_not_there() {
        let of = |number: Errno| {
            let error: io::Error = number.into();
            lacks_resources(&Error::bpf("open a map")(error))
        };
        assert!(of(Errno::EMFILE) && of(Errno::ENOMEM));
        assert!(!of(Errno::ENOENT) && !of(Errno::EINVAL));
    }
}
