//! Removing switches, and what runs at their devices.

use std::path::Path;

use crate::bpffs::{self, Lock, check_name, directory, is_directory};
use crate::error::Result;
use crate::here::{Here, device_name};
use crate::hook::Hooks;
use crate::layout::LAYOUT_VERSION;
use crate::programs;
use crate::shortcut;
use crate::state::State;
use crate::switch::{Attached, Switch, attached, no_switch};

impl Switch {
    /// Takes the classifiers among these programs off their devices. False: this is another namespace than the switch's, and
    /// they stay until their device goes.
    pub(crate) fn detach_classifiers(&self, from: &[Attached]) -> Result<bool> {
        let mut classifiers = from
            .iter()
            .filter(|one| one.hooks == Hooks::Clsact)
            .peekable();
        if classifiers.peek().is_none() {
            return Ok(true);
        }
        let here = Here::new()?;
        if here.inode != self.state.config()?.netns {
            return Ok(false);
        }
        for one in classifiers {
            if let Some(device) = device_name(one.device) {
                programs::detach_classifier(&self.directory, &here.handle, one.hook, &device)?;
            }
        }
        Ok(true)
    }

    /// Ends the programs that do not end with their links. Those out of reach forward nothing any more: a port's drops what its
    /// device sends, the uplink's lets everything pass.
    fn end_classifiers(&mut self) -> Result<()> {
        let config = self.state.config()?;
        let attached = attached(&self.state, &config)?;
        // Records of another version may mean something else.
        if self.detach_classifiers(&attached)? || config.version != LAYOUT_VERSION {
            return Ok(());
        }
        for (slot, record) in self.state.ports()? {
            if config.hooks_of(&record) == Hooks::Clsact {
                self.silence(slot)?;
            }
        }
        Ok(())
    }

    /// Removes whatever there is under a name, whole or not, of whichever version; nothing is fine.
    ///
    /// # Errors
    /// Something cannot be removed.
    pub fn discard(name: &str) -> Result<()> {
        check_name("remove a switch", name)?;
        let Some(_lock) = Lock::at_home()? else {
            return Ok(());
        };
        all(&directory(name))
    }

    /// Removes the switch of a name, of whichever version. Its devices stay. From another namespace than the switch's a
    /// classifier stays as well, and drops what its device sends until that goes; that of another layout goes on forwarding.
    ///
    /// # Errors
    /// There is none of that name; something of it cannot be removed.
    pub fn remove(name: &str) -> Result<()> {
        check_name("remove a switch", name)?;
        let directory = directory(name);
        let Some(_lock) = Lock::at_home()?.filter(|_| is_directory(&directory)) else {
            return Err(no_switch(name));
        };
        all(&directory)
    }

    /// Removes this switch. Its devices stay.
    ///
    /// # Errors
    /// Something of it cannot be removed; asking again goes on from there.
    pub fn delete(self) -> Result<()> {
        let _lock = self.lock()?;
        all(&self.directory)
    }
}

/// Removes all there is in the directory of a switch. Links end with their files; classifiers go before, where there
/// are maps yet to tell of them.
pub(crate) fn all(directory: &Path) -> Result<()> {
    // What a link leads to is no switch.
    if !is_directory(directory) {
        return Ok(());
    }
    if let Ok(state) = State::open(directory) {
        let name = directory.file_name().unwrap_or_default();
        let mut switch = Switch {
            name: name.to_string_lossy().into_owned(),
            directory: directory.to_owned(),
            state,
            forgotten: Vec::new(),
        };
        switch.end_classifiers()?;
    }
    // Sockets that are joined keep its programs: they are to know that it is over.
    shortcut::turn_off(directory)?;
    bpffs::remove_directory(directory)
}
