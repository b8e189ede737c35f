//! The uplink of a switch that stands: found again, or exchanged.
//!
//! The programs are attached to the new device first, with links of other names. Then the settings name the device, in one
//! step, with a mark that the links have still to be put in place. Whoever opens the switch finishes what is marked, and
//! takes away links that nothing marks.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use hopyard_net::{Link, NetNs};

use crate::attached::UPLINK;
use crate::bpffs;
use crate::error::{Error, Result};
use crate::here::{DETACHING_LATE, Here, check_uplink, device_name, stray};
use crate::hook::{Hooks, fresh_uplink_link, uplink_link};
use crate::layout::{
    Config, ETHERNET_HEADER, MAX_HOSTS, SWITCH_BEHIND, SWITCH_HOSTS, SWITCH_MOVING,
};
use crate::mac::Mac;
use crate::programs;
use crate::running;
use crate::switch::Switch;

/// What the uplink of a switch is to be.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewUplink<'a> {
    /// The device, of the calling thread's namespace.
    pub device: &'a str,
    /// Other Ethernet addresses of the host behind it; `None`: those that there are.
    pub host_macs: Option<&'a [Mac]>,
}

impl Switch {
    /// Makes a device the uplink, in place of the one there was, or of none. The same device is found again: with another
    /// Ethernet address or MTU, made again, or after somebody detached the programs or attached others before them. Ports
    /// stay as they are.
    ///
    /// # Errors
    /// The device does not exist, is in a switch or cannot be an uplink, or an address is a port's. Nothing has changed
    /// then.
    pub fn set_uplink(&mut self, new: &NewUplink<'_>) -> Result<()> {
        let what = format!("make `{}` the uplink of switch `{}`", new.device, self.name);
        let _lock = self.lock()?;
        self.repair()?;
        let here = self.here(&what)?;
        let config = self.state.config()?;
        let link = here.fit_device(&what, new.device)?;
        let changed = config.with_uplink(&what, &link)?;
        let mut changed = changed.with_net_device(&self.directory)?;
        let hosts = match new.host_macs {
            Some(macs) => others_of_the_host(&what, macs, changed.host_mac)?,
            None => self.state.hosts()?,
        };
        self.check_host(&what, changed.host_mac, &hosts)?;
        changed.flags = changed.flags & !SWITCH_HOSTS | hosts_flag(&hosts) | SWITCH_MOVING;
        if !self.is_in_place(&here, &config, &link)? {
            self.attach_uplink(&what, &here, &config, &link)?;
        }
        self.state.set_hosts(&hosts)?;
        self.state.set_config(changed)?;
        self.finish_move()
    }

    /// Lets go of the uplink: what ports send to nobody known is dropped from then on. The device stays as it is, with its
    /// addresses and routes. Without an uplink nothing changes.
    ///
    /// # Errors
    /// The programs of the switch are classifiers, which stay where they are.
    pub fn unset_uplink(&mut self) -> Result<()> {
        let what = format!("take the uplink from switch `{}`", self.name);
        let _lock = self.lock()?;
        self.repair()?;
        let here = self.here(&what)?;
        let config = self.state.config()?;
        if config.hooks() == Hooks::Clsact {
            let why =
                "its programs are classifiers, which go with their device: make the switch again";
            return Err(Error::invalid(what, why));
        }
        self.state.set_hosts(&[])?;
        self.state.set_config(Config {
            uplink: 0,
            uplink_len: 0,
            host_mac: 0,
            net_device: 0,
            flags: config.flags & !SWITCH_HOSTS,
            ..config
        })?;
        self.repair_uplink()?;
        self.learn_host(&here)
    }

    /// Are the addresses of the host nobody else's?
    fn check_host(&self, what: &str, own: u64, others: &[Mac]) -> Result<()> {
        let all = || others.iter().map(|mac| mac.to_number()).chain([own]);
        for station in &self.state.stations {
            let (key, station) = station.map_err(Error::bpf("read the stations"))?;
            let mac = Mac::from_number(key);
            if all().any(|host| host == mac.to_number()) {
                let port = self.device_of(station.slot);
                let why =
                    format!("the host's address {mac} is taken by port {port}: remove it first");
                return Err(Error::invalid(what, why));
            }
        }
        Ok(())
    }

    /// Do the programs run at this device as they should?
    fn is_in_place(&self, here: &Here, config: &Config, link: &Link) -> Result<bool> {
        if link.index != config.uplink {
            return Ok(false);
        }
        for hook in UPLINK {
            let own = programs::identity(&self.directory, hook)?;
            let there = running::at(&here.handle, &link.name, hook.side())?;
            let ours = there.iter().filter(|one| one.is_ours());
            let is_alone = ours.map(|one| one.program).eq([Some(own)]);
            let is_first = there.first().is_some_and(|one| one.program == Some(own));
            if !is_alone || !is_first && config.flags & SWITCH_BEHIND == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Attaches the programs to the device that is to be the uplink, beside those at the one that is.
    fn attach_uplink(&self, what: &str, here: &Here, config: &Config, link: &Link) -> Result<()> {
        if config.hooks() == Hooks::Clsact {
            let why =
                "its programs are classifiers, which go with their device: make the switch again";
            return Err(Error::invalid(what, why));
        }
        if link.index == config.uplink {
            // While somebody had the programs off it.
            if let Some(owner) = here.runs_for_another(link, &self.name)? {
                return Err(Error::invalid(what, owner.of(&link.name)));
            }
            self.let_go(what, here, link)?;
        } else {
            here.free_device(what, &link.name)?;
        }
        let place = config.place(here);
        for hook in UPLINK {
            let pin = fresh_uplink_link(hook);
            let attached = programs::attach(&self.directory, &place, hook, &link.name, pin);
            if attached.is_err() {
                // The first problem is the one to report; whoever opens the switch takes away what stays.
                let _ = forget_fresh_links(&self.directory);
                return attached;
            }
        }
        Ok(())
    }

    /// Takes the programs off the uplink, to attach them there anew: the kernel lets none run twice at a hook.
    fn let_go(&self, what: &str, here: &Here, link: &Link) -> Result<()> {
        for hook in UPLINK {
            bpffs::remove_file(&self.directory.join(uplink_link(hook)))?;
        }
        let end = Instant::now() + DETACHING_LATE;
        for hook in UPLINK {
            while let Some(id) = running::ours_at(&here.handle, &link.name, hook)?.first() {
                if Instant::now() >= end {
                    return Err(Error::invalid(what, stray(&link.name, *id)));
                }
                thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }

    /// Finishes or undoes what an interrupted command left of the uplink, and lets go of a device that is gone or in
    /// another namespace: there the programs must not go on.
    pub(crate) fn repair_uplink(&mut self) -> Result<()> {
        self.repair_hosts_flag()?;
        let config = self.state.config()?;
        if config.flags & SWITCH_MOVING != 0 {
            self.finish_move()?;
        } else {
            forget_fresh_links(&self.directory)?;
        }
        let is_lost = || -> Result<bool> {
            let is_home = NetNs::current()?.inode()? == config.netns;
            Ok(is_home && device_name(config.uplink).is_none())
        };
        if config.hooks() == Hooks::Tcx && (config.uplink == 0 || is_lost()?) {
            for hook in UPLINK {
                bpffs::remove_file(&self.directory.join(uplink_link(hook)))?;
            }
        }
        Ok(())
    }

    /// The programs look into the list of the host's addresses only if a flag of the settings is set. A command may have been killed after
    /// it wrote the list and before it set the flag.
    fn repair_hosts_flag(&mut self) -> Result<()> {
        let config = self.state.config()?;
        let flags = config.flags & !SWITCH_HOSTS | hosts_flag(&self.state.hosts()?);
        if flags == config.flags {
            return Ok(());
        }
        self.state.set_config(Config { flags, ..config })
    }

    /// Goes on with a move. The new uplink's name, and the addresses of the host behind it, can be seen in the switch's namespace alone: a
    /// command there finishes it.
    fn finish_move(&mut self) -> Result<()> {
        for hook in UPLINK {
            let fresh = self.directory.join(fresh_uplink_link(hook));
            bpffs::rename(&fresh, &self.directory.join(uplink_link(hook)))?;
        }
        let config = self.state.config()?;
        let here = Here::new()?;
        if here.inode != config.netns {
            return Ok(());
        }
        if let Some(name) = device_name(config.uplink) {
            self.state.set_uplink_name(&name)?;
        }
        self.learn_host(&here)?;
        self.state.set_config(Config {
            flags: config.flags & !SWITCH_MOVING,
            ..self.state.config()?
        })
    }
}

fn forget_fresh_links(directory: &Path) -> Result<()> {
    for hook in UPLINK {
        bpffs::remove_file(&directory.join(fresh_uplink_link(hook)))?;
    }
    Ok(())
}

impl Config {
    /// The settings with this device as the uplink, if it can be that.
    pub(crate) fn with_uplink(self, what: &str, link: &Link) -> Result<Self> {
        check_uplink(what, link)?;
        let mac = link.mac.ok_or_else(|| {
            Error::invalid(what, format!("`{}` has no Ethernet address", link.name))
        })?;
        Ok(Self {
            uplink: link.index,
            uplink_len: link.mtu + ETHERNET_HEADER,
            host_mac: Mac(mac).to_number(),
            ..self
        })
    }

    /// The settings with the place that the kernel has its uplink at.
    pub(crate) fn with_net_device(self, directory: &Path) -> Result<Self> {
        let net_device = match self.uplink {
            0 => 0,
            index => programs::net_device(directory, index)?,
        };
        Ok(Self { net_device, ..self })
    }
}

/// The host's addresses beside that of the uplink, each once, if they are fit.
pub(crate) fn others_of_the_host(what: &str, given: &[Mac], own: u64) -> Result<Vec<Mac>> {
    if own == 0 && !given.is_empty() {
        return Err(Error::HostMacsWithoutUplink {
            what: what.to_owned(),
        });
    }
    let mut others = given.to_vec();
    others.retain(|mac| mac.to_number() != own);
    others.sort();
    others.dedup();
    if let Some(mac) = others.iter().find(|mac| !mac.is_station()) {
        let why = format!("{mac} is no address of a station");
        return Err(Error::invalid(what, why));
    }
    if others.len() > MAX_HOSTS {
        let why = format!(
            "the host may have {MAX_HOSTS} other addresses, not {}",
            others.len()
        );
        return Err(Error::invalid(what, why));
    }
    Ok(others)
}

pub(crate) fn hosts_flag(hosts: &[Mac]) -> u16 {
    if hosts.is_empty() { 0 } else { SWITCH_HOSTS }
}
