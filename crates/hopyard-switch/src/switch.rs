//! Making, changing and removing switches.
//!
//! The order of the steps is what makes them safe to interrupt. A record is marked busy before
//! anything refers to it and ready after everything does; whoever opens a switch takes away what is
//! busy. The kernel detaches a link that was never pinned when its maker dies.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use hopyard_net::{Handle, Link, NetNs};
use nix::net::if_::if_indextoname;

use crate::bpffs::{self, Lock, check_name, directory, file_error};
use crate::error::{Error, Result};
use crate::layout::{
    Address, AddressKey, Config, Counters, FIRST_PORT, LAYOUT_VERSION, MAX_SLOTS, PORT_ANY_SOURCE,
    PORT_HELD, PORT_ISOLATED, PORT_PEER, PortRecord, SLOT_HOST, SLOT_WIRE, STATE_BUSY, STATE_READY,
    STATION_OWN, SWITCH_ANSWERS, Station, station_key,
};
use crate::mac::Mac;
use crate::programs::{self, Hook, port_link, uplink_link};
use crate::state::State;

/// Octets of an Ethernet header: a frame is this much longer than what the MTU counts.
const ETHERNET_HEADER: u32 = 14;
/// Highest VLAN identifier (IEEE 802.1Q reserves 4095).
const MAX_VLAN: u16 = 4094;

/// What a new switch is to be.
#[derive(Debug, Clone, Default)]
pub struct NewSwitch<'a> {
    /// 1 to 32 letters, digits, `-` and `_`.
    pub name: &'a str,
    /// The device to the wire, of the calling thread's namespace.
    pub uplink: Option<&'a str>,
    /// Answer ARP and neighbour solicitations from the table?
    pub answers: bool,
}

/// What a new port is to be.
#[derive(Debug, Clone, Default)]
pub struct NewPort<'a> {
    /// The host's end of the guest's device, of the calling thread's namespace.
    pub device: &'a str,
    /// The guest's addresses; the first is its own. None: read from the other end of the pair.
    pub macs: Vec<Mac>,
    /// The IP addresses that the guest may use; none: any.
    pub ips: Vec<IpAddr>,
    /// Its VLAN, 1 to 4094; `None`: what is untagged at the uplink.
    pub vlan: Option<u16>,
    /// May it talk to the uplink and the host only?
    pub isolated: bool,
    /// May it send from any address that is nobody else's?
    pub allow_spoof: bool,
}

/// A switch that was found or made.
pub struct Switch {
    pub(crate) name: String,
    pub(crate) directory: PathBuf,
    pub(crate) state: State,
}

impl Switch {
    /// Makes a switch in the calling thread's network namespace. The uplink stays up and keeps its
    /// addresses and routes.
    ///
    /// # Errors
    /// The name is taken or unfit, the uplink does not exist or has a switch already, the kernel has no
    /// tcx. Nothing is left then.
    pub fn create(new: &NewSwitch<'_>) -> Result<Self> {
        let what = format!("create switch `{}`", new.name);
        check_name(&what, new.name)?;
        check_kernel(&what)?;
        let here = Here::new()?;
        let uplink = new
            .uplink
            .map(|device| here.free_device(&what, device))
            .transpose()?;
        let host_mac = match &uplink {
            Some(link) => link.mac.ok_or_else(|| {
                Error::refused(&what, format!("`{}` has no Ethernet address", link.name))
            })?,
            None => [0; 6],
        };
        let _lock = Lock::making_home()?;
        Self::make(&what, new, &here, uplink.as_ref(), Mac(host_mac))
    }

    fn make(
        what: &str,
        new: &NewSwitch<'_>,
        here: &Here,
        uplink: Option<&Link>,
        host_mac: Mac,
    ) -> Result<Self> {
        let directory = directory(new.name);
        if directory.exists() {
            if is_whole(&directory) {
                let why = format!(
                    "there is one of that name; choose another, or `hopyard switch delete {}`",
                    new.name
                );
                return Err(Error::refused(what, why));
            }
            bpffs::remove_directory(&directory)?;
        }
        std::fs::create_dir(&directory).map_err(file_error("make directory", &directory))?;
        let config = Config {
            version: LAYOUT_VERSION,
            state: STATE_BUSY,
            uplink: uplink.map_or(0, |link| link.index),
            uplink_len: uplink.map_or(0, |link| link.mtu + ETHERNET_HEADER),
            host_mac: host_mac.to_number(),
            netns: here.inode,
            flags: if new.answers { SWITCH_ANSWERS } else { 0 },
            slots: FIRST_PORT,
        };
        let made = Self::fill(new.name, &directory, config, new.uplink);
        if made.is_err() {
            // The first problem is the one to report; what stays is busy, so the next command
            // removes it.
            let _ = bpffs::remove_directory(&directory);
        }
        made
    }

    fn fill(name: &str, directory: &Path, config: Config, uplink: Option<&str>) -> Result<Self> {
        programs::load(directory)?;
        let mut state = State::open(directory)?;
        state.set_config(config)?;
        if let Some(device) = uplink {
            for hook in [Hook::UplinkIn, Hook::UplinkOut] {
                programs::attach(directory, hook, device, uplink_link(hook))?;
            }
        }
        state.set_config(Config {
            state: STATE_READY,
            ..config
        })?;
        Ok(Self {
            name: name.to_owned(),
            directory: directory.to_owned(),
            state,
        })
    }

    /// Finds a switch by name, after finishing or undoing what an interrupted command left.
    ///
    /// # Errors
    /// There is none of that name (the error lists those there are), or its state is another version's.
    pub fn open(name: &str) -> Result<Self> {
        check_name("find a switch", name)?;
        let missing = || -> Result<Self> {
            Err(Error::NoSwitch {
                name: name.to_owned(),
                there: Self::list()?,
            })
        };
        let directory = directory(name);
        let Some(_lock) = Lock::at_home()? else {
            return missing();
        };
        if !is_whole(&directory) {
            bpffs::remove_directory(&directory)?;
            return missing();
        }
        let state = State::open(&directory)?;
        state.check_layout(name)?;
        let mut switch = Self {
            name: name.to_owned(),
            directory,
            state,
        };
        switch.repair()?;
        Ok(switch)
    }

    /// The names of the switches there are.
    ///
    /// # Errors
    /// The directory of switches cannot be read.
    pub fn list() -> Result<Vec<String>> {
        let mut names = bpffs::names()?;
        names.retain(|name| is_whole(&directory(name)));
        Ok(names)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Binds a device to the switch as a port.
    ///
    /// # Errors
    /// The device does not exist, is a port already or has no address that could be read; an address is
    /// taken. Nothing has changed then.
    pub fn add_port(&mut self, new: &NewPort<'_>) -> Result<()> {
        let what = format!("add port `{}` to switch `{}`", new.device, self.name);
        let _lock = self.lock()?;
        self.repair()?;
        let here = self.here(&what)?;
        let link = here.free_device(&what, new.device)?;
        let peer = here.handle.lower_of(&link)?.filter(|_| is_pair(&link));
        let port = self.check(&what, new, &link, peer.as_ref())?;
        let slot = self.state.free_slot()?.ok_or_else(|| {
            Error::refused(
                &what,
                format!("it has {} ports already", MAX_SLOTS - FIRST_PORT),
            )
        })?;
        let bound = self.bind(slot, &port, &link);
        if bound.is_err() {
            self.clear(slot)?;
        }
        bound
    }

    /// Everything that can be found wrong before anything is changed.
    fn check(
        &self,
        what: &str,
        new: &NewPort<'_>,
        link: &Link,
        peer: Option<&Link>,
    ) -> Result<Bound> {
        let refuse = |why: String| Err(Error::refused(what, why));
        if let Some(vlan) = new.vlan
            && !(1..=MAX_VLAN).contains(&vlan)
        {
            return refuse(format!("VLAN {vlan} is outside 1 to {MAX_VLAN}"));
        }
        let vlan = new.vlan.unwrap_or(0);
        let read = peer.and_then(|peer| peer.mac).map(Mac);
        let mut macs = new.macs.clone();
        if macs.is_empty() {
            match read {
                Some(mac) => macs.push(mac),
                None => {
                    return refuse(format!(
                        "the guest's Ethernet address cannot be read from `{}`: give --mac",
                        new.device
                    ));
                }
            }
        }
        let host = self.state.config()?.host_mac;
        for (n, mac) in macs.iter().enumerate() {
            if !mac.is_station() {
                return refuse(format!("{mac} is no address of a station"));
            }
            if macs[..n].contains(mac) {
                return refuse(format!("{mac} is given twice"));
            }
            if mac.to_number() == host {
                return refuse(format!("{mac} is the host's own address"));
            }
            if let Ok(owner) = self.state.stations.get(&station_key(*mac, vlan), 0) {
                return refuse(format!(
                    "{mac} is taken by port {}",
                    self.device_of(owner.slot)
                ));
            }
        }
        for (n, ip) in new.ips.iter().enumerate() {
            if ip.is_unspecified() || ip.is_multicast() {
                return refuse(format!("{ip} is no address of a station"));
            }
            if new.ips[..n].contains(ip) {
                return refuse(format!("{ip} is given twice"));
            }
            if let Ok(owner) = self.state.addresses.get(&AddressKey::new(*ip, vlan), 0) {
                return refuse(format!(
                    "{ip} is taken by port {}",
                    self.device_of(owner.slot)
                ));
            }
        }
        let mut flags = 0;
        for (set, bit) in [
            (new.isolated, PORT_ISOLATED),
            (new.allow_spoof, PORT_ANY_SOURCE),
            (!new.ips.is_empty(), PORT_HELD),
            // The kernel hands a frame over between namespaces only.
            (peer.is_some() && link.lower_ns.is_some(), PORT_PEER),
        ] {
            if set {
                flags |= bit;
            }
        }
        Ok(Bound {
            sure_len: peer.map_or(link.mtu, |peer| peer.mtu.min(link.mtu)) + ETHERNET_HEADER,
            own: read,
            macs,
            ips: new.ips.clone(),
            vlan,
            flags,
        })
    }

    fn bind(&mut self, slot: u32, port: &Bound, link: &Link) -> Result<()> {
        let busy = PortRecord {
            mac: port.macs.first().map_or(0, |mac| mac.to_number()),
            ifindex: 0,
            device: link.index,
            state: STATE_BUSY,
            sure_len: port.sure_len,
            vlan: port.vlan,
            flags: port.flags,
            reserved: 0,
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
        programs::attach(&self.directory, Hook::Port, &link.name, &port_link(slot))?;
        for (n, mac) in port.macs.iter().enumerate() {
            let own = port.own.map_or(n == 0, |own| own == *mac);
            let station = Station {
                ifindex: link.index,
                slot,
                sure_len: port.sure_len,
                port_flags: port.flags,
                flags: if own { STATION_OWN } else { 0 },
            };
            self.state
                .stations
                .insert(station_key(*mac, port.vlan), station, 0)
                .map_err(Error::bpf(format!("write the station {mac}")))?;
        }
        for ip in &port.ips {
            let address = Address {
                mac: busy.mac,
                slot,
                port_flags: port.flags.into(),
            };
            self.state
                .addresses
                .insert(AddressKey::new(*ip, port.vlan), address, 0)
                .map_err(Error::bpf(format!("write the address {ip}")))?;
        }
        self.state.set_port(
            slot,
            PortRecord {
                ifindex: link.index,
                state: STATE_READY,
                ..busy
            },
        )
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
        let index = here.handle.index(device)?;
        let Some(slot) = self.state.slot_of(index) else {
            let ports: Vec<String> = self
                .state
                .ports()?
                .iter()
                .map(|(slot, _)| self.device_of(*slot))
                .collect();
            let has = match ports.len() {
                0 => "no ports".to_owned(),
                1..=20 => ports.join(", "),
                n => format!("{n} ports, see `hopyard switch show {}`", self.name),
            };
            let why = format!("it is none of its ports; the switch has {has}");
            return Err(Error::refused(what, why));
        };
        self.clear(slot)
    }

    /// Puts the programs of this version in place of those that run, without losing a packet. Maps
    /// stay.
    ///
    /// # Errors
    /// The kernel refuses the new programs; then the old ones go on.
    pub fn upgrade(&mut self) -> Result<()> {
        let _lock = self.lock()?;
        self.repair()?;
        programs::load(&self.directory)?;
        if self.state.config()?.uplink != 0 {
            for hook in [Hook::UplinkIn, Hook::UplinkOut] {
                programs::replace(&self.directory, hook, uplink_link(hook))?;
            }
        }
        for (slot, _) in self.state.ports()? {
            programs::replace(&self.directory, Hook::Port, &port_link(slot))?;
        }
        Ok(())
    }

    /// Every name in use, of unfinished switches too.
    ///
    /// # Errors
    /// The directory of switches cannot be read.
    pub fn names() -> Result<Vec<String>> {
        bpffs::names()
    }

    /// Removes whatever there is under a name, whole or not, of whichever version; nothing is fine.
    ///
    /// # Errors
    /// Something cannot be removed.
    pub fn discard(name: &str) -> Result<()> {
        check_name("remove a switch", name)?;
        let Some(_lock) = Lock::at_home()? else {
            return Ok(());
        };
        bpffs::remove_directory(&directory(name))
    }

    /// Removes a switch. Its devices stay.
    ///
    /// # Errors
    /// Something of it cannot be removed; asking again goes on from there.
    pub fn delete(mut self) -> Result<()> {
        let _lock = self.lock()?;
        let config = self.state.config()?;
        self.state.set_config(Config {
            state: STATE_BUSY,
            ..config
        })?;
        bpffs::remove_directory(&self.directory)
    }

    /// The lock, while the switch still stands: somebody else may have deleted it since it was found.
    fn lock(&self) -> Result<Lock> {
        let lock = Lock::at_home()?.filter(|_| is_whole(&self.directory));
        lock.ok_or_else(|| Error::NoSwitch {
            name: self.name.clone(),
            there: Self::list().unwrap_or_default(),
        })
    }

    /// Finishes or undoes what an interrupted command left, and forgets ports whose device is gone.
    fn repair(&mut self) -> Result<()> {
        let same_namespace = NetNs::current()?.inode()? == self.state.config()?.netns;
        for (slot, record) in self.state.ports()? {
            let gone = same_namespace && device_name(record.device).is_none();
            if record.state == STATE_BUSY || gone {
                self.clear(slot)?;
            }
        }
        Ok(())
    }

    /// Takes away all that a slot stands for, from whatever state. Frames to it stop first, then
    /// those from it.
    fn clear(&mut self, slot: u32) -> Result<()> {
        let record = self.state.port(slot)?;
        self.state.set_port(
            slot,
            PortRecord {
                ifindex: 0,
                state: STATE_BUSY,
                ..record
            },
        )?;
        self.state.forget(slot)?;
        bpffs::remove_file(&self.directory.join(port_link(slot)))?;
        self.state.forget_device(record.device, slot)?;
        self.state.zero_counters(slot)?;
        self.state.set_port(slot, PortRecord::default())
    }

    /// The namespace of the caller, which must be the switch's.
    fn here(&self, what: &str) -> Result<Here> {
        let here = Here::new()?;
        let home = self.state.config()?.netns;
        if here.inode == home {
            return Ok(here);
        }
        let why = format!(
            "the switch is in another network namespace (net:[{home}]; this is net:[{}]): run the \
             command there",
            here.inode
        );
        Err(Error::refused(what, why))
    }

    /// The name of a port's device, for people.
    pub(crate) fn device_of(&self, slot: u32) -> String {
        let index = self.state.port(slot).map_or(0, |record| record.device);
        device_name(index).map_or_else(
            || format!("device {index}, which is gone"),
            |name| format!("`{name}`"),
        )
    }

    /// What the parties sent and got: the wire, the host, then the ports by slot.
    ///
    /// # Errors
    /// The kernel's maps cannot be read.
    pub fn stats(&self) -> Result<Vec<PartyStats>> {
        let mut parties = Vec::new();
        let mut add = |party: String, slot| -> Result<()> {
            let counters = self.state.counters(slot)?;
            parties.push(PartyStats { party, counters });
            Ok(())
        };
        if self.state.config()?.uplink != 0 {
            add("wire".into(), SLOT_WIRE)?;
            add("host".into(), SLOT_HOST)?;
        }
        for (slot, record) in self.state.ports()? {
            let name = device_name(record.device).unwrap_or_else(|| format!("#{}", record.device));
            add(name, slot)?;
        }
        Ok(parties)
    }
}

impl fmt::Debug for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Switch").field(&self.name).finish()
    }
}

/// A port as it will be, checked.
struct Bound {
    macs: Vec<Mac>,
    own: Option<Mac>,
    ips: Vec<IpAddr>,
    vlan: u16,
    flags: u16,
    sure_len: u32,
}

/// What one party sent and got.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct PartyStats {
    /// `wire`, `host`, or the port's device.
    pub party: String,
    /// The sums over all CPUs.
    pub counters: Counters,
}

/// The calling thread's network namespace.
struct Here {
    handle: Handle,
    inode: u64,
}

impl Here {
    fn new() -> Result<Self> {
        let ns = NetNs::current()?;
        Ok(Self {
            handle: Handle::new(&ns)?,
            inode: ns.inode()?,
        })
    }

    /// A device that is in no switch and can be in one.
    fn free_device(&self, what: &str, name: &str) -> Result<Link> {
        let link = self.handle.link(name)?;
        if name == "lo" {
            return Err(Error::refused(what, "`lo` leads nowhere"));
        }
        if link.master.is_some() && is_pair(&link) {
            let why = format!(
                "`{name}` has a master (a bridge?): take it out first, `ip link set {name} nomaster`"
            );
            return Err(Error::refused(what, why));
        }
        for hook in [Hook::Port, Hook::UplinkOut] {
            if let Some(id) = programs::ours_at(name, hook)?.first() {
                return Err(Error::refused(what, self.whose(name, link.index, *id)?));
            }
        }
        Ok(link)
    }

    /// Says of which switch a device is that carries a program of ours.
    fn whose(&self, name: &str, index: u32, program: u32) -> Result<String> {
        for other in Switch::list()? {
            let state = State::open(&directory(&other))?;
            let config = state.config()?;
            if config.netns != self.inode {
                continue;
            }
            if config.uplink == index {
                return Ok(format!("`{name}` is the uplink of switch `{other}`"));
            }
            if state.slot_of(index).is_some() {
                return Ok(format!("`{name}` is a port of switch `{other}` already"));
            }
        }
        Ok(format!(
            "program {program} of a hopyard switch runs at `{name}`, but that switch is not in {}: it was \
             made under another mount of the BPF file system; delete it there, or detach the program \
             (`bpftool link`)",
            bpffs::HOME
        ))
    }
}

/// The name of a device of the calling thread's namespace; `None` if there is none of that index.
fn device_name(index: u32) -> Option<String> {
    let name = if_indextoname(index).ok()?;
    let name = name.to_string_lossy().into_owned();
    // nix 0.31 takes the null pointer that means "no such device" for success.
    (!name.is_empty()).then_some(name)
}

/// Is the device one end of a pair, with the guest's at the other?
fn is_pair(link: &Link) -> bool {
    matches!(link.kind.as_deref(), Some("veth" | "netkit"))
}

/// Was the switch's making finished, and its removal not begun?
fn is_whole(directory: &Path) -> bool {
    State::open(directory)
        .and_then(|state| state.config())
        .is_ok_and(|config| config.state == STATE_READY)
}

/// tcx came with Linux 6.6.
fn check_kernel(what: &str) -> Result<()> {
    let release = nix::sys::utsname::uname()
        .map_err(|e| file_error("read", Path::new("uname"))(e.into()))?
        .release()
        .to_string_lossy()
        .into_owned();
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || parts.next().and_then(|part| part.parse::<u32>().ok());
    match (number(), number()) {
        (Some(major), Some(minor)) if (major, minor) < (6, 6) => Err(Error::refused(
            what,
            format!("this kernel ({release}) has no tcx hooks; it takes Linux 6.6 or newer"),
        )),
        _ => Ok(()),
    }
}
