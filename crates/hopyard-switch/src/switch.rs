//! A switch that stands, and what is known of it.

use std::fmt;
use std::path::PathBuf;

use hopyard_net::NetNs;

use crate::attached::attached;
use crate::bpffs::{self, is_directory};
use crate::error::{Error, Result};
use crate::here::{Here, device_name};
use crate::hook::Hooks;
use crate::layout::{Config, Counters, SLOT_HOST, SLOT_WIRE, SWITCH_ANSWERS};
use crate::lock::Lock;
use crate::shortcut::ShortcutCounters;
use crate::state::{Stage, State, stage};

/// A switch that was found or made.
pub struct Switch {
    pub(crate) name: String,
    pub(crate) directory: PathBuf,
    pub(crate) state: State,
    /// Devices of ports that were taken away since they are gone or in another namespace.
    pub(crate) forgotten: Vec<u32>,
}

impl Switch {
    /// The names of the switches there are, of other versions too; what an interrupted command left
    /// unfinished goes before.
    ///
    /// # Errors
    /// The directory of switches cannot be read.
    pub fn list() -> Result<Vec<String>> {
        match Lock::at_home()? {
            // Without what was unfinished, which has gone by now.
            Some(_lock) => bpffs::names(),
            None => Ok(Vec::new()),
        }
    }

    /// Every name in use, of unfinished switches too.
    ///
    /// # Errors
    /// The directory of switches cannot be read.
    pub fn names() -> Result<Vec<String>> {
        bpffs::names()
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The lock, while the switch still stands whole: somebody else may have deleted it since it was found, and made one of that name.
    pub(crate) fn lock(&self) -> Result<Lock> {
        let lock = Lock::at_home()?.filter(|_| is_directory(&self.directory));
        let lock = lock.ok_or_else(|| no_switch(&self.name))?;
        match stage(&self.directory)? {
            Stage::Unfinished => return Err(no_switch(&self.name)),
            found => found.check_layout(&self.name)?,
        }
        if self.state.is_in(&self.directory)? {
            return Ok(lock);
        }
        Err(Error::MadeAnew {
            name: self.name.clone(),
        })
    }

    /// Is one of its programs a classifier?
    pub(crate) fn has_classifiers(&self, config: &Config) -> Result<bool> {
        let attached = attached(&self.state, config)?;
        Ok(
            config.hooks() == Hooks::Clsact
                || attached.iter().any(|one| one.hooks == Hooks::Clsact),
        )
    }

    /// The namespace of the caller, which must be the switch's.
    pub(crate) fn here(&self, what: &str) -> Result<Here> {
        let here = Here::new()?;
        let home = self.state.config()?.netns;
        if here.inode == home {
            return Ok(here);
        }
        Err(Error::OtherNamespace {
            what: what.to_owned(),
            home,
            here: here.inode,
        })
    }

    /// The name of a port's device, for people.
    pub(crate) fn device_of(&self, slot: u32) -> String {
        let index = self.state.port(slot).map_or(0, |record| record.device);
        device_name(index).map_or_else(
            || format!("device {index}, which is gone"),
            |name| format!("`{name}`"),
        )
    }

    /// The name of one of its devices; none if that is gone, or of another namespace than this one, where the number is another device's.
    pub(crate) fn name_of(&self, device: u32) -> Result<Option<String>> {
        let is_home = NetNs::current()?.inode()? == self.state.config()?.netns;
        Ok(is_home.then(|| device_name(device)).flatten())
    }

    /// Does it answer ARP and neighbour solicitations from the table, from now on?
    ///
    /// # Errors
    /// The kernel's maps cannot be written.
    pub fn set_answers(&mut self, answers: bool) -> Result<()> {
        let _lock = self.lock()?;
        self.repair()?;
        let config = self.state.config()?;
        let others = config.flags & !SWITCH_ANSWERS;
        let own = if answers { SWITCH_ANSWERS } else { 0 };
        self.state.set_config(Config {
            flags: others | own,
            ..config
        })
    }

    /// What the parties sent and got: the wire, the host, then the ports by slot.
    ///
    /// # Errors
    /// The kernel's maps cannot be read.
    pub fn stats(&self) -> Result<Vec<PartyStats>> {
        let mut parties = Vec::new();
        let mut add = |party: String, role, slot| -> Result<()> {
            parties.push(PartyStats {
                party,
                role,
                counters: self.state.counters(slot)?,
                shortcut: match slot {
                    SLOT_WIRE | SLOT_HOST => None,
                    port => self.shortcut_counters(port)?,
                },
            });
            Ok(())
        };
        if self.state.config()?.uplink != 0 {
            add("wire".into(), Role::Wire, SLOT_WIRE)?;
            add("host".into(), Role::Host, SLOT_HOST)?;
        }
        for (slot, record) in self.state.ports()? {
            let name = self.name_of(record.device)?;
            add(
                name.unwrap_or_else(|| format!("#{}", record.device)),
                Role::Port,
                slot,
            )?;
        }
        Ok(parties)
    }
}

impl fmt::Debug for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Switch").field(&self.name).finish()
    }
}

/// What a party of a switch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Role {
    /// What is beyond the uplink.
    Wire,
    /// The host's own stack.
    Host,
    /// A guest behind a device.
    Port,
}

/// What one party sent and got.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct PartyStats {
    /// `wire`, `host`, or the port's device.
    pub party: String,
    /// What it is: a port's device may be named as the wire or the host is.
    pub role: Role,
    /// The sums over all CPUs.
    pub counters: Counters,
    /// What went by the shortcut, of a port of a switch that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shortcut: Option<ShortcutCounters>,
}

pub(crate) fn no_switch(name: &str) -> Error {
    Error::NoSwitch {
        name: name.to_owned(),
        there: bpffs::names().unwrap_or_default(),
    }
}
