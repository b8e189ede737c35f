//! Frames to say anything with.

pub(crate) use crate::world::{BROADCAST, EXPERIMENT, frame};

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const IPV6: u16 = 0x86dd;

/// ICMPv6 types (RFC 4861, RFC 3810).
pub(crate) const ROUTER_SOLICITATION: u8 = 133;
pub(crate) const ROUTER_ADVERTISEMENT: u8 = 134;
pub(crate) const SOLICITATION: u8 = 135;
pub(crate) const ADVERTISEMENT: u8 = 136;
pub(crate) const REDIRECT: u8 = 137;
pub(crate) const LISTENER_REPORT: u8 = 143;
/// Options of neighbour discovery.
pub(crate) const SOURCE_MAC: u8 = 1;
pub(crate) const TARGET_MAC: u8 = 2;

const ICMPV6: u8 = 58;

pub(crate) type Ip6 = [u8; 16];
pub(crate) const NOBODY: Ip6 = [0; 16];
pub(crate) const ALL_NODES: Ip6 = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// With a VLAN tag.
pub(crate) fn tagged(untagged: &[u8], vlan: u16) -> Vec<u8> {
    let mut frame = untagged[..12].to_vec();
    frame.extend([0x81, 0]);
    frame.extend(vlan.to_be_bytes());
    frame.extend(&untagged[12..]);
    frame
}

/// An ARP request to everybody (RFC 826).
pub(crate) fn arp(from: [u8; 6], ip: [u8; 4], asked: [u8; 4]) -> Vec<u8> {
    let mut message = vec![0, 1, 8, 0, 6, 4, 0, 1];
    message.extend(from);
    message.extend(ip);
    message.extend([0; 6]);
    message.extend(asked);
    frame(BROADCAST, from, 0x0806, &message)
}

/// fe80:: with the identifier of an Ethernet address (RFC 4291, appendix A).
pub(crate) fn link_local([a, b, c, d, e, f]: [u8; 6]) -> Ip6 {
    [
        0xfe,
        0x80,
        0,
        0,
        0,
        0,
        0,
        0,
        a ^ 2,
        b,
        c,
        0xff,
        0xfe,
        d,
        e,
        f,
    ]
}

/// The group that the owner of an address listens to (RFC 4291, 2.7.1).
pub(crate) fn solicited_node(ip: Ip6) -> Ip6 {
    let mut group = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 0];
    group[13..].copy_from_slice(&ip[13..]);
    group
}

/// An ICMPv6 packet to a group in a frame to the group's Ethernet address.
pub(crate) struct Icmp6 {
    pub(crate) mac: [u8; 6],
    pub(crate) from: Ip6,
    pub(crate) to: Ip6,
    pub(crate) kind: u8,
    /// From behind the checksum on.
    pub(crate) body: Vec<u8>,
    /// Behind a hop-by-hop header with a router alert, as reports of listeners are (RFC 2711).
    pub(crate) alert: bool,
}

impl Icmp6 {
    pub(crate) fn frame(&self) -> Vec<u8> {
        let mut message = vec![self.kind, 0, 0, 0];
        message.extend(&self.body);
        let sum = checksum(self.from, self.to, &message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let mut upper = Vec::new();
        if self.alert {
            upper.extend([ICMPV6, 0, 5, 2, 0, 0, 1, 0]);
        }
        upper.extend(message);
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend((upper.len() as u16).to_be_bytes());
        packet.push(if self.alert { 0 } else { ICMPV6 });
        packet.push(if self.alert { 1 } else { 255 });
        packet.extend(self.from);
        packet.extend(self.to);
        packet.extend(upper);
        let [.., a, b, c, d] = self.to;
        frame([0x33, 0x33, a, b, c, d], self.mac, IPV6, &packet)
    }
}

/// RFC 1071 over the pseudo-header and the message; of a message with its checksum: 0.
pub(crate) fn checksum(from: Ip6, to: Ip6, message: &[u8]) -> u16 {
    let mut bytes = [from, to].concat();
    bytes.extend((message.len() as u32).to_be_bytes());
    bytes.extend([0, 0, 0, ICMPV6]);
    bytes.extend(message);
    let mut sum: u32 = bytes
        .chunks(2)
        .map(|two| u32::from(u16::from_be_bytes([two[0], *two.get(1).unwrap_or(&0)])))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Flags or reserved octets, an address, and an option with an Ethernet address.
pub(crate) fn about(flags: u8, target: Ip6, option: Option<(u8, [u8; 6])>) -> Vec<u8> {
    let mut body = vec![flags, 0, 0, 0];
    body.extend(target);
    if let Some((kind, mac)) = option {
        body.extend([kind, 1]);
        body.extend(mac);
    }
    body
}

/// Who has `target`? From `from`, with the asker's Ethernet address.
pub(crate) fn solicitation(mac: [u8; 6], from: Ip6, target: Ip6) -> Icmp6 {
    // One who tries an address out must not tell its own (RFC 4862, 5.4.2).
    let option = (from != NOBODY).then_some((SOURCE_MAC, mac));
    Icmp6 {
        mac,
        from,
        to: solicited_node(target),
        kind: SOLICITATION,
        body: about(0, target, option),
        alert: false,
    }
}

/// `target` is mine, to everybody and unasked.
pub(crate) fn advertisement(mac: [u8; 6], from: Ip6, target: Ip6, says: [u8; 6]) -> Icmp6 {
    Icmp6 {
        mac,
        from,
        to: ALL_NODES,
        kind: ADVERTISEMENT,
        body: about(0x20, target, Some((TARGET_MAC, says))),
        alert: false,
    }
}
