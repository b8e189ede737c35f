//! A switch's maps: everything that is known of it.

mod pinned;
mod stage;

use std::path::{Path, PathBuf};

use aya::maps::lpm_trie::{Key, LpmTrie};
use aya::maps::{Array, HashMap, MapData, MapError, PerCpuArray, PerCpuValues};

use crate::error::{Error, Result, unless_gone};
use crate::layout::{
    Address, AddressKey, Config, Counters, FIRST_PORT, HOLDS_ADDRESS, HOLDS_PREFIX, Holding,
    HoldingKey, LOW_DEVICES, Limits, PortRecord, PrefixKey, STATE_FREE, Station,
};
use crate::mac::Mac;

use pinned::{Device, devices, id};

pub(crate) use pinned::pinned;
pub(crate) use stage::{Stage, stage};

/// The file of the settings' map.
pub(crate) const CONFIG: &str = "config";
/// The files of all maps. `tests/trust.rs` holds the list against what a switch has.
pub(crate) const MAPS: [&str; 18] = [
    CONFIG,
    "ports",
    "slots_low",
    "slots",
    "stations",
    "recent",
    "addresses",
    "devices",
    "holdings",
    "counters",
    "hosts",
    "uplink_name",
    "prefixes",
    "paid",
    "rates",
    "traced",
    "drops_told",
    "floods",
];

/// The pinned maps of one switch.
pub(crate) struct State {
    /// The number of the map that `config` is.
    id: u32,
    config: Array<MapData, Config>,
    ports: Array<MapData, PortRecord>,
    slots_low: Array<MapData, u32>,
    slots: HashMap<MapData, u32, u32>,
    pub(crate) stations: HashMap<MapData, u64, Station>,
    pub(crate) addresses: HashMap<MapData, AddressKey, Address>,
    prefixes: LpmTrie<MapData, PrefixKey, u32>,
    paid: Array<MapData, u64>,
    rates: Array<MapData, Limits>,
    devices: HashMap<MapData, u32, Device>,
    holdings: HashMap<MapData, HoldingKey, Holding>,
    counters: PerCpuArray<MapData, Counters>,
    hosts: HashMap<MapData, u64, u32>,
    uplink_name: Array<MapData, [u8; 16]>,
}

/// The bits of the slot are compared before those of the address, whose number the holding says.
fn prefix_key(slot: u32, holding: &Holding) -> Key<PrefixKey> {
    let bits = u32::try_from(holding.prefix).unwrap_or(u32::MAX);
    Key::new(u32::BITS + bits, PrefixKey::new(slot, holding.address.ip()))
}

/// Does the switch in a directory have a port whose device is there?
pub(crate) fn has_ports(directory: &Path) -> Result<bool> {
    has_any(&devices(directory)?)
}

fn has_any(devices: &HashMap<MapData, u32, Device>) -> Result<bool> {
    let first = devices.keys().next().transpose();
    Ok(first.map_err(Error::bpf("read the ports"))?.is_some())
}

/// The settings of the switch in a directory.
pub(crate) fn config_of(directory: &Path) -> Result<Config> {
    read_config(&pinned(directory, CONFIG)?)
}

fn read_config(map: &Array<MapData, Config>) -> Result<Config> {
    map.get(&0, 0)
        .map_err(Error::bpf("read the switch's settings"))
}

impl State {
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        Ok(Self {
            id: id(&directory.join(CONFIG))?,
            config: pinned(directory, CONFIG)?,
            ports: pinned(directory, "ports")?,
            slots_low: pinned(directory, "slots_low")?,
            slots: pinned(directory, "slots")?,
            stations: pinned(directory, "stations")?,
            addresses: pinned(directory, "addresses")?,
            prefixes: pinned(directory, "prefixes")?,
            paid: pinned(directory, "paid")?,
            rates: pinned(directory, "rates")?,
            devices: devices(directory)?,
            holdings: pinned(directory, "holdings")?,
            counters: pinned(directory, "counters")?,
            hosts: pinned(directory, "hosts")?,
            uplink_name: pinned(directory, "uplink_name")?,
        })
    }

    /// Are these the maps in the directory? Those of a switch stay as long as it is there.
    pub(crate) fn is_in(&self, directory: &Path) -> Result<bool> {
        Ok(id(&directory.join(CONFIG))? == self.id)
    }

    pub(crate) fn config(&self) -> Result<Config> {
        read_config(&self.config)
    }

    pub(crate) fn set_config(&mut self, config: Config) -> Result<()> {
        self.config
            .set(0, config, 0)
            .map_err(Error::bpf("write the switch's settings"))
    }

    /// The addresses of the host beside that of the uplink.
    pub(crate) fn hosts(&self) -> Result<Vec<Mac>> {
        let mut hosts = Vec::new();
        for key in self.hosts.keys() {
            let key = key.map_err(Error::bpf("read the host's addresses"))?;
            hosts.push(Mac::from_number(key));
        }
        hosts.sort();
        Ok(hosts)
    }

    pub(crate) fn set_hosts(&mut self, hosts: &[Mac]) -> Result<()> {
        let what = "write the host's addresses";
        for old in self.hosts()? {
            if !hosts.contains(&old) {
                let removed = self.hosts.remove(&old.to_number());
                removed.map_err(Error::bpf(what))?;
            }
        }
        for mac in hosts {
            let written = self.hosts.insert(mac.to_number(), 1_u32, 0);
            written.map_err(Error::bpf(what))?;
        }
        Ok(())
    }

    /// The name that the uplink had when it became that.
    pub(crate) fn uplink_name(&self) -> Result<String> {
        let name = self.uplink_name.get(&0, 0);
        let name = name.map_err(Error::bpf("read the uplink's name"))?;
        let name = String::from_utf8_lossy(&name).into_owned();
        Ok(name.trim_end_matches('\0').to_owned())
    }

    pub(crate) fn set_uplink_name(&mut self, name: &str) -> Result<()> {
        let mut bytes = [0; 16];
        for (to, from) in bytes.iter_mut().zip(name.bytes()) {
            *to = from;
        }
        let written = self.uplink_name.set(0, bytes, 0);
        written.map_err(Error::bpf("write the uplink's name"))
    }

    pub(crate) fn port(&self, slot: u32) -> Result<PortRecord> {
        self.ports
            .get(&slot, 0)
            .map_err(Error::bpf(format!("read port record {slot}")))
    }

    pub(crate) fn set_port(&mut self, slot: u32, record: PortRecord) -> Result<()> {
        self.ports
            .set(slot, record, 0)
            .map_err(Error::bpf(format!("write port record {slot}")))
    }

    /// Every record in use, with its slot.
    pub(crate) fn ports(&self) -> Result<Vec<(u32, PortRecord)>> {
        let mut found = Vec::new();
        for slot in FIRST_PORT..self.config()?.slots {
            let record = self.port(slot)?;
            if record.state != STATE_FREE {
                found.push((slot, record));
            }
        }
        Ok(found)
    }

    pub(crate) fn slot_of(&self, ifindex: u32) -> Option<u32> {
        if ifindex < LOW_DEVICES {
            return self
                .slots_low
                .get(&ifindex, 0)
                .ok()
                .filter(|slot| *slot != 0);
        }
        self.slots.get(&ifindex, 0).ok()
    }

    pub(crate) fn set_slot(&mut self, ifindex: u32, slot: u32) -> Result<()> {
        let written = if ifindex < LOW_DEVICES {
            self.slots_low.set(ifindex, slot, 0)
        } else {
            self.slots.insert(ifindex, slot, 0)
        };
        written.map_err(Error::bpf(format!("write the slot of device {ifindex}")))
    }

    /// Ties a slot to a device of the calling thread's namespace: the port is whole from here on.
    pub(crate) fn tie(&mut self, slot: u32, ifindex: u32) -> Result<()> {
        let what = format!("write the device of port record {slot}");
        self.devices
            .insert(slot, [ifindex, 0], 0)
            .map_err(Error::bpf(what))
    }

    /// The port of a slot is whole no longer.
    pub(crate) fn untie(&mut self, slot: u32) -> Result<()> {
        let what = format!("remove the device of port record {slot}");
        unless_gone(self.devices.remove(&slot)).map_err(Error::bpf(what))
    }

    /// Is the port of a slot whole? Not while it is made or removed, and not once its device is gone or in
    /// another namespace.
    pub(crate) fn is_tied(&self, slot: u32) -> Result<bool> {
        match self.devices.get(&slot, 0) {
            Ok(_) => Ok(true),
            Err(MapError::KeyNotFound) => Ok(false),
            Err(error) => Err(Error::bpf(format!("read the device of port record {slot}"))(error)),
        }
    }

    /// Is there a port whose device is there?
    pub(crate) fn has_ports(&self) -> Result<bool> {
        has_any(&self.devices)
    }

    /// Forgets which slot a device had.
    pub(crate) fn forget_device(&mut self, ifindex: u32, slot: u32) -> Result<()> {
        // It may be another port's by now: kernels hand out numbers again after a while.
        if self.slot_of(ifindex) != Some(slot) {
            return Ok(());
        }
        let removed = if ifindex < LOW_DEVICES {
            self.slots_low.set(ifindex, 0, 0)
        } else {
            unless_gone(self.slots.remove(&ifindex))
        };
        removed.map_err(Error::bpf(format!("remove the slot of device {ifindex}")))
    }

    /// Notes what a slot is about to have. The number must be one that its record counts.
    pub(crate) fn hold(&mut self, slot: u32, number: usize, holding: Holding) -> Result<()> {
        let key = HoldingKey {
            slot,
            number: u32::try_from(number).unwrap_or(u32::MAX),
        };
        self.holdings
            .insert(key, holding, 0)
            .map_err(Error::bpf(format!("write what port record {slot} has")))
    }

    /// What a slot has, with the number of each.
    pub(crate) fn holdings(&self, slot: u32, count: u32) -> Result<Vec<(u32, Holding)>> {
        let mut found = Vec::new();
        for number in 0..count {
            match self.holdings.get(&HoldingKey { slot, number }, 0) {
                Ok(holding) => found.push((number, holding)),
                // Whoever made or removed the port was interrupted.
                Err(MapError::KeyNotFound) => {}
                Err(error) => {
                    let what = format!("read what port record {slot} has");
                    return Err(Error::bpf(what)(error));
                }
            }
        }
        Ok(found)
    }

    /// Forgets everything that a slot has; its record stays, for the count in it.
    pub(crate) fn forget(&mut self, slot: u32, count: u32) -> Result<()> {
        for (number, holding) in self.holdings(slot, count)? {
            self.forget_one(slot, number, holding)?;
        }
        Ok(())
    }

    pub(crate) fn forget_one(&mut self, slot: u32, number: u32, holding: Holding) -> Result<()> {
        let of_slot = |what: &str| Error::bpf(format!("remove the {what} of port record {slot}"));
        let Holding {
            address, station, ..
        } = holding;
        match holding.kind {
            HOLDS_PREFIX => {
                // Not looked up before: a lookup would match a shorter prefix around it too.
                let removed = self.prefixes.remove(&prefix_key(slot, &holding));
                unless_gone(removed).map_err(of_slot("prefixes"))?;
            }
            // What was refused in the end is another port's still.
            HOLDS_ADDRESS => {
                if self
                    .addresses
                    .get(&address, 0)
                    .is_ok_and(|a| a.slot == slot)
                {
                    self.addresses
                        .remove(&address)
                        .map_err(of_slot("addresses"))?;
                }
            }
            _ => {
                if self.stations.get(&station, 0).is_ok_and(|s| s.slot == slot) {
                    self.stations
                        .remove(&station)
                        .map_err(of_slot("stations"))?;
                }
            }
        }
        let key = HoldingKey { slot, number };
        unless_gone(self.holdings.remove(&key)).map_err(of_slot("holdings"))
    }

    /// Lets a slot use the prefix of a holding.
    pub(crate) fn add_prefix(&mut self, slot: u32, holding: &Holding) -> Result<()> {
        self.prefixes
            .insert(&prefix_key(slot, holding), 1, 0)
            .map_err(Error::bpf(format!(
                "write the prefixes of port record {slot}"
            )))
    }

    /// Gives a slot all that it may send at once.
    pub(crate) fn fill_bucket(&mut self, slot: u32) -> Result<()> {
        self.paid
            .set(slot, 0, 0)
            .map_err(Error::bpf(format!("write the limit of port record {slot}")))
    }

    /// How fast frames may pass the port of a slot, where its flags say that it is limited.
    pub(crate) fn limits(&self, slot: u32) -> Result<Limits> {
        self.rates
            .get(&slot, 0)
            .map_err(Error::bpf(format!("read the rates of port record {slot}")))
    }

    pub(crate) fn set_limits(&mut self, slot: u32, limits: Limits) -> Result<()> {
        self.rates
            .set(slot, limits, 0)
            .map_err(Error::bpf(format!("write the rates of port record {slot}")))
    }

    pub(crate) fn counters(&self, slot: u32) -> Result<Counters> {
        let values = self
            .counters
            .get(&slot, 0)
            .map_err(Error::bpf(format!("read the counters of slot {slot}")))?;
        let mut sum = Counters::default();
        for one in values.iter() {
            sum.add(one);
        }
        Ok(sum)
    }

    pub(crate) fn zero_counters(&mut self, slot: u32) -> Result<()> {
        let what = format!("clear the counters of slot {slot}");
        let cpus = aya::util::nr_cpus().map_err(|(file, source)| Error::File {
            what: "read",
            path: PathBuf::from(file),
            source,
        })?;
        let zeros = PerCpuValues::try_from(vec![Counters::default(); cpus])
            .map_err(Error::bpf(what.clone()))?;
        self.counters.set(slot, zeros, 0).map_err(Error::bpf(what))
    }

    #[cfg(test)]
    pub(crate) fn all_counters(&self, slot: u32) -> Result<PerCpuValues<Counters>> {
        let read = self.counters.get(&slot, 0);
        read.map_err(Error::bpf("read counters"))
    }

    #[cfg(test)]
    pub(crate) fn set_counters(&mut self, slot: u32, all: PerCpuValues<Counters>) -> Result<()> {
        let written = self.counters.set(slot, all, 0);
        written.map_err(Error::bpf("write counters"))
    }
}
