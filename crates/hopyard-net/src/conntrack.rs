//! Connection tracking of a namespace, by ctnetlink (include/uapi/linux/netfilter/nfnetlink_conntrack.h).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::attrs::{attribute, u32_at};
use crate::error::{Error, Result};
use crate::netns::NetNs;
use crate::nfnetlink::{ACK, CREATE, DUMP, EXCLUSIVE, HEADER, Message, ask, connect};

const SUBSYSTEM: u8 = 1;
const NEW: u8 = 0;
const GET: u8 = 1;
const GET_STATS_CPU: u8 = 4;
const GET_STATS: u8 = 5;

const TUPLE_ORIG: u16 = 1;
const TUPLE_REPLY: u16 = 2;
const STATUS: u16 = 3;
const PROTOINFO: u16 = 4;
const TIMEOUT: u16 = 7;
const FILTER: u16 = 25;
const FILTER_ORIG_FLAGS: u16 = 1;
/// Of the flags, the one for the destination address (net/netfilter/nf_internals.h).
const FILTER_IP_DST: u32 = 1 << 1;
const TUPLE_IP: u16 = 1;
const TUPLE_PROTO: u16 = 2;
const V4_SRC: u16 = 1;
const V4_DST: u16 = 2;
const V6_SRC: u16 = 3;
const V6_DST: u16 = 4;
const PROTO_NUM: u16 = 1;
const PROTO_SRC_PORT: u16 = 2;
const PROTO_DST_PORT: u16 = 3;
const PROTOINFO_TCP: u16 = 1;
const PROTOINFO_TCP_STATE: u16 = 1;
const TCP_ESTABLISHED: u8 = 3;

const SEEN_REPLY: u32 = 1 << 1;
const ASSURED: u32 = 1 << 2;
const CONFIRMED: u32 = 1 << 3;
const SRC_NAT: u32 = 1 << 4;
const DST_NAT: u32 = 1 << 5;
const OFFLOAD: u32 = 1 << 14;
const HW_OFFLOAD: u32 = 1 << 15;

const STATS_INSERT_FAILED: u16 = 9;
const STATS_DROP: u16 = 10;
const STATS_EARLY_DROP: u16 = 11;
const STATS_GLOBAL_ENTRIES: u16 = 1;
const STATS_GLOBAL_MAX: u16 = 2;

/// A connection that is tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tracked {
    /// Where its first packet came from.
    pub source: IpAddr,
    /// Where its first packet went to, as it came in.
    pub destination: IpAddr,
    /// Where answers come from: the destination, after translation.
    pub answers_from: Option<IpAddr>,
    status: u32,
}

impl Tracked {
    /// Is its source address translated?
    #[must_use]
    pub fn is_source_translated(&self) -> bool {
        self.status & SRC_NAT != 0
    }

    /// Is its destination address translated?
    #[must_use]
    pub fn is_destination_translated(&self) -> bool {
        self.status & DST_NAT != 0
    }

    /// Does a flow table forward it, in software or hardware?
    #[must_use]
    pub fn is_offloaded(&self) -> bool {
        self.status & (OFFLOAD | HW_OFFLOAD) != 0
    }
}

/// What connection tracking counted since the namespace was made, all CPUs together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConntrackStats {
    /// Connections in the table.
    pub entries: u64,
    /// How many there may be (`nf_conntrack_max`); 0 where the kernel does not tell (before Linux 5.11).
    pub limit: u64,
    /// Packets dropped because no entry could be made or the table was full.
    pub dropped: u64,
    /// Entries removed to make room for new ones.
    pub early_dropped: u64,
    /// Entries that could not be inserted when their first packet left.
    pub insert_failed: u64,
}

/// The connections whose first packet went to an address.
///
/// # Errors
/// [`Error::Unsupported`] without nf_conntrack_netlink, [`Error::Denied`] without `CAP_NET_ADMIN`.
pub fn tracked_to(ns: &NetNs, destination: IpAddr) -> Result<Vec<Tracked>> {
    let mut request = Message::new(SUBSYSTEM, GET, DUMP, family(destination));
    // A kernel before 5.8 passes over the filter and sends all. Of IPv6 addresses the kernel lets through those that differ
    // (Linux 6.18), so that all are asked for.
    if destination.is_ipv4() {
        request.nest(TUPLE_ORIG, |tuple| {
            tuple.nest(TUPLE_IP, |ip| {
                ip.put(kinds(destination).1, &octets(destination));
            });
        });
        request.nest(FILTER, |filter| {
            filter.put(FILTER_ORIG_FLAGS, &FILTER_IP_DST.to_ne_bytes());
        });
    }
    let mut found = Vec::new();
    let each = |message: &[u8]| {
        found.extend(read(message).filter(|entry| entry.destination == destination));
    };
    exchange(ns, "list tracked connections", &request.done(), each)?;
    Ok(found)
}

/// What connection tracking of a namespace counted.
///
/// # Errors
/// As [`tracked_to`].
pub fn conntrack_stats(ns: &NetNs) -> Result<ConntrackStats> {
    let what = "read the counters of connection tracking";
    let mut stats = ConntrackStats::default();
    let number = |message: &[u8], kind| {
        let value = attribute(message, HEADER, kind).and_then(|value| u32_at(value, 0));
        u64::from(u32::from_be(value.unwrap_or(0)))
    };
    let request = Message::new(SUBSYSTEM, GET_STATS_CPU, DUMP, 0).done();
    exchange(ns, what, &request, |cpu| {
        stats.dropped += number(cpu, STATS_DROP);
        stats.early_dropped += number(cpu, STATS_EARLY_DROP);
        stats.insert_failed += number(cpu, STATS_INSERT_FAILED);
    })?;
    // One answer, and an acknowledgement that ends the exchange.
    let request = Message::new(SUBSYSTEM, GET_STATS, ACK, 0).done();
    exchange(ns, what, &request, |all| {
        stats.entries = number(all, STATS_GLOBAL_ENTRIES);
        stats.limit = number(all, STATS_GLOBAL_MAX);
    })?;
    Ok(stats)
}

/// Puts so many TCP connections into the table that nobody has: established, assured, for a day. They go from addresses
/// that begin with `first`, each from ports 1024 and up, to port 443 of `to`.
///
/// # Errors
/// As [`tracked_to`]; [`Error::Kernel`] where the table is full.
pub fn fill_conntrack(ns: &NetNs, count: u32, first: IpAddr, to: IpAddr) -> Result<()> {
    const AT_ONCE: u32 = 256;
    let what = format!("add {count} connections to the tracked ones");
    let explain = |error| explained(&what, error);
    ns.run(|| {
        let socket = connect().map_err(explain)?;
        let mut begun = 0;
        while begun < count {
            let many = AT_ONCE.min(count - begun);
            let mut bytes = Vec::new();
            for number in begun..begun + many {
                let last = number + 1 == begun + many;
                bytes.extend(made_up(number, first, to, if last { ACK } else { 0 }));
            }
            // Of the others the kernel answers errors alone.
            ask(&socket, &bytes, |_| ()).map_err(explain)?;
            begun += many;
        }
        Ok(())
    })?
}

/// The request for one of many connections.
fn made_up(number: u32, first: IpAddr, to: IpAddr, flags: u16) -> Vec<u8> {
    const PORTS: u32 = 64_000;
    const DAY_S: u32 = 86_400;
    let source = plus(first, number / PORTS);
    let port = u16::try_from(1024 + number % PORTS).unwrap_or(u16::MAX);
    let mut request = Message::new(SUBSYSTEM, NEW, CREATE | EXCLUSIVE | flags, family(to));
    tuple(&mut request, TUPLE_ORIG, (source, port), (to, 443));
    tuple(&mut request, TUPLE_REPLY, (to, 443), (source, port));
    request
        .put(STATUS, &(SEEN_REPLY | ASSURED | CONFIRMED).to_be_bytes())
        .put(TIMEOUT, &DAY_S.to_be_bytes())
        .nest(PROTOINFO, |info| {
            info.nest(PROTOINFO_TCP, |tcp| {
                tcp.put(PROTOINFO_TCP_STATE, &[TCP_ESTABLISHED]);
            });
        });
    request.done()
}

fn tuple(request: &mut Message, kind: u16, from: (IpAddr, u16), to: (IpAddr, u16)) {
    const TCP: u8 = 6;
    request.nest(kind, |tuple| {
        tuple.nest(TUPLE_IP, |ip| {
            ip.put(kinds(from.0).0, &octets(from.0));
            ip.put(kinds(to.0).1, &octets(to.0));
        });
        tuple.nest(TUPLE_PROTO, |proto| {
            proto.put(PROTO_NUM, &[TCP]);
            proto.put(PROTO_SRC_PORT, &from.1.to_be_bytes());
            proto.put(PROTO_DST_PORT, &to.1.to_be_bytes());
        });
    });
}

fn exchange(ns: &NetNs, what: &str, request: &[u8], each: impl FnMut(&[u8]) + Send) -> Result<()> {
    let asked = ns.run(|| ask(&connect()?, request, each))?;
    asked.map_err(|error| explained(what, error))
}

fn explained(what: &str, error: io::Error) -> Error {
    match error.raw_os_error() {
        // No nfnetlink at all; no such subsystem of it.
        Some(libc::EPROTONOSUPPORT | libc::EINVAL | libc::EOPNOTSUPP) => Error::Unsupported {
            what: what.to_owned(),
            feature: "nf_conntrack_netlink".to_owned(),
            remedy: "load module `nf_conntrack_netlink` (kernel option CONFIG_NF_CT_NETLINK)"
                .to_owned(),
        },
        _ => Error::from_io(what, error),
    }
}

/// An entry of a dump.
fn read(message: &[u8]) -> Option<Tracked> {
    let ip = |kind| attribute(attribute(message, HEADER, kind)?, 0, TUPLE_IP);
    let original = ip(TUPLE_ORIG)?;
    let status = attribute(message, HEADER, STATUS).and_then(|value| u32_at(value, 0));
    Some(Tracked {
        source: address(original, V4_SRC, V6_SRC)?,
        destination: address(original, V4_DST, V6_DST)?,
        answers_from: ip(TUPLE_REPLY).and_then(|reply| address(reply, V4_SRC, V6_SRC)),
        status: u32::from_be(status.unwrap_or(0)),
    })
}

fn address(ip: &[u8], four: u16, six: u16) -> Option<IpAddr> {
    if let Some(octets) = attribute(ip, 0, four) {
        return <[u8; 4]>::try_from(octets).ok().map(IpAddr::from);
    }
    let octets = attribute(ip, 0, six)?;
    <[u8; 16]>::try_from(octets).ok().map(IpAddr::from)
}

/// Attributes of a source and of a destination address.
fn kinds(address: IpAddr) -> (u16, u16) {
    match address {
        IpAddr::V4(_) => (V4_SRC, V4_DST),
        IpAddr::V6(_) => (V6_SRC, V6_DST),
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

fn family(address: IpAddr) -> u8 {
    let family = match address {
        IpAddr::V4(_) => libc::AF_INET,
        IpAddr::V6(_) => libc::AF_INET6,
    };
    u8::try_from(family).unwrap_or(0)
}

/// The address so many further.
fn plus(address: IpAddr, more: u32) -> IpAddr {
    match address {
        IpAddr::V4(ip) => Ipv4Addr::from(u32::from(ip).wrapping_add(more)).into(),
        IpAddr::V6(ip) => Ipv6Addr::from(u128::from(ip).wrapping_add(more.into())).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_reads_back() {
        let (from, to) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let entry = read(&made_up(64_001, from, to, 0)).unwrap();
        assert_eq!(entry.source, IpAddr::from([192, 0, 2, 2]));
        assert_eq!((entry.destination, entry.answers_from), (to, Some(to)));
        assert!(!entry.is_source_translated() && !entry.is_destination_translated());
        assert!(!entry.is_offloaded());
        let six: IpAddr = "2001:db8::1".parse().unwrap();
        assert_eq!(read(&made_up(0, six, six, 0)).unwrap().source, six);
        assert_eq!(read(&[0; HEADER]), None);
    }
}
