//! For programs that attach one guest and end, as a CNI plugin does. They hold the lock only while they write the tables.

use hopyard_net::ProgramLink;

use crate::bpffs::{check_name, is_home_there};
use crate::error::{Error, Result};
use crate::glance::of_whole;
use crate::here::Here;
use crate::hook::{Hook, Hooks};
use crate::host::HostDevices;
use crate::lock::Lock;
use crate::netkit;
use crate::port::{Found, NewPort, Program};
use crate::programs::{self, Place};
use crate::state::State;
use crate::switch::{Switch, no_switch};
use crate::{classifier, running};

impl Switch {
    /// Binds a device that is new, and the caller's own, to the switch of a name as a port, as [`Switch::open`] and
    /// [`Switch::add_port`] do, and gives the switch. Its program becomes a classifier of the device ([`NewPort::classifier`]).
    ///
    /// All that takes the kernel's RTNL lock is done before the lock of switches is taken, so that callers who add guests at the same
    /// time do not wait for each other's requests. A caller that is killed before it has the lock leaves the program attached: it
    /// drops all frames that the device sends, until the device is deleted.
    ///
    /// # Errors
    /// Those of both. Whether the device is in another switch is not checked.
    pub fn add_port_to(name: &str, new: &NewPort<'_>) -> Result<Self> {
        let new = NewPort {
            classifier: true,
            ..new.clone()
        };
        let Ok(mut ready) = Ready::make(name, &new) else {
            // Somebody removed the switch meanwhile, or the device is none for it: under the lock it shows which.
            let lock = Self::locked(name)?;
            let (mut switch, lock) = lock.ok_or_else(|| no_switch(name))?;
            switch.add_under(&lock, std::slice::from_ref(&new))?;
            return Ok(switch);
        };
        match ready.add(&new) {
            Ok(()) => Ok(ready.switch),
            Err(error) => {
                // The first problem is the one to report.
                let _ = ready.undo();
                Err(error)
            }
        }
    }

    /// The switch of a name under the lock, as it is; `None`: there is none that is whole.
    pub(crate) fn locked(name: &str) -> Result<Option<(Self, Lock)>> {
        check_name("find a switch", name)?;
        let Some(lock) = Lock::at_home()? else {
            return Ok(None);
        };
        Ok(Self::unlocked(name)?.map(|switch| (switch, lock)))
    }

    /// The switch of a name without the lock, to look at; `None`: there is none that is whole. What an interrupted command left stays as it
    /// is.
    ///
    /// # Errors
    /// Its state is another version's, or cannot be read; its directory is not root's own.
    pub fn as_it_is(name: &str) -> Result<Option<Self>> {
        // It must be root's own before anything in it is used.
        if !is_home_there()? {
            return Ok(None);
        }
        Self::unlocked(name)
    }

    /// Takes the lock. Where somebody made the switch anew since it was opened, it is that one from then on.
    fn renew(&mut self) -> Result<Lock> {
        let lock = Lock::at_home()?.ok_or_else(|| no_switch(&self.name))?;
        match of_whole(&self.name, |directory| self.state.is_in(directory))? {
            Some(true) => {}
            Some(false) => {
                *self = Self::unlocked(&self.name)?.ok_or_else(|| no_switch(&self.name))?;
            }
            None => return Err(no_switch(&self.name)),
        }
        Ok(lock)
    }

    fn unlocked(name: &str) -> Result<Option<Self>> {
        of_whole(name, |directory| {
            Ok(Self {
                name: name.to_owned(),
                state: State::open(directory)?,
                directory: directory.to_owned(),
                forgotten: Vec::new(),
            })
        })
    }
}

/// A device with the program attached that is not in the switch's tables yet: the program drops all that it sends.
struct Ready {
    switch: Switch,
    here: Here,
    found: Found,
    /// The identity of the program.
    program: u32,
    /// That of a netkit's guest.
    guest: Option<ProgramLink>,
}

impl Ready {
    /// Attaches the program as its last step; nothing else is changed.
    fn make(name: &str, new: &NewPort<'_>) -> Result<Self> {
        let switch = Switch::as_it_is(name)?.ok_or_else(|| no_switch(name))?;
        let what = format!("add port `{}` to switch `{name}`", new.device);
        let here = switch.here(&what)?;
        let link = here.fit_device(&what, new.device)?;
        let is_uplink = switch.state.config()?.uplink == link.index;
        if is_uplink || switch.state.slot_of(link.index).is_some() {
            return Err(Error::invalid(what, "the device is in the switch already"));
        }
        let found = Found::of(&here, link)?;
        let program = programs::identity(&switch.directory, Hook::Port)?;
        let config = switch.state.config()?;
        let place = Place {
            hooks: Hooks::Clsact,
            ..config.place(&here)
        };
        let guest = match netkit::is_for(&config, &found.link, new.queued) {
            true => netkit::attach(&switch.directory, &here, &found.link)?,
            false => None,
        };
        programs::attach(&switch.directory, &place, Hook::Port, new.device, "")?;
        Ok(Self {
            switch,
            here,
            found,
            program,
            guest,
        })
    }

    fn add(&mut self, new: &NewPort<'_>) -> Result<()> {
        // Whoever has to wait for the lock asks for devices meanwhile, and then holds it for a shorter time. Otherwise that is not worth it:
        // the addresses are listed under the lock in any case, which takes a millisecond with a thousand guests.
        let mut host = match Lock::is_held() {
            true => self.switch.ask_for_host(&self.here)?,
            false => HostDevices::default(),
        };
        let switch = &mut self.switch;
        let _lock = switch.renew()?;
        let taken = switch.repair()?;
        let what = format!("add port `{}` to switch `{}`", new.device, switch.name);
        let home = switch.state.config()?.netns;
        if self.here.inode != home {
            return Err(Error::OtherNamespace {
                what,
                home,
                here: self.here.inode,
            });
        }
        // Somebody upgraded the switch, or made it anew.
        if programs::identity(&switch.directory, Hook::Port)? != self.program {
            programs::replace_classifier(
                &switch.directory,
                &self.here.handle,
                Hook::Port,
                new.device,
            )?;
        }
        switch.learn_host_behind(&self.here, &mut host)?;
        let programs = (Program::Classifier, self.guest.take());
        switch
            .add_found(&self.here, &taken, new, &self.found, programs)
            .map(drop)
    }

    /// Takes the program off the device, whichever of ours it is by now.
    fn undo(&self) -> Result<()> {
        let device = &self.found.link.name;
        for program in running::ours_at(&self.here.handle, device, Hook::Port)? {
            classifier::detach(&self.here.handle, Hook::Port, device, program)?;
        }
        Ok(())
    }
}
