//! Binding devices to a switch as ports, and letting them go.

use std::net::IpAddr;

use hopyard_net::{Link, XdpHook};

use crate::bpffs;
use crate::error::{Error, Result};
use crate::here::{Here, has_master, is_pair};
use crate::layout::{
    Address, AddressKey, Config, ETHERNET_HEADER, FIRST_PORT, HOLDS_ADDRESS, HOLDS_PREFIX,
    HOLDS_STATION, Holding, MAX_SLOTS, PORT_ANY_SOURCE, PORT_DHCP, PORT_HELD, PORT_ISOLATED,
    PORT_PEER, PORT_QUEUED, PORT_ROUTER, PortRecord, SLOT_HOST, SLOT_WIRE, STATE_BUSY, STATE_READY,
    STATION_OWN, Station, station_key,
};
use crate::limit::Broadcasts;
use crate::mac::Mac;
use crate::prefix::Prefix;
use crate::programs::{self, Hook, port_link};
use crate::switch::Switch;

/// Highest VLAN identifier (IEEE 802.1Q reserves 4095).
const MAX_VLAN: u16 = 4094;

/// What a new port is to be.
#[derive(Debug, Clone, Default)]
pub struct NewPort<'a> {
    /// The host's end of the guest's device, of the calling thread's namespace.
    pub device: &'a str,
    /// The guest's addresses; the first is its own. None: read from the other end of the pair.
    pub macs: Vec<Mac>,
    /// The IP addresses that the guest may use; none: any.
    pub ips: Vec<IpAddr>,
    /// IP prefixes that it may use; other ports may have the same.
    pub prefixes: Vec<Prefix>,
    /// Its VLAN, 1 to 4094; `None`: what is untagged at the uplink.
    pub vlan: Option<u16>,
    /// May it talk to the uplink and the host only?
    pub isolated: bool,
    /// May it send from any address that is nobody else's?
    pub allow_spoof: bool,
    /// Are frames to take the queue of the host's end, for captures, filters and shapers there, rather than go straight
    /// into the guest's namespace?
    pub queued: bool,
    /// May it advertise itself as a router, redirect, and claim the addresses of the host and its gateways?
    pub router: bool,
    /// May it answer DHCP?
    pub dhcp_server: bool,
    /// How many broadcasts may it send?
    pub broadcasts: Broadcasts,
}

impl Switch {
    /// Binds a device to the switch as a port.
    ///
    /// # Errors
    /// The device does not exist, is a port already or has no address that could be read; an address is
    /// taken. Nothing has changed then.
    pub fn add_port(&mut self, new: &NewPort<'_>) -> Result<()> {
        self.add_ports(std::slice::from_ref(new))
    }

    /// Binds devices to the switch as ports, one after another. At tcx hooks each takes the kernel some 10 ms, whoever else
    /// waits: it lets all packets under way pass by with its network configuration locked (`tcx_entry_sync`).
    ///
    /// # Errors
    /// As [`Switch::add_port`]; the ports before the one that failed stay.
    pub fn add_ports(&mut self, new: &[NewPort<'_>]) -> Result<()> {
        let what =
            |new: &NewPort<'_>| format!("add port `{}` to switch `{}`", new.device, self.name);
        let Some(first) = new.first().map(what) else {
            return Ok(());
        };
        let _lock = self.lock()?;
        let mut taken = self.repair()?;
        let here = self.here(&first)?;
        self.learn_host(&here)?;
        for new in new {
            taken.push(self.add(&here, &taken, new)?);
            taken.sort_unstable();
        }
        Ok(())
    }

    /// Binds a device and gives its slot, which is none of those taken.
    fn add(&mut self, here: &Here, taken: &[u32], new: &NewPort<'_>) -> Result<u32> {
        let what = format!("add port `{}` to switch `{}`", new.device, self.name);
        let link = here.free_device(&what, new.device)?;
        let peer = here.handle.lower_of(&link)?.filter(|_| is_pair(&link));
        let port = self.check(&what, new, &link, peer.as_ref())?;
        let slot = free_slot(taken).ok_or_else(|| {
            let why = format!("it has {} ports already", MAX_SLOTS - FIRST_PORT);
            Error::invalid(&what, why)
        })?;
        let bound = self.bind(here, slot, &port, &link);
        if bound.is_err() {
            self.clear(slot)?;
        }
        bound.map(|()| slot)
    }

    /// Everything that can be found wrong before anything is changed.
    fn check(
        &self,
        what: &str,
        new: &NewPort<'_>,
        link: &Link,
        peer: Option<&Link>,
    ) -> Result<Bound> {
        if let Some(vlan) = new.vlan
            && !(1..=MAX_VLAN).contains(&vlan)
        {
            let why = format!("VLAN {vlan} is outside 1 to {MAX_VLAN}");
            return Err(Error::invalid(what, why));
        }
        check_kind(what, link)?;
        let vlan = new.vlan.unwrap_or(0);
        let own = peer.and_then(|peer| peer.mac).map(Mac);
        let mut macs = new.macs.clone();
        if macs.is_empty() {
            macs.push(own.ok_or_else(|| Error::NoGuestMac {
                what: what.to_owned(),
                device: new.device.to_owned(),
            })?);
        }
        let invalid = |why| Error::invalid(what, why);
        let host = self.state.config()?.host_mac;
        self.check_stations(&macs, vlan, host).map_err(invalid)?;
        self.check_addresses(&new.ips, vlan).map_err(invalid)?;
        check_prefixes(&new.prefixes).map_err(invalid)?;
        let mut flags = 0;
        // What is handed over passes the XDP program by that the guest has in its driver.
        let queued = new.queued || peer.is_some_and(|peer| peer.xdp == Some(XdpHook::Driver));
        // The kernel hands a frame over between namespaces only.
        let direct = !queued && peer.is_some() && link.lower_ns.is_some();
        for (set, bit) in [
            (new.isolated, PORT_ISOLATED),
            (new.allow_spoof, PORT_ANY_SOURCE),
            (!new.ips.is_empty() || !new.prefixes.is_empty(), PORT_HELD),
            (new.router, PORT_ROUTER),
            (new.dhcp_server, PORT_DHCP),
            (direct, PORT_PEER),
            (queued, PORT_QUEUED),
        ] {
            if set {
                flags |= bit;
            }
        }
        Ok(Bound {
            sure_len: peer.map_or(link.mtu, |peer| peer.mtu.min(link.mtu)) + ETHERNET_HEADER,
            own,
            macs,
            ips: new.ips.clone(),
            prefixes: new.prefixes.clone(),
            broadcasts: new.broadcasts,
            vlan,
            flags,
        })
    }

    /// Are the Ethernet addresses fit and free? The error says why not.
    fn check_stations(
        &self,
        macs: &[Mac],
        vlan: u16,
        host: u64,
    ) -> std::result::Result<(), String> {
        let hosts = self.state.hosts().unwrap_or_default();
        for (n, mac) in macs.iter().enumerate() {
            let why = if !mac.is_station() {
                "is no address of a station".to_owned()
            } else if macs[..n].contains(mac) {
                "is given twice".to_owned()
            } else if mac.to_number() == host || hosts.contains(mac) {
                "is the host's own address".to_owned()
            } else if let Ok(owner) = self.state.stations.get(&station_key(*mac, vlan), 0) {
                format!("is taken by port {}", self.device_of(owner.slot))
            } else {
                continue;
            };
            return Err(format!("{mac} {why}"));
        }
        Ok(())
    }

    /// Are the IP addresses fit and free? The error says why not.
    fn check_addresses(&self, ips: &[IpAddr], vlan: u16) -> std::result::Result<(), String> {
        for (n, ip) in ips.iter().enumerate() {
            let why = if ip.is_unspecified() || ip.is_multicast() {
                "is no address of a station".to_owned()
            } else if ips[..n].contains(ip) {
                "is given twice".to_owned()
            } else {
                match self.state.addresses.get(&AddressKey::new(*ip, vlan), 0) {
                    Ok(owner) if owner.slot == SLOT_HOST => "is the host's own address".to_owned(),
                    // A gateway may be a guest.
                    Ok(owner) if owner.slot != SLOT_WIRE => {
                        format!("is taken by port {}", self.device_of(owner.slot))
                    }
                    _ => continue,
                }
            };
            return Err(format!("{ip} {why}"));
        }
        Ok(())
    }

    fn bind(&mut self, here: &Here, slot: u32, port: &Bound, link: &Link) -> Result<()> {
        let busy = PortRecord {
            mac: port.macs.first().map_or(0, |mac| mac.to_number()),
            ifindex: 0,
            device: link.index,
            state: STATE_BUSY,
            sure_len: port.sure_len,
            vlan: port.vlan,
            flags: port.flags,
            holdings: u32::try_from(port.macs.len() + port.ips.len() + port.prefixes.len())
                .unwrap_or(u32::MAX),
            broadcasts: port.broadcasts.to_number(),
            unused: 0,
            net_device: programs::net_device(&self.directory, link.index)?,
        };
        let config = self.state.config()?;
        if slot >= config.slots {
            self.state.set_config(Config {
                slots: slot + 1,
                ..config
            })?;
        }
        self.state.set_port(slot, busy)?;
        self.state.set_slot(link.index, slot)?;
        let place = config.place(here);
        let pin = port_link(slot);
        programs::attach(&self.directory, &place, Hook::Port, &link.name, &pin)?;
        for (n, mac) in port.macs.iter().enumerate() {
            let own = port.own.map_or(n == 0, |own| own == *mac);
            let station = Station {
                ifindex: link.index,
                slot,
                sure_len: port.sure_len,
                port_flags: port.flags,
                flags: if own { STATION_OWN } else { 0 },
                net_device: busy.net_device,
            };
            let key = station_key(*mac, port.vlan);
            let holding = Holding {
                kind: HOLDS_STATION,
                station: key,
                ..Holding::default()
            };
            self.state.hold(slot, n, holding)?;
            self.state
                .stations
                .insert(key, station, 0)
                .map_err(Error::bpf(format!("write the station {mac}")))?;
        }
        for (n, ip) in port.ips.iter().enumerate() {
            let address = Address {
                mac: busy.mac,
                slot,
                port_flags: port.flags.into(),
            };
            let key = AddressKey::new(*ip, port.vlan);
            let holding = Holding {
                kind: HOLDS_ADDRESS,
                address: key,
                ..Holding::default()
            };
            self.state.hold(slot, port.macs.len() + n, holding)?;
            self.state
                .addresses
                .insert(key, address, 0)
                .map_err(Error::bpf(format!("write the address {ip}")))?;
        }
        for (n, prefix) in port.prefixes.iter().enumerate() {
            let holding = Holding {
                kind: HOLDS_PREFIX,
                address: AddressKey::new(prefix.ip(), port.vlan),
                prefix: prefix.mapped_bits().into(),
                ..Holding::default()
            };
            let number = port.macs.len() + port.ips.len() + n;
            self.state.hold(slot, number, holding)?;
            self.state.add_prefix(slot, &holding)?;
        }
        self.state.set_port(
            slot,
            PortRecord {
                ifindex: link.index,
                state: STATE_READY,
                ..busy
            },
        )?;
        self.state.tie(slot, link.index)
    }

    /// Takes a port away; its device stays.
    ///
    /// # Errors
    /// The device is no port of this switch.
    pub fn remove_port(&mut self, device: &str) -> Result<()> {
        let what = format!("remove port `{device}` from switch `{}`", self.name);
        let _lock = self.lock()?;
        self.repair()?;
        let here = self.here(&what)?;
        let slot = self.slot_of_port(&what, &here, device)?;
        self.clear(slot)
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
        self.state.untie(slot)?;
        let record = self.state.port(slot)?;
        self.state.set_port(
            slot,
            PortRecord {
                ifindex: 0,
                state: STATE_BUSY,
                ..record
            },
        )?;
        self.state.forget(slot, record.holdings)?;
        bpffs::remove_file(&self.directory.join(port_link(slot)))?;
        self.detach_classifiers(&[(Hook::Port, record.device)])?;
        self.state.forget_device(record.device, slot)?;
        self.state.zero_counters(slot)?;
        self.state.fill_bucket(slot)?;
        self.state.set_port(slot, PortRecord::default())
    }
}

/// The lowest slot that is not among these, which are in order.
fn free_slot(taken: &[u32]) -> Option<u32> {
    let taken = taken.iter().copied().map(Some);
    (FIRST_PORT..MAX_SLOTS)
        .zip(taken.chain(std::iter::repeat(None)))
        .find_map(|(slot, taken)| (taken != Some(slot)).then_some(slot))
}

/// Is each prefix given once? The error says which is not.
fn check_prefixes(prefixes: &[Prefix]) -> std::result::Result<(), String> {
    for (n, prefix) in prefixes.iter().enumerate() {
        if prefixes[..n].contains(prefix) {
            return Err(format!("{prefix} is given twice"));
        }
    }
    Ok(())
}

/// Does the device hand over Ethernet frames of a guest at its own hook, and to nobody else?
fn check_kind(what: &str, link: &Link) -> Result<()> {
    let name = &link.name;
    let why = match link.kind.as_deref() {
        Some(kind @ ("macvlan" | "macvtap" | "ipvlan" | "ipvtap")) => format!(
            "`{name}` is a {kind}: what its guest sends goes to the device below it and never passes the \
             switch; use a veth or a tap"
        ),
        _ if link.mac.is_none() => {
            format!("`{name}` carries no Ethernet frames; use a veth or a tap")
        }
        _ if link.master.is_some() => has_master(name),
        _ => return Ok(()),
    };
    Err(Error::invalid(what, why))
}

/// A port as it will be, checked.
struct Bound {
    macs: Vec<Mac>,
    own: Option<Mac>,
    ips: Vec<IpAddr>,
    prefixes: Vec<Prefix>,
    broadcasts: Broadcasts,
    vlan: u16,
    flags: u16,
    sure_len: u32,
}

#[cfg(test)]
mod tests;
