//! The caller's network namespace and kernel: what can be part of a switch.

use std::time::{Duration, Instant};

use hopyard_net::{Handle, Link};
use nix::net::if_::if_indextoname;

use crate::bpffs::{self, directory};
use crate::error::{Error, Result};
use crate::hook::Hook;
use crate::layout::Config;
use crate::mac::Mac;
use crate::programs;
use crate::running;
use crate::state::{Stage, State, stage};

/// How long the kernel may take to detach what was removed a moment ago.
const DETACHING: Duration = Duration::from_secs(1);
/// The same, where it shows that this is what the kernel has still to do.
pub(crate) const DETACHING_LATE: Duration = Duration::from_secs(30);

/// The calling thread's network namespace.
pub(crate) struct Here {
    pub(crate) handle: Handle,
    pub(crate) inode: u64,
}

impl Here {
    pub(crate) fn new() -> Result<Self> {
        let handle = Handle::here()?;
        let inode = handle.ns().inode()?;
        Ok(Self { handle, inode })
    }

    /// A device that can be in a switch, whether it is in one or not.
    pub(crate) fn fit_device(&self, what: &str, name: &str) -> Result<Link> {
        let link = self.handle.link(name)?;
        if link.name == "lo" {
            return Err(Error::invalid(what, "`lo` leads nowhere"));
        }
        if link.master.is_some() && is_pair(&link) {
            return Err(Error::invalid(what, has_master(name)));
        }
        Ok(link)
    }

    /// A device that is in no switch and can be in one.
    pub(crate) fn free_device(&self, what: &str, name: &str) -> Result<Link> {
        self.free_device_but(what, name, None)
    }

    /// The same, where the program of this identity may run at the device: its last port's, which whoever asks holds.
    pub(crate) fn free_device_but(
        &self,
        what: &str,
        name: &str,
        last: Option<u32>,
    ) -> Result<Link> {
        let link = self.fit_device(what, name)?;
        let began = Instant::now();
        loop {
            // Before the look: what it finds has had all this time, however late we come to look.
            let waited = began.elapsed();
            let running = running_at(&self.handle, name)?;
            let Some(id) = running.filter(|id| Some(*id) != last) else {
                // Somebody may have taken the program off a device that is in a switch.
                return match self.tied_to(&link, None)? {
                    Some(owner) => Err(Error::invalid(what, owner.of(name))),
                    None => Ok(link),
                };
            };
            if let Some(owner) = self.owner_of(name, link.index)? {
                return Err(Error::invalid(what, owner));
            }
            let late = waited >= DETACHING;
            if late && (waited >= DETACHING_LATE || !self.is_leaving(name, id)?) {
                return Err(Error::invalid(what, stray(name, id)));
            }
            // To look whether it is leaving takes every switch and link there is.
            std::thread::sleep(Duration::from_millis(if late { 50 } else { 1 }));
        }
    }

    /// The switch that has this very device, but for the one of this name. Others may know its number, from a device and a namespace that are gone.
    pub(crate) fn tied_to(&self, link: &Link, but: Option<&str>) -> Result<Option<Owner>> {
        self.first_switch(|switch, state| {
            if Some(switch) == but {
                return Ok(None);
            }
            let is_tied = match state.slot_of(link.index) {
                Some(slot) => state.is_tied(slot)?,
                None => false,
            };
            let is_uplink = is_its_uplink(switch, &state.config()?, link);
            Ok((is_tied || is_uplink).then(|| Owner {
                switch: switch.to_owned(),
                is_uplink,
            }))
        })
    }

    /// The switch, but for the one of this name, whose program runs at a device.
    pub(crate) fn runs_for_another(&self, link: &Link, but: &str) -> Result<Option<Owner>> {
        let mut there = Vec::new();
        for hook in [Hook::Port, Hook::UplinkOut] {
            there.extend(running::ours_at(&self.handle, &link.name, hook)?);
        }
        self.first_switch(|switch, state| {
            let Some(owner) = known_to(switch, state, link.index)?.filter(|_| switch != but) else {
                return Ok(None);
            };
            for program in &there {
                if programs::is_pinned(&directory(switch), *program)? {
                    return Ok(Some(owner));
                }
            }
            Ok(None)
        })
    }

    /// Says of which switch a device is; `None`: of none in [`bpffs::HOME`].
    fn owner_of(&self, name: &str, index: u32) -> Result<Option<String>> {
        let owner = self.first_switch(|switch, state| known_to(switch, state, index))?;
        Ok(owner.map(|owner| owner.of(name)))
    }

    /// Does a program run at a device, which is of no switch, only until the kernel comes to detach it?
    fn is_leaving(&self, device: &str, program: u32) -> Result<bool> {
        // Classifiers are not detached behind anybody's back.
        if running::is_classifier(&self.handle, device, program)? {
            return Ok(false);
        }
        if !programs::is_linked(program)? {
            return Ok(true);
        }
        // Its switch would know the device if that were a port still: the link of a port removed.
        let known = self.first_switch(|name, _| {
            let is_its = programs::is_pinned(&directory(name), program)?;
            Ok(is_its.then_some(()))
        })?;
        Ok(known.is_some())
    }

    /// What `look` finds first in the switches of [`bpffs::HOME`] that are for use in this namespace.
    fn first_switch<T>(
        &self,
        mut look: impl FnMut(&str, &State) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        for name in bpffs::names()? {
            let directory = directory(&name);
            if stage(&directory)? != Stage::Whole {
                continue;
            }
            let state = match State::open(&directory) {
                // Somebody has removed it meanwhile.
                Err(_) if matches!(stage(&directory), Ok(Stage::Unfinished)) => continue,
                state => state?,
            };
            if state.config()?.netns == self.inode
                && let Some(found) = look(&name, &state)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// The switch that a device is in.
pub(crate) struct Owner {
    switch: String,
    is_uplink: bool,
}

impl Owner {
    /// Says what the device of this name is there.
    pub(crate) fn of(&self, device: &str) -> String {
        let Self { switch, is_uplink } = self;
        if *is_uplink {
            format!("`{device}` is the uplink of switch `{switch}`")
        } else {
            format!("`{device}` is a port of switch `{switch}` already")
        }
    }
}

/// What a device of this number is in a switch.
fn known_to(switch: &str, state: &State, index: u32) -> Result<Option<Owner>> {
    let is_uplink = state.config()?.uplink == index;
    let is_known = is_uplink || state.slot_of(index).is_some();
    Ok(is_known.then(|| Owner {
        switch: switch.to_owned(),
        is_uplink,
    }))
}

/// Is the uplink of a switch this very device? The kernel gives numbers, of namespaces too, and places in its memory to other devices
/// later, so the Ethernet address has to be the same as well.
fn is_its_uplink(switch: &str, config: &Config, link: &Link) -> bool {
    let has_its_mac = || {
        link.mac
            .is_some_and(|mac| Mac(mac).to_number() == config.host_mac)
    };
    let is_in_its_place = || {
        let place = programs::net_device(&directory(switch), link.index);
        place.is_ok_and(|place| place == config.net_device)
    };
    config.uplink == link.index && has_its_mac() && is_in_its_place()
}

/// A program of ours that runs at a device.
fn running_at(handle: &Handle, device: &str) -> Result<Option<u32>> {
    for hook in [Hook::Port, Hook::UplinkOut] {
        if let Some(id) = running::ours_at(handle, device, hook)?.first() {
            return Ok(Some(*id));
        }
    }
    Ok(None)
}

pub(crate) fn stray(device: &str, program: u32) -> String {
    format!(
        "program {program} of a hopyard switch runs at `{device}`, but that switch is not in {}: it was \
         made under another mount of the BPF file system (delete it there), or deleted by a command in another \
         network namespace; detach the program with `bpftool link`, or a classifier with `tc filter`",
        bpffs::HOME
    )
}

/// The name of a device of the calling thread's namespace; `None` if there is none of that index.
pub(crate) fn device_name(index: u32) -> Option<String> {
    let name = if_indextoname(index).ok()?;
    let name = name.to_string_lossy().into_owned();
    // nix 0.31 takes the null pointer that means "no such device" for success.
    (!name.is_empty()).then_some(name)
}

/// Why a device that somebody else takes frames from is refused.
pub(crate) fn has_master(name: &str) -> String {
    format!("`{name}` has a master (a bridge?): take it out first, `ip link set {name} nomaster`")
}

/// Does the device take frames to others than the host from the wire?
pub(crate) fn check_uplink(what: &str, link: &Link) -> Result<()> {
    let name = &link.name;
    match link.kind.as_deref() {
        Some(kind @ ("macvlan" | "macvtap" | "ipvlan" | "ipvtap")) => Err(Error::invalid(
            what,
            format!(
                "`{name}` is a {kind}: it gets no frames but those to its own address; use the device below it"
            ),
        )),
        _ => Ok(()),
    }
}

/// Is the device one end of a pair, with the guest's at the other?
pub(crate) fn is_pair(link: &Link) -> bool {
    matches!(link.kind.as_deref(), Some("veth" | "netkit"))
}
