//! The addresses of the host and of its gateways behind the uplink, which no port may claim.

use std::collections::{BTreeMap, BTreeSet};

use hopyard_net::{Handle, Link};

use crate::error::{Error, Result};
use crate::here::{Here, device_name};
use crate::layout::{
    Address, AddressKey, FIRST_PORT, HOLDS_ADDRESS, Holding, PortRecord, SLOT_HOST, SLOT_WIRE,
};
use crate::switch::Switch;

/// The index of each namespace's loopback device (`LOOPBACK_IFINDEX`).
const LOOPBACK: u32 = 1;
/// Devices above each other that are looked through; more stand nowhere.
const DEEPEST: usize = 8;

/// Addresses with the slot they are kept under, [`SLOT_HOST`] or [`SLOT_WIRE`].
type Known = BTreeSet<(u32, AddressKey)>;

/// By which VLAN a device of the host uses the uplink; `None`: it does not.
type Vlans = BTreeMap<u32, Option<u16>>;

/// What the kernel answered about the host's devices. Each question takes its RTNL lock, for which many callers at once wait long.
#[derive(Default)]
pub(crate) struct HostDevices {
    uplink: Option<Link>,
    vlans: Vlans,
}

impl Switch {
    /// Takes the addresses of the host and its gateways into the table, and those that it has no longer out of it.
    pub(crate) fn learn_host(&mut self, here: &Here) -> Result<()> {
        self.learn_host_behind(here, &mut HostDevices::default())
    }

    /// As [`Switch::learn_host`], for who has asked about the devices shortly before ([`Switch::ask_for_host`]).
    pub(crate) fn learn_host_behind(
        &mut self,
        here: &Here,
        devices: &mut HostDevices,
    ) -> Result<()> {
        let now = self.addresses_of_host(&here.handle, devices)?;
        for slot in [SLOT_HOST, SLOT_WIRE] {
            let keys = |known: &Known| -> BTreeSet<AddressKey> {
                known
                    .iter()
                    .filter(|(of, _)| *of == slot)
                    .map(|(_, key)| *key)
                    .collect()
            };
            self.learn(slot, &keys(&now))?;
        }
        Ok(())
    }

    /// Asks for the devices behind which the host has its addresses. Takes no lock and changes nothing.
    pub(crate) fn ask_for_host(&self, here: &Here) -> Result<HostDevices> {
        let mut devices = HostDevices::default();
        self.addresses_of_host(&here.handle, &mut devices)?;
        Ok(devices)
    }

    /// As `learn_host`, of a switch by its name; one that is gone learns nothing.
    pub(crate) fn learn_host_of(name: &str) -> Result<()> {
        let Some((mut switch, _lock)) = Self::locked(name)? else {
            return Ok(());
        };
        switch.learn_host_at_home()
    }

    /// As [`Switch::learn_host`], where this is the switch's namespace: elsewhere the host's addresses are not to be seen.
    pub(crate) fn learn_host_at_home(&mut self) -> Result<()> {
        let here = Here::new()?;
        if here.inode == self.state.config()?.netns {
            self.learn_host(&here)?;
        }
        Ok(())
    }

    fn learn(&mut self, slot: u32, now: &BTreeSet<AddressKey>) -> Result<()> {
        let count = self.state.port(slot)?.holdings;
        let held = self.state.holdings(slot, count)?;
        let same = held.len() == now.len() && held.iter().all(|(_, h)| now.contains(&h.address));
        // Removing a port also removed its addresses from the table, those of the host too.
        let stands = |key: &AddressKey| self.state.addresses.get(key, 0).is_ok();
        if same && now.iter().all(stands) {
            return Ok(());
        }
        // Interrupted, the list is longer than what there is, which whoever comes next finds.
        let wanted = u32::try_from(now.len()).unwrap_or(u32::MAX);
        let record = |holdings| PortRecord {
            holdings,
            ..PortRecord::default()
        };
        self.state.set_port(slot, record(count.max(wanted)))?;
        for (number, holding) in held {
            if !now.contains(&holding.address) {
                self.state.forget_one(slot, number, holding)?;
            }
        }
        for (number, key) in now.iter().enumerate() {
            let holding = Holding {
                kind: HOLDS_ADDRESS,
                address: *key,
                ..Holding::default()
            };
            self.state.hold(slot, number, holding)?;
            // A port was given it by --ip: whoever did that knows better.
            let owner = self.state.addresses.get(key, 0).map(|address| address.slot);
            if owner.is_ok_and(|owner| owner >= FIRST_PORT) {
                continue;
            }
            let address = Address {
                slot,
                ..Address::default()
            };
            self.state
                .addresses
                .insert(key, address, 0)
                .map_err(Error::bpf(format!("write the address {}", key.ip())))?;
        }
        self.state.set_port(slot, record(wanted))
    }

    /// Does the table lack an address that the host or its gateways had when somebody looked last? A port that had it, too, took it
    /// out when it went.
    fn lacks_of_host(&self) -> Result<bool> {
        for slot in [SLOT_HOST, SLOT_WIRE] {
            let count = self.state.port(slot)?.holdings;
            let held = self.state.holdings(slot, count)?;
            if held
                .iter()
                .any(|(_, held)| self.state.addresses.get(&held.address, 0).is_err())
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Puts back what a port took out of the table, where this is the switch's namespace. Elsewhere the host's addresses are not to be
    /// seen, and the next command at home does it.
    pub(crate) fn learn_what_is_lacking(&mut self) -> Result<()> {
        if self.lacks_of_host()? {
            self.learn_host_at_home()?;
        }
        Ok(())
    }

    /// Does the table have addresses of a host, though there is no uplink to have them behind? Then somebody who took the
    /// uplink away was interrupted.
    pub(crate) fn knows_a_lost_host(&self) -> Result<bool> {
        let config = self.state.config()?;
        let mut held = self.state.port(SLOT_HOST)?.holdings;
        held += self.state.port(SLOT_WIRE)?.holdings;
        Ok(config.uplink == 0 && held != 0)
    }

    /// Addresses of the host and its gateways that the table does not have.
    pub(crate) fn unknown_of_host(&self, handle: &Handle) -> Result<Vec<AddressKey>> {
        let now = self.addresses_of_host(handle, &mut HostDevices::default())?;
        let unknown = now
            .into_iter()
            .filter(|(_, key)| self.state.addresses.get(key, 0).is_err());
        Ok(unknown.map(|(_, key)| key).collect())
    }

    fn addresses_of_host(&self, handle: &Handle, devices: &mut HostDevices) -> Result<Known> {
        let index = self.state.config()?.uplink;
        if devices
            .uplink
            .as_ref()
            .is_none_or(|link| link.index != index)
        {
            let Some(uplink) = device_name(index) else {
                return Ok(Known::new());
            };
            let link = match handle.link(&uplink) {
                // It went just now.
                Err(hopyard_net::Error::Missing { .. }) => return Ok(Known::new()),
                link => link?,
            };
            *devices = HostDevices {
                uplink: Some(link),
                vlans: Vlans::new(),
            };
        }
        let HostDevices {
            uplink: Some(uplink),
            vlans,
        } = devices
        else {
            return Ok(Known::new());
        };
        let is_port = |device| self.state.slot_of(device).is_some();
        known(handle, uplink, &is_port, vlans)
    }
}

/// The IP addresses that the host itself has behind a device, each with its VLAN (0: untagged); `is_port` says of which
/// devices the addresses are not the host's.
pub(crate) fn own_addresses(
    handle: &Handle,
    uplink: &Link,
    is_port: &dyn Fn(u32) -> bool,
) -> Result<BTreeSet<AddressKey>> {
    let known = known(handle, uplink, is_port, &mut Vlans::new())?.into_iter();
    Ok(known
        .filter(|(slot, _)| *slot == SLOT_HOST)
        .map(|(_, key)| key)
        .collect())
}

fn known(
    handle: &Handle,
    uplink: &Link,
    is_port: &dyn Fn(u32) -> bool,
    vlans: &mut Vlans,
) -> Result<Known> {
    let mut known = Known::new();
    // Most devices have several addresses.
    let mut vlan_of = |device| {
        *vlans
            .entry(device)
            .or_insert_with(|| vlan_of(handle, uplink, device, is_port))
    };
    // A device without any address, IPv6's own included, leads to no gateway, but for the uplink: it may take addresses from elsewhere.
    let mut leading = vec![uplink.index];
    leading.extend(uplink.master);
    for (device, ip) in handle.addresses()? {
        if let Some(vlan) = vlan_of(device) {
            known.insert((SLOT_HOST, AddressKey::new(ip, vlan)));
            leading.push(device);
        }
    }
    leading.sort_unstable();
    leading.dedup();
    for (device, ip) in handle.gateways(&leading)? {
        if let Some(vlan) = vlan_of(device) {
            let key = AddressKey::new(ip, vlan);
            if !known.contains(&(SLOT_HOST, key)) {
                known.insert((SLOT_WIRE, key));
            }
        }
    }
    Ok(known)
}

/// The VLAN by which a device of the host uses the uplink; `None`: it does not.
fn vlan_of(
    handle: &Handle,
    uplink: &Link,
    mut device: u32,
    is_port: &dyn Fn(u32) -> bool,
) -> Option<u16> {
    // Every namespace has addresses of its loopback device, which is no uplink's.
    if device == LOOPBACK {
        return None;
    }
    let mut vlan = None;
    for _ in 0..DEEPEST {
        if device == uplink.index || Some(device) == uplink.master {
            return Some(vlan.unwrap_or(0));
        }
        // Thousands of ports may have addresses of their own.
        if is_port(device) {
            return None;
        }
        // It may be gone since.
        let link = handle.link(&device_name(device)?).ok()?;
        match link.kind.as_deref() {
            // A tag within a tag is no port's.
            Some("vlan") if vlan.is_some() => return None,
            Some("vlan") => vlan = link.vlan,
            Some("macvlan" | "macvtap" | "ipvlan" | "ipvtap") => {}
            _ => return None,
        }
        device = link.lower.filter(|_| link.lower_ns.is_none())?;
    }
    None
}
