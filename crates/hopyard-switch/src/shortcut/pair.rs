//! The shortcut between the two ends of a veth pair, with no switch: the maps that a switch would fill are filled here.

use std::fmt;
use std::fs::File;
use std::path::Path;

use aya::Ebpf;
use aya::maps::{Array, HashMap, PerCpuArray};
use aya::programs::links::FdLink;
use hopyard_net::Handle;

use super::layout::{GuestKey, GuestSeen, PATH_LEN, SHORTCUT_VERSION, Settings, ShortcutCounters};
use super::programs::{self, PORTS, STATIONS};
use super::{SHORTCUT_MAX_MESSAGE, sum_of};
use crate::error::{Error, Result};
use crate::layout::{FIRST_PORT, PortRecord, STATE_READY, Station, station_key};
use crate::mac::Mac;
use crate::shortcut_files::{COUNTS, GUESTS, LIVES, SETTINGS};

/// Joins the sockets of TCP connections between the two ends of a veth pair, until it is dropped: connections that stand then go on
/// by frames.
pub struct PairShortcut {
    /// Takes new sockets in. Before the rest, so that it goes first.
    _link: FdLink,
    object: Ebpf,
}

impl fmt::Debug for PairShortcut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PairShortcut")
    }
}

impl PairShortcut {
    /// Joins sockets of a control group (version 2) and of groups below it, given the two ends of a pair by their namespaces and names.
    /// [`test_shortcut`](super::test_shortcut) says what joined sockets lack on this kernel.
    ///
    /// # Errors
    /// They are no pair, or the kernel refuses a program.
    pub fn new(ends: [(&Handle, &str); 2], cgroup: &Path) -> Result<Self> {
        Self::set(ends, cgroup, true)
    }

    /// The same, with sockets joined or only looked at.
    pub(super) fn set(ends: [(&Handle, &str); 2], cgroup: &Path, on: bool) -> Result<Self> {
        let group = File::open(cgroup).map_err(|source| Error::File {
            what: "open",
            path: cgroup.to_owned(),
            source,
        })?;
        let mut object = programs::load(None)?;
        for (n, (handle, device)) in ends.into_iter().enumerate() {
            // From the other end, which sees this one.
            let (other, its_device) = ends[1 - n];
            let port = other.index(its_device)?;
            let seen = other.ns().run(|| programs::guest_of(&mut object, port))??;
            let guest = handle.link(device)?;
            let mac = guest.mac.map(Mac).ok_or_else(|| not_a_pair(device))?;
            let seen = seen.filter(|seen| seen.ifindex == guest.index);
            let seen = seen.ok_or_else(|| not_a_pair(device))?;
            introduce(&mut object, FIRST_PORT + u32::from(n != 0), seen, port, mac)?;
        }
        let mut settings: Array<_, Settings> = map(&mut object, SETTINGS)?;
        let new = Settings {
            version: SHORTCUT_VERSION,
            on: on.into(),
            max_message: SHORTCUT_MAX_MESSAGE,
            accepted: 0,
            cgroup: 0,
            lives: 1,
            path: [0; PATH_LEN],
        };
        settings.set(0, new, 0).map_err(Error::bpf(WHAT))?;
        let link = programs::attach(&mut object, &group, cgroup)?;
        Ok(Self {
            _link: link,
            object,
        })
    }

    /// What went by the shortcut, from the first end's sockets and from the second's.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn counters(&self) -> Result<[ShortcutCounters; 2]> {
        let counts = self.object.map(COUNTS);
        let counts = counts.ok_or_else(|| Error::invalid(WHAT, "it has no counters"))?;
        let counts = PerCpuArray::try_from(counts).map_err(Error::bpf(WHAT))?;
        Ok([
            sum_of(&counts, FIRST_PORT)?,
            sum_of(&counts, FIRST_PORT + 1)?,
        ])
    }
}

const WHAT: &str = "join sockets between two ends of a veth pair";

fn not_a_pair(device: &str) -> Error {
    let why = format!("the kernel does not tell of the other end of `{device}`");
    Error::invalid(WHAT, why)
}

/// Tells the programs of an end: the device behind the port with this slot.
fn introduce(object: &mut Ebpf, slot: u32, seen: GuestSeen, port: u32, mac: Mac) -> Result<()> {
    let key = GuestKey {
        netns: seen.netns,
        ifindex: seen.ifindex,
        unused: 0,
    };
    let mut guests: HashMap<_, GuestKey, u32> = map(object, GUESTS)?;
    guests.insert(key, slot, 0).map_err(Error::bpf(WHAT))?;
    let mut lives: Array<_, u64> = map(object, LIVES)?;
    lives.set(slot, 1, 0).map_err(Error::bpf(WHAT))?;
    let record = PortRecord {
        mac: mac.to_number(),
        ifindex: port,
        device: port,
        state: STATE_READY,
        net_device: seen.address,
        ..PortRecord::default()
    };
    let mut ports: Array<_, PortRecord> = map(object, PORTS)?;
    ports.set(slot, record, 0).map_err(Error::bpf(WHAT))?;
    let mut stations: HashMap<_, u64, Station> = map(object, STATIONS)?;
    let station = Station {
        slot,
        ..Station::default()
    };
    stations
        .insert(station_key(mac, 0), station, 0)
        .map_err(Error::bpf(WHAT))
}

fn map<'a, T>(object: &'a mut Ebpf, name: &str) -> Result<T>
where
    T: TryFrom<&'a mut aya::maps::Map>,
    T::Error: std::error::Error + Send + Sync + 'static,
{
    let what = format!("open the map {name}");
    let map = object
        .map_mut(name)
        .ok_or_else(|| Error::invalid(&what, "it is not in the object"))?;
    T::try_from(map).map_err(Error::bpf(what))
}
