//! Making, changing and removing switches.
//!
//! The order of the steps is what makes them safe to interrupt. A record is marked busy before
//! anything refers to it, and tied to its device after everything does; whoever opens a switch takes away
//! what is not tied, and whoever gets the lock the switches that are unfinished. The kernel detaches a link that was
//! never pinned when its maker dies; a classifier stays, and whoever takes its record away detaches it
//! (one of [`Switch::add_port_to`] that has no record yet drops everything, and goes with the device).

use std::path::Path;

use hopyard_net::Link;

use crate::attached::UPLINK;
use crate::bpffs::{self, check_name, directory, is_directory};
use crate::error::{Error, Result};
use crate::here::Here;
use crate::hook::{Hooks, uplink_link};
use crate::kernel::check_kernel;
use crate::layout::{
    Config, FIRST_PORT, LAYOUT_VERSION, STATE_BUSY, STATE_FREE, STATE_READY, SWITCH_ANSWERS,
    SWITCH_BEHIND, SWITCH_CLSACT, SWITCH_UPGRADING,
};
use crate::lock::{self, Lock};
use crate::mac::Mac;
use crate::state::State;
use crate::switch::{Switch, no_switch};
use crate::teardown;
use crate::uplink::{hosts_flag, others_of_the_host};
use crate::{programs, shortcut};

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
        lock::finish(&directory)?;
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
        let made = Self::fill(&here, new, &directory, config, uplink.as_ref(), &hosts);
        if made.is_err() {
            // The first problem is the one to report; what stays is unfinished, so the next command
            // removes it.
            let _ = teardown::all(&directory);
        }
        made
    }

    fn fill(
        here: &Here,
        new: &NewSwitch<'_>,
        directory: &Path,
        config: Config,
        uplink: Option<&Link>,
        hosts: &[Mac],
    ) -> Result<Self> {
        programs::load(directory)?;
        programs::install(directory)?;
        let config = config.with_net_device(directory)?;
        let mut state = State::open(directory)?;
        state.set_config(config)?;
        state.set_hosts(hosts)?;
        // The caller may have named it by an alternative name, which the kernel never gives back.
        if let Some(Link { name: device, .. }) = uplink {
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
        let Some((mut switch, _lock)) = Self::locked(name)? else {
            // Taking the lock should have removed one that is unfinished. If that failed, this says why.
            if let Some(_lock) = Lock::at_home()? {
                lock::finish(&directory(name))?;
            }
            return Err(no_switch(name));
        };
        switch.repair()?;
        Ok(switch)
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
        self.end_slots_at(taken.last().copied())?;
        self.learn_what_is_lacking()?;
        Ok(taken)
    }

    /// Has broadcasts look no further than to the highest slot that is taken. One that is under way goes on with the number of
    /// slots that it began with: those that are free get no copy.
    fn end_slots_at(&mut self, highest: Option<u32>) -> Result<()> {
        let slots = highest.map_or(FIRST_PORT, |slot| slot + 1);
        let config = self.state.config()?;
        if config.slots == slots {
            return Ok(());
        }
        self.state.set_config(Config { slots, ..config })
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
