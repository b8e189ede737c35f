//! Letting ports go.

use crate::attached::{Attached, detach_classifiers};
use crate::bpffs;
use crate::error::{Error, Result};
use crate::here::Here;
use crate::hook::port_link;
use crate::layout::{Limits, PortRecord};
use crate::netkit;
use crate::switch::Switch;

/// What becomes of a port's classifier.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    Goes,
    /// With its device.
    Stays,
}

impl Switch {
    /// Takes a port away; its device stays.
    ///
    /// # Errors
    /// The device is no port of this switch.
    pub fn remove_port(&mut self, device: &str) -> Result<()> {
        self.remove_after(device, |_, _, _| Ok(()))
    }

    /// The same, after a look at the port and its slot.
    pub(crate) fn remove_after<T>(
        &mut self,
        device: &str,
        look: impl FnOnce(&Self, &Here, u32) -> Result<T>,
    ) -> Result<T> {
        let what = format!("remove port `{device}` from switch `{}`", self.name);
        let _lock = self.lock()?;
        self.repair()?;
        let here = self.here(&what)?;
        let slot = self.slot_of_port(&what, &here, device)?;
        let seen = look(self, &here, slot)?;
        self.clear(slot)?;
        self.learn_what_is_lacking()?;
        Ok(seen)
    }

    /// Takes ports away whose devices the caller is about to remove; devices that are no ports are passed over, and so is a switch
    /// that is gone. If one of the devices is gone already, every port without a device is removed, so that the switch does not go on
    /// answering for its guest. A classifier is left to go with its device; until then it drops what the device sends.
    ///
    /// # Errors
    /// The switch is in another namespace or of another version; the kernel's maps cannot be written.
    pub fn release_ports(name: &str, devices: &[&str]) -> Result<()> {
        let Some((mut switch, _lock)) = Self::locked(name)? else {
            return Ok(());
        };
        let here = switch.here(&format!("remove ports from switch `{name}`"))?;
        let mut any_is_gone = false;
        for device in devices {
            let index = match here.handle.index(device) {
                Err(hopyard_net::Error::Missing { .. }) => {
                    any_is_gone = true;
                    continue;
                }
                found => found?,
            };
            if let Some(slot) = switch.state.slot_of(index) {
                switch.release(slot, Program::Stays)?;
            }
        }
        if any_is_gone {
            switch.repair()?;
        }
        switch.learn_what_is_lacking()
    }

    /// The slot of a device of the caller's namespace, or why it has none.
    pub(crate) fn slot_of_port(&self, what: &str, here: &Here, device: &str) -> Result<u32> {
        let index = here.handle.index(device)?;
        let Some(slot) = self.state.slot_of(index) else {
            let ports: Vec<String> = self
                .state
                .ports()?
                .iter()
                .map(|(slot, _)| self.device_of(*slot))
                .collect();
            return Err(Error::NotAPort {
                what: what.to_owned(),
                name: self.name.clone(),
                ports,
            });
        };
        Ok(slot)
    }

    /// Takes away all that a slot stands for, from whatever state. Frames to it stop first, then
    /// those from it.
    pub(crate) fn clear(&mut self, slot: u32) -> Result<()> {
        self.release(slot, Program::Goes)
    }

    fn release(&mut self, slot: u32, classifier: Program) -> Result<()> {
        let record = self.state.stop_frames_to(slot)?;
        netkit::detach(&self.directory, slot)?;
        bpffs::remove_file(&self.directory.join(port_link(slot)))?;
        if classifier == Program::Goes {
            let config = self.state.config()?;
            detach_classifiers(
                &self.directory,
                &config,
                &[Attached::port(&config, &record)],
            )?;
        }
        self.state.forget_device(record.device, slot)?;
        self.forget_guest(slot)?;
        self.state.zero_counters(slot)?;
        self.state.fill_bucket(slot)?;
        self.state.set_limits(slot, Limits::default())?;
        let PortRecord { life, .. } = record;
        let free = PortRecord::default();
        self.state.set_port(slot, PortRecord { life, ..free })
    }
}
