//! Putting the programs of another version in place of those that run.

use hopyard_net::Handle;

use crate::attached::{UPLINK, attached};
use crate::error::{Error, Result};
use crate::here::{Here, device_name};
use crate::hook::{Hook, Hooks, port_link, uplink_link};
use crate::layout::{Config, PortRecord, SWITCH_UPGRADING, station_key};
use crate::mac::Mac;
use crate::netkit;
use crate::port::next_life;
use crate::programs;
use crate::running::ours_at;
use crate::switch::Switch;

impl Switch {
    /// Puts the programs of this version in place of those that run, without losing a packet. Maps
    /// stay.
    ///
    /// # Errors
    /// The kernel refuses the new programs; then the old ones go on.
    pub fn upgrade(&mut self) -> Result<()> {
        let _lock = self.lock()?;
        if self.has_classifiers(&self.state.config()?)? {
            self.here(&format!("upgrade switch `{}`", self.name))?;
        }
        self.repair()?;
        if let Err(error) = programs::load(&self.directory) {
            programs::unload(&self.directory)?;
            return Err(error);
        }
        let here = Here::new()?;
        let config = self.state.config()?;
        if here.inode == config.netns {
            self.learn_host(&here)?;
        }
        // From here on it is finished, by whoever comes next if not by us.
        self.state.set_config(Config {
            flags: config.flags | SWITCH_UPGRADING,
            ..config
        })?;
        self.finish_upgrade()
    }

    pub(crate) fn finish_upgrade(&mut self) -> Result<()> {
        programs::install(&self.directory)?;
        let config = self.state.config()?;
        self.replace_links(&config)?;
        self.replace_classifiers(&config)?;
        self.complete_records()?;
        self.state.set_config(Config {
            flags: config.flags & !SWITCH_UPGRADING,
            ..config
        })
    }

    /// Writes what the records of ports lack that an earlier version added.
    fn complete_records(&mut self) -> Result<()> {
        for (slot, record) in self.state.ports()? {
            let key = station_key(Mac::from_number(record.mac), record.vlan);
            // A port that is half made or removed may have lost it.
            let Ok(station) = self.state.stations.get(&key, 0) else {
                continue;
            };
            let whole = PortRecord {
                mac_flags: station.flags,
                life: match record.life {
                    0 => next_life(0),
                    life => life,
                },
                ..record
            };
            if station.slot == slot && record != whole {
                self.state.set_port(slot, whole)?;
            }
        }
        Ok(())
    }

    fn replace_links(&self, config: &Config) -> Result<()> {
        if config.uplink != 0 && config.hooks() == Hooks::Tcx {
            // An uplink that is gone has no links.
            let is_there = |hook: &Hook| self.directory.join(uplink_link(*hook)).exists();
            for hook in UPLINK.into_iter().filter(is_there) {
                programs::replace(&self.directory, hook, uplink_link(hook))?;
            }
        }
        for (slot, port) in self.state.ports()? {
            netkit::replace(&self.directory, slot)?;
            // Somebody may have removed the link, which detaches the program.
            let link = self.directory.join(port_link(slot));
            if config.hooks_of(&port) == Hooks::Tcx && link.exists() {
                programs::replace(&self.directory, Hook::Port, &port_link(slot))?;
            }
        }
        Ok(())
    }

    /// From within the namespace. What somebody detached stays so, which `show` tells; a device may go at any time.
    fn replace_classifiers(&self, config: &Config) -> Result<()> {
        let here = Handle::here()?;
        let attached = attached(&self.state, config)?.into_iter();
        for one in attached.filter(|one| one.hooks == Hooks::Clsact) {
            let Some(device) = device_name(one.device) else {
                continue;
            };
            let replaced = ours_at(&here, &device, one.hook).and_then(|ours| match ours[..] {
                [] => Ok(()),
                _ => programs::replace_classifier(&self.directory, &here, one.hook, &device),
            });
            match replaced {
                Err(Error::Net(hopyard_net::Error::Missing { .. })) => {}
                replaced => replaced?,
            }
        }
        Ok(())
    }
}

/// They need root, as they make switches.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{FIRST_PORT, STATION_OWN};
    use crate::port::tests::{add, with_switch};

    #[test]
    fn records_of_an_earlier_version_are_completed() {
        with_switch("records", &["p0"], |switch, _| {
            add(switch, "p0").unwrap();
            let whole = switch.state.port(FIRST_PORT).unwrap();
            assert_eq!(whole.mac_flags, STATION_OWN);
            assert_ne!(whole.life, 0);
            let earlier = PortRecord {
                mac_flags: 0,
                life: 0,
                ..whole
            };
            switch.state.set_port(FIRST_PORT, earlier).unwrap();
            switch.upgrade().unwrap();
            let completed = switch.state.port(FIRST_PORT).unwrap();
            assert_ne!(completed.life, 0);
            let life = whole.life;
            assert_eq!(PortRecord { life, ..completed }, whole);
            // A port of this version keeps what it has.
            switch.upgrade().unwrap();
            assert_eq!(switch.state.port(FIRST_PORT).unwrap(), completed);
        });
    }
}
