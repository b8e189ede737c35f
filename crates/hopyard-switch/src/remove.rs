//! Removing switches, and what runs at their devices.

use std::path::Path;

use crate::bpffs::{self, Lock, check_name, directory, is_directory};
use crate::error::Result;
use crate::here::{Here, device_name};
use crate::hook::Hooks;
use crate::layout::Config;
use crate::programs;
use crate::shortcut;
use crate::state::State;
use crate::switch::{Attached, Switch, attached, no_switch};

impl Switch {
    /// Takes classifiers off these devices, where the switch has any and this is its namespace: elsewhere they stay
    /// until their device goes.
    pub(crate) fn detach_classifiers(&self, from: &[Attached]) -> Result<()> {
        let config = self.state.config()?;
        detach_classifiers(&self.directory, &config, from)
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

    /// Removes the switch of a name, of whichever version. Its devices stay.
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

fn detach_classifiers(directory: &Path, config: &Config, from: &[Attached]) -> Result<()> {
    let mut classifiers = from
        .iter()
        .filter(|one| one.hooks == Hooks::Clsact)
        .peekable();
    if classifiers.peek().is_none() {
        return Ok(());
    }
    let here = Here::new()?;
    if here.inode != config.netns {
        return Ok(());
    }
    for one in classifiers {
        if let Some(device) = device_name(one.device) {
            programs::detach_classifier(directory, &here.handle, one.hook, &device)?;
        }
    }
    Ok(())
}

/// Removes all there is in the directory of a switch. Links end with their files; classifiers go before, where there
/// are maps yet to tell of them.
pub(crate) fn all(directory: &Path) -> Result<()> {
    // What a link leads to is no switch.
    if !is_directory(directory) {
        return Ok(());
    }
    if let Ok(state) = State::open(directory) {
        let config = state.config()?;
        detach_classifiers(directory, &config, &attached(&state, &config)?)?;
    }
    // Sockets that are joined keep its programs: they are to know that it is over.
    shortcut::turn_off(directory)?;
    bpffs::remove_directory(directory)
}
