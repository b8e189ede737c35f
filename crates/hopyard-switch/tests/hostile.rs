//! Frames that nobody should send, sent by a real guest, the host or the wire: who hears them, and under
//! which reason are they dropped? They need root.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod packet;
#[expect(dead_code, reason = "other tests use the rest")]
mod world;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use hopyard_net::{Handle, NetNs};
use packet::*;
use world::{BROADCAST, EXPERIMENT, Ears, STRANGER, World};

const GROUP6: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const MINE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x10);
const THEIRS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x11);
const MINE4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
const THEIRS4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 11);

/// What one frame did: who heard it, and what was counted as dropped of its sender's, since the last.
struct Watch<'a> {
    world: &'a World,
    ears: Ears,
}

type Seen = (Vec<String>, Vec<(&'static str, u64)>);

impl<'a> Watch<'a> {
    fn new(world: &'a World, kind: u16) -> Self {
        Self {
            ears: world.all_ears_for(kind),
            world,
        }
    }

    fn send(&self, from: &str, frame: &[u8]) -> Seen {
        let before = self.world.drops(from);
        self.world.send(from, frame);
        let mut who: Vec<String> = self.ears.heard().into_iter().map(|(who, _)| who).collect();
        who.sort();
        let mut moved = self.world.drops(from);
        for (reason, count) in &mut moved {
            let old = before.iter().find(|(name, _)| name == reason);
            *count -= old.map_or(0, |(_, count)| *count);
        }
        moved.retain(|(_, count)| *count > 0);
        (who, moved)
    }

    /// Nobody hears it, and one drop is counted under its reason.
    fn dropped(&self, from: &str, frame: &[u8], reason: &'static str, what: &str) {
        let seen = self.send(from, frame);
        assert_eq!(seen, (vec![], vec![(reason, 1)]), "{what}, from {from}");
    }

    /// These hear it, each once, and nothing is dropped.
    fn passed(&self, from: &str, frame: &[u8], to: &[&str], what: &str) {
        let mut to: Vec<String> = to.iter().map(|name| (*name).to_owned()).collect();
        to.sort();
        assert_eq!(self.send(from, frame), (to, vec![]), "{what}, from {from}");
    }
}

/// A frame of the experiments' type.
fn plain(to: [u8; 6], from: [u8; 6]) -> Vec<u8> {
    world::frame(to, from, EXPERIMENT, b"hello")
}

/// `g0` is held to addresses, `g1` is not, `g2` is in VLAN 7.
fn mixed(name: &str) -> World {
    World::with(name, 3, true, |n, port| match n {
        0 => port.ips = vec![MINE4.into(), MINE.into()],
        2 => port.vlan = Some(7),
        _ => {}
    })
}

#[test]
fn frames_shorter_than_their_headers() {
    let world = mixed("short");
    let (held, free) = (world.mac("g0"), world.mac("g1"));
    // Not even the addresses: the kernel takes no such frame from anybody.
    let cut = &plain(held, free)[..13];
    assert_eq!(world.try_send("g1", cut), Err(nix::errno::Errno::EINVAL));
    let watch = Watch::new(&world, EXPERIMENT);
    let empty = |to, from| ethernet(to, from, EXPERIMENT, &[]);
    watch.passed("g1", &empty(held, free), &["g0"], "no payload");
    let all = ["g0", "host", "wire"];
    watch.passed("g1", &empty(BROADCAST, free), &all, "no payload, to all");
    watch.passed("wire", &empty(held, STRANGER), &["g0"], "no payload");
    for (kind, needs) in [(ARP, 28), (IPV4, 20), (IPV6, 40)] {
        let watch = Watch::new(&world, kind);
        for size in [0, 1, needs - 1] {
            let frame = ethernet(BROADCAST, held, kind, &vec![0x45; size]);
            let what = format!("{size} octets of {kind:#x}");
            watch.dropped("g0", &frame, "malformed", &what);
        }
    }
}

#[test]
fn tags_of_every_kind() {
    let world = mixed("tags");
    let watch = Watch::new(&world, EXPERIMENT);
    let from = world.mac("g1");
    for to in [world.mac("g0"), world.mac("g2"), STRANGER, BROADCAST] {
        let frame = plain(to, from);
        for (protocol, tci) in [
            (VLAN_TAG, 7),
            (VLAN_TAG, 1),
            (VLAN_TAG, 4095),
            (VLAN_TAG, 0xe007),
            (SERVICE_TAG, 7),
        ] {
            let one = tagged(&frame, protocol, tci);
            watch.dropped("g1", &one, "vlan", &format!("tag {protocol:#x} {tci:#x}"));
        }
        // A priority alone hides no tag behind it, whatever its kind and depth.
        for (outer, inner) in [(0, 7), (0xe000, 7), (0, 0), (7, 7), (7, 0)] {
            for protocol in [VLAN_TAG, SERVICE_TAG] {
                let two = tagged(&tagged(&frame, VLAN_TAG, inner), protocol, outer);
                let what = format!("tags {protocol:#x} {outer:#x}, {inner:#x} to {to:02x?}");
                watch.dropped("g1", &two, "vlan", &what);
            }
        }
        let three = tagged(
            &tagged(&tagged(&frame, VLAN_TAG, 7), VLAN_TAG, 0),
            VLAN_TAG,
            0,
        );
        watch.dropped("g1", &three, "vlan", "three tags");
    }
    let priority = tagged(&plain(world.mac("wire"), from), VLAN_TAG, 0xe000);
    watch.passed("g1", &priority, &["wire"], "a priority alone");
}

#[test]
fn two_tags_at_the_uplink_reach_no_guest() {
    let world = mixed("qinq");
    let watch = Watch::new(&world, EXPERIMENT);
    for from in ["wire", "host"] {
        for to in [world.mac("g0"), world.mac("g2"), BROADCAST] {
            let frame = plain(to, world.mac(from));
            for (outer, inner) in [(0, 7), (7, 7), (7, 0), (0, 0)] {
                for protocol in [VLAN_TAG, SERVICE_TAG] {
                    let two = tagged(&tagged(&frame, VLAN_TAG, inner), protocol, outer);
                    let (who, drops) = watch.send(from, &two);
                    assert!(!who.iter().any(|name| name.starts_with('g')), "{who:?}");
                    assert_eq!(drops, [], "it went on, from {from}");
                }
            }
        }
    }
}

#[test]
fn a_tag_that_the_sender_hides_from_the_kernel_stays() {
    let world = mixed("hidden");
    let watch = Watch::new(&world, EXPERIMENT);
    // The type that the socket is bound to is the kernel's idea of the frame's.
    let sender = world.inside("host", || {
        use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
        let flags = SockFlag::SOCK_CLOEXEC;
        let family = AddressFamily::Packet;
        let fd = socket(family, SockType::Raw, flags, None::<SockProtocol>).unwrap();
        world::bind_packet(&fd, "up0", EXPERIMENT);
        fd
    });
    let frame = tagged(&plain(BROADCAST, world.mac("host")), VLAN_TAG, 7);
    let flags = nix::sys::socket::MsgFlags::empty();
    nix::sys::socket::send(sender.as_raw_fd(), &frame, flags).unwrap();
    // With two tags the wire would not take it for one of the experiments' type.
    let who: Vec<String> = watch.ears.heard().into_iter().map(|(who, _)| who).collect();
    assert_eq!(who, ["wire"]);
}

#[test]
fn sources_of_others() {
    let world = mixed("sources");
    let watch = Watch::new(&world, EXPERIMENT);
    let target = world.mac("host");
    for to in [target, world.mac("wire"), STRANGER, BROADCAST] {
        for (source, reason) in [
            (world.mac("g0"), "mac"),
            (world.mac("host"), "mac"),
            (STRANGER, "mac"),
            ([0; 6], "source"),
            (BROADCAST, "source"),
            (GROUP6, "source"),
            ([1, 0x80, 0xc2, 0, 0, 0], "source"),
        ] {
            let what = format!("source {source:02x?}");
            watch.dropped("g1", &plain(to, source), reason, &what);
        }
    }
    // The wire cannot speak for a port, nor for the host, to a port.
    for source in [world.mac("g1"), world.mac("host")] {
        let frame = plain(world.mac("g0"), source);
        watch.dropped("wire", &frame, "mac", "the source of a party");
        let (who, drops) = watch.send("wire", &plain(BROADCAST, source));
        assert!(!who.iter().any(|name| name.starts_with('g')), "{who:?}");
        assert_eq!(drops, [("mac", 1)]);
    }
    // A group as the source is the host's affair.
    let (who, _) = watch.send("wire", &plain(world.mac("g0"), GROUP6));
    assert!(!who.iter().any(|name| name.starts_with('g')), "{who:?}");
}

#[test]
fn link_protocols_stay_on_their_link() {
    let world = mixed("link");
    for (kind, last) in [(0x88cc, 0x0e), (0x0026, 0), (0x8809, 2), (0x8808, 1)] {
        let to = [1, 0x80, 0xc2, 0, 0, last];
        // 802.2 frames are heard as that, whatever their length.
        let watch = Watch::new(&world, if kind < 1536 { 0x0004 } else { kind });
        for guest in ["g0", "g1", "g2"] {
            let frame = world::frame(to, world.mac(guest), kind, b"hello");
            watch.dropped(guest, &frame, "reserved", &format!("{kind:#x}"));
        }
        for (from, to_party) in [("wire", "host"), ("host", "wire")] {
            let frame = world::frame(to, world.mac(from), kind, b"hello");
            watch.passed(from, &frame, &[to_party], &format!("{kind:#x}"));
        }
    }
}

/// Protocols of switches, and old tags for which some of them take a type: a port has no say in those, the wire has.
#[test]
fn guests_do_not_speak_as_switches() {
    let world = mixed("switches");
    let groups = [
        [1, 0, 0x0c, 0xcc, 0xcc, 0xcc],
        [1, 0, 0x0c, 0xcc, 0xcc, 0xcd],
        [1, 0x80, 0xc2, 0, 0, 0x21],
    ];
    for (to, reason) in groups.map(|group| (group, "reserved")) {
        let watch = Watch::new(&world, EXPERIMENT);
        for guest in ["g0", "g1", "g2"] {
            let frame = world::frame(to, world.mac(guest), EXPERIMENT, b"hello");
            watch.dropped(guest, &frame, reason, &format!("{to:x?}"));
        }
    }
    for kind in [0x9100, 0x9200, 0x9300] {
        let watch = Watch::new(&world, kind);
        for guest in ["g0", "g1", "g2"] {
            let frame = world::frame(BROADCAST, world.mac(guest), kind, b"\0\x05\x08\0hello");
            watch.dropped(guest, &frame, "vlan", &format!("{kind:#x}"));
        }
    }
}

#[test]
fn arp_lies() {
    let world = mixed("arp");
    let watch = Watch::new(&world, ARP);
    let nobody = ([0; 6], THEIRS4);
    let to_all = |from, message: &[u8]| world::frame(BROADCAST, from, ARP, message);
    for (guest, reply) in [("g0", 1), ("g0", 2), ("g1", 1), ("g1", 2)] {
        let own = world.mac(guest);
        let (ip, hears) = match guest {
            "g0" => (MINE4, "g1"),
            _ => (THEIRS4, "g0"),
        };
        let truth = to_all(own, &arp_message(reply, (own, ip), nobody));
        watch.passed(guest, &truth, &[hears, "host", "wire"], "the truth");
        let lie = to_all(own, &arp_message(reply, (STRANGER, ip), nobody));
        watch.dropped(guest, &lie, "arp", "about the Ethernet address");
        let lie = world::frame(world.mac("wire"), own, ARP, &lie[14..]);
        watch.dropped(guest, &lie, "arp", "to one");
    }
    let own = world.mac("g0");
    let lie = arp_message(2, (own, THEIRS4), (own, THEIRS4));
    watch.dropped("g0", &to_all(own, &lie), "arp", "about the IP address");
    let probe = |of| {
        to_all(
            own,
            &arp_message(1, (own, Ipv4Addr::UNSPECIFIED), ([0; 6], of)),
        )
    };
    let all = ["g1", "host", "wire"];
    watch.passed("g0", &probe(MINE4), &all, "a probe of its own");
    watch.dropped("g0", &probe(THEIRS4), "arp", "a probe of another's");
    // Who is held to nothing may still not claim what the table gives to another.
    let free = world.mac("g1");
    let mut lie = arp_message(2, (free, MINE4), (free, MINE4));
    watch.dropped("g1", &to_all(free, &lie), "arp", "about a held address");
    lie[1] = 6;
    watch.dropped("g1", &to_all(free, &lie), "arp", "as of IEEE 802");
    // Of another hardware, another protocol, other lengths: where would the addresses be?
    for (at, value) in [(1, 7), (3, 0x86), (4, 8), (5, 16)] {
        let mut odd = arp_message(2, (own, MINE4), nobody);
        odd[at] = value;
        watch.dropped("g0", &to_all(own, &odd), "malformed", "odd ARP");
    }
}

/// A lie about who has `THEIRS`, told by the owner of `mac`.
fn advert(mac: [u8; 6], target: Ipv6Addr) -> Vec<u8> {
    nd(ADVERT, target, &link_option(TARGET_MAC, mac))
}

fn to_nodes(mac: [u8; 6], next: u8, payload: &[u8]) -> Vec<u8> {
    ethernet(GROUP6, mac, IPV6, &ipv6(MINE, ALL_NODES, next, payload))
}

#[test]
fn neighbour_discovery_lies() {
    let world = mixed("nd");
    let watch = Watch::new(&world, IPV6);
    let own = world.mac("g0");
    let nd_frame = |message: &[u8]| to_nodes(own, ICMPV6, message);
    let all = ["g1", "host", "wire"];
    watch.passed("g0", &nd_frame(&advert(own, MINE)), &all, "the truth");
    let source = |mac| link_option(SOURCE_MAC, mac);
    let question = nd(SOLICIT, THEIRS, &source(own));
    watch.passed("g0", &nd_frame(&question), &all, "a question");
    let after = |n: usize| [[14, 1, 0, 0, 0, 0, 0, 0].repeat(n), source(STRANGER)].concat();
    for (what, message) in [
        ("about the address", advert(own, THEIRS)),
        (
            "about the target's Ethernet address",
            advert(STRANGER, MINE),
        ),
        ("about the asker's", nd(SOLICIT, THEIRS, &source(STRANGER))),
        ("behind an option", nd(SOLICIT, THEIRS, &after(1))),
        ("behind seven options", nd(SOLICIT, THEIRS, &after(7))),
        ("behind more than are read", nd(SOLICIT, THEIRS, &after(8))),
        ("a router's", nd(ROUTER_ADVERT, MINE, &source(own))),
        ("a redirect", nd(REDIRECT, MINE, &[])),
        (
            "a router's question",
            nd(ROUTER_SOLICIT, MINE, &source(STRANGER)),
        ),
        ("a piece of an option", nd(SOLICIT, THEIRS, &[1, 1, 2])),
    ] {
        watch.dropped("g0", &nd_frame(&message), "nd", what);
    }
    let endless = nd(SOLICIT, THEIRS, &[1, 0, 2, 0, 0, 0, 0, 0]);
    watch.dropped(
        "g0",
        &nd_frame(&endless),
        "malformed",
        "an option of no length",
    );
    // A port that may use any IP address must still not lie about Ethernet addresses, nor about an
    // address that the table gives to another.
    let own = world.mac("g1");
    let from = |source, message: &[u8]| {
        ethernet(GROUP6, own, IPV6, &ipv6(source, ALL_NODES, ICMPV6, message))
    };
    let all = ["g0", "host", "wire"];
    watch.passed("g1", &from(THEIRS, &advert(own, THEIRS)), &all, "its own");
    for (what, source, message) in [
        ("a stranger's", THEIRS, advert(STRANGER, THEIRS)),
        ("about a held address", THEIRS, advert(own, MINE)),
        (
            "as a held address",
            MINE,
            nd(SOLICIT, THEIRS, &link_option(SOURCE_MAC, own)),
        ),
        (
            "trying a held address out",
            Ipv6Addr::UNSPECIFIED,
            nd(SOLICIT, MINE, &[]),
        ),
    ] {
        watch.dropped("g1", &from(source, &message), "nd", what);
    }
}

#[test]
fn what_only_routers_say_in_ipv4() {
    let world = mixed("icmp");
    let watch = Watch::new(&world, IPV4);
    // The first is held to its address, the other one may use any.
    for (from, ip, others) in [
        ("g0", MINE4, ["g1", "host", "wire"]),
        ("g1", Ipv4Addr::new(192, 0, 2, 99), ["g0", "host", "wire"]),
    ] {
        let frame = |kind, options: &[u8], place: u8| {
            let message = [[kind, 1, 0, 0, 192, 0, 2, 99].as_slice(), &[0x45; 28]].concat();
            let mut packet = ipv4(ICMP, ip, Ipv4Addr::BROADCAST, options, &message);
            [packet[6], packet[7]] = if place == 0 {
                [0, 0]
            } else {
                [0x20, place - 1]
            };
            ethernet(BROADCAST, world.mac(from), IPV4, &packet)
        };
        for kind in [3, 5, 8, 9, 10] {
            let is_of_routers = matches!(kind, 5 | 9);
            for (options, place, what) in [
                (&[][..], 0, "whole"),
                (&[1; 4], 0, "behind an option"),
                (&[1; 40], 0, "behind all options that there can be"),
                (&[], 1, "in a first fragment"),
            ] {
                let frame = frame(kind, options, place);
                match is_of_routers {
                    true => watch.dropped(from, &frame, "nd", what),
                    false => watch.passed(from, &frame, &others, what),
                }
            }
            // What begins there is no type.
            watch.passed(from, &frame(kind, &[], 2), &others, "in a later fragment");
        }
    }
}

/// Chains of extension headers with what is at their end.
fn chains(end: u8) -> Vec<(&'static str, u8, Vec<u8>)> {
    let authentication = |next| {
        let mut header = vec![next, 4];
        header.resize(24, 0);
        header
    };
    vec![
        ("hop-by-hop", HOP_BY_HOP, extension(end, 1)),
        ("long hop-by-hop", HOP_BY_HOP, extension(end, 9)),
        ("destination", DESTINATION, extension(end, 1)),
        ("routing", ROUTING, extension(end, 3)),
        ("authentication", AUTHENTICATION, authentication(end)),
        (
            "several",
            HOP_BY_HOP,
            [
                extension(DESTINATION, 1),
                extension(ROUTING, 2),
                extension(end, 1),
            ]
            .concat(),
        ),
        (
            "seven",
            DESTINATION,
            [extension(DESTINATION, 1).repeat(6), extension(end, 1)].concat(),
        ),
    ]
}

#[test]
fn lies_behind_extension_headers() {
    let world = mixed("behind");
    let watch = Watch::new(&world, IPV6);
    let own = world.mac("g0");
    let all = ["g1", "host", "wire"];
    for (what, next, chain) in chains(ICMPV6) {
        let packet = |message: &[u8]| to_nodes(own, next, &[&chain, message].concat());
        watch.passed("g0", &packet(&advert(own, MINE)), &all, what);
        watch.dropped("g0", &packet(&advert(own, THEIRS)), "nd", what);
        watch.dropped("g0", &packet(&advert(STRANGER, MINE)), "nd", what);
        watch.dropped("g0", &packet(&nd(ROUTER_ADVERT, MINE, &[])), "nd", what);
        // A length of zero is left to an option, and some kernels take the frame's (RFC 2675).
        if next == HOP_BY_HOP {
            let mut unsaid = packet(&advert(own, THEIRS));
            unsaid[18..20].fill(0);
            watch.dropped("g0", &unsaid, "nd", what);
        }
        let mut beyond = packet(&advert(own, MINE));
        beyond[19] += 1;
        watch.dropped("g0", &beyond, "malformed", what);
        // The chain without its end, and with an end that is not there.
        watch.dropped("g0", &packet(&[]), "malformed", what);
    }
    for (what, next, chain) in chains(UDP) {
        let frame = to_nodes(own, next, &[chain, udp(1, 2, b"hello")].concat());
        watch.passed("g0", &frame, &all, what);
    }
    let endless = [extension(DESTINATION, 1).repeat(8), extension(ICMPV6, 1)].concat();
    let endless = [endless, advert(own, THEIRS)].concat();
    let frame = to_nodes(own, DESTINATION, &endless);
    watch.dropped("g0", &frame, "malformed", "more headers than are read");
}

#[test]
fn lies_in_fragments() {
    let world = mixed("fragments");
    let watch = Watch::new(&world, IPV6);
    let own = world.mac("g0");
    let piece = |header: Vec<u8>, rest: &[u8]| to_nodes(own, FRAGMENT, &[&header, rest].concat());
    // Neighbour discovery is never in fragments (RFC 6980), not even in one that is all.
    let truth = advert(own, MINE);
    let whole = piece(fragment(ICMPV6, 0, false), &truth);
    watch.dropped("g0", &whole, "nd", "an only fragment");
    let first = piece(fragment(ICMPV6, 0, true), &truth[..8]);
    watch.dropped("g0", &first, "nd", "a first fragment");
    // The first fragment must show the whole chain (RFC 7112): otherwise the rest could say anything.
    let headless = piece(fragment(DESTINATION, 0, true), &extension(ICMPV6, 1));
    watch.dropped("g0", &headless, "malformed", "a chain cut off");
    let inside = piece(fragment(DESTINATION, 0, true), &extension(ICMPV6, 2)[..8]);
    watch.dropped("g0", &inside, "malformed", "a header cut off");
    let with_trailer = |mut frame: Vec<u8>| {
        frame.extend([ECHO_REQUEST; 64]);
        frame
    };
    let what = "the chain's end only in what follows the packet in its frame";
    watch.dropped("g0", &with_trailer(headless), "malformed", what);
    watch.dropped("g0", &with_trailer(inside), "malformed", what);
    let bare = to_nodes(own, HOP_BY_HOP, &extension(ICMPV6, 1));
    watch.dropped("g0", &with_trailer(bare), "malformed", what);
    // So are the ports of UDP: a DHCP answer would pass in two pieces.
    let reply = udp(547, 546, &[]);
    for size in [0, 2, 7] {
        let what = format!("{size} octets of a UDP header");
        let bare = piece(fragment(UDP, 0, true), &reply[..size]);
        let behind = [extension(UDP, 1), reply[..size].to_vec()].concat();
        let behind = piece(fragment(DESTINATION, 0, true), &behind);
        for frame in [bare, behind] {
            watch.dropped("g0", &frame, "malformed", &what);
            watch.dropped("g0", &with_trailer(frame), "malformed", &what);
        }
    }
    // Other protocols may come in fragments, the later ones with nothing to check but their source.
    let all = ["g1", "host", "wire"];
    let first = piece(fragment(UDP, 0, true), &udp(1, 2, b"8 octets"));
    watch.passed("g0", &first, &all, "a first fragment of UDP");
    watch.passed(
        "g0",
        &piece(fragment(UDP, 2, false), b"rest"),
        &all,
        "a later one",
    );
}

/// Gives a pair of a guest, or the uplink's, another MTU at both ends.
fn set_mtu(world: &World, party: &str, hub_device: &str, mtu: u32) {
    let set = |device: &str| {
        let here = NetNs::current().unwrap();
        Handle::new(&here).unwrap().set_mtu(device, mtu).unwrap();
    };
    world.inside("host", || set(hub_device));
    world.inside(party, || set(if party == "wire" { "far0" } else { "eth0" }));
}

#[test]
fn frames_longer_than_the_receiver_takes() {
    let world = World::new("jumbo", 3, true);
    set_mtu(&world, "g0", "p0", 9000);
    set_mtu(&world, "g2", "p2", 9000);
    let watch = Watch::new(&world, EXPERIMENT);
    let own = world.mac("g0");
    let long = |to, size| ethernet(to, own, EXPERIMENT, &vec![7; size]);
    for size in [1501, 1600, 9000] {
        let what = format!("{size} octets");
        watch.passed("g0", &long(world.mac("g2"), size), &["g2"], &what);
        for to in ["g1", "wire", "host"] {
            watch.dropped("g0", &long(world.mac(to), size), "mtu", &what);
        }
        watch.dropped("g0", &long(STRANGER, size), "mtu", &what);
        // One drop for each party that gets no copy: a guest, the host and the wire.
        let seen = watch.send("g0", &long(BROADCAST, size));
        assert_eq!(seen, (vec!["g2".to_owned()], vec![("mtu", 3)]), "{what}");
    }
    for to in ["g1", "g2", "wire", "host"] {
        watch.passed("g0", &long(world.mac(to), 1500), &[to], "just fits");
    }
}

/// A packet socket with an offload header before each frame (`PACKET_VNET_HDR`).
struct Offload(OwnedFd);

/// Octets of `struct virtio_net_hdr`.
const OFFLOAD_HEADER: usize = 10;
/// A frame that is to come has come by then, and one that must not come would have.
const QUIET: Duration = Duration::from_millis(30);

impl Offload {
    /// In the calling thread's namespace; hears IPv4.
    fn open(device: &str) -> Self {
        let kind = IPV4.to_be();
        let flags = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: a plain system call.
        let fd = unsafe { libc::socket(libc::AF_PACKET, flags, i32::from(kind)) };
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: the descriptor is new and nobody else's.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        world::bind_packet(&fd, device, IPV4);
        let on: libc::c_int = 1;
        // SAFETY: the option is an int that lives through the call.
        let set = unsafe {
            libc::setsockopt(
                fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_VNET_HDR,
                (&raw const on).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        };
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
        Self(fd)
    }

    /// Sends one TCP packet as many segments of `segment` octets.
    fn send(&self, frame: &[u8], segment: u16) {
        // Needs a checksum, at 16 octets from where TCP begins; segments of TCP over IPv4.
        let mut buffer = vec![1, 1];
        for field in [54, segment, 34, 16] {
            buffer.extend(field.to_ne_bytes());
        }
        buffer.extend(frame);
        let flags = nix::sys::socket::MsgFlags::empty();
        let sent = nix::sys::socket::send(self.0.as_raw_fd(), &buffer, flags).unwrap();
        assert_eq!(sent, buffer.len());
    }

    /// The lengths of the frames heard until none came for a moment, and what each was to be segmented to.
    fn heard(&self) -> Vec<(usize, u16)> {
        let mut heard = Vec::new();
        let mut buffer = vec![0; 1 << 17];
        let mut deadline = Instant::now() + QUIET;
        loop {
            // Before the look: the last one begins when the while is over, and finds nothing.
            let looked = Instant::now();
            let flags = nix::sys::socket::MsgFlags::empty();
            while let Ok(n) = nix::sys::socket::recv(self.0.as_raw_fd(), &mut buffer, flags) {
                let segment = u16::from_ne_bytes([buffer[4], buffer[5]]);
                heard.push((n - OFFLOAD_HEADER, segment));
                deadline = Instant::now() + QUIET;
            }
            if looked >= deadline {
                return heard;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// A TCP packet over IPv4 whose IP length is `size`.
fn bulk(to: [u8; 6], from: [u8; 6], source: Ipv4Addr, size: usize) -> Vec<u8> {
    let mut tcp = vec![
        0, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0,
    ];
    tcp.resize(size - 20, 7);
    ethernet(to, from, IPV4, &ipv4(TCP, source, THEIRS4, &[], &tcp))
}

#[test]
fn large_sends_pass_whole_and_too_large_segments_do_not() {
    let world = mixed("gso");
    let open = |party: &str, device: &'static str| world.inside(party, || Offload::open(device));
    let guests = [open("g0", "eth0"), open("g1", "eth0"), open("g2", "eth0")];
    let (host, wire) = (open("host", "up0"), open("wire", "far0"));
    // A frame of 64 KiB or more is segmented by the device before the switch.
    let (own, size) = (world.mac("g0"), 65_521);
    let send = |to, segment| guests[0].send(&bulk(to, own, MINE4, size), segment);
    for (to, ear) in [("g1", &guests[1]), ("host", &host), ("wire", &wire)] {
        send(world.mac(to), 1448);
        assert_eq!(ear.heard(), [(size + 14, 1448)], "to {to}");
        assert_eq!(world.drops("g0"), []);
    }
    send(BROADCAST, 1448);
    for ear in [&guests[1], &host, &wire] {
        assert_eq!(ear.heard(), [(size + 14, 1448)], "to all");
    }
    assert_eq!(guests[2].heard(), [], "another VLAN's");
    let mut refused = 0;
    for (to, drops) in [("g1", 1), ("host", 1), ("wire", 1), ("all", 3)] {
        send(
            if to == "all" {
                BROADCAST
            } else {
                world.mac(to)
            },
            1461,
        );
        refused += drops;
        assert_eq!(world.drops("g0"), [("mtu", refused)], "segments too long");
    }
    // However large, its source is looked at.
    guests[0].send(&bulk(world.mac("g1"), own, THEIRS4, size), 1448);
    guests[0].send(&bulk(world.mac("g1"), STRANGER, MINE4, size), 1448);
    assert_eq!(world.drops("g0"), [("mac", 1), ("ip", 1), ("mtu", refused)]);
    for ear in [&guests[1], &guests[2], &host, &wire] {
        assert_eq!(ear.heard(), []);
    }
}
