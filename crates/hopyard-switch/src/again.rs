//! Taking a port away to add it again: its program stays at the device meanwhile, and drops what that sends, which would otherwise
//! reach the host's own stack.

use aya::programs::links::{FdLink, PinnedLink};

use crate::error::{Error, Result};
use crate::here::running_at;
use crate::hook::port_link;
use crate::port::{Found, NewPort, Program};
use crate::switch::Switch;

/// The program of a port that was taken away; it leaves the device with this value.
pub(crate) struct LastProgram {
    link: FdLink,
    id: u32,
}

impl Switch {
    /// Takes a port away as [`Switch::remove_port`] does, and gives the program that runs there still. A classifier, which
    /// has no link, is detached (`None`).
    ///
    /// # Errors
    /// As [`Switch::remove_port`].
    pub(crate) fn remove_for_now(&mut self, device: &str) -> Result<Option<LastProgram>> {
        let what = format!("remove port `{device}` from switch `{}`", self.name);
        let here = self.here(&what)?;
        let slot = self.slot_of_port(&what, &here, device)?;
        let file = self.directory.join(port_link(slot));
        let link = match file.exists() {
            true => Some(PinnedLink::from_pin(&file).map_err(Error::bpf(what))?),
            false => None,
        };
        let id = running_at(&here.handle, device)?;
        self.remove_port(device)?;
        Ok(link.zip(id).map(|(link, id)| LastProgram {
            link: link.into(),
            id,
        }))
    }

    /// Binds a device as [`Switch::add_port`] does, at which the program of its last port runs, and goes on running.
    ///
    /// # Errors
    /// As [`Switch::add_port`].
    pub(crate) fn add_again(&mut self, new: &NewPort<'_>, last: LastProgram) -> Result<()> {
        let what = format!("add port `{}` to switch `{}`", new.device, self.name);
        let _lock = self.lock()?;
        let taken = self.repair()?;
        let here = self.here(&what)?;
        self.learn_host(&here)?;
        let link = here.free_device_but(&what, new.device, Some(last.id))?;
        let found = Found::of(&here, link)?;
        self.add_found(&here, &taken, new, &found, Program::Linked(last.link))
            .map(drop)
    }
}
