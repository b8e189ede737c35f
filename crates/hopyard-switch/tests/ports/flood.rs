//! Broadcasts to more ports than the queue of one CPU takes (`net.core.netdev_max_backlog`, 1,000 unless somebody
//! changed it).

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use aya::maps::{Array, Map, MapData};
use hopyard_net::{Handle, LinkKind, NewLink};
use hopyard_switch::{
    BROADCAST_BURST_S, Broadcasts, Hooks, NewPort, NewSwitch, PortChange, Switch,
};
use nix::sys::socket::{MsgFlags, send};

use crate::frames::{BROADCAST, EXPERIMENT, frame};
use crate::listen::Ear;
use crate::site::{Site, cable, guest_mac, space};
use crate::world;

/// Long enough for everything that is on its way, on the busiest machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// Nothing came for so long: nothing more will.
const QUIET: Duration = Duration::from_millis(300);

const WIRE_MAC: [u8; 6] = [2, 0, 0, 0, 1, 2];

fn mac(n: usize) -> [u8; 6] {
    let [high, low] = (n as u16).to_be_bytes();
    [2, 0, 1, 0, high, low]
}

/// A packet socket for the experiments' type, at one device or at all of the namespace.
fn socket(at: &Handle, device: Option<&str>) -> OwnedFd {
    let open = || {
        let flags = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: a plain system call.
        let fd = unsafe { libc::socket(libc::AF_PACKET, flags, i32::from(EXPERIMENT.to_be())) };
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: the descriptor is new and nobody else's.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        if let Some(device) = device {
            world::bind_packet(&fd, device, EXPERIMENT);
        }
        let room: libc::c_int = 64 << 20;
        // SAFETY: the option is an int that lives through the call.
        let set = unsafe {
            libc::setsockopt(
                fd.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVBUFFORCE,
                (&raw const room).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        };
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
        fd
    };
    at.ns().run(open).unwrap()
}

/// The index of the device at which the next frame was heard.
fn hear(fd: &OwnedFd) -> Option<u32> {
    // SAFETY: all-zero bytes are a sockaddr_ll.
    let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    let mut buffer = [0_u8; 256];
    // SAFETY: buffer and address are as long as told, and live through the call.
    let got = unsafe {
        libc::recvfrom(
            fd.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            0,
            (&raw mut from).cast(),
            &raw mut size,
        )
    };
    (got > 0).then_some(from.sll_ifindex as u32)
}

/// A switch with an uplink and many guests, all in one namespace.
struct Crowd {
    name: String,
    hub: Handle,
    far: Handle,
    guests: Handle,
    ears: OwnedFd,
}

impl Crowd {
    fn new(count: usize) -> Self {
        let (hub, far, guests) = (space(), space(), space());
        cable(&hub, "up0", &far, "far0", WIRE_MAC, 1500);
        let name = format!("crowd-{}-{count}", std::process::id());
        let mut ports: Vec<(String, [u8; 6])> = Vec::with_capacity(count);
        for n in 0..count {
            let kind = LinkKind::Veth {
                peer: format!("q{n}"),
                peer_ns: Some(guests.ns()),
                peer_mac: Some(mac(n)),
            };
            let device = format!("p{n}");
            let new = NewLink {
                up: true,
                ..NewLink::new(&device, kind)
            };
            hub.add_link(&new).unwrap();
            guests.set_up(&format!("q{n}")).unwrap();
            ports.push((device, mac(n)));
        }
        let new = NewSwitch {
            name: &name,
            uplink: Some("up0"),
            // A thousand tcx hooks would take the kernel a quarter of a minute.
            hooks: Hooks::Clsact,
            ..NewSwitch::default()
        };
        let ports: Vec<NewPort<'_>> = ports
            .iter()
            .map(|(device, _)| NewPort {
                device,
                ..NewPort::default()
            })
            .collect();
        hub.ns()
            .run(|| Switch::create(&new).unwrap().add_ports(&ports).unwrap())
            .unwrap();
        let ears = socket(&guests, None);
        Self {
            name,
            hub,
            far,
            guests,
            ears,
        }
    }

    /// The guests who heard something, and how often they did in all, until all did and nothing more came.
    fn heard(&self, expected: usize) -> (usize, usize) {
        let (mut who, mut times) = (BTreeSet::new(), 0);
        let began = Instant::now();
        let mut last = began;
        loop {
            // Before the look: the last one begins when the while is over, and finds nothing.
            let looked = Instant::now();
            while let Some(device) = hear(&self.ears) {
                who.insert(device);
                times += 1;
                last = Instant::now();
            }
            let quiet = looked.saturating_duration_since(last) > QUIET;
            let all = who.len() >= expected;
            if quiet && (all || looked - began > Duration::from_secs(2))
                || looked - began > PATIENCE
            {
                return (who.len(), times);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn drops(&self, party: &str) -> Vec<(&'static str, u64)> {
        let stats = || Switch::open(&self.name).unwrap().stats().unwrap();
        let stats = self.hub.ns().run(stats).unwrap();
        let found = stats.iter().find(|stats| stats.party == party).unwrap();
        found.counters.dropped().collect()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        // The namespaces go whole, with their classifiers.
        Switch::discard(&self.name).unwrap();
    }
}

fn every_port_hears_every_broadcast(count: usize) {
    let crowd = Crowd::new(count);
    let host_mac = crowd.hub.link("up0").unwrap().mac.unwrap();
    let last = format!("q{}", count - 1);
    let parties = [
        ("p0", &crowd.guests, "q0", mac(0), count - 1),
        (
            "the last port",
            &crowd.guests,
            last.as_str(),
            mac(count - 1),
            count - 1,
        ),
        ("wire", &crowd.far, "far0", WIRE_MAC, count),
        ("host", &crowd.hub, "up0", host_mac, count),
    ];
    let others = [
        ("host", socket(&crowd.hub, Some("up0"))),
        ("wire", socket(&crowd.far, Some("far0"))),
    ];
    for (party, at, device, mac, expected) in parties {
        let from = socket(at, Some(device));
        let sent = frame(BROADCAST, mac, EXPERIMENT, b"to all");
        send(from.as_raw_fd(), &sent, MsgFlags::empty()).unwrap();
        let heard = crowd.heard(expected);
        assert_eq!(
            heard,
            (expected, expected),
            "guests that heard {party}, copies in all"
        );
        for (name, ear) in &others {
            let copies = std::iter::from_fn(|| hear(ear)).count();
            assert_eq!(copies, usize::from(*name != party), "{party} to {name}");
        }
    }
    for party in ["p0", "wire", "host"] {
        assert_eq!(crowd.drops(party), [], "{party}");
    }
}

#[test]
fn eleven_hundred_ports_hear_every_broadcast() {
    every_port_hears_every_broadcast(1_100);
}

#[test]
#[ignore = "takes 10 s to make its ports: `cargo test -p hopyard-switch --test ports -- --ignored`"]
fn all_ports_that_a_switch_takes_hear_every_broadcast() {
    every_port_hears_every_broadcast(4_094);
}

/// Sends broadcasts as fast as can be; says how many the other guest heard, and how long that took.
fn storm(site: &Site, frames: u64) -> (u64, Duration) {
    let hears = socket(&site.guests[1], Some("eth0"));
    let sends = Ear::open(&site.guests[0], "eth0", EXPERIMENT);
    let sent = frame(BROADCAST, guest_mac(0), EXPERIMENT, b"to all");
    let began = Instant::now();
    let mut heard = 0;
    for _ in 0..frames {
        sends.send(&sent);
        heard += std::iter::from_fn(|| hear(&hears)).count() as u64;
    }
    let took = began.elapsed();
    std::thread::sleep(QUIET);
    heard += std::iter::from_fn(|| hear(&hears)).count() as u64;
    (heard, took)
}

#[test]
fn a_port_may_send_as_many_broadcasts_as_its_limit_says() {
    let site = Site::silent("storm", 2);
    site.connect(false, |_, _| {});
    let per_second = Broadcasts::DEFAULT.per_second().unwrap();
    let at_once = u64::from(per_second * BROADCAST_BURST_S);
    let sent = at_once + 500;
    let (heard, took) = storm(&site, sent);
    // What comes in while it is sent, however long that takes.
    let more = (took.as_secs_f64() * f64::from(per_second)) as u64 + 1;
    assert!(
        heard >= at_once && heard <= at_once + more,
        "{heard} of {sent} in {took:?}"
    );
    // On a busy machine the queue to the switch may be full for some.
    let dropped = broadcasts_dropped(&site);
    assert!(
        dropped <= sent - heard && dropped + at_once + more >= sent,
        "{dropped} of {sent}, {heard} heard in {took:?}"
    );
    // Unicast is not held up.
    let to = Ear::open(&site.guests[1], "eth0", EXPERIMENT);
    let from = Ear::open(&site.guests[0], "eth0", EXPERIMENT);
    from.send(&frame(guest_mac(1), guest_mac(0), EXPERIMENT, b"to one"));
    assert_eq!(to.heard().len(), 1);
    // The limits of others are their own, and each can be changed.
    to.send(&frame(BROADCAST, guest_mac(1), EXPERIMENT, b"to all"));
    assert_eq!(from.heard().len(), 1);
    for broadcasts in [Broadcasts::Unlimited, Broadcasts::PerSecond(0)] {
        let change = PortChange {
            device: "p0",
            broadcasts: Some(broadcasts),
            ..PortChange::default()
        };
        site.switch(|switch| switch.set_port(&change)).unwrap();
        let shown = site.show().ports[0].broadcasts_per_second;
        assert_eq!(shown, broadcasts.per_second());
        let before = broadcasts_dropped(&site);
        let heard = storm(&site, sent).0;
        let dropped = broadcasts_dropped(&site) - before;
        if broadcasts == Broadcasts::Unlimited {
            assert!(
                dropped == 0 && heard > sent / 2,
                "{heard} of {sent}, {dropped} dropped"
            );
        } else {
            assert!(
                heard == 0 && dropped > sent / 2,
                "{heard} of {sent}, {dropped} dropped"
            );
        }
    }
}

fn broadcasts_dropped(site: &Site) -> u64 {
    let drops = site.drops("p0");
    let found = drops.iter().find(|(reason, _)| *reason == "broadcast");
    found.map_or(0, |(_, count)| *count)
}

/// One more than the highest slot in use (`struct config` of `bpf/layout.h`): a broadcast looks at each up to there.
fn slots(site: &Site) -> u32 {
    let home = Path::new("/sys/fs/bpf/hopyard/switch");
    let map = MapData::from_pin(home.join(site.name()).join("config")).unwrap();
    let config: Array<_, [u32; 12]> = Map::from_map_data(map).unwrap().try_into().unwrap();
    config.get(&0, 0).unwrap()[9]
}

#[test]
fn a_broadcast_looks_at_no_more_slots_than_there_are_ports_still() {
    let site = Site::silent("slots", 4);
    site.connect(false, |_, _| {});
    assert_eq!(slots(&site), 2 + 4);
    // Whoever opens the switch next has it count anew.
    for (gone, expected) in [(&[1, 3][..], 2 + 3), (&[2][..], 2 + 1)] {
        for n in gone {
            site.remove(*n);
        }
        site.show();
        assert_eq!(slots(&site), expected);
    }
    site.add(3, |_| {});
    assert_eq!(slots(&site), 2 + 2);
    let ears = [0, 1, 2, 3].map(|n| Ear::open(&site.guests[n], "eth0", EXPERIMENT));
    ears[0].send(&frame(BROADCAST, guest_mac(0), EXPERIMENT, b"to all"));
    let heard = ears.each_ref().map(|ear| ear.heard().len());
    assert_eq!(heard, [0, 0, 0, 1]);
}
