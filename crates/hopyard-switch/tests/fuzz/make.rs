//! Frames at random: nearly right ones for the most part, since noise gets no further than the first check.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rand::RngExt;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

use crate::model::{Party, Rules, link_local};
use crate::packet::{
    ADVERT, ARP, AUTHENTICATION, DESTINATION, ECHO_REQUEST, FRAGMENT, HOP_BY_HOP, ICMP, ICMPV6,
    IPV4, IPV6, REDIRECT, ROUTER_ADVERT, ROUTER_SOLICIT, ROUTING, SERVICE_TAG, SOLICIT, SOURCE_MAC,
    TARGET_MAC, TCP, UDP, VLAN_TAG, arp_message, ethernet, extension, fragment, ipv4, ipv6,
    link_option, nd, tagged, udp,
};
use crate::world::{BROADCAST, EXPERIMENT, STRANGER};

type Mac = [u8; 6];

/// The longest frame made; the kernel's test takes less than a page.
const LONGEST: usize = 3000;

pub(crate) struct Maker<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) rng: ChaCha8Rng,
}

/// Makes the length in the IP header that of the frame; IPv4 also must not be cut into fragments.
fn right_length(frame: &mut [u8]) {
    let packet = frame.len() - 14;
    let (at, length) = match frame[12..14] {
        [8, 0] => (16, packet),
        [0x86, 0xdd] => (18, packet - 40),
        _ => return,
    };
    frame[at..at + 2].copy_from_slice(&(length as u16).to_be_bytes());
    if at == 16 {
        frame[20..22].copy_from_slice(&[0x40, 0]);
    }
}

impl Maker<'_> {
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        *of.choose(&mut self.rng).unwrap()
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_ratio(percent, 100)
    }

    fn noise(&mut self, len: usize) -> Vec<u8> {
        let mut noise = vec![0; len];
        self.rng.fill(&mut noise[..]);
        noise
    }

    pub(crate) fn origin(&mut self) -> Party {
        let port = Party::Port(self.rng.random_range(0..self.rules.ports.len()));
        match self.rng.random_range(0..100) {
            _ if self.rules.host.is_none() => port,
            0 => Party::Nobody,
            1..16 => Party::Wire,
            16..31 => Party::Host,
            _ => port,
        }
    }

    pub(crate) fn frame(&mut self, origin: Party) -> Vec<u8> {
        if self.chance(3) {
            let len = self.rng.random_range(14..200);
            return self.noise(len);
        }
        let (from, to) = (self.source(origin), self.destination(origin));
        let (kind, payload) = self.payload(origin, from);
        let mut frame = ethernet(to, from, kind, &payload);
        let tags = if matches!(origin, Party::Port(_)) {
            8
        } else {
            50
        };
        while self.chance(tags) && frame.len() < 200 {
            let protocol = self.one(&[VLAN_TAG, VLAN_TAG, VLAN_TAG, VLAN_TAG, SERVICE_TAG]);
            let tci = self.one(&[0, 1, 7, 7, 7, 0xe007, 0xa000, 4095, 8]);
            frame = tagged(&frame, protocol, tci);
        }
        if self.chance(50) {
            frame.resize(frame.len().max(60), 0);
        }
        while self.chance(25) {
            self.spoil(&mut frame);
        }
        frame
    }

    /// Changes a frame in one of the ways in which frames are wrong.
    fn spoil(&mut self, frame: &mut Vec<u8>) {
        let len = frame.len();
        let at = self.rng.random_range(0..len.min(100));
        match self.rng.random_range(0..8) {
            0 => frame.truncate(self.rng.random_range(14..=len)),
            1 => {
                let more = self.rng.random_range(1..80);
                let tail = self.noise(more);
                frame.extend(tail);
            }
            2 if self.chance(30) => {
                let size = self.rng.random_range(1500..LONGEST);
                frame.resize(size, 0x3a);
                if self.chance(30) {
                    right_length(frame);
                }
            }
            // A length or a number off by little.
            3 | 4 => {
                let by = self.one(&[1, 2, 4, 8, 0xff, 0xfe]);
                frame[at] = frame[at].wrapping_add(by);
            }
            5 => frame[at] = 0,
            6 => frame[at] ^= 1 << self.rng.random_range(0..8),
            _ => frame[at] = self.rng.random(),
        }
    }

    fn any_mac(&mut self) -> Mac {
        let port = self.rng.random_range(0..self.rules.ports.len());
        let mac = self.rules.ports[port].macs.clone();
        self.one(&mac)
    }

    fn source(&mut self, origin: Party) -> Mac {
        let other = match self.rng.random_range(0..10) {
            0..3 => self.any_mac(),
            3 => [0; 6],
            4 => BROADCAST,
            5 => [0x33, 0x33, 0, 0, 0, 1],
            6 => self.rules.host.unwrap_or(STRANGER),
            7 => self.noise(6).try_into().unwrap(),
            _ => STRANGER,
        };
        let own = match origin {
            Party::Port(n) => {
                let macs = self.rules.ports[n].macs.clone();
                self.one(&macs)
            }
            Party::Host => self.rules.host.unwrap_or(STRANGER),
            Party::Wire | Party::Nobody => STRANGER,
        };
        if self.chance(80) { own } else { other }
    }

    fn destination(&mut self, origin: Party) -> Mac {
        match self.rng.random_range(0..100) {
            0..45 => self.any_mac(),
            45..55 => self.rules.host.unwrap_or(STRANGER),
            55..62 => STRANGER,
            62..75 => BROADCAST,
            75..79 => [0x33, 0x33, 0, 0, 0, 1],
            79..82 => [0x33, 0x33, 0, 0, 0, 0x16],
            82..84 => [1, 0, 0x5e, 0, 0, self.one(&[1, 2, 22])],
            84..89 => [
                1,
                0x80,
                0xc2,
                0,
                0,
                self.one(&[0, 1, 2, 0x0e, 0x0f, 0x10, 0x20, 0xff]),
            ],
            89..93 => self.source(origin),
            93 => [0; 6],
            _ => self.noise(6).try_into().unwrap(),
        }
    }

    fn payload(&mut self, origin: Party, from: Mac) -> (u16, Vec<u8>) {
        match self.rng.random_range(0..100) {
            0..22 => (IPV4, self.ipv4(origin)),
            22..42 => (ARP, self.arp(origin, from)),
            42..55 => (IPV6, self.ipv6(origin, from)),
            55..88 => (IPV6, self.nd(origin, from)),
            88..91 => {
                let kind = self.one(&[0x88cc, 0x8809, 0x8808, 0x0026, 0x05dc, 0x8035, 0x8847]);
                (kind, self.noise(30))
            }
            91..93 => (self.rng.random(), self.noise(30)),
            _ => {
                let len = self.one(&[0, 1, 46, 1499, 1500, 1501, 1504]);
                (EXPERIMENT, vec![1; len])
            }
        }
    }

    fn own_ip(&mut self, origin: Party, fits: fn(&IpAddr) -> bool) -> Option<IpAddr> {
        let n = match origin {
            Party::Port(n) if self.chance(70) => n,
            _ => self.rng.random_range(0..self.rules.ports.len()),
        };
        self.rules.ports[n].ips.iter().copied().find(fits)
    }

    fn ip4(&mut self, origin: Party) -> Ipv4Addr {
        let own = self.own_ip(origin, IpAddr::is_ipv4);
        match (self.rng.random_range(0..10), own) {
            (0, _) => Ipv4Addr::UNSPECIFIED,
            (1, _) => Ipv4Addr::new(self.one(&[224, 239]), 0, 0, self.one(&[1, 2, 22])),
            (2, _) => Ipv4Addr::new(192, 0, 2, self.rng.random_range(10..30)),
            (3, _) => Ipv4Addr::new(192, 0, 2, self.one(&[50, 63, 64, 77, 127, 128])),
            (_, Some(IpAddr::V4(own))) => own,
            _ => Ipv4Addr::new(192, 0, 2, 99),
        }
    }

    fn ip6(&mut self, origin: Party, from: Mac) -> Ipv6Addr {
        let own = self.own_ip(origin, IpAddr::is_ipv6);
        match (self.rng.random_range(0..12), own) {
            (0, _) => Ipv6Addr::UNSPECIFIED,
            (1, _) => {
                let (scope, last) = (self.one(&[0xff02, 0xff05]), self.one(&[1, 0x16]));
                Ipv6Addr::new(scope, 0, 0, 0, 0, 0, 0, last)
            }
            (2 | 3, _) => link_local(from),
            (4, _) => link_local(self.any_mac()),
            (5, _) => Ipv6Addr::new(0x2001, 0xdb8, 0, self.one(&[0, 1, 2]), 0, 0, 0, 0x50),
            (_, Some(IpAddr::V6(own))) => own,
            _ => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 99),
        }
    }

    fn datagram(&mut self) -> Vec<u8> {
        let len = self.one(&[0, 0, 4, 18, 60]);
        let to = self.one(&[67, 67, 68, 68, 53, 546]);
        let body = self.noise(len);
        udp(68, to, &body)
    }

    fn ipv4(&mut self, origin: Party) -> Vec<u8> {
        let from = if self.chance(20) {
            Ipv4Addr::UNSPECIFIED
        } else {
            self.ip4(origin)
        };
        let to = self.ip4(origin);
        let protocol = self.one(&[UDP, UDP, UDP, TCP, ICMP, ICMP, 47]);
        let options = vec![1; self.one(&[0, 0, 0, 4, 8, 40])];
        let mut body = self.datagram();
        if protocol == ICMP {
            body[0] = self.one(&[0, 3, 5, 5, 8, 9]);
        }
        let mut packet = ipv4(protocol, from, to, &options, &body);
        if self.chance(10) {
            packet[6] = self.one(&[0x40, 0x20, 0x80, 0x01, 0x60]);
        }
        packet
    }

    fn arp(&mut self, origin: Party, from: Mac) -> Vec<u8> {
        let operation = self.one(&[1, 1, 1, 2, 2, 0, 3, 8]);
        let speaker = if self.chance(90) {
            from
        } else {
            self.any_mac()
        };
        let (sender, target) = (self.ip4(origin), self.ip4(origin));
        let mut message = arp_message(operation, (speaker, sender), ([0; 6], target));
        if self.chance(10) {
            message[1] = self.one(&[6, 6, 7]);
        }
        message
    }

    fn ipv6(&mut self, origin: Party, from: Mac) -> Vec<u8> {
        let protocol = self.one(&[UDP, TCP, 59, 50, 139, 4, 41, 253]);
        let body = self.datagram();
        self.ipv6_of(origin, from, protocol, &body)
    }

    /// A packet with such an upper layer, behind extension headers at times.
    fn ipv6_of(&mut self, origin: Party, from: Mac, upper: u8, body: &[u8]) -> Vec<u8> {
        let (mut next, mut rest) = (upper, body.to_vec());
        if self.chance(40) {
            for _ in 0..self.one(&[1, 1, 1, 2, 2, 3, 6, 7, 8, 9]) {
                let kind = self.one(&[HOP_BY_HOP, ROUTING, DESTINATION, AUTHENTICATION, FRAGMENT]);
                let units = self.rng.random_range(1..4);
                let header = match kind {
                    FRAGMENT => {
                        let offset = self.one(&[0, 0, 0, 1, 32, 0x1fff]);
                        fragment(next, offset, self.rng.random())
                    }
                    AUTHENTICATION => {
                        let mut header = vec![next, units];
                        header.resize(usize::from(units) * 4 + 8, 0);
                        header
                    }
                    _ => extension(next, units),
                };
                rest = [header, rest].concat();
                next = kind;
            }
        }
        let (source, to) = (self.ip6(origin, from), self.ip6(origin, from));
        let mut packet = ipv6(source, to, next, &rest);
        match self.rng.random_range(0..40) {
            0 => packet[4..6].fill(0),
            1 => packet[5] = packet[5].wrapping_add(self.one(&[1, 8, 0xf8, 0xff])),
            2 => {
                // The packet ends sooner than the frame.
                let end = self.rng.random_range(0..=rest.len()) as u16;
                packet[4..6].copy_from_slice(&end.to_be_bytes());
            }
            _ => {}
        }
        packet
    }

    fn nd(&mut self, origin: Party, from: Mac) -> Vec<u8> {
        let kind = self.one(&[
            SOLICIT,
            SOLICIT,
            SOLICIT,
            ADVERT,
            ADVERT,
            ROUTER_SOLICIT,
            ROUTER_ADVERT,
            REDIRECT,
            ECHO_REQUEST,
            131,
            132,
            138,
            143,
        ]);
        let target = self.ip6(origin, from);
        let simple = self.chance(50);
        let count = if simple {
            1
        } else {
            self.one(&[0, 1, 2, 3, 7, 8, 9])
        };
        let mut options = Vec::new();
        for _ in 0..count {
            options.extend(self.option(kind, from, simple));
        }
        if self.chance(3) {
            options.extend(self.noise(5));
        }
        let mut message = nd(kind, target, &options);
        // A checksum that the kernel gave is not zero.
        message[2..4].fill(0x5a);
        self.ipv6_of(origin, from, ICMPV6, &message)
    }

    fn option(&mut self, message: u8, from: Mac, simple: bool) -> Vec<u8> {
        let kind = if message == ADVERT {
            TARGET_MAC
        } else {
            SOURCE_MAC
        };
        if simple || self.chance(60) {
            let who = if self.chance(92) {
                from
            } else {
                self.any_mac()
            };
            return link_option(kind, who);
        }
        match self.rng.random_range(0..12) {
            0 => vec![kind, 0, 0, 0, 0, 0, 0, 0],
            1 => [link_option(kind, from), vec![0; 8]].concat(),
            2..6 => {
                let mut prefix = vec![3, 4];
                prefix.resize(32, 0);
                prefix
            }
            6 => vec![14, self.rng.random(), 0, 0, 0, 0, 0, 0],
            _ => vec![14, 1, 0, 0, 0, 0, 0, 0],
        }
    }
}
