//! IPv6 neighbour discovery: answers from the table, and what ports may claim.

use crate::frames::{
    ADVERTISEMENT, ALL_NODES, IPV6, Icmp6, Ip6, LISTENER_REPORT, NOBODY, REDIRECT,
    ROUTER_ADVERTISEMENT, ROUTER_SOLICITATION, SOLICITATION, SOURCE_MAC, TARGET_MAC, about,
    advertisement, arp, checksum, link_local, solicitation, tagged,
};
use crate::listen::{Ear, who};
use crate::site::{FAR, FAR_MAC, HOST, Site, guest, guest_mac, hold, v4, v6};
use crate::sockets::exchange;

fn ip(host: u8) -> Ip6 {
    v6(host).octets()
}

/// Ears for one type at all parties: g0…, wire.
fn ears(site: &Site, kind: u16) -> Vec<(String, Ear)> {
    let mut ears: Vec<(String, Ear)> = site
        .guests
        .iter()
        .enumerate()
        .map(|(n, guest)| (format!("g{n}"), Ear::open(guest, "eth0", kind)))
        .collect();
    ears.push(("wire".to_owned(), Ear::open(&site.far, "far0", kind)));
    ears
}

fn names(ears: &[(String, Ear)]) -> Vec<&str> {
    who(&ears
        .iter()
        .map(|(name, ear)| (name.as_str(), ear))
        .collect::<Vec<_>>())
}

/// Is a frame the right answer to who asked?
fn assert_answer(frame: &[u8], asker: ([u8; 6], Ip6), owner: ([u8; 6], Ip6)) {
    assert_eq!(frame[..6], asker.0, "to the asker");
    assert_eq!(frame[6..12], owner.0, "from the owner");
    assert_eq!(frame[21], 255, "hop limit");
    assert_eq!(frame[22..38], owner.1);
    assert_eq!(frame[38..54], asker.1);
    assert_eq!(frame[54], ADVERTISEMENT);
    assert_eq!(frame[58] & 0x60, 0x60, "solicited, override");
    assert_eq!(frame[62..78], owner.1);
    assert_eq!(frame[78..80], [TARGET_MAC, 1]);
    assert_eq!(frame[80..86], owner.0);
    assert_eq!(checksum(owner.1, asker.1, &frame[54..86]), 0, "checksum");
}

#[test]
fn real_stacks_find_each_other_by_the_answers_alone() {
    let site = Site::new("nd", 3);
    site.connect(true, hold);
    let bystander = Ear::open(&site.guests[2], "eth0", IPV6);
    let wire = Ear::open(&site.far, "far0", IPV6);
    exchange(&site.guests[0], &site.guests[1], v6(guest(1)).into(), 1000);
    assert!(site.answered("p0") >= 1);
    let solicits = |frames: &[Vec<u8>]| frames.iter().filter(|f| f[54] == SOLICITATION).count();
    assert_eq!(solicits(&bystander.heard()), 0, "the question went nowhere");
    assert_eq!(solicits(&wire.heard()), 0, "the question went nowhere");
    // The host and the wire are answered for the guests; they themselves are asked.
    exchange(&site.hub, &site.guests[0], v6(guest(0)).into(), 1000);
    exchange(&site.far, &site.guests[0], v6(guest(0)).into(), 1000);
    assert!(site.answered("host") >= 1 && site.answered("wire") >= 1);
    exchange(&site.guests[1], &site.hub, v6(HOST).into(), 1000);
    exchange(&site.guests[2], &site.far, v6(FAR).into(), 1000);
    for party in ["p0", "p1", "p2"] {
        assert_eq!(site.drops(party), [], "{party}");
    }
}

#[test]
fn answers_keep_to_vlans_and_isolation() {
    let site = Site::silent("ndvlan", 5);
    site.connect(true, |n, port| {
        hold(n, port);
        // g0 and g1 in VLAN 7, g2 in VLAN 8, g3 isolated, g4 plain.
        port.vlan = [Some(7), Some(7), Some(8), None, None][n];
        port.isolated = n == 3;
    });
    let ears = ears(&site, IPV6);
    let asks = |n: usize, target: u8| {
        let frame = solicitation(guest_mac(n), ip(guest(n)), ip(target)).frame();
        ears[n].1.send(&frame);
    };
    let owner = |n: usize| (guest_mac(n), ip(guest(n)));
    asks(0, guest(1));
    let heard = ears[0].1.heard();
    assert_eq!(heard.len(), 1);
    assert_answer(&heard[0], owner(0), owner(1));
    assert_eq!(names(&ears), [""; 0]);
    // Another VLAN's address is nobody's here, and so is one behind isolation.
    for (n, target, hear) in [
        (0, guest(2), vec!["g1", "wire"]),
        (2, guest(0), vec!["wire"]),
        (4, guest(3), vec!["wire"]),
        (3, guest(4), vec!["wire"]),
        (4, guest(0), vec!["wire"]),
    ] {
        let before = site.answered(&format!("p{n}"));
        asks(n, target);
        assert_eq!(names(&ears), hear, "g{n} asks for {target}");
        assert_eq!(site.answered(&format!("p{n}")), before);
    }
    // The wire is a trunk: a question with the tag is answered with the tag, about that VLAN.
    let wire = &ears[5].1;
    let question = |target| solicitation(FAR_MAC, ip(FAR), ip(target)).frame();
    for (vlan, n) in [(7, 1), (8, 2)] {
        wire.send(&tagged(&question(guest(n)), vlan));
        let heard = wire.heard();
        assert_eq!(heard.len(), 1, "VLAN {vlan}");
        assert_answer(&heard[0], (FAR_MAC, ip(FAR)), owner(n));
    }
    // Without the tag it is about nobody untagged.
    wire.send(&question(guest(1)));
    assert_eq!(names(&ears), ["g3", "g4"]);
    // Whoever is isolated can be asked for by the wire.
    wire.send(&question(guest(3)));
    let heard = wire.heard();
    assert_answer(&heard[0], (FAR_MAC, ip(FAR)), owner(3));
    assert_eq!(names(&ears), [""; 0]);
    // A probe of an address is for everybody to hear: its owner must defend it.
    ears[0]
        .1
        .send(&solicitation(guest_mac(0), NOBODY, ip(guest(0))).frame());
    assert_eq!(names(&ears), ["g1", "wire"]);
}

/// What `g0` may claim, and what somebody else may. No stack has either, so that none answers.
const OWN: u8 = 100;
const OTHER: u8 = 101;

/// A site whose `g0` is held to one address and whose `g1` is not.
fn held_and_free() -> (Site, Vec<(String, Ear)>) {
    let site = Site::silent("claims", 2);
    site.connect(false, |n, port| {
        if n == 0 {
            port.ips = vec![v4(OWN), v6(OWN).into()];
        }
    });
    let ears = ears(&site, IPV6);
    (site, ears)
}

fn message(mac: [u8; 6], from: Ip6, to: Ip6, kind: u8, body: Vec<u8>) -> Icmp6 {
    Icmp6 {
        mac,
        from,
        to,
        kind,
        body,
        alert: kind == LISTENER_REPORT,
    }
}

const ROUTERS: Ip6 = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
const LISTENERS: Ip6 = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x16];

/// A router solicitation, and a report of one group (RFC 3810).
fn start_up(mac: [u8; 6], from: Ip6) -> [Icmp6; 2] {
    let mut ask = vec![0; 4];
    if from != NOBODY {
        ask.extend([SOURCE_MAC, 1]);
        ask.extend(mac);
    }
    let mut report = vec![0, 0, 0, 1, 4, 0, 0, 0];
    report.extend(LISTENERS);
    [
        message(mac, from, ROUTERS, ROUTER_SOLICITATION, ask),
        message(mac, from, LISTENERS, LISTENER_REPORT, report),
    ]
}

#[test]
fn a_held_port_says_all_that_is_its_own() {
    let (site, ears) = held_and_free();
    let (mac, own) = (guest_mac(0), ip(OWN));
    let local = link_local(mac);
    let sayings = [
        solicitation(mac, own, ip(OTHER)),
        solicitation(mac, local, ip(OTHER)),
        solicitation(mac, NOBODY, own),
        solicitation(mac, NOBODY, local),
        advertisement(mac, own, own, mac),
        advertisement(mac, local, own, mac),
        advertisement(mac, local, local, mac),
    ];
    for (n, saying) in sayings.iter().enumerate() {
        ears[0].1.send(&saying.frame());
        assert_eq!(names(&ears), ["g1", "wire"], "saying {n}");
    }
    // For routers, of which no other guest is one.
    for (n, saying) in [NOBODY, local, own]
        .into_iter()
        .flat_map(|from| start_up(mac, from))
        .enumerate()
    {
        ears[0].1.send(&saying.frame());
        assert_eq!(names(&ears), ["wire"], "start-up {n}");
    }
    assert_eq!(site.drops("p0"), []);
}

#[test]
fn a_held_port_claims_nothing_of_somebody_else() {
    let (site, ears) = held_and_free();
    let (mac, own, other) = (guest_mac(0), ip(OWN), ip(OTHER));
    let local = link_local(mac);
    let nd = [
        // Trying out somebody's address keeps its owner from having it (RFC 4862, 5.4.3).
        solicitation(mac, NOBODY, other),
        solicitation(mac, NOBODY, link_local(guest_mac(1))),
        advertisement(mac, own, other, mac),
        advertisement(mac, local, other, mac),
        advertisement(mac, own, own, guest_mac(1)),
        message(mac, local, ALL_NODES, ROUTER_ADVERTISEMENT, vec![0; 12]),
        message(
            mac,
            local,
            ALL_NODES,
            REDIRECT,
            [about(0, own, None), other.to_vec()].concat(),
        ),
    ];
    for lie in &nd {
        ears[0].1.send(&lie.frame());
    }
    assert_eq!(names(&ears), [""; 0]);
    assert_eq!(site.drops("p0"), [("nd", nd.len() as u64)]);
    let sources = [
        solicitation(mac, other, ip(OTHER)),
        advertisement(mac, other, other, mac),
        message(mac, NOBODY, ALL_NODES, 128, vec![0; 4]),
    ];
    for lie in &sources {
        ears[0].1.send(&lie.frame());
    }
    assert_eq!(names(&ears), [""; 0]);
    let expected = [("ip", sources.len() as u64), ("nd", nd.len() as u64)];
    assert_eq!(site.drops("p0"), expected);
}

#[test]
fn a_held_port_tries_out_no_ipv4_address_of_somebody_else() {
    let (site, _) = held_and_free();
    let ears = ears(&site, 0x0806);
    let (mac, zero) = (guest_mac(0), [0; 4]);
    let own = [10, 0, 0, OWN];
    for asked in [own, [10, 0, 0, OTHER]] {
        ears[0].1.send(&arp(mac, own, asked));
        assert_eq!(names(&ears), ["g1", "wire"]);
    }
    ears[0].1.send(&arp(mac, zero, own));
    assert_eq!(names(&ears), ["g1", "wire"]);
    assert_eq!(site.drops("p0"), []);
    // Trying out somebody's address keeps its owner from having it (RFC 5227, 2.1.1).
    ears[0].1.send(&arp(mac, zero, [10, 0, 0, OTHER]));
    assert_eq!(names(&ears), [""; 0]);
    assert_eq!(site.drops("p0"), [("arp", 1)]);
}

#[test]
fn a_free_port_lies_about_no_ethernet_address() {
    let (site, ears) = held_and_free();
    let (mac, own) = (guest_mac(1), ip(OTHER));
    ears[1]
        .1
        .send(&advertisement(mac, own, own, guest_mac(0)).frame());
    let mut asks = solicitation(mac, own, ip(OTHER));
    asks.body = about(0, ip(OTHER), Some((SOURCE_MAC, guest_mac(0))));
    ears[1].1.send(&asks.frame());
    assert_eq!(names(&ears), [""; 0]);
    assert_eq!(site.drops("p1"), [("nd", 2)]);
    // Which IP addresses it has is its own affair.
    let any = ip(77);
    ears[1].1.send(&advertisement(mac, any, any, mac).frame());
    ears[1].1.send(&solicitation(mac, NOBODY, any).frame());
    assert_eq!(names(&ears), ["g0", "g0", "wire", "wire"]);
}
