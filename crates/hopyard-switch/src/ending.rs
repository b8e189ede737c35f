//! Removes a switch. The caller holds the lock. What was killed half-way is removed by whoever gets the lock next.

use std::path::Path;

use crate::attached::{attached, detach_classifiers};
use crate::bpffs::{self, is_directory};
use crate::error::Result;
use crate::layout::{Config, LAYOUT_VERSION, PortRecord, STATE_BUSY};
use crate::shortcut;
use crate::state::State;

impl State {
    /// Has the programs of all ports drop what their devices send; nobody sends to them either. The records stay, and tell of the
    /// devices.
    fn silence(&mut self) -> Result<()> {
        let ports = self.ports()?;
        // First of all: a port that still sends could use the addresses of one that is forgotten.
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

    /// Ends the programs that do not end with their links. A device whose program is taken off talks to the host's stack like any
    /// other. Therefore all ports are silent before: killed in between, none talks to the host while others still have a switch.
    fn end(&mut self, directory: &Path) -> Result<()> {
        let config = self.config()?;
        // Records of another version may mean something else.
        if config.version == LAYOUT_VERSION {
            // From here on it is finished, by whoever gets the lock next if not by us.
            self.set_config(Config {
                state: STATE_BUSY,
                ..config
            })?;
            self.silence()?;
        }
        detach_classifiers(directory, &config, &attached(self, &config)?)
    }
}

/// Removes all there is in the directory of a switch. Links end with their files; classifiers go before, while there are maps to
/// tell of them.
pub(crate) fn all(directory: &Path) -> Result<()> {
    // What a link leads to is no switch.
    if !is_directory(directory) {
        return Ok(());
    }
    if let Ok(mut state) = State::open(directory) {
        state.end(directory)?;
    }
    // Sockets that are joined keep its programs: they are to know that it is over.
    shortcut::turn_off(directory)?;
    bpffs::remove_directory(directory)
}
