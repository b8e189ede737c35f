//! Checksums that a sender leaves to be written later, where the sender chooses (`struct virtio_net_hdr`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopyard_net::Offload;
use hopyard_switch::{Mac, NewPort};

use crate::frames::BROADCAST;
use crate::listen::{Ear, Offloads};
use crate::packet::{
    ADVERT, ARP, ICMPV6, IPV4, IPV6, TARGET_MAC, TCP, UDP, arp_message, ethernet, extension, ipv4,
    ipv6, link_option, nd, udp,
};
use crate::site::{FAR_MAC, Site, guest, guest_mac, hold, v4, v6};
use crate::world::tap::{OFFLOAD_HEADERS, TAP, Tap};

const DESTINATION: u8 = 60;

/// A frame, and where its checksum is to be summed from and written.
struct Deferred {
    what: &'static str,
    kind: u16,
    frame: Vec<u8>,
    start: u16,
    offset: u16,
}

impl Deferred {
    /// As a device with checksum offload sends it: behind a header that says what is to be done still.
    fn behind_header(&self) -> Vec<u8> {
        const NEEDS_CHECKSUM: u8 = 1;
        let mut buffer = vec![NEEDS_CHECKSUM, 0];
        for field in [0, 0, self.start, self.offset] {
            buffer.extend(field.to_ne_bytes());
        }
        buffer.extend(&self.frame);
        buffer
    }
}

fn ip4(host: u8) -> Ipv4Addr {
    match v4(host) {
        IpAddr::V4(ip) => ip,
        IpAddr::V6(_) => unreachable!(),
    }
}

fn tcp() -> Vec<u8> {
    let mut segment = vec![
        0, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0,
    ];
    segment.extend(b"payload");
    segment
}

/// Frames of the guest with this number and address. First those whose checksum is where its protocol has it.
fn frames(mac: [u8; 6], host: u8) -> (Vec<Deferred>, Vec<Deferred>) {
    let (ip, ip6, to, to6) = (ip4(host), v6(host), ip4(2), v6(2));
    let datagram = udp(1000, 2000, b"twenty octets of data");
    let inner = ethernet(FAR_MAC, mac, IPV4, &ipv4(TCP, to, to, &[], &tcp()));
    let tunnel = udp(1000, 4789, &[vec![8, 0, 0, 0, 0, 0, 1, 0], inner].concat());
    let four = |protocol, options: &[u8], payload: &[u8]| {
        ethernet(
            FAR_MAC,
            mac,
            IPV4,
            &ipv4(protocol, ip, to, options, payload),
        )
    };
    let six = |from, to, next, payload: &[u8]| {
        ethernet(FAR_MAC, mac, IPV6, &ipv6(from, to, next, payload))
    };
    let deferred = |what, kind, frame: &Vec<u8>, start, offset| Deferred {
        what,
        kind,
        frame: frame.clone(),
        start,
        offset,
    };
    let [plain, optional] = [four(UDP, &[], &datagram), four(TCP, &[1; 4], &tcp())];
    let [tunnelled, behind] = [
        four(UDP, &[], &tunnel),
        six(
            ip6,
            to6,
            DESTINATION,
            &[extension(UDP, 1), datagram.clone()].concat(),
        ),
    ];
    let arp = ethernet(BROADCAST, mac, ARP, &arp_message(2, (mac, ip), (mac, ip)));
    let nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let advert = nd(ADVERT, ip6, &link_option(TARGET_MAC, mac));
    let advert = six(ip6, nodes, ICMPV6, &advert);
    let good = vec![
        deferred("UDP", IPV4, &plain, 34, 6),
        deferred("TCP behind options", IPV4, &optional, 38, 16),
        deferred(
            "TCP in a tunnel",
            IPV4,
            &tunnelled,
            34 + 8 + 8 + 14 + 20,
            16,
        ),
        deferred("UDP behind an extension header", IPV6, &behind, 62, 6),
    ];
    let bad = vec![
        deferred("the IPv4 source", IPV4, &plain, 20, 6),
        deferred("the rest of it", IPV4, &plain, 20, 8),
        deferred("the IPv4 destination", IPV4, &plain, 20, 10),
        deferred("the source behind options", IPV4, &optional, 20, 6),
        deferred("the port of UDP", IPV4, &plain, 34, 2),
        deferred("in UDP, summed from before", IPV4, &plain, 30, 10),
        deferred("the port of TCP", IPV4, &optional, 38, 2),
        deferred("the tunnel's own header", IPV4, &tunnelled, 36, 1),
        deferred("the sender of ARP", ARP, &arp, 22, 0),
        deferred("the address that ARP gives", ARP, &arp, 22, 6),
        deferred("the IPv6 source", IPV6, &behind, 22, 0),
        deferred("an extension header", IPV6, &behind, 54, 0),
        deferred("the target of neighbour discovery", IPV6, &advert, 54, 8),
        deferred("the address that it gives", IPV6, &advert, 54, 26),
    ];
    (good, bad)
}

/// Hands frames to a port; says what the wire heard of each.
fn check(site: &Site, party: &str, mac: [u8; 6], host: u8, send: impl Fn(&Deferred)) {
    let (good, bad) = frames(mac, host);
    for one in &good {
        let wire = Ear::open(&site.far, "far0", one.kind);
        send(one);
        let heard = wire.heard();
        assert_eq!(heard.len(), 1, "{}, from {party}", one.what);
        // All but the checksum is as it was sent.
        let at = usize::from(one.start + one.offset);
        assert_eq!(heard[0][..at], one.frame[..at], "{}", one.what);
        assert_ne!(heard[0][at..at + 2], one.frame[at..at + 2], "{}", one.what);
    }
    assert_eq!(site.drops(party), []);
    for (n, one) in bad.iter().enumerate() {
        let wire = Ear::open(&site.far, "far0", one.kind);
        send(one);
        let heard = wire.heard();
        let differs: Vec<usize> = heard.first().map_or_else(Vec::new, |heard| {
            let pairs = heard.iter().zip(&one.frame).enumerate();
            pairs
                .filter(|(_, (is, was))| is != was)
                .map(|(at, _)| at)
                .collect()
        });
        assert!(
            heard.is_empty(),
            "{}, from {party}: the wire got it, with octets {differs:?} other than they were checked",
            one.what
        );
        assert_eq!(
            site.drops(party),
            [("checksum", n as u64 + 1)],
            "{}",
            one.what
        );
    }
}

#[test]
fn a_deferred_checksum_is_written_into_a_transport_header_alone() {
    let site = Site::new("deferred", 2);
    // What the guests leave undone, the uplink's software does.
    site.hub
        .set_offload("up0", Offload::TxChecksum, false)
        .unwrap();
    let tap = Tap::open(&site.hub, "tap0", TAP | OFFLOAD_HEADERS);
    // The first is held to its addresses, the second may do what it likes.
    site.connect(false, |n, port| match n {
        0 => hold(n, port),
        _ => port.allow_spoof = true,
    });
    let port = NewPort {
        device: "tap0",
        macs: vec![Mac([2, 0, 0, 0, 0, 99])],
        ..NewPort::default()
    };
    site.switch(|switch| switch.add_port(&port)).unwrap();
    for n in 0..2 {
        let socket = Offloads::open(&site.guests[n], "eth0", 0);
        check(&site, &format!("p{n}"), guest_mac(n), guest(n), |one| {
            socket.0.send(&one.behind_header());
        });
    }
    check(&site, "tap0", [2, 0, 0, 0, 0, 99], 99, |one| {
        tap.send(&one.behind_header());
    });
}
