//! Packets made octet by octet, so that they can be wrong in any way.

use std::net::{Ipv4Addr, Ipv6Addr};

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const ARP: u16 = 0x0806;
pub(crate) const IPV6: u16 = 0x86dd;
pub(crate) const VLAN_TAG: u16 = 0x8100;
pub(crate) const SERVICE_TAG: u16 = 0x88a8;

pub(crate) const HOP_BY_HOP: u8 = 0;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ROUTING: u8 = 43;
pub(crate) const FRAGMENT: u8 = 44;
pub(crate) const AUTHENTICATION: u8 = 51;
pub(crate) const ICMP: u8 = 1;
pub(crate) const ICMPV6: u8 = 58;
pub(crate) const DESTINATION: u8 = 60;

pub(crate) const ECHO_REQUEST: u8 = 128;
pub(crate) const ROUTER_SOLICIT: u8 = 133;
pub(crate) const ROUTER_ADVERT: u8 = 134;
pub(crate) const SOLICIT: u8 = 135;
pub(crate) const ADVERT: u8 = 136;
pub(crate) const REDIRECT: u8 = 137;

/// Options of neighbour discovery: the sender's and the target's link-layer address.
pub(crate) const SOURCE_MAC: u8 = 1;
pub(crate) const TARGET_MAC: u8 = 2;

/// An Ethernet frame of just these octets, with no padding.
pub(crate) fn ethernet(to: [u8; 6], from: [u8; 6], kind: u16, payload: &[u8]) -> Vec<u8> {
    [&to[..], &from, &kind.to_be_bytes(), payload].concat()
}

/// The frame with a tag (IEEE 802.1Q) in front of what it has.
pub(crate) fn tagged(frame: &[u8], protocol: u16, tci: u16) -> Vec<u8> {
    let (addresses, rest) = frame.split_at(12);
    [addresses, &protocol.to_be_bytes(), &tci.to_be_bytes(), rest].concat()
}

/// An ARP message (RFC 826) of an operation: who speaks, about whom.
pub(crate) fn arp_message(
    operation: u16,
    speaker: ([u8; 6], Ipv4Addr),
    target: ([u8; 6], Ipv4Addr),
) -> Vec<u8> {
    [
        &[0, 1, 8, 0, 6, 4][..],
        &operation.to_be_bytes(),
        &speaker.0,
        &speaker.1.octets(),
        &target.0,
        &target.1.octets(),
    ]
    .concat()
}

/// An IPv4 packet (RFC 791); the options' length is a multiple of 4.
pub(crate) fn ipv4(
    protocol: u8,
    from: Ipv4Addr,
    to: Ipv4Addr,
    options: &[u8],
    payload: &[u8],
) -> Vec<u8> {
    let header = 20 + options.len();
    let length = (header + payload.len()) as u16;
    let mut packet = vec![0x40 | (header / 4) as u8, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 1, 0, 0, 64, protocol, 0, 0]);
    packet.extend(from.octets());
    packet.extend(to.octets());
    packet.extend(options);
    packet.extend(payload);
    packet
}

/// A UDP datagram without a checksum.
pub(crate) fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let mut datagram = Vec::new();
    for field in [from, to, length, 0] {
        datagram.extend(field.to_be_bytes());
    }
    datagram.extend(payload);
    datagram
}

/// An IPv6 packet (RFC 8200) with the hop limit that neighbour discovery demands.
pub(crate) fn ipv6(from: Ipv6Addr, to: Ipv6Addr, next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next, 255]);
    packet.extend(from.octets());
    packet.extend(to.octets());
    packet.extend(payload);
    packet
}

/// An extension header of `units` × 8 octets, all padding.
pub(crate) fn extension(next: u8, units: u8) -> Vec<u8> {
    let mut header = vec![next, units - 1, 1, 4];
    header.resize(usize::from(units) * 8, 0);
    header
}

/// A fragment header; the offset counts 8 octets.
pub(crate) fn fragment(next: u8, offset: u16, more: bool) -> Vec<u8> {
    let [high, low] = (offset << 3 | u16::from(more)).to_be_bytes();
    vec![next, 0, high, low, 0, 0, 0, 9]
}

/// A neighbour discovery message (RFC 4861) with its fixed part and these options.
pub(crate) fn nd(kind: u8, target: Ipv6Addr, options: &[u8]) -> Vec<u8> {
    let mut message = vec![kind, 0, 0, 0, 0, 0, 0, 0];
    match kind {
        ROUTER_SOLICIT => {}
        ROUTER_ADVERT => message.extend([0; 8]),
        REDIRECT => {
            message.extend(target.octets());
            message.extend(target.octets());
        }
        _ => message.extend(target.octets()),
    }
    message.extend(options);
    message
}

/// An option that gives a link-layer address.
pub(crate) fn link_option(kind: u8, mac: [u8; 6]) -> Vec<u8> {
    [&[kind, 1][..], &mac].concat()
}
