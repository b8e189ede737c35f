//! The headers of a frame as text. Frames may be malformed or truncated: missing parts are left out.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use hopyard_switch::Mac;

/// Octets, read one after another.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn word(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn skip(&mut self, octets: usize) -> Option<()> {
        self.0 = self.0.get(octets..)?;
        Some(())
    }
}

/// The headers from the Ethernet addresses on; `tag` was removed from the frame before.
pub(super) fn headers(octets: &[u8], tag: Option<(u16, u16)>) -> String {
    let mut text = String::new();
    if ethernet(&mut text, &mut Reader(octets), tag).is_none() {
        text += if text.is_empty() {
            "cut off"
        } else {
            ", cut off"
        };
    }
    text
}

/// Writing to a string cannot fail.
macro_rules! say {
    ($text:expr, $($arguments:tt)*) => {{
        let _ = write!($text, $($arguments)*);
    }};
}

fn ethernet(text: &mut String, frame: &mut Reader<'_>, tag: Option<(u16, u16)>) -> Option<()> {
    let (to, from) = (frame.take()?, frame.take()?);
    say!(text, "{} > {}", Mac(from), Mac(to));
    if let Some((kind, contents)) = tag {
        say_tag(text, kind, contents);
    }
    let mut kind = frame.word()?;
    // At most two tags are read, although there may be more.
    for _ in 0..2 {
        if !matches!(kind, 0x8100 | 0x88a8) {
            break;
        }
        say_tag(text, kind, frame.word()?);
        kind = frame.word()?;
    }
    match kind {
        0x0800 => ipv4(text, frame),
        0x86dd => ipv6(text, frame),
        0x0806 => arp(text, frame),
        0..=1500 => {
            say!(text, ", IEEE 802.3 with {kind} octets");
            Some(())
        }
        _ => {
            say!(text, ", type {kind:#06x}");
            Some(())
        }
    }
}

fn say_tag(text: &mut String, kind: u16, contents: u16) {
    let name = if kind == 0x88a8 {
        "service VLAN"
    } else {
        "VLAN"
    };
    say!(text, ", {name} {}", contents & 0xfff);
    if contents >> 13 != 0 {
        say!(text, " priority {}", contents >> 13);
    }
}

fn arp(text: &mut String, frame: &mut Reader<'_>) -> Option<()> {
    if frame.take()? != [0, 1, 8, 0, 6, 4] {
        *text += ", ARP, not of Ethernet and IPv4";
        return Some(());
    }
    let operation = frame.word()?;
    let (sender_mac, sender) = (Mac(frame.take()?), frame.take::<4>().map(Ipv4Addr::from)?);
    let (_, target) = (frame.take::<6>()?, frame.take::<4>().map(Ipv4Addr::from)?);
    match operation {
        1 => say!(text, ", ARP who has {target}, tell {sender} ({sender_mac})"),
        2 => say!(text, ", ARP {sender} is at {sender_mac}"),
        other => say!(text, ", ARP operation {other}"),
    }
    Some(())
}

fn ipv4(text: &mut String, frame: &mut Reader<'_>) -> Option<()> {
    let [first, _] = frame.take()?;
    let len = frame.word()?;
    let [_, _] = frame.take()?;
    let fragment = frame.word()?;
    let [ttl, protocol, _, _] = frame.take()?;
    let from: Ipv4Addr = frame.take::<4>()?.into();
    let to: Ipv4Addr = frame.take::<4>()?.into();
    say!(text, ", IPv4 {from} > {to} length {len} TTL {ttl}");
    if fragment & 0x4000 != 0 {
        *text += " DF";
    }
    let header = usize::from(first & 0x0f) * 4;
    if first >> 4 != 4 || header < 20 {
        say!(text, ", header broken (first octet {first:#04x})");
        return Some(());
    }
    frame.skip(header - 20)?;
    let offset = u32::from(fragment & 0x1fff) * 8;
    if fragment & 0x3fff != 0 {
        say!(text, ", fragment at {offset}");
    }
    upper(text, protocol, offset == 0, frame)
}

fn ipv6(text: &mut String, frame: &mut Reader<'_>) -> Option<()> {
    let [first, _, _, _] = frame.take()?;
    let len = frame.word()?;
    let [mut next, hops] = frame.take()?;
    let from: Ipv6Addr = frame.take::<16>()?.into();
    let to: Ipv6Addr = frame.take::<16>()?.into();
    say!(text, ", IPv6 {from} > {to} payload {len} hop limit {hops}");
    if first >> 4 != 6 {
        say!(text, ", header broken (first octet {first:#04x})");
        return Some(());
    }
    let mut begins = true;
    loop {
        match next {
            0 | 43 | 60 => {
                let [after, length] = frame.take()?;
                say!(text, ", {}", extension(next));
                frame.skip(usize::from(length) * 8 + 6)?;
                next = after;
            }
            44 => {
                let [after, _] = frame.take()?;
                let offset = frame.word()? & 0xfff8;
                frame.skip(4)?;
                say!(text, ", fragment at {offset}");
                begins = offset == 0;
                next = after;
            }
            _ => return upper(text, next, begins, frame),
        }
        if !begins {
            return Some(());
        }
    }
}

fn extension(next: u8) -> &'static str {
    match next {
        0 => "hop-by-hop options",
        43 => "routing header",
        _ => "destination options",
    }
}

/// The payload of an IP packet; nothing can be read if it does not begin in this fragment.
fn upper(text: &mut String, protocol: u8, begins: bool, frame: &mut Reader<'_>) -> Option<()> {
    if !begins {
        say!(text, ", of protocol {protocol}");
        return Some(());
    }
    match protocol {
        6 => tcp(text, frame),
        17 => {
            let (from, to, len) = (frame.word()?, frame.word()?, frame.word()?);
            say!(text, ", UDP {from} > {to} length {len}");
            Some(())
        }
        1 | 58 => {
            let [kind, code] = frame.take()?;
            let name = if protocol == 1 { "ICMP" } else { "ICMPv6" };
            say!(
                text,
                ", {name} type {kind}{} code {code}",
                icmp(protocol, kind)
            );
            Some(())
        }
        _ => {
            say!(text, ", protocol {protocol}");
            Some(())
        }
    }
}

fn tcp(text: &mut String, frame: &mut Reader<'_>) -> Option<()> {
    const FLAGS: [(u8, char); 8] = [
        (1, 'F'),
        (2, 'S'),
        (4, 'R'),
        (8, 'P'),
        (16, 'A'),
        (32, 'U'),
        (64, 'E'),
        (128, 'C'),
    ];
    let (from, to) = (frame.word()?, frame.word()?);
    say!(text, ", TCP {from} > {to}");
    let sequence = frame.take().map(u32::from_be_bytes)?;
    let acknowledged = frame.take().map(u32::from_be_bytes)?;
    let [_, flags] = frame.take()?;
    let window = frame.word()?;
    let set = FLAGS.iter().filter(|(bit, _)| flags & bit != 0);
    let set: String = set.map(|(_, name)| *name).collect();
    say!(
        text,
        " [{set}] seq {sequence} ack {acknowledged} window {window}"
    );
    Some(())
}

fn icmp(protocol: u8, kind: u8) -> &'static str {
    match (protocol, kind) {
        (1, 8) | (58, 128) => " (echo request)",
        (1, 0) | (58, 129) => " (echo reply)",
        (1, 3) | (58, 1) => " (unreachable)",
        (58, 2) => " (packet too big)",
        (58, 133) => " (router solicitation)",
        (58, 134) => " (router advertisement)",
        (58, 135) => " (neighbour solicitation)",
        (58, 136) => " (neighbour advertisement)",
        (58, 137) => " (redirect)",
        (58, 130..=132 | 143) => " (multicast listener)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

    fn said(rest: &[u8]) -> String {
        let text = headers(&[&ADDRESSES, rest].concat(), None);
        let start = "02:00:00:00:00:01 > 02:00:00:00:00:02";
        text.strip_prefix(start)
            .unwrap_or_else(|| panic!("{text}"))
            .to_owned()
    }

    fn v4(protocol: u8, fragment: u16, rest: &[u8]) -> Vec<u8> {
        let [high, low] = fragment.to_be_bytes();
        let mut packet = vec![
            8, 0, 0x45, 0, 0, 40, 0, 1, high, low, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        packet.extend(rest);
        packet
    }

    fn v6(next: u8, rest: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x86, 0xdd, 0x60, 0, 0, 0, 0, 24, next, 255];
        packet.extend(Ipv6Addr::LOCALHOST.octets());
        packet.extend(Ipv6Addr::UNSPECIFIED.octets());
        packet.extend(rest);
        packet
    }

    #[test]
    fn headers_are_said_as_far_as_they_go() {
        let tcp = [0, 80, 4, 210, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x12, 0, 3];
        for (frame, words) in [
            (vec![0x88, 0xb5], ", type 0x88b5"),
            (vec![0, 38], ", IEEE 802.3 with 38 octets"),
            (
                v4(6, 0x4000, &tcp),
                ", IPv4 10.0.0.1 > 10.0.0.2 length 40 TTL 64 DF, TCP 80 > 1234 [SA] seq 1 ack 2 window 3",
            ),
            (
                v4(17, 0, &[0, 53, 0, 99, 0, 8]),
                ", IPv4 10.0.0.1 > 10.0.0.2 length 40 TTL 64, UDP 53 > 99 length 8",
            ),
            (
                v4(17, 2, &[]),
                ", IPv4 10.0.0.1 > 10.0.0.2 length 40 TTL 64, fragment at 16, of protocol 17",
            ),
            (
                v4(1, 0, &[8, 0]),
                ", IPv4 10.0.0.1 > 10.0.0.2 length 40 TTL 64, ICMP type 8 (echo request) code 0",
            ),
            (
                v6(0, &[58, 0, 0, 0, 0, 0, 0, 0, 135, 0]),
                ", IPv6 ::1 > :: payload 24 hop limit 255, hop-by-hop options, ICMPv6 type 135 (neighbour solicitation) code 0",
            ),
            (
                v6(44, &[6, 0, 0, 9, 0, 0, 0, 1]),
                ", IPv6 ::1 > :: payload 24 hop limit 255, fragment at 8",
            ),
            (
                vec![
                    0x81, 0, 0x20, 7, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 9, 10, 0, 0, 1,
                    0, 0, 0, 0, 0, 0, 10, 0, 0, 2,
                ],
                ", VLAN 7 priority 1, ARP who has 10.0.0.2, tell 10.0.0.1 (02:00:00:00:00:09)",
            ),
            (
                v4(6, 0, &[0, 80]),
                ", IPv4 10.0.0.1 > 10.0.0.2 length 40 TTL 64, cut off",
            ),
        ] {
            assert_eq!(said(&frame), words);
        }
        assert_eq!(headers(&[1, 2], None), "cut off");
        let tagged = headers(&[&ADDRESSES[..], &[0x88, 0xb5]].concat(), Some((0x8100, 7)));
        assert!(tagged.ends_with(", VLAN 7, type 0x88b5"), "{tagged}");
    }

    #[test]
    fn no_frame_is_too_broken_to_be_said() {
        let whole = v6(0, &[60, 255, 1, 2, 3]);
        for end in 0..whole.len() {
            let _ = said(&whole[..end]);
        }
        for first in 0..=255 {
            let mut frame = v4(6, 0, &[0; 20]);
            frame[2] = first;
            let _ = said(&frame);
            let _ = said(&v6(first, &[0; 60]));
        }
    }
}
