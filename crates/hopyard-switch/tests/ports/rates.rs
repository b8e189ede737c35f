//! Limits of what a port sends and gets, with real traffic.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use hopyard_net::Handle;
use hopyard_switch::{NewPort, PartyStats, PortChange, Rate, Switch};

use crate::frames::arp;
use crate::listen::Ear;
use crate::site::{FAR, FAR_MAC, Site, guest, v4, v6};

/// Long enough that the first frame too many, or too few, is less than the tolerance.
const SPAN: Duration = Duration::from_secs(2);
/// So long the sender may be kept from its CPU without using less than its rate.
const PAUSE: Duration = Duration::from_millis(400);
/// How far from its rate a port may be.
const TOLERANCE: f64 = 0.02;
const PORT: u16 = 9;
/// Contents of a datagram, and what its frame has beside them: Ethernet, IPv4, UDP.
const DATAGRAM: usize = 1400;
const HEADERS: u64 = 14 + 20 + 8;

fn rate(text: &str) -> Rate {
    text.parse().unwrap()
}

/// A rate with a burst for which no pause of the sender counts.
fn patient(text: &str) -> Rate {
    let bits = rate(text).limit().unwrap().bits_per_s();
    with_burst(text, bits / 8 * PAUSE.as_millis() as u64 / 1000)
}

fn with_burst(text: &str, bytes: u64) -> Rate {
    let limit = rate(text).limit().unwrap();
    Rate::Limited(limit.with_burst(bytes).unwrap())
}

fn party(site: &Site, name: &str) -> PartyStats {
    let stats = site.switch(|switch| switch.stats().unwrap());
    stats.into_iter().find(|p| p.party == name).unwrap()
}

fn drops(site: &Site, name: &str) -> Vec<&'static str> {
    let found = party(site, name);
    found.counters.dropped().map(|(reason, _)| reason).collect()
}

/// What a sender did.
#[derive(Debug)]
struct Flood {
    took: Duration,
    /// Between two sends.
    longest_pause: Duration,
}

/// Sends datagrams for a while, as fast as it can or at most `most_per_s` bytes a second; each write makes `segments` of them.
fn flood(
    from: &Handle,
    to: IpAddr,
    segments: usize,
    full: Duration,
    most_per_s: Option<f64>,
) -> Flood {
    let send = || {
        let any: IpAddr = if to.is_ipv4() {
            [0; 4].into()
        } else {
            [0_u16; 8].into()
        };
        let socket = UdpSocket::bind((any, 0)).unwrap();
        socket.connect((to, PORT)).unwrap();
        if segments > 1 {
            let size: libc::c_int = DATAGRAM as i32;
            // SAFETY: the option takes an int, which `size` is.
            let done = unsafe {
                libc::setsockopt(
                    socket.as_raw_fd(),
                    libc::SOL_UDP,
                    libc::UDP_SEGMENT,
                    (&raw const size).cast(),
                    size_of_val(&size) as libc::socklen_t,
                )
            };
            assert_eq!(done, 0);
        }
        let data = vec![0; DATAGRAM * segments];
        // The neighbour is found out before, and the bucket is full then.
        socket.send(&data).unwrap();
        thread::sleep(full + Duration::from_millis(50));
        let began = Instant::now();
        let (mut took, mut longest_pause) = (Duration::ZERO, Duration::ZERO);
        let mut sent = 0;
        while took < SPAN {
            // Refused where nobody listens (ICMP): the next one goes out all the same.
            let _ = socket.send(&data);
            sent += data.len();
            if most_per_s.is_some_and(|most| sent as f64 > most * took.as_secs_f64()) {
                thread::sleep(Duration::from_millis(1));
            }
            let now = began.elapsed();
            longest_pause = longest_pause.max(now - took);
            took = now;
        }
        Flood {
            took,
            longest_pause,
        }
    };
    from.ns().run(send).unwrap()
}

/// What passes to `to` of a flood, in bytes of frames, over what the rate and burst allow.
fn share(site: &Site, from: &Handle, to: (&str, IpAddr), limit: Rate, segments: usize) -> f64 {
    let limit = limit.limit().unwrap();
    let full = limit.burst_bytes() as f64 * 8.0 / limit.bits_per_s() as f64;
    let full = Duration::from_secs_f64(full);
    // Four times what may pass shows the limit, and leaves the CPU to the tests beside this one.
    let four_times = limit.bits_per_s() as f64 / 8.0 * 4.0;
    let tries = (0..5).map(|_| {
        let before = party(site, to.0).counters;
        let flood = flood(from, to.1, segments, full, Some(four_times));
        (before, flood, party(site, to.0).counters)
    });
    // A sender that had no CPU for longer than the burst lasts did not use its rate.
    let mut tries = tries.filter(|(_, flood, _)| flood.longest_pause < full / 2);
    let (before, flood, after) = tries.next().unwrap();
    let took = flood.took;
    let packets = after.tx_packets - before.tx_packets;
    let bytes = after.tx_bytes - before.tx_bytes;
    // What a GSO packet is cut into has headers of its own.
    let wire = bytes + packets * HEADERS * (segments as u64 - 1);
    let allowed = limit.bits_per_s() as f64 / 8.0 * took.as_secs_f64() + limit.burst_bytes() as f64;
    wire as f64 / allowed
}

#[track_caller]
fn is_kept(share: f64) {
    assert!((share - 1.0).abs() < TOLERANCE, "{share}");
}

/// A socket that is there, so that nobody answers that it is not.
fn listen(at: &Handle) -> UdpSocket {
    let bind = || UdpSocket::bind(("0.0.0.0", PORT)).unwrap();
    at.ns().run(bind).unwrap()
}

#[test]
fn a_port_sends_as_fast_as_it_may() {
    let site = Site::new("rate-out", 2);
    let limit = patient("100mbit");
    site.connect(false, |n, port| {
        if n == 0 {
            port.rate_out = limit;
        }
    });
    let _open = [&site.guests[0], &site.guests[1], &site.far].map(listen);
    let to_guest = ("p1", v4(guest(1)));
    is_kept(share(&site, &site.guests[0], to_guest, limit, 1));
    is_kept(share(&site, &site.guests[0], ("wire", v4(FAR)), limit, 1));
    assert_eq!(drops(&site, "p0"), ["rate_out"]);
    // Packets of 40 frames count as such.
    is_kept(share(&site, &site.guests[0], to_guest, limit, 40));
    // What it gets, and what others send, is not limited.
    let other = rate("100mbit");
    let free = share(&site, &site.guests[1], ("p0", v4(guest(0))), other, 40);
    assert!(free > 2.0, "{free}");
    assert_eq!(party(&site, "p1").counters.over_rate, 0);
}

#[test]
fn a_port_gets_as_much_as_it_may() {
    let site = Site::new("rate-in", 2);
    let limit = patient("50mbit");
    site.connect(false, |n, port| {
        if n == 1 {
            port.rate_in = limit;
        }
    });
    let _open = listen(&site.guests[1]);
    let to = ("p1", v4(guest(1)));
    for (from, name, segments) in [
        (&site.guests[0], "p0", 1),
        (&site.guests[0], "p0", 40),
        (&site.far, "wire", 1),
        (&site.hub, "host", 1),
    ] {
        let before = party(&site, "p1").counters.over_rate;
        is_kept(share(&site, from, to, limit, segments));
        assert_eq!(drops(&site, name), ["rate_in"], "{name}");
        assert!(party(&site, "p1").counters.over_rate > before);
    }
    // Its sender's account has them, and of the receiver no frame was dropped.
    assert_eq!(drops(&site, "p1"), [] as [&str; 0]);
}

#[test]
fn rates_are_changed_in_place_and_go_with_the_port() {
    let site = Site::new("rate-set", 2);
    site.connect(false, |_, _| {});
    let _open = listen(&site.guests[1]);
    let to = ("p1", v4(guest(1)));
    let set = |device, rate_in, rate_out| {
        let change = PortChange {
            device,
            rate_in,
            rate_out,
            ..PortChange::default()
        };
        site.switch(|switch| switch.set_port(&change)).unwrap();
    };
    let shown = |device: &str| {
        let ports = site.show().ports;
        let port = ports
            .into_iter()
            .find(|port| port.device == device)
            .unwrap();
        [port.rate_in, port.rate_out]
    };
    assert_eq!(shown("p0"), [None; 2]);
    let limit = patient("20mbit");
    set("p0", None, Some(limit));
    assert_eq!(shown("p0"), [None, limit.limit()]);
    is_kept(share(&site, &site.guests[0], to, limit, 1));
    // Other programs and another change leave it as it is.
    site.switch(Switch::upgrade).unwrap();
    is_kept(share(&site, &site.guests[0], to, limit, 1));
    set("p0", Some(rate("1gbit")), None);
    assert_eq!(shown("p0"), [rate("1gbit").limit(), limit.limit()]);
    set("p0", Some(Rate::Unlimited), Some(Rate::Unlimited));
    assert_eq!(shown("p0"), [None; 2]);
    let before = drops(&site, "p0");
    let free = share(&site, &site.guests[0], to, limit, 1);
    assert!(free > 2.0, "{free}");
    assert_eq!(drops(&site, "p0"), before);
    // The next port of the slot has none of it.
    set("p0", Some(limit), Some(limit));
    site.remove(0);
    site.add(0, |_: &mut NewPort<'_>| {});
    assert_eq!(shown("p0"), [None; 2]);
    assert!(share(&site, &site.guests[0], to, limit, 1) > 2.0);
}

/// What a port has used of its burst stays used when it is told its rate again, as `apply` does with each change.
#[test]
fn a_rate_that_stays_gives_no_second_burst() {
    let site = Site::new("rate-same", 2);
    site.connect(false, |_, _| {});
    let _open = listen(&site.guests[1]);
    let limit = with_burst("1mbit", 4_000_000);
    let set = |isolated| {
        let change = PortChange {
            device: "p0",
            rate_out: Some(limit),
            isolated: Some(isolated),
            ..PortChange::default()
        };
        site.switch(|switch| switch.set_port(&change)).unwrap();
    };
    let sent = || {
        let before = party(&site, "p1").counters.tx_bytes;
        flood(&site.guests[0], v4(guest(1)), 40, Duration::ZERO, None);
        party(&site, "p1").counters.tx_bytes - before
    };
    set(false);
    let burst = sent();
    assert!(burst > 3_900_000, "{burst}");
    set(true);
    set(false);
    let rest = sent();
    assert!(rest < 1_500_000, "{rest}");
}

#[test]
fn a_port_that_is_flooded_is_found_all_the_same() {
    let site = Site::new("rate-found", 2);
    site.connect(false, |n, port| {
        if n == 1 {
            port.rate_in = rate("8mbit");
        }
    });
    let _open = listen(&site.guests[1]);
    let ear = Ear::open(&site.far, "far0", 0x0806);
    let octets = |host| [10, 0, 0, host];
    let question = arp(FAR_MAC, octets(FAR), octets(guest(1)));
    const QUESTIONS: usize = 20;
    const FULL: Duration = Duration::from_millis(400);
    let answers = thread::scope(|scope| {
        scope.spawn(|| flood(&site.guests[0], v4(guest(1)), 1, FULL, None));
        // The bucket is empty by then, and the flood goes on.
        thread::sleep(FULL + Duration::from_millis(700));
        assert_eq!(drops(&site, "p0"), ["rate_in"]);
        let ask = |_| {
            ear.send(&question);
            usize::from(!ear.heard().is_empty())
        };
        (0..QUESTIONS).map(ask).sum::<usize>()
    });
    assert_eq!(answers, QUESTIONS);
}

/// Bytes a second that TCP carries from one to the other.
fn tcp(from: &Handle, to: &Handle, at: IpAddr, span: Duration) -> f64 {
    let listener = to
        .ns()
        .run(|| TcpListener::bind(SocketAddr::new(at, PORT)).unwrap());
    let listener = listener.unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut stream = listener.accept().unwrap().0;
            let mut buffer = vec![0; 1 << 18];
            let began = Instant::now();
            let mut bytes = 0;
            while began.elapsed() < span {
                bytes += stream.read(&mut buffer).unwrap();
            }
            let took = began.elapsed();
            stop.store(true, Relaxed);
            bytes as f64 / took.as_secs_f64()
        });
        let mut stream = from
            .ns()
            .run(|| TcpStream::connect((at, PORT)).unwrap())
            .unwrap();
        let data = vec![0; 1 << 16];
        while !stop.load(Relaxed) {
            if stream.write_all(&data).is_err() {
                break;
            }
        }
        drop(stream);
        reader.join().unwrap()
    })
}

#[test]
fn tcp_gets_most_of_a_rate() {
    let site = Site::new("rate-tcp", 2);
    site.connect(false, |_, _| {});
    for (text, rate_in, at) in [
        ("10mbit", true, v4(guest(1))),
        ("100mbit", true, v4(guest(1))),
        ("100mbit", false, v6(guest(1)).into()),
        ("1gbit", true, v4(guest(1))),
    ] {
        let limit = rate(text);
        let change = PortChange {
            device: if rate_in { "p1" } else { "p0" },
            rate_in: rate_in.then_some(limit),
            rate_out: (!rate_in).then_some(limit),
            ..PortChange::default()
        };
        site.switch(|switch| switch.set_port(&change)).unwrap();
        let limit = limit.limit().unwrap();
        let span = Duration::from_secs(3);
        let bytes = tcp(&site.guests[0], &site.guests[1], at, span);
        let share = bytes * 8.0 / limit.bits_per_s() as f64;
        // The burst comes on top.
        let most =
            1.0 + limit.burst_bytes() as f64 * 8.0 / limit.bits_per_s() as f64 / span.as_secs_f64();
        assert!(share > 0.85 && share < most * 1.02, "{text}: {share}");
        let lift = PortChange {
            device: change.device,
            rate_in: Some(Rate::Unlimited),
            rate_out: Some(Rate::Unlimited),
            ..PortChange::default()
        };
        site.switch(|switch| switch.set_port(&lift)).unwrap();
    }
}
