//! What the sender of a packet that its receiver does not take is told: ICMP "fragmentation needed" (RFC 1191), ICMPv6 "packet
//! too big" (RFC 4443, 3.2).

use std::net::Ipv4Addr;

use crate::model::{Upper, internet_sum, ipv4_at, ipv6_at, is_group, mac, word};
use crate::packet::{HOP_BY_HOP, ICMPV6, IPV4, IPV6, REDIRECT};

const MTU: u16 = 1500;
const ICMP: u8 = 1;
/// Quotes are of whole steps.
const STEP: usize = 64;
const MOST_V4: usize = 512;
const MOST_V6: usize = 1216;
/// What the message must quote of the transport header (RFC 792).
const LEAST: usize = 8;

/// The message for an untagged frame that is too long; `None`: nothing may be said of it.
pub(crate) fn message(frame: &[u8]) -> Option<Vec<u8>> {
    if is_group(mac(frame, 6)) {
        return None;
    }
    let packet = &frame[14..];
    let told = match word(frame, 12)? {
        IPV4 => v4(packet),
        IPV6 => v6(packet),
        _ => None,
    }?;
    Some([&frame[6..12], &frame[..6], &frame[12..14], &told].concat())
}

fn quote(packet: &[u8], most: usize, header: usize) -> Option<&[u8]> {
    let len = packet.len().min(most) / STEP * STEP;
    (header + LEAST <= len).then_some(&packet[..len])
}

fn is_station(ip: Ipv4Addr) -> bool {
    let first = ip.octets()[0];
    (1..224).contains(&first) && first != 127
}

fn v4(packet: &[u8]) -> Option<Vec<u8>> {
    let start = packet.get(..20)?;
    let header = usize::from(start[0] & 15) * 4;
    let fragment = word(start, 6)?;
    let only_whole = fragment & 0x4000 != 0 && fragment & 0x1fff == 0;
    let whole = usize::from(word(start, 2)?) == packet.len();
    let stations = is_station(ipv4_at(start, 12)) && is_station(ipv4_at(start, 16));
    if start[0] >> 4 != 4 || header < 20 || !only_whole || !whole || !stations {
        return None;
    }
    // Errors are never answered with an error (RFC 1122, 3.2.2).
    if start[9] == ICMP && !matches!(packet.get(header)?, 0 | 8 | 13..=18) {
        return None;
    }
    let quote = quote(packet, MOST_V4, header)?;
    let len = u16::try_from(28 + quote.len()).ok()?;
    let mut ip = [0x45, 0xc0, 0, 0, 0, 0, 0, 0, 64, ICMP, 0, 0].to_vec();
    ip[2..4].copy_from_slice(&len.to_be_bytes());
    ip.extend([&start[16..20], &start[12..16]].concat());
    let sum = checksum(internet_sum(&ip));
    ip[10..12].copy_from_slice(&sum);
    let icmp = icmp(3, 4, quote, 0);
    Some([ip, icmp].concat())
}

fn v6(packet: &[u8]) -> Option<Vec<u8>> {
    let start = packet.get(..40)?;
    let length = usize::from(word(start, 4)?);
    let is_jumbo = length == 0 && start[6] == HOP_BY_HOP;
    if start[0] >> 4 != 6 || (!is_jumbo && 40 + length != packet.len()) {
        return None;
    }
    let upper = Upper::find(packet)?;
    // A later fragment says nothing of its sender's connection.
    let at = upper.at?;
    let (source, target) = (ipv6_at(start, 8), ipv6_at(start, 24));
    if source.is_unspecified() || source.is_multicast() || target.is_multicast() {
        return None;
    }
    if upper.protocol == ICMPV6 && !matches!(*packet.get(at)?, 128..=136 | 138..) {
        const { assert!(REDIRECT == 137) };
        return None;
    }
    let quote = quote(packet, MOST_V6, at)?;
    let len = u16::try_from(8 + quote.len()).ok()?;
    let mut ip = [0x60, 0, 0, 0, 0, 0, ICMPV6, 64].to_vec();
    ip[4..6].copy_from_slice(&len.to_be_bytes());
    ip.extend([&start[24..40], &start[8..24]].concat());
    let pseudo = internet_sum(&ip[8..]) + u32::from(len) + u32::from(ICMPV6);
    let icmp = icmp(2, 0, quote, pseudo);
    Some([ip, icmp].concat())
}

/// An ICMP message with the MTU; `pseudo`: the sum of what else its checksum is of.
fn icmp(kind: u8, code: u8, quote: &[u8], pseudo: u32) -> Vec<u8> {
    let [high, low] = MTU.to_be_bytes();
    let mut message = [&[kind, code, 0, 0, 0, 0, high, low], quote].concat();
    let sum = checksum(internet_sum(&message) + pseudo);
    message[2..4].copy_from_slice(&sum);
    message
}

fn checksum(sum: u32) -> [u8; 2] {
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    (!(folded as u16)).to_be_bytes()
}
