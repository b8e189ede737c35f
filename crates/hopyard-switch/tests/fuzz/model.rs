//! What the switch must do with a frame, after `docs/switch.md` and the RFCs: the reference for the
//! programs. Simple before fast, and with no look at how the programs do it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopyard_switch::{Counters, DROP_REASONS};

use crate::packet::{
    ADVERT, ARP, AUTHENTICATION, DESTINATION, FRAGMENT, HOP_BY_HOP, ICMP, ICMPV6, IPV4, IPV6,
    REDIRECT, ROUTER_ADVERT, ROUTER_SOLICIT, ROUTING, SERVICE_TAG, SOLICIT, SOURCE_MAC, TARGET_MAC,
    UDP, VLAN_TAG,
};
use crate::too_big;
use crate::world::Kind;

type Mac = [u8; 6];

/// The groups of all routers and of those that learn who has joined a group, of IPv4 and IPv6, with their Ethernet addresses.
const OF_ROUTERS: [(Mac, IpAddr); 4] = [
    ([1, 0, 0x5e, 0, 0, 2], v4(224, 0, 0, 2)),
    ([1, 0, 0x5e, 0, 0, 22], v4(224, 0, 0, 22)),
    ([0x33, 0x33, 0, 0, 0, 2], all_with(2)),
    ([0x33, 0x33, 0, 0, 0, 0x16], all_with(0x16)),
];

const fn v4(a: u8, b: u8, c: u8, d: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

const fn all_with(last: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, last))
}

/// Is it for routers alone? It says so by the addresses of Ethernet and IP.
fn is_for_routers(frame: &[u8]) -> bool {
    // Copies have no tag.
    let tag = if word(frame, 12) == Some(VLAN_TAG) {
        4
    } else {
        0
    };
    let to: Option<IpAddr> = match word(frame, 12 + tag) {
        Some(IPV4) if frame.len() >= 34 + tag => Some(ipv4_at(frame, 30 + tag).into()),
        Some(IPV6) if frame.len() >= 54 + tag => Some(ipv6_at(frame, 38 + tag).into()),
        _ => None,
    };
    to.is_some_and(|to| OF_ROUTERS.contains(&(mac(frame, 0), to)))
}

/// The longest frame that a device with an MTU of 1,500 octets takes.
const LONGEST: usize = 1514;
const MOBILITY: u8 = 135;
const UDP_HEADER: usize = 8;
/// Extension headers and options of neighbour discovery that are read; more are refused.
const MAX_EXTENSIONS: usize = 7;
const MAX_OPTIONS: usize = 8;

/// A tag that is beside the frame, where the kernel puts the first one on receipt: type and TCI.
pub(crate) type Tag = (u16, u16);

/// A port, as it was asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Port {
    pub(crate) ifindex: u32,
    pub(crate) macs: Vec<Mac>,
    pub(crate) ips: Vec<IpAddr>,
    pub(crate) vlan: u16,
    pub(crate) isolated: bool,
    pub(crate) allow_spoof: bool,
    pub(crate) prefixes: Vec<(IpAddr, u8)>,
    pub(crate) router: bool,
    pub(crate) dhcp_server: bool,
    /// It may send no broadcasts; the others any number.
    pub(crate) mute: bool,
    pub(crate) kind: Kind,
}

impl Port {
    fn is_held(&self) -> bool {
        !self.ips.is_empty() || !self.prefixes.is_empty()
    }

    /// May it speak for other ports?
    fn is_free(&self) -> bool {
        self.allow_spoof && !self.is_held()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Party {
    Wire,
    Host,
    Port(usize),
    /// A device that is no port, at a port's hook.
    Nobody,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Received(usize),
    Sent(usize),
    Answered,
    Dropped(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// To the stack, or to the wire: as if there were no switch.
    GoesOn,
    Dropped,
    Redirected,
}

impl Verdict {
    /// As the programs say it (`enum tcx_action_base`).
    pub(crate) fn code(self) -> i32 {
        match self {
            Self::GoesOn => -1,
            Self::Dropped => 2,
            Self::Redirected => 7,
        }
    }
}

/// All that one frame does.
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    /// The frame afterwards, without a tag that went to its place beside the frame.
    pub(crate) frame: Vec<u8>,
    /// What the sender may be told instead, of what the receiver does not take: so many times a second, which is left open.
    pub(crate) told: Option<Vec<u8>>,
    events: Vec<(Party, Event)>,
}

impl Outcome {
    /// Who gets the frame, or the answer to it.
    pub(crate) fn receivers(&self) -> impl Iterator<Item = Party> + '_ {
        self.events
            .iter()
            .filter(|(_, event)| matches!(event, Event::Sent(_) | Event::Answered))
            .map(|(party, _)| *party)
    }

    /// Adds what is counted; `index` tells where a party's counters are.
    pub(crate) fn count(&self, sums: &mut [Counters], index: impl Fn(Party) -> usize) {
        for (party, event) in &self.events {
            let sum = &mut sums[index(*party)];
            match event {
                Event::Received(bytes) => {
                    sum.rx_packets += 1;
                    sum.rx_bytes += *bytes as u64;
                }
                Event::Sent(bytes) => {
                    sum.tx_packets += 1;
                    sum.tx_bytes += *bytes as u64;
                }
                Event::Answered => sum.answered += 1,
                Event::Dropped(reason) => sum.drops[reason_index(reason)] += 1,
            }
        }
    }
}

pub(crate) fn reason_index(reason: &str) -> usize {
    DROP_REASONS
        .iter()
        .position(|(name, _)| *name == reason)
        .unwrap()
}

/// The switch's table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    /// The host's address, if there is an uplink.
    pub(crate) host: Option<Mac>,
    pub(crate) answers: bool,
    /// The host's own IP addresses, which are untagged.
    pub(crate) of_host: Vec<IpAddr>,
    pub(crate) ports: Vec<Port>,
}

/// What collects an outcome.
struct Way<'a> {
    origin: Party,
    beside: Option<Tag>,
    frame: &'a [u8],
    events: Vec<(Party, Event)>,
}

impl Way<'_> {
    fn says(&mut self, party: Party, event: Event) {
        self.events.push((party, event));
    }

    fn drops(&mut self, reason: &'static str) {
        self.says(self.origin, Event::Dropped(reason));
    }

    fn end(self, verdict: Verdict) -> Outcome {
        let frame = self.frame.to_vec();
        self.end_as(verdict, frame)
    }

    fn end_as(self, verdict: Verdict, frame: Vec<u8>) -> Outcome {
        Outcome {
            verdict,
            frame,
            told: None,
            events: self.events,
        }
    }

    /// Dropped, since its one receiver does not take so much.
    fn end_too_long(mut self, frame: Vec<u8>) -> Outcome {
        self.drops("mtu");
        let told = too_big::message(&frame);
        let outcome = self.end_as(Verdict::Dropped, frame);
        Outcome { told, ..outcome }
    }

    fn end_dropped(mut self, reason: &'static str) -> Outcome {
        self.drops(reason);
        self.end(Verdict::Dropped)
    }
}

pub(crate) fn mac(frame: &[u8], at: usize) -> Mac {
    frame[at..at + 6].try_into().unwrap()
}

pub(crate) fn word(data: &[u8], at: usize) -> Option<u16> {
    let octets = data.get(at..at + 2)?;
    Some(u16::from_be_bytes([octets[0], octets[1]]))
}

pub(crate) fn is_group(mac: Mac) -> bool {
    mac[0] & 1 == 1
}

fn is_reserved(mac: Mac) -> bool {
    mac[..5] == [1, 0x80, 0xc2, 0, 0] && mac[5] < 16
}

fn is_of_switches(mac: Mac) -> bool {
    let garp = mac[..5] == [1, 0x80, 0xc2, 0, 0] && (0x20..0x30).contains(&mac[5]);
    garp || [
        [1, 0, 0x0c, 0xcc, 0xcc, 0xcc],
        [1, 0, 0x0c, 0xcc, 0xcc, 0xcd],
    ]
    .contains(&mac)
}

fn is_tag(kind: u16) -> bool {
    kind == VLAN_TAG || kind == SERVICE_TAG
}

/// The VLAN of a frame at the uplink; `None`: no port's.
fn uplink_vlan(beside: Option<Tag>, frame: &[u8]) -> Option<u16> {
    let kind = word(frame, 12)?;
    if let Some((outer, tci)) = beside {
        return (outer == VLAN_TAG && !is_tag(kind)).then_some(tci & 0xfff);
    }
    if !is_tag(kind) {
        return Some(0);
    }
    let (tci, inner) = (word(frame, 14)?, word(frame, 16)?);
    (kind == VLAN_TAG && !is_tag(inner)).then_some(tci & 0xfff)
}

/// A frame as a device receives it: its first tag beside it. `None`: too short for that, and lost.
pub(crate) fn received(frame: &[u8]) -> Option<(Option<Tag>, Vec<u8>)> {
    let kind = word(frame, 12)?;
    if !is_tag(kind) {
        return Some((None, frame.to_vec()));
    }
    let long_enough = frame.len() >= 20;
    long_enough.then(|| {
        let tag = (kind, word(frame, 14).unwrap());
        (Some(tag), [&frame[..12], &frame[16..]].concat())
    })
}

fn without_tag(frame: &[u8]) -> Vec<u8> {
    if word(frame, 12) == Some(VLAN_TAG) {
        [&frame[..12], &frame[16..]].concat()
    } else {
        frame.to_vec()
    }
}

impl Rules {
    fn owner(&self, mac: Mac, vlan: u16) -> Option<usize> {
        self.ports
            .iter()
            .position(|port| port.vlan == vlan && port.macs.contains(&mac))
    }

    fn owner_of_ip(&self, ip: IpAddr, vlan: u16) -> Option<usize> {
        self.ports
            .iter()
            .position(|port| port.vlan == vlan && port.ips.contains(&ip))
    }

    /// What becomes of a frame of at least 14 octets.
    pub(crate) fn judge(&self, origin: Party, beside: Option<Tag>, frame: &[u8]) -> Outcome {
        let way = Way {
            origin,
            beside,
            frame,
            events: Vec::new(),
        };
        match origin {
            Party::Nobody => {
                let mut way = way;
                way.says(Party::Wire, Event::Dropped("no_port"));
                way.end(Verdict::Dropped)
            }
            Party::Port(n) => self.sent_by_port(way, n),
            Party::Wire | Party::Host => self.at_uplink(way),
        }
    }

    fn sent_by_port(&self, mut way: Way<'_>, n: usize) -> Outcome {
        let (frame, port) = (way.frame, &self.ports[n]);
        way.says(way.origin, Event::Received(frame.len()));
        if let Err(reason) = self.may_say(port, way.beside, frame) {
            return way.end_dropped(reason);
        }
        let to = mac(frame, 0);
        if is_group(to) {
            return self.group_from_port(way, n);
        }
        let long = frame.len() > LONGEST;
        match self.owner(to, port.vlan) {
            Some(owner) if owner == n => way.end_dropped("self"),
            Some(owner) if port.isolated || self.ports[owner].isolated => {
                way.end_dropped("isolated")
            }
            None if self.host.is_none() => way.end_dropped("unknown"),
            _ if long => {
                let frame = frame.to_vec();
                way.end_too_long(frame)
            }
            owner => {
                let party = match owner {
                    Some(owner) => Party::Port(owner),
                    None if self.host == Some(to) => Party::Host,
                    None => Party::Wire,
                };
                way.says(party, Event::Sent(frame.len()));
                way.end(Verdict::Redirected)
            }
        }
    }

    fn group_from_port(&self, mut way: Way<'_>, n: usize) -> Outcome {
        let (frame, port) = (way.frame, &self.ports[n]);
        if let Some(answer) = self.answer(Some(n), port.vlan, frame) {
            way.says(way.origin, Event::Answered);
            return way.end_as(Verdict::Redirected, answer);
        }
        if port.mute {
            return way.end_dropped("broadcast");
        }
        self.copies(&mut way, port.vlan, frame.len());
        if self.host.is_none() {
            return way.end(Verdict::Dropped);
        }
        if frame.len() > LONGEST {
            // The host's copy, then the wire's.
            way.drops("mtu");
            return way.end_dropped("mtu");
        }
        way.says(Party::Host, Event::Sent(frame.len()));
        way.says(Party::Wire, Event::Sent(frame.len()));
        way.end(Verdict::Redirected)
    }

    /// One copy for each other port of the VLAN that isolation does not keep it from; of what is for routers, for ports of those.
    fn copies(&self, way: &mut Way<'_>, vlan: u16, len: usize) {
        let is_for_routers = is_for_routers(way.frame);
        for (m, to) in self.ports.iter().enumerate() {
            if to.vlan != vlan || way.origin == Party::Port(m) {
                continue;
            }
            if is_for_routers && !to.router {
                continue;
            }
            let isolated = match way.origin {
                Party::Port(n) => self.ports[n].isolated || to.isolated,
                _ => false,
            };
            if isolated {
                way.drops("isolated");
            } else if len > LONGEST {
                way.drops("mtu");
            } else {
                way.says(Party::Port(m), Event::Sent(len));
            }
        }
    }

    fn at_uplink(&self, mut way: Way<'_>) -> Outcome {
        let frame = way.frame;
        let (to, from) = (mac(frame, 0), mac(frame, 6));
        let from_wire = way.origin == Party::Wire;
        let odd = is_reserved(to) || (from_wire && is_group(from));
        let Some(vlan) = uplink_vlan(way.beside, frame).filter(|_| !odd) else {
            return way.end(Verdict::GoesOn);
        };
        let owner = self.owner(to, vlan);
        if owner.is_none() && !is_group(to) {
            return way.end(Verdict::GoesOn);
        }
        way.says(way.origin, Event::Received(frame.len()));
        let lie = from_wire && (Some(from) == self.host || self.owner(from, vlan).is_some());
        let bare = without_tag(frame);
        if let Some(owner) = owner {
            return if lie {
                way.end_dropped("mac")
            } else if bare.len() > LONGEST {
                way.end_too_long(bare)
            } else {
                way.says(Party::Port(owner), Event::Sent(bare.len()));
                way.end_as(Verdict::Redirected, bare)
            };
        }
        if lie {
            way.drops("mac");
            return way.end(Verdict::GoesOn);
        }
        if let Some(answer) = self.answer(None, vlan, frame) {
            way.says(way.origin, Event::Answered);
            return way.end_as(Verdict::Redirected, answer);
        }
        self.copies(&mut way, vlan, bare.len());
        way.end_as(Verdict::GoesOn, bare)
    }

    /// May the port send this? The error is the first reason against it.
    fn may_say(&self, port: &Port, beside: Option<Tag>, frame: &[u8]) -> Result<(), &'static str> {
        let (to, from) = (mac(frame, 0), mac(frame, 6));
        let kind = word(frame, 12).unwrap();
        if is_group(from) || from == [0; 6] {
            return Err("source");
        }
        let is_old_tag = [0x9100, 0x9200, 0x9300].contains(&kind);
        if is_tag(kind) || is_old_tag || beside.is_some_and(|(_, tci)| tci & 0xfff != 0) {
            return Err("vlan");
        }
        if !port.macs.contains(&from) {
            let others = self.owner(from, port.vlan).is_some() || self.host == Some(from);
            if !port.allow_spoof || others {
                return Err("mac");
            }
        }
        if is_reserved(to) || is_of_switches(to) {
            return Err("reserved");
        }
        let claims = Claims {
            rules: self,
            port,
            from,
            packet: &frame[14..],
        };
        match kind {
            IPV4 => claims.ipv4(),
            ARP => claims.arp(),
            IPV6 => claims.ipv6(),
            _ if port.is_held() => Err("protocol"),
            _ => Ok(()),
        }
    }

    /// The answer to a question about an address in the table; `asker`: the port that asks.
    fn answer(&self, asker: Option<usize>, vlan: u16, frame: &[u8]) -> Option<Vec<u8>> {
        if !self.answers {
            return None;
        }
        let known = |ip| {
            let owner = self.owner_of_ip(ip, vlan)?;
            let hidden = asker.is_some_and(|asker| {
                owner == asker || self.ports[asker].isolated || self.ports[owner].isolated
            });
            (!hidden).then(|| (self.ports[owner].macs[0], self.ports[owner].router))
        };
        match word(frame, 12)? {
            ARP => answer_arp(frame, known),
            IPV6 => answer_nd(frame, known),
            _ => None,
        }
    }
}

fn turn_round(answer: &mut [u8], owner: Mac) {
    let asker = mac(answer, 6);
    answer[..6].copy_from_slice(&asker);
    answer[6..12].copy_from_slice(&owner);
}

/// RFC 826; what asks whether an address is free, or says that it is taken, is for all (RFC 5227).
fn answer_arp(frame: &[u8], known: impl Fn(IpAddr) -> Option<(Mac, bool)>) -> Option<Vec<u8>> {
    let message = frame.get(14..42)?;
    let (sender, target) = (&message[14..18], &message[24..28]);
    if !matches!(message[..8], [0, 1 | 6, 8, 0, 6, 4, 0, 1]) || sender == [0; 4] || sender == target
    {
        return None;
    }
    let (owner, _) = known(ipv4_at(message, 24).into())?;
    let mut answer = frame.to_vec();
    turn_round(&mut answer, owner);
    answer[21] = 2;
    answer[22..28].copy_from_slice(&owner);
    answer[28..32].copy_from_slice(target);
    answer[32..42].copy_from_slice(&message[8..18]);
    Some(answer)
}

/// RFC 4861, 7.2.4: a solicitation from an address, with its sender's Ethernet address and no more.
fn answer_nd(frame: &[u8], known: impl Fn(IpAddr) -> Option<(Mac, bool)>) -> Option<Vec<u8>> {
    let packet = frame.get(14..86)?;
    let message = &packet[40..];
    let is_plain = packet[0] >> 4 == 6
        && packet[4..8] == [0, 32, ICMPV6, 255]
        && packet[8..24] != [0; 16]
        && message[..2] == [SOLICIT, 0]
        && message[24..26] == [SOURCE_MAC, 1];
    let target = ipv6_at(message, 8);
    let (owner, router) = known(target.into()).filter(|_| is_plain)?;
    let flags = if router { 0xe0 } else { 0x60 };
    let mut answer = frame.to_vec();
    turn_round(&mut answer, owner);
    answer[22..38].copy_from_slice(&target.octets());
    answer[38..54].copy_from_slice(&packet[8..24]);
    answer[54..62].copy_from_slice(&[ADVERT, 0, 0, 0, flags, 0, 0, 0]);
    answer[78..80].copy_from_slice(&[TARGET_MAC, 1]);
    answer[80..86].copy_from_slice(&owner);
    let sum = internet_sum(&answer[22..86]) + 32 + u32::from(ICMPV6);
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    answer[56..58].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    Some(answer)
}

pub(crate) fn internet_sum(data: &[u8]) -> u32 {
    data.chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum()
}

pub(crate) fn ipv4_at(data: &[u8], at: usize) -> Ipv4Addr {
    <[u8; 4]>::try_from(&data[at..at + 4]).unwrap().into()
}

pub(crate) fn ipv6_at(data: &[u8], at: usize) -> Ipv6Addr {
    <[u8; 16]>::try_from(&data[at..at + 16]).unwrap().into()
}

fn is_within(ip: IpAddr, first: IpAddr, bits: u8) -> bool {
    let bits = u32::from(bits);
    match (ip, first) {
        (IpAddr::V4(ip), IpAddr::V4(first)) => {
            (u32::from(ip) ^ u32::from(first)).leading_zeros() >= bits
        }
        (IpAddr::V6(ip), IpAddr::V6(first)) => {
            (u128::from(ip) ^ u128::from(first)).leading_zeros() >= bits
        }
        _ => false,
    }
}

/// RFC 4291, appendix A.
pub(crate) fn link_local(mac: Mac) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac;
    let low = [a ^ 2, b, c, 0xff, 0xfe, d, e, f];
    (0xfe80 << 112 | u128::from(u64::from_be_bytes(low))).into()
}

/// What a packet claims about its sender.
struct Claims<'a> {
    rules: &'a Rules,
    port: &'a Port,
    from: Mac,
    packet: &'a [u8],
}

impl Claims<'_> {
    /// May the port make others believe that the address is its own?
    fn may_claim(&self, ip: IpAddr) -> bool {
        let port = self.port;
        if port.ips.contains(&ip) {
            return true;
        }
        let is_a_ports = self.rules.owner_of_ip(ip, port.vlan).is_some();
        let is_hosts = !is_a_ports && port.vlan == 0 && self.rules.of_host.contains(&ip);
        if is_hosts && !port.router {
            return false;
        }
        if ip == IpAddr::V6(link_local(self.from)) {
            return true;
        }
        let is_made_of = |of: &Port| {
            let mut macs = of.macs.iter();
            of.vlan == port.vlan && macs.any(|mac| ip == IpAddr::V6(link_local(*mac)))
        };
        let is_anothers = self.rules.ports.iter().any(is_made_of) && !is_made_of(port);
        if is_a_ports || is_anothers {
            return port.is_free();
        }
        let within = |(first, bits): &(IpAddr, u8)| is_within(ip, *first, *bits);
        !port.is_held() || port.prefixes.iter().any(within)
    }

    fn arp(&self) -> Result<(), &'static str> {
        let free = self.port.is_free();
        let message = self.packet.get(..28);
        // Linux takes the number of IEEE 802 for that of Ethernet.
        let is_of_ipv4 = |message: &&[u8]| matches!(message[..6], [0, 1 | 6, 8, 0, 6, 4]);
        let Some(message) = message.filter(is_of_ipv4) else {
            return if free { Ok(()) } else { Err("malformed") };
        };
        let (sender, target) = (ipv4_at(message, 14), ipv4_at(message, 24));
        // RFC 5227: a probe has no sender's address, and tries the target out.
        let claimed = if sender.is_unspecified() {
            target
        } else {
            sender
        };
        if (message[8..14] != self.from && !free) || !self.may_claim(claimed.into()) {
            return Err("arp");
        }
        Ok(())
    }

    fn ipv4(&self) -> Result<(), &'static str> {
        let packet = self.packet;
        let held = self.port.is_held();
        if packet.len() < 20 || packet[0] >> 4 != 4 || packet[0] & 15 < 5 {
            return if held { Err("malformed") } else { Ok(()) };
        }
        let source = ipv4_at(packet, 12);
        let fragment = word(packet, 6).unwrap();
        let ports = usize::from(packet[0] & 15) * 4;
        let has_port = packet[9] == UDP && fragment & 0x1fff == 0;
        let port = word(packet, ports + 2).filter(|_| has_port);
        let may_be_source = if source.is_unspecified() {
            // Who asks for an address by DHCP has none.
            fragment & 0x3fff == 0 && port == Some(67)
        } else {
            self.may_claim(source.into())
        };
        if held && !may_be_source {
            return Err("ip");
        }
        self.dhcp(port == Some(68))?;
        // Redirects (RFC 792) and what routers say of themselves (RFC 1256); a later fragment has no type.
        let is_message = packet[9] == ICMP && fragment & 0x1fff == 0;
        let kind = packet.get(ports).filter(|_| is_message);
        if matches!(kind, Some(5 | 9)) && !self.port.router {
            return Err("nd");
        }
        Ok(())
    }

    fn dhcp(&self, is_answer: bool) -> Result<(), &'static str> {
        if is_answer && !self.port.dhcp_server {
            return Err("dhcp");
        }
        Ok(())
    }

    fn ipv6(&self) -> Result<(), &'static str> {
        let frame = self.packet;
        if frame.len() < 40 || frame[0] >> 4 != 6 {
            return Err("malformed");
        }
        let length = usize::from(word(frame, 4).unwrap());
        let packet = if length == 0 && frame[6] == HOP_BY_HOP {
            frame
        } else {
            frame.get(..40 + length).ok_or("malformed")?
        };
        let upper = Upper::find(packet).ok_or("malformed")?;
        let datagram = upper.at.filter(|_| upper.protocol == UDP);
        // RFC 8200, 4.5: a first fragment has all headers.
        if datagram.is_some_and(|at| at + UDP_HEADER > packet.len()) {
            return Err("malformed");
        }
        let message = match upper.at {
            Some(at) if upper.protocol == ICMPV6 => &packet[at..],
            _ => &[],
        };
        let kind = match (upper.protocol, upper.at) {
            (ICMPV6, Some(_)) => *message.first().ok_or("malformed")?,
            _ => 0,
        };
        let source = ipv6_at(packet, 8);
        // Solicitations and reports of groups are sent before there is an address.
        let starts =
            source.is_unspecified() && matches!(kind, SOLICIT | ROUTER_SOLICIT | 131 | 132 | 143);
        if self.port.is_held() && !self.may_claim(source.into()) && !starts {
            return Err("ip");
        }
        self.dhcp(datagram.and_then(|at| word(packet, at + 2)) == Some(546))?;
        if !(ROUTER_SOLICIT..=REDIRECT).contains(&kind) {
            return Ok(());
        }
        if upper.is_fragment || !(source.is_unspecified() || self.may_claim(source.into())) {
            return Err("nd");
        }
        self.nd(kind, message, source.is_unspecified())
    }

    /// `tries`: the source is unspecified, which makes a solicitation duplicate address detection.
    fn nd(&self, kind: u8, message: &[u8], tries: bool) -> Result<(), &'static str> {
        if !self.port.router && matches!(kind, ROUTER_ADVERT | REDIRECT) {
            return Err("nd");
        }
        let fixed = match kind {
            ROUTER_SOLICIT => 8,
            ROUTER_ADVERT => 16,
            REDIRECT => 40,
            _ => 24,
        };
        let options = message.get(fixed..).ok_or("malformed")?;
        let claims = kind == ADVERT || (kind == SOLICIT && tries);
        if claims && !self.may_claim(ipv6_at(message, 8).into()) {
            return Err("nd");
        }
        // Whose address a redirect gives is not its sender.
        if kind == REDIRECT || self.port.is_free() {
            return Ok(());
        }
        self.options(options)
    }

    fn options(&self, mut rest: &[u8]) -> Result<(), &'static str> {
        for _ in 0..MAX_OPTIONS {
            if rest.len() < 8 {
                break;
            }
            let (kind, units) = (rest[0], usize::from(rest[1]));
            if units == 0 {
                return Err("malformed");
            }
            let is_address = kind == SOURCE_MAC || kind == TARGET_MAC;
            if is_address && (units != 1 || rest[2..8] != self.from) {
                return Err("nd");
            }
            rest = rest.get(units * 8..).ok_or("nd")?;
        }
        if rest.is_empty() { Ok(()) } else { Err("nd") }
    }
}

/// What is above the extension headers (RFC 8200, 4.1).
pub(crate) struct Upper {
    pub(crate) protocol: u8,
    /// `None`: in another fragment.
    pub(crate) at: Option<usize>,
    is_fragment: bool,
}

impl Upper {
    /// `None`: too many headers, or they do not end within the packet.
    pub(crate) fn find(packet: &[u8]) -> Option<Self> {
        let (mut protocol, mut at, mut is_fragment) = (packet[6], 40, false);
        for headers in 0..=MAX_EXTENSIONS {
            let units = match protocol {
                HOP_BY_HOP | ROUTING | DESTINATION | AUTHENTICATION | FRAGMENT | MOBILITY
                    if headers == MAX_EXTENSIONS =>
                {
                    return None;
                }
                HOP_BY_HOP | ROUTING | DESTINATION | AUTHENTICATION | FRAGMENT | MOBILITY => {
                    packet.get(at..at + 8)?[1]
                }
                _ => {
                    return (at <= packet.len()).then_some(Self {
                        protocol,
                        at: Some(at),
                        is_fragment,
                    });
                }
            };
            let header = &packet[at..at + 8];
            at += match protocol {
                FRAGMENT => 8,
                AUTHENTICATION => (usize::from(units) + 2) * 4,
                _ => (usize::from(units) + 1) * 8,
            };
            if protocol == FRAGMENT {
                is_fragment = true;
                if word(header, 2).unwrap() >> 3 != 0 {
                    return Some(Self {
                        protocol: header[0],
                        at: None,
                        is_fragment,
                    });
                }
            }
            protocol = header[0];
        }
        None
    }
}
