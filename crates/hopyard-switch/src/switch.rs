//! Making, changing and removing switches.
//!
//! The order of the steps is what makes them safe to interrupt. A record is marked busy before
//! anything refers to it, and tied to its device after everything does; whoever opens a switch takes away
//! what is not tied, and whoever gets the lock the switches that are unfinished. The kernel detaches a link that was
//! never pinned when its maker dies; a classifier stays, and whoever takes its record away detaches it.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::bpffs::{self, Lock, check_name, directory, is_directory};
use crate::error::{Error, Result};
use crate::here::{Here, check_kernel, device_name};
use crate::layout::{
    Config, Counters, FIRST_PORT, LAYOUT_VERSION, PORT_CLASSIFIER, PortRecord, SLOT_HOST,
    SLOT_WIRE, STATE_BUSY, STATE_FREE, STATE_READY, SWITCH_ANSWERS, SWITCH_BEHIND, SWITCH_CLSACT,
    SWITCH_UPGRADING,
};
use crate::mac::Mac;
use crate::programs::{self, Hook, Hooks, Place, uplink_link};
use crate::remove;
use crate::shortcut::{self, ShortcutCounters};
use crate::state::{Stage, State, stage};
use crate::uplink::{hosts_flag, others_of_the_host};

/// What a new switch is to be.
#[derive(Debug, Clone, Default)]
pub struct NewSwitch<'a> {
    /// 1 to 32 letters, digits, `-` and `_`.
    pub name: &'a str,
    /// The device to the wire, of the calling thread's namespace.
    pub uplink: Option<&'a str>,
    /// Ethernet addresses of the host behind the uplink beside its own: of a macvlan, a bridge, VRRP.
    pub host_macs: Vec<Mac>,
    /// Answer ARP and neighbour solicitations from the table?
    pub answers: bool,
    /// May programs that others have at the hooks come before the switch's? They may then keep frames from it.
    pub behind_others: bool,
    /// Where its programs run.
    pub hooks: Hooks,
}

/// A switch that was found or made.
pub struct Switch {
    pub(crate) name: String,
    pub(crate) directory: PathBuf,
    pub(crate) state: State,
    /// Devices of ports that were taken away since they are gone or in another namespace.
    pub(crate) forgotten: Vec<u32>,
}

impl Switch {
    /// Makes a switch in the calling thread's network namespace. The uplink stays up and keeps its
    /// addresses and routes.
    ///
    /// # Errors
    /// The name is taken or unfit, the uplink does not exist or has a switch already, the kernel has no
    /// hooks of that kind. Nothing is left then.
    pub fn create(new: &NewSwitch<'_>) -> Result<Self> {
        let what = format!("create switch `{}`", new.name);
        check_name(&what, new.name)?;
        check_kernel(&what, new.hooks)?;
        let here = Here::new()?;
        // From here on nobody else makes or changes a switch: what is found free stays free.
        let _lock = Lock::making_home()?;
        let directory = directory(new.name);
        if is_directory(&directory) {
            return Err(Error::Exists {
                name: new.name.to_owned(),
            });
        }
        let uplink = new
            .uplink
            .map(|device| here.free_device(&what, device))
            .transpose()?;
        let config = Config {
            version: LAYOUT_VERSION,
            state: STATE_BUSY,
            uplink: 0,
            uplink_len: 0,
            host_mac: 0,
            netns: here.inode,
            flags: flags(new),
            changing: 0,
            slots: FIRST_PORT,
            net_device: 0,
        };
        let config = match &uplink {
            Some(link) => config.with_uplink(&what, link)?,
            None => config,
        };
        let hosts = others_of_the_host(&what, &new.host_macs, config.host_mac)?;
        bpffs::make_directory(&directory)?;
        let made = Self::fill(&here, new, &directory, config, &hosts);
        if made.is_err() {
            // The first problem is the one to report; what stays is unfinished, so the next command
            // removes it.
            let _ = remove::all(&directory);
        }
        made
    }

    fn fill(
        here: &Here,
        new: &NewSwitch<'_>,
        directory: &Path,
        config: Config,
        hosts: &[Mac],
    ) -> Result<Self> {
        programs::load(directory)?;
        programs::install(directory)?;
        let config = config.with_net_device(directory)?;
        let mut state = State::open(directory)?;
        state.set_config(config)?;
        state.set_hosts(hosts)?;
        if let Some(device) = new.uplink {
            state.set_uplink_name(device)?;
            let place = config.place(here);
            for hook in UPLINK {
                programs::attach(directory, &place, hook, device, uplink_link(hook))?;
            }
        }
        let mut switch = Self {
            name: new.name.to_owned(),
            directory: directory.to_owned(),
            state,
            forgotten: Vec::new(),
        };
        switch.learn_host(here)?;
        switch.state.set_config(Config {
            state: STATE_READY,
            flags: config.flags | hosts_flag(hosts),
            ..config
        })?;
        Ok(switch)
    }

    /// Finds a switch by name, after finishing or undoing what an interrupted command left.
    ///
    /// # Errors
    /// There is none of that name (the error lists those there are), or its state is another version's.
    pub fn open(name: &str) -> Result<Self> {
        check_name("find a switch", name)?;
        let directory = directory(name);
        let Some(_lock) = Lock::at_home()? else {
            return Err(no_switch(name));
        };
        if !is_directory(&directory) {
            return Err(no_switch(name));
        }
        match stage(&directory)? {
            Stage::Unfinished => return Err(no_switch(name)),
            found => found.check_layout(name)?,
        }
        let state = State::open(&directory)?;
        let mut switch = Self {
            name: name.to_owned(),
            directory,
            state,
            forgotten: Vec::new(),
        };
        switch.repair()?;
        Ok(switch)
    }

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

    /// The lock, while the switch still stands: somebody else may have deleted it since it was found.
    pub(crate) fn lock(&self) -> Result<Lock> {
        let lock = Lock::at_home()?.filter(|_| is_directory(&self.directory));
        lock.ok_or_else(|| no_switch(&self.name))
    }

    /// Finishes or undoes what an interrupted command left, forgets ports whose device is gone, and gives
    /// the slots of those that stay, in order.
    pub(crate) fn repair(&mut self) -> Result<Vec<u32>> {
        let mut taken = Vec::new();
        for slot in FIRST_PORT..self.state.config()?.slots {
            if self.state.is_tied(slot)? {
                taken.push(slot);
                continue;
            }
            let record = self.state.port(slot)?;
            if record.state == STATE_READY {
                self.forgotten.push(record.device);
            }
            if record.state != STATE_FREE {
                self.clear(slot)?;
            }
        }
        self.repair_uplink()?;
        shortcut::repair(&self.directory)?;
        let config = self.state.config()?;
        if config.changing != 0 {
            self.finish_change(config)?;
        }
        if config.flags & SWITCH_UPGRADING != 0 {
            // Classifiers are out of reach from elsewhere; the next command in the namespace goes on.
            if !self.has_classifiers(&config)? || Here::new()?.inode == config.netns {
                self.finish_upgrade()?;
            }
        } else {
            programs::unload(&self.directory)?;
        }
        Ok(taken)
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
            let name = device_name(record.device).unwrap_or_else(|| format!("#{}", record.device));
            add(name, Role::Port, slot)?;
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

/// The hooks of an uplink.
pub(crate) const UPLINK: [Hook; 2] = [Hook::UplinkIn, Hook::UplinkOut];

impl Config {
    pub(crate) fn hooks(&self) -> Hooks {
        match self.flags & SWITCH_CLSACT {
            0 => Hooks::Tcx,
            _ => Hooks::Clsact,
        }
    }

    /// Where the program of a port runs.
    pub(crate) fn hooks_of(&self, port: &PortRecord) -> Hooks {
        match port.flags & PORT_CLASSIFIER {
            0 => self.hooks(),
            _ => Hooks::Clsact,
        }
    }

    pub(crate) fn place<'a>(&self, here: &'a Here) -> Place<'a> {
        Place {
            handle: &here.handle,
            hooks: self.hooks(),
            behind: self.flags & SWITCH_BEHIND != 0,
        }
    }
}

fn flags(new: &NewSwitch<'_>) -> u16 {
    let answers = if new.answers { SWITCH_ANSWERS } else { 0 };
    let hooks = match new.hooks {
        Hooks::Tcx => 0,
        Hooks::Clsact => SWITCH_CLSACT,
    };
    let behind = if new.behind_others { SWITCH_BEHIND } else { 0 };
    answers | hooks | behind
}

/// A program of a switch that runs at a device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attached {
    pub(crate) hook: Hook,
    /// Index of the device.
    pub(crate) device: u32,
    pub(crate) hooks: Hooks,
}

impl Attached {
    pub(crate) fn port(config: &Config, record: &PortRecord) -> Self {
        Self {
            hook: Hook::Port,
            device: record.device,
            hooks: config.hooks_of(record),
        }
    }
}

/// All programs of a switch that run at devices.
pub(crate) fn attached(state: &State, config: &Config) -> Result<Vec<Attached>> {
    let ports = state.ports()?;
    let ports = ports.iter().map(|(_, port)| Attached::port(config, port));
    let uplink = UPLINK.into_iter().map(|hook| Attached {
        hook,
        device: config.uplink,
        hooks: config.hooks(),
    });
    Ok(uplink.filter(|one| one.device != 0).chain(ports).collect())
}

pub(crate) fn no_switch(name: &str) -> Error {
    Error::NoSwitch {
        name: name.to_owned(),
        there: bpffs::names().unwrap_or_default(),
    }
}
