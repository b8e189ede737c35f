//! Binding devices to a switch as ports, and letting them go.

mod check;

use std::net::IpAddr;
use std::time::SystemTime;

use aya::programs::links::FdLink;
use hopyard_net::{Link, ProgramLink};

use self::check::Bound;
pub(crate) use self::check::check_kind;
use crate::error::{Error, Result};
use crate::here::{Here, is_pair};
use crate::hook::{Hook, port_link};
use crate::layout::{
    Address, AddressKey, Config, ETHERNET_HEADER, FIRST_PORT, HOLDS_ADDRESS, HOLDS_PREFIX,
    HOLDS_STATION, Holding, MAX_SLOTS, PORT_QUEUED, PortRecord, STATE_BUSY, STATE_READY, Station,
    station_key,
};
use crate::limit::Broadcasts;
use crate::lock::Lock;
use crate::mac::Mac;
use crate::netkit;
use crate::prefix::Prefix;
use crate::programs::{self, DeviceSeen, Place};
use crate::rate::Rate;
use crate::switch::Switch;

/// Highest VLAN identifier (IEEE 802.1Q reserves 4095).
pub(crate) const MAX_VLAN: u16 = 4094;

/// What a new port is to be.
#[derive(Debug, Clone, Default)]
pub struct NewPort<'a> {
    /// The host's end of the guest's device, of the calling thread's namespace.
    pub device: &'a str,
    /// The guest's addresses; the first is its own. None: read from the other end of the pair.
    pub macs: Vec<Mac>,
    /// The IP addresses that the guest may use; none: any, unless `ips_follow`.
    pub ips: Vec<IpAddr>,
    /// Does it get its addresses later, by [`Switch::add_addresses`]? Until then it may use none but those in `ips`.
    pub ips_follow: bool,
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
    /// Is it made from a description of the whole switch? Then [`apply`](crate::apply) removes it when that has it no longer.
    pub declared: bool,
    /// How fast may it get frames?
    pub rate_in: Rate,
    /// How fast may it send?
    pub rate_out: Rate,
    /// Is its program to be a classifier of the device, as with [`Hooks::Clsact`](crate::Hooks), though the switch has tcx
    /// hooks? To attach it does not wait for the packets under way. Programs of others at the tcx hook come before it, and it
    /// goes with the device, not with the switch's files.
    pub classifier: bool,
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
    /// waits: it lets all packets under way pass by with its network configuration locked (`tcx_entry_sync`). It does not
    /// for [`NewPort::classifier`].
    ///
    /// # Errors
    /// As [`Switch::add_port`]; the ports before the one that failed stay.
    pub fn add_ports(&mut self, new: &[NewPort<'_>]) -> Result<()> {
        if new.is_empty() {
            return Ok(());
        }
        let lock = self.lock()?;
        self.add_under(&lock, new)
    }

    pub(crate) fn add_under(&mut self, _lock: &Lock, new: &[NewPort<'_>]) -> Result<()> {
        let what =
            |new: &NewPort<'_>| format!("add port `{}` to switch `{}`", new.device, self.name);
        let Some(first) = new.first().map(what) else {
            return Ok(());
        };
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
        let found = Found::look(&what, here, new.device)?;
        self.add_found(here, taken, new, &found, (Program::None, None))
    }

    pub(crate) fn add_found(
        &mut self,
        here: &Here,
        taken: &[u32],
        new: &NewPort<'_>,
        found: &Found,
        programs: Programs,
    ) -> Result<u32> {
        let what = format!("add port `{}` to switch `{}`", new.device, self.name);
        let port = self.check(&what, new, &found.link, found.peer.as_ref())?;
        let slot = free_slot(taken).ok_or_else(|| {
            let why = format!("it has {} ports already", MAX_SLOTS - FIRST_PORT);
            Error::invalid(&what, why)
        })?;
        let bound = self.bind(here, slot, &port, found, programs);
        if bound.is_err() {
            // If that fails too, whoever changes the switch next clears it.
            let _ = self.clear(slot);
        }
        bound.map(|()| slot)
    }

    fn bind(
        &mut self,
        here: &Here,
        slot: u32,
        port: &Bound,
        found: &Found,
        (program, guest): Programs,
    ) -> Result<()> {
        let link = &found.link;
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
            mac_flags: port
                .macs
                .first()
                .map_or(0, |mac| port.station_flags(0, *mac)),
            life: next_life(self.state.port(slot)?.life),
            net_device: port.net_device,
        };
        let config = self.state.config()?;
        if slot >= config.slots {
            self.state.set_config(Config {
                slots: slot + 1,
                ..config
            })?;
        }
        self.state.set_port(slot, busy)?;
        self.state.set_limits(slot, port.limits)?;
        self.state.set_slot(link.index, slot)?;
        let pin = port_link(slot);
        match program {
            Program::None => {
                let place = Place {
                    hooks: config.hooks_of(&busy),
                    ..config.place(here)
                };
                programs::attach(&self.directory, &place, Hook::Port, &link.name, &pin)?;
            }
            Program::Linked(link) => programs::pin(&self.directory, Hook::Port, link, &pin)?,
            Program::Classifier => {}
        }
        if netkit::is_for(&config, link, port.flags & PORT_QUEUED != 0) {
            netkit::keep(&self.directory, here, link, slot, guest)?;
        }
        for (n, mac) in port.macs.iter().enumerate() {
            let station = Station {
                ifindex: link.index,
                slot,
                sure_len: port.sure_len,
                port_flags: port.flags,
                flags: port.station_flags(n, *mac),
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
            self.give_address(slot, &busy, port.macs.len() + n, *ip)?;
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
        self.learn_guest(here, slot, link)?;
        self.state.tie(slot, link.index)
    }

    /// Lets a port use an address, which becomes the holding of this number.
    fn give_address(
        &mut self,
        slot: u32,
        record: &PortRecord,
        number: usize,
        ip: IpAddr,
    ) -> Result<()> {
        let key = AddressKey::new(ip, record.vlan);
        let holding = Holding {
            kind: HOLDS_ADDRESS,
            address: key,
            ..Holding::default()
        };
        self.state.hold(slot, number, holding)?;
        let address = Address {
            mac: record.mac,
            slot,
            port_flags: record.flags.into(),
        };
        self.state
            .addresses
            .insert(key, address, 0)
            .map_err(Error::bpf(format!("write the address {ip}")))
    }

    /// Gives a port IP addresses beside those that it has. A port that is not held to its addresses stays so. Interrupted, it may have
    /// some of them; they go with it.
    ///
    /// # Errors
    /// There is no such port, or an address is taken. Nothing has changed then.
    pub fn add_addresses(&mut self, device: &str, ips: &[IpAddr]) -> Result<()> {
        let _lock = self.lock()?;
        let what = format!("give port `{device}` of switch `{}` addresses", self.name);
        let here = self.here(&what)?;
        let slot = self.slot_of_port(&what, &here, device)?;
        let mut record = self.state.port(slot)?;
        if self.check_addresses(ips, record.vlan).is_err() {
            // It may be what an interrupted command left that has them.
            self.repair()?;
            self.check_addresses(ips, record.vlan)
                .map_err(|why| Error::invalid(&what, why))?;
        }
        let had = usize::try_from(record.holdings).unwrap_or(usize::MAX);
        // Before they are there: interrupted, the count is more than there is, and all of them go with the port.
        record.holdings = u32::try_from(had + ips.len()).unwrap_or(u32::MAX);
        self.state.set_port(slot, record)?;
        for (n, ip) in ips.iter().enumerate() {
            self.give_address(slot, &record, had + n, *ip)?;
        }
        Ok(())
    }
}

/// A device that is to become a port.
pub(crate) struct Found {
    pub(crate) link: Link,
    /// The other end of a pair.
    pub(crate) peer: Option<Link>,
}

/// The program of ports that runs at a device which is to become one.
pub(crate) enum Program {
    None,
    Classifier,
    /// By a link that has no file.
    Linked(FdLink),
}

/// The program of the port, and the link of the one that runs where the guest of a netkit sends.
pub(crate) type Programs = (Program, Option<ProgramLink>);

impl Found {
    /// The device, which is in no switch and can be in one.
    pub(crate) fn look(what: &str, here: &Here, device: &str) -> Result<Self> {
        Self::of(here, here.free_device(what, device)?)
    }

    /// A device of which that is known.
    pub(crate) fn of(here: &Here, link: Link) -> Result<Self> {
        let peer = here.handle.lower_of(&link)?.filter(|_| is_pair(&link));
        Ok(Self { link, peer })
    }
}

/// The life of a slot's next port, never 0. What the programs noted of the last one is not true of it.
pub(crate) fn next_life(last: u16) -> u16 {
    match last {
        // An earlier version removed the last one, whose life is not known: most likely another.
        0 => {
            let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
            let [.., a, b] = now.subsec_micros().to_be_bytes();
            u16::from_be_bytes([a, b]).max(1)
        }
        u16::MAX => 1,
        last => last + 1,
    }
}

/// May frames go straight to the other end of a port, and does the program see whether that is in another namespace? The
/// kernel hands a frame over between namespaces only.
pub(crate) fn way_in(
    queued: bool,
    link: &Link,
    peer: Option<&Link>,
    seen: &DeviceSeen,
) -> (bool, bool) {
    // Where the kernel keeps the other end is no promise of its: it is compared with what the kernel says.
    let follow = peer.is_some_and(|peer| peer.index == seen.peer);
    let elsewhere = peer.is_some() && link.lower_ns.is_some();
    let direct = !queued && (follow || elsewhere);
    (direct, direct && follow)
}

/// The longest frame that both ends of a port take, bytes.
pub(crate) fn sure_len(link: &Link, peer: Option<&Link>) -> u32 {
    peer.map_or(link.mtu, |peer| peer.mtu.min(link.mtu)) + ETHERNET_HEADER
}

/// The lowest slot that is not among these, which are in order.
fn free_slot(taken: &[u32]) -> Option<u32> {
    let taken = taken.iter().copied().map(Some);
    (FIRST_PORT..MAX_SLOTS)
        .zip(taken.chain(std::iter::repeat(None)))
        .find_map(|(slot, taken)| (taken != Some(slot)).then_some(slot))
}

#[cfg(test)]
mod remembered;
#[cfg(test)]
pub(crate) mod tests;
