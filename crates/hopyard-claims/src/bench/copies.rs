//! NM4 and NM6: how often the kernel copies a packet, or its head, on the way, and for whom.

use std::collections::BTreeMap;
use std::time::Duration;

use aya::maps::{Array, MapData, PerCpuArray, PerCpuHashMap};
use aya::programs::RawTracePoint;
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};

use super::{Error, Result, Timed};
use crate::lab::{self, Lab, role};
use crate::measure::Sampler;
use crate::model::{Axes, Cell, FOR_A_VERDICT, LoadKind, Peer, axis};
use crate::profile::Symbols;
use crate::profile::subsystems::{Place, place};
use crate::units::float;

static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/copies.bpf.o"));
/// Where the kernel takes memory (since Linux 6.1 it does nowhere else), gives a packet to a device and takes one up: programs with the
/// names of these tracepoints.
const TRACEPOINTS: [&str; 4] = [
    "kmem_cache_alloc",
    "kmalloc",
    "net_dev_queue",
    "netif_receive_skb",
];
/// A function that copies (net/core/skbuff.c) → how often it takes memory for one copy: for the data, and for a
/// new skb where it makes one.
const COPIERS: [(&str, u64); 4] = [
    ("pskb_expand_head", 1),
    ("skb_copy", 2),
    ("__pskb_copy_fclone", 2),
    ("skb_copy_expand", 2),
];
/// `struct copied` of `copies.bpf.c`: place in [`COPIERS`], and who had called it, from the inside outwards.
type Copied = [u64; 4];
/// Bytes of a message, as in the report.
const MESSAGE: u32 = 1400;
/// The ends of the namespace's pair.
const ETH: &str = "a/eth0";
const PORT: &str = "hub/veth-a";
const WINDOW: Duration = Duration::from_millis(150);
const WARM_UP: Duration = Duration::from_millis(50);

/// For whom a copy is: picks by the names of those who had it made, from the inside outwards.
type Whom = fn(&[String]) -> bool;

/// Counts copies of packets that leave by a device of the watched namespace, as long as it lives. Copies of other packets do not count.
struct Counter {
    watched: Array<MapData, u32>,
    copies: PerCpuHashMap<MapData, Copied, u64>,
    lost: PerCpuArray<MapData, u64>,
    symbols: Symbols,
    _programs: Ebpf,
}

impl Counter {
    fn new() -> Result<Self> {
        Self::attached().map_err(|why| {
            Error::Lacking(format!(
                "cannot count the kernel's copies of packets (it takes Linux 6.1 with options CONFIG_BPF_EVENTS and \
                 CONFIG_KALLSYMS, and root): {why}"
            ))
        })
    }

    fn attached() -> Result<Self, String> {
        // The verifier has nothing to say of a program that the kernel does not take at all.
        let said = |error: &(dyn std::error::Error + 'static)| {
            let said = crate::chain(error);
            said.split(". Verifier output")
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        let symbols = Symbols::read().map_err(|e| said(&e))?;
        let mut spans = [[0; 2]; COPIERS.len()];
        for (span, (name, _)) in spans.iter_mut().zip(COPIERS) {
            let found = symbols.span(name);
            let found = found.ok_or_else(|| format!("this kernel has no function {name}"))?;
            *span = [found.start, found.end];
        }
        let mut object = EbpfLoader::new()
            .override_global("copiers", &spans, true)
            .load(OBJECT)
            .map_err(|e| said(&e))?;
        for name in TRACEPOINTS {
            let program = object.program_mut(name).ok_or("a program is missing")?;
            let program: &mut RawTracePoint = program
                .try_into()
                .map_err(|e: aya::programs::ProgramError| said(&e))?;
            program.load().map_err(|e| said(&e))?;
            program.attach(name).map_err(|e| said(&e))?;
        }
        let copies = object.take_map("copies").ok_or("a map is missing")?;
        let lost = object.take_map("lost").ok_or("a map is missing")?;
        let watched = object.take_map("watched").ok_or("a map is missing")?;
        Ok(Self {
            watched: Array::try_from(watched).map_err(|e| said(&e))?,
            copies: PerCpuHashMap::try_from(copies).map_err(|e| said(&e))?,
            lost: PerCpuArray::try_from(lost).map_err(|e| said(&e))?,
            symbols,
            _programs: object,
        })
    }

    /// Only packets that leave by devices of this lab's hub count from now on.
    fn watch(&mut self, lab: &Lab) -> Result<()> {
        let inode = lab.space(role::HUB)?.handle.ns().inode()?;
        let number = u32::try_from(inode)
            .map_err(|_| Error::Lacking(format!("namespace {inode} has no number of 32 bits")))?;
        self.watched
            .set(0, number, 0)
            .map_err(|e| Error::Lacking(crate::chain(&e)))
    }

    /// Copies for somebody so far.
    fn read(&self, whom: Whom) -> Result<u64> {
        let failed = |e: aya::maps::MapError| Error::Lacking(crate::chain(&e));
        let lost: u64 = self.lost.get(&0, 0).map_err(failed)?.iter().sum();
        if lost > 0 {
            return Err(Error::Lacking(format!(
                "{lost} copies were not counted: the kernel makes them in too many ways"
            )));
        }
        let mut taken = BTreeMap::new();
        for one in &self.copies {
            let ([copier, callers @ ..], times) = one.map_err(failed)?;
            let names = callers.iter().filter_map(|at| self.symbols.name(*at));
            if whom(&names.collect::<Vec<_>>()) {
                *taken.entry(copier).or_insert(0) += times.iter().sum::<u64>();
            }
        }
        Ok(in_copies(&taken))
    }
}

/// Copies, of how often memory was taken by each of [`COPIERS`].
fn in_copies(taken: &BTreeMap<u64, u64>) -> u64 {
    let each = (0..).zip(COPIERS);
    each.map(|(copier, (_, times))| taken.get(&copier).copied().unwrap_or(0) / times)
        .sum()
}

/// IP forwarding.
fn by_forwarding(callers: &[String]) -> bool {
    callers
        .iter()
        .any(|name| name == "ip_forward" || name == "ip6_forward")
}

/// The bridge or netfilter: by the first caller that is no function of the packet's memory itself.
fn by_bridge_or_netfilter(callers: &[String]) -> bool {
    let subsystem = |name: &String| match place(&["", name.as_str()]) {
        Place::Busy { subsystem, .. } => subsystem,
        Place::Idle => "",
    };
    let mut outside = callers.iter().map(subsystem);
    outside
        .find(|name| *name != "skb memory")
        .is_some_and(|name| ["bridge", "netfilter"].contains(&name))
}

/// What is sent on a path, as the report had it: from a namespace to a second machine, in messages of 1400 bytes, over a pair without
/// offloads, as etun was.
fn cell_of(path: &lab::Path, load: LoadKind) -> Result<Cell> {
    let peer = Peer::Far;
    let mut axes = Axes {
        message_size_bytes: Some(MESSAGE),
        ..Axes::default()
    };
    let name = path.name;
    let of_etun = [ETH, PORT].map(|device| format!("offload@{name}:{device}=off"));
    let said = |error: &(dyn std::error::Error + 'static)| Error::Lacking(crate::chain(error));
    let device_offload = axis("device_offload").map_err(|error| said(&error))?;
    (device_offload.set)(&mut axes, &of_etun.join("+")).map_err(|error| said(&error))?;
    Ok(Cell {
        path: name.to_owned(),
        peer,
        load,
        axes: axes.for_cell(load, peer, path.axes),
    })
}

/// Copies for each data packet that the client sends on a path, block by block.
fn per_packet(path: &str, load: LoadKind, whom: Whom, what: &str) -> Result<Timed> {
    let mut counter = Counter::new()?;
    let path = lab::path(path)?;
    let cell = cell_of(path, load)?;
    let sampler = Sampler::new(WINDOW, WARM_UP)?;
    let mut values = Vec::new();
    let mut failure = None;
    for _ in 0..FOR_A_VERDICT {
        let lab = Lab::build(path, cell.peer, &cell.axes)?;
        counter.watch(&lab)?;
        send_one_by_one(&lab)?;
        let sent = || sent(&lab);
        let before = (counter.read(whom)?, sent()?);
        // A window that others took is one less; that the host cannot do it all of them say.
        match sampler.measure_in(&lab, &cell, 0.0) {
            Err(error) if !error.is_interrupt() => {
                let why = crate::chain(&error);
                crate::note(format_args!("{}: a window less: {why}", cell.path));
                failure = Some(error);
                continue;
            }
            done => done?,
        };
        let after = (counter.read(whom)?, sent()?);
        let packets = float(after.1 - before.1);
        if packets > 0.0 {
            values.push(float(after.0 - before.0) / packets);
        }
    }
    if let (true, Some(failure)) = (values.is_empty(), failure) {
        return Err(failure.into());
    }
    Ok(Timed {
        what: what.to_owned(),
        values,
        base: None,
    })
}

/// Makes TCP send single packets through the client's device, as kernels of 2007 did without offloads. Since Linux 4.17 TCP builds large
/// packets for any device, and the kernel segments them just before it. Those segments are not shared with TCP's send queue, so that
/// IP forwarding need not copy them.
fn send_one_by_one(lab: &Lab) -> Result<()> {
    let client = &lab.topology.client;
    let handle = &lab.space(client.role)?.handle;
    Ok(handle.set_gso_max_segs(&client.device, 1)?)
}

/// Packets (one per skb) that the client's device has sent.
fn sent(lab: &Lab) -> Result<u64> {
    let client = &lab.topology.client;
    let stats = lab.space(client.role)?.handle.device_stats()?;
    let own = stats.iter().find(|device| device.name == client.device);
    let own = own.ok_or_else(|| {
        Error::Lacking(format!(
            "the client's device {} has no counters",
            client.device
        ))
    })?;
    Ok(own.tx_packets)
}

/// Routed.
pub(super) fn per_forwarded_packet() -> Result<Timed> {
    per_packet(
        "veth-route",
        LoadKind::TcpStream,
        by_forwarding,
        "copies by IP forwarding per packet",
    )
}

/// Routed, of UDP.
pub(super) fn per_forwarded_datagram() -> Result<Timed> {
    per_packet(
        "veth-route",
        LoadKind::UdpStream,
        by_forwarding,
        "copies by IP forwarding per datagram of UDP",
    )
}

/// Bridged, with netfilter called.
pub(super) fn per_filtered_packet() -> Result<Timed> {
    per_packet(
        "bridge-nf",
        LoadKind::TcpStream,
        by_bridge_or_netfilter,
        "copies by bridge and netfilter per packet, netfilter called",
    )
}

/// Bridged, without.
pub(super) fn per_bridged_packet() -> Result<Timed> {
    per_packet(
        "bridge",
        LoadKind::TcpStream,
        by_bridge_or_netfilter,
        "copies by bridge and netfilter per packet, not called",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NM4 and NM6: the wire, and messages of the report's size, on every path and of UDP as well.
    #[test]
    fn packets_are_those_of_the_report() {
        for path in ["veth-route", "bridge-nf", "bridge"] {
            for load in [LoadKind::TcpStream, LoadKind::UdpStream] {
                let cell = cell_of(lab::path(path).unwrap(), load).unwrap();
                assert_eq!((cell.peer, cell.load), (Peer::Far, load));
                assert_eq!(cell.axes.message_size_bytes, Some(1400), "{path}");
                let offloads = (axis("device_offload").unwrap().show)(&cell.axes);
                let of_etun = format!("offload@{path}:a/eth0=off+offload@{path}:hub/veth-a=off");
                assert_eq!(offloads.as_deref(), Some(of_etun.as_str()));
            }
        }
    }

    fn names(callers: &[&str]) -> Vec<String> {
        callers.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_copy_is_for_who_had_it_made() {
        let routed = names(&[
            "ip_forward",
            "__netif_receive_skb_one_core",
            "process_backlog",
        ]);
        assert!(by_forwarding(&routed) && !by_bridge_or_netfilter(&routed));
        let filtered = names(&[
            "skb_ensure_writable",
            "nf_nat_manip_pkt",
            "br_nf_pre_routing",
        ]);
        assert!(by_bridge_or_netfilter(&filtered) && !by_forwarding(&filtered));
        assert!(by_bridge_or_netfilter(&names(&["br_forward"])));
        // A device that makes room, and messages of netlink.
        for other in ["veth_xdp_rcv", "netlink_trim"] {
            let other = names(&[other, "br_handle_frame", "ip_rcv"]);
            assert!(!by_bridge_or_netfilter(&other) && !by_forwarding(&other));
        }
        assert!(!by_bridge_or_netfilter(&[]) && !by_forwarding(&[]));
    }

    #[test]
    fn a_new_skb_takes_memory_twice() {
        let taken = |copier: &str, times: u64| {
            let place = COPIERS
                .iter()
                .position(|(name, _)| *name == copier)
                .unwrap();
            (u64::try_from(place).unwrap(), times)
        };
        assert_eq!(in_copies(&BTreeMap::new()), 0);
        let both = [taken("pskb_expand_head", 5), taken("skb_copy", 6)];
        assert_eq!(in_copies(&both.into()), 8);
    }
}
