//! Frames that are longer than their receiver takes: the sender is told what would fit.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use hopyard_net::{Handle, Offload};
use hopyard_switch::Counters;

use crate::frames::{BROADCAST, checksum};
use crate::listen::Ear;
use crate::packet::{
    DESTINATION, ECHO_REQUEST, FRAGMENT, ICMPV6, IPV4, IPV6, REDIRECT, UDP, ethernet, extension,
    fragment, ipv4, ipv6, udp,
};
use crate::site::{FAR, Site, guest, guest_mac, v4, v6};

/// What the narrow device takes; the least that IPv6 allows.
const NARROW: u32 = 1280;
/// What is to come has come by then, also where others take the machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// What must not come would have come by then.
const QUIET: Duration = Duration::from_millis(300);
const PORT: u16 = 9;
/// Of a packet that fits a device with 1500, and not the narrow one.
const LONG: usize = 1400;
const ICMP: u8 = 1;
const DF: u8 = 0x40;

/// Two guests and the far station, of which the way to guest 1 is narrow; its own device takes 1500, so that nobody hears of it by TCP.
fn narrow(name: &str) -> Site {
    let site = Site::new(name, 2);
    site.hub.set_mtu("p1", NARROW).unwrap();
    site
}

fn counters(site: &Site, party: &str) -> Counters {
    let stats = site.switch(|switch| switch.stats().unwrap());
    stats.iter().find(|s| s.party == party).unwrap().counters
}

fn option(socket: &UdpSocket, level: i32, name: i32, value: Option<i32>) -> i32 {
    let mut number: libc::c_int = value.unwrap_or(0);
    let mut size = size_of_val(&number) as libc::socklen_t;
    let fd = socket.as_raw_fd();
    let done = match value {
        // SAFETY: the option takes an int, which `number` is.
        Some(_) => unsafe { libc::setsockopt(fd, level, name, (&raw const number).cast(), size) },
        // SAFETY: the kernel writes at most the int of `number`.
        None => unsafe {
            libc::getsockopt(fd, level, name, (&raw mut number).cast(), &raw mut size)
        },
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    number
}

/// A connected socket whose datagrams must not be cut into fragments.
fn whole(from: &Handle, to: IpAddr) -> UdpSocket {
    let any: IpAddr = match to {
        IpAddr::V4(_) => [0; 4].into(),
        IpAddr::V6(_) => [0_u16; 8].into(),
    };
    let socket = from.ns().run(|| UdpSocket::bind((any, 0))).unwrap();
    let socket = socket.unwrap();
    let (level, name, value) = match to {
        IpAddr::V4(_) => (
            libc::IPPROTO_IP,
            libc::IP_MTU_DISCOVER,
            libc::IP_PMTUDISC_DO,
        ),
        IpAddr::V6(_) => (
            libc::IPPROTO_IPV6,
            libc::IPV6_MTU_DISCOVER,
            libc::IPV6_PMTUDISC_DO,
        ),
    };
    option(&socket, level, name, Some(value));
    socket.connect((to, PORT)).unwrap();
    socket
}

/// Sends until the kernel refuses a datagram as too long; false: it takes them all.
fn is_told(socket: &UdpSocket, patience: Duration) -> bool {
    let end = Instant::now() + patience;
    while Instant::now() < end {
        if let Err(error) = socket.send(&[7; LONG])
            && error.raw_os_error() == Some(libc::EMSGSIZE)
        {
            return true;
        }
        thread::sleep(Duration::from_millis(5));
    }
    false
}

/// What the kernel knows of the way to an address, by its socket and by its routes.
fn path_mtu(from: &Handle, socket: &UdpSocket, to: IpAddr) -> (i32, String) {
    let mtu = match to {
        IpAddr::V4(_) => option(socket, libc::IPPROTO_IP, libc::IP_MTU, None),
        IpAddr::V6(_) => option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU, None),
    };
    let mut command = Command::new("ip");
    command.args(["route", "get", &to.to_string()]);
    from.ns().adopt(&mut command).unwrap();
    let said = command.output().unwrap();
    assert!(said.status.success(), "{said:?}");
    (mtu, String::from_utf8(said.stdout).unwrap())
}

/// A process that another test is about to start has a copy of the last socket for a moment.
fn server(on: &Handle, ip: IpAddr) -> UdpSocket {
    let end = Instant::now() + PATIENCE;
    loop {
        match on.ns().run(|| UdpSocket::bind((ip, PORT))).unwrap() {
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < end => {
                thread::sleep(Duration::from_millis(5));
            }
            bound => return bound.unwrap(),
        }
    }
}

/// A sender of too long datagrams learns the MTU, and what fits arrives.
#[track_caller]
fn learns(site: &Site, party: &str, from: &Handle, to: (&Handle, IpAddr)) {
    let server = server(to.0, to.1);
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let socket = whole(from, to.1);
    assert!(
        is_told(&socket, PATIENCE),
        "{party} is not told of {}",
        to.1
    );
    // Another one: the first may have more errors waiting.
    let socket = whole(from, to.1);
    let (mtu, route) = path_mtu(from, &socket, to.1);
    assert_eq!(mtu, NARROW as i32);
    assert!(route.contains("mtu 1280"), "{route}");
    let headers = if to.1.is_ipv4() { 28 } else { 48 };
    let fits = NARROW as usize - headers;
    assert_eq!(socket.send(&vec![8; fits]).unwrap(), fits);
    assert_eq!(server.recv(&mut [0; 2000]).unwrap(), fits);
    let counted = counters(site, party);
    assert!(counted.too_big > 0);
    let dropped: Vec<_> = counted.dropped().collect();
    assert!(
        matches!(dropped[..], [("mtu", frames)] if frames >= counted.too_big),
        "{dropped:?}"
    );
}

fn families(host: u8) -> [IpAddr; 2] {
    [v4(host), v6(host).into()]
}

#[test]
fn udp_learns_what_fits() {
    let site = narrow("big-udp");
    site.connect(false, |_, _| {});
    for (party, from) in [
        ("p0", &site.guests[0]),
        ("wire", &site.far),
        ("host", &site.hub),
    ] {
        for to in families(guest(1)) {
            learns(&site, party, from, (&site.guests[1], to));
        }
    }
}

#[test]
fn a_guest_learns_what_fits_the_uplink() {
    let site = Site::new("big-up", 1);
    site.hub.set_mtu("up0", NARROW).unwrap();
    site.connect(false, |_, _| {});
    for to in families(FAR) {
        learns(&site, "p0", &site.guests[0], (&site.far, to));
    }
}

#[test]
fn the_message_is_right_where_checksums_are_written_after_the_switch() {
    let site = narrow("big-sum");
    // Towards the guest: its kernel has to check what else it would believe.
    for device in ["p0", "up0"] {
        let off = site.hub.set_offload(device, Offload::TxChecksum, false);
        off.unwrap();
    }
    site.connect(false, |_, _| {});
    for to in families(guest(1)) {
        learns(&site, "p0", &site.guests[0], (&site.guests[1], to));
        learns(&site, "wire", &site.far, (&site.guests[1], to));
    }
}

/// Sends so many bytes by TCP, which all come.
#[track_caller]
fn carry(from: &Handle, to: (&Handle, IpAddr), bytes: usize) {
    let at = SocketAddr::new(to.1, PORT);
    let listener = to.0.ns().run(|| TcpListener::bind(at)).unwrap().unwrap();
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let connect = || TcpStream::connect_timeout(&at, PATIENCE);
            let mut stream = from.ns().run(connect).unwrap().unwrap();
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(&vec![9; bytes])
        });
        let mut stream = listener.accept().unwrap().0;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.read_exact(&mut vec![0; bytes]).unwrap();
        sender.join().unwrap().unwrap();
    });
}

#[test]
fn tcp_goes_on_with_smaller_segments() {
    let site = narrow("big-tcp");
    site.connect(false, |_, _| {});
    for (party, from) in [
        ("p0", &site.guests[0]),
        ("wire", &site.far),
        ("host", &site.hub),
    ] {
        for to in families(guest(1)) {
            carry(from, (&site.guests[1], to), 1 << 20);
            let (mtu, route) = path_mtu(from, &whole(from, to), to);
            assert_eq!(mtu, NARROW as i32, "{party}");
            assert!(route.contains("mtu 1280"), "{route}");
        }
        let counted = counters(&site, party);
        assert!(counted.too_big > 0, "{party}");
    }
}

fn ip4(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host)
}

/// RFC 1071.
fn internet_checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2);
    let mut sum: u32 = words
        .map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// A packet that must not be cut into fragments, with its checksum.
fn packet4(
    protocol: u8,
    from: Ipv4Addr,
    to: Ipv4Addr,
    fragment: [u8; 2],
    payload: &[u8],
) -> Vec<u8> {
    let mut packet = ipv4(protocol, from, to, &[], payload);
    packet[6..8].copy_from_slice(&fragment);
    let sum = internet_checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// An ICMP message of a kind, of so many octets.
fn icmp(kind: u8, size: usize) -> Vec<u8> {
    let mut message = vec![5; size];
    message[..8].copy_from_slice(&[kind, 0, 0, 0, 0, 0, 0, 0]);
    message
}

#[test]
fn the_message_quotes_the_packet_and_comes_from_where_it_went() {
    let site = narrow("big-form");
    site.connect(false, |_, _| {});
    let (own, other) = (guest_mac(0), guest_mac(1));
    let ear = Ear::open(&site.guests[0], "eth0", IPV4);
    let echo = packet4(ICMP, ip4(guest(0)), ip4(guest(1)), [DF, 0], &icmp(8, LONG));
    ear.send(&ethernet(other, own, IPV4, &echo));
    let heard = ear.heard();
    assert_eq!(heard.len(), 1, "{heard:?}");
    let (header, packet) = heard[0].split_at(14);
    assert_eq!(header, ethernet(own, other, IPV4, &[]));
    assert_eq!(internet_checksum(&packet[..20]), 0);
    assert_eq!(
        packet[12..20],
        [ip4(guest(1)).octets(), ip4(guest(0)).octets()].concat()
    );
    let message = &packet[20..];
    assert_eq!(message[..2], [3, 4]);
    assert_eq!(message[4..8], NARROW.to_be_bytes());
    assert_eq!(internet_checksum(message), 0);
    let quote = &message[8..];
    assert_eq!(quote, &echo[..quote.len()]);
    // RFC 1812, 4.3.2.3.
    assert!((500..=576).contains(&packet.len()), "{}", packet.len());

    let ear = Ear::open(&site.guests[0], "eth0", IPV6);
    let (mine, theirs) = (v6(guest(0)), v6(guest(1)));
    let echo = ipv6(mine, theirs, ICMPV6, &icmp(ECHO_REQUEST, LONG));
    ear.send(&ethernet(other, own, IPV6, &echo));
    let heard = ear.heard();
    assert_eq!(heard.len(), 1, "{heard:?}");
    let packet = &heard[0][14..];
    assert_eq!(packet[8..40], [theirs.octets(), mine.octets()].concat());
    let message = &packet[40..];
    assert_eq!(message[..2], [2, 0]);
    assert_eq!(message[4..8], NARROW.to_be_bytes());
    assert_eq!(checksum(theirs.octets(), mine.octets(), message), 0);
    assert_eq!(message[8..], echo[..message.len() - 8]);
    // RFC 4443, 2.4 (c).
    assert!((1200..=1280).contains(&packet.len()), "{}", packet.len());
}

#[test]
fn nobody_is_told_of_errors_groups_fragments_and_what_may_be_cut() {
    let site = narrow("big-mute");
    site.connect(false, |_, port| port.allow_spoof = true);
    let (own, other) = (guest_mac(0), guest_mac(1));
    let (mine, theirs) = (ip4(guest(0)), ip4(guest(1)));
    let datagram = udp(PORT, PORT, &[1; LONG]);
    let to_other = |packet: &[u8]| ethernet(other, own, IPV4, packet);
    let of = |from, to| packet4(UDP, from, to, [DF, 0], &datagram);
    let mut longer = of(mine, theirs);
    longer.extend([0; 9]);
    let mut short = of(mine, theirs);
    short.truncate(1399);
    let mut frames = vec![
        (
            "may be cut",
            to_other(&packet4(UDP, mine, theirs, [0, 0], &datagram)),
        ),
        (
            "a later fragment",
            to_other(&packet4(UDP, mine, theirs, [DF, 9], &datagram)),
        ),
        ("of nobody", to_other(&of(Ipv4Addr::UNSPECIFIED, theirs))),
        ("of a group", to_other(&of([224, 0, 0, 5].into(), theirs))),
        ("of all", to_other(&of(Ipv4Addr::BROADCAST, theirs))),
        ("of itself", to_other(&of(Ipv4Addr::LOCALHOST, theirs))),
        ("to a group", to_other(&of(mine, [224, 0, 0, 5].into()))),
        ("to all", to_other(&of(mine, Ipv4Addr::BROADCAST))),
        ("longer than its packet", to_other(&longer)),
        ("shorter than its packet", to_other(&short)),
        ("no IP", ethernet(other, own, 0x88b5, &[1; LONG])),
    ];
    for kind in [3, 4, 5, 11, 12, 200] {
        let packet = packet4(ICMP, mine, theirs, [DF, 0], &icmp(kind, LONG));
        frames.push(("an ICMP error", to_other(&packet)));
    }
    let (mine, theirs) = (v6(guest(0)), v6(guest(1)));
    let all_nodes = "ff02::1".parse().unwrap();
    let six =
        |from, to, next, payload: &[u8]| ethernet(other, own, IPV6, &ipv6(from, to, next, payload));
    for kind in [1, 2, 3, 4, 127, REDIRECT] {
        frames.push((
            "an ICMPv6 error",
            six(mine, theirs, ICMPV6, &icmp(kind, LONG)),
        ));
    }
    let hidden = [extension(ICMPV6, 1), icmp(2, LONG)].concat();
    let later = [fragment(UDP, 9, false), datagram.clone()].concat();
    frames.extend([
        ("a hidden error", six(mine, theirs, DESTINATION, &hidden)),
        ("a later fragment", six(mine, theirs, FRAGMENT, &later)),
        ("of nobody", six([0_u16; 8].into(), theirs, UDP, &datagram)),
        ("of a group", six(all_nodes, theirs, UDP, &datagram)),
        ("to a group", six(mine, all_nodes, UDP, &datagram)),
    ]);
    let ears = [IPV4, IPV6].map(|kind| Ear::open(&site.guests[0], "eth0", kind));
    for (what, frame) in &frames {
        let before = counters(&site, "p0");
        ears[0].send(frame);
        for ear in &ears {
            assert_eq!(ear.heard(), [[0; 0]; 0], "{what}");
        }
        let now = counters(&site, "p0");
        assert_eq!(now.too_big, 0, "{what}");
        let [was, is] = [before, now].map(|c| c.dropped().map(|(_, n)| n).sum::<u64>());
        assert_eq!(
            is,
            was + 1,
            "{what}: {:?}",
            now.dropped().collect::<Vec<_>>()
        );
    }
    // To all, by Ethernet.
    let all = [BROADCAST, [0x33, 0x33, 0, 0, 0, 1]];
    for to in all {
        ears[0].send(&ethernet(
            to,
            own,
            IPV6,
            &ipv6(mine, theirs, UDP, &datagram),
        ));
        assert_eq!(ears[1].heard(), [[0; 0]; 0]);
    }
    assert_eq!(counters(&site, "p0").too_big, 0);
}

#[test]
fn a_flood_is_told_of_now_and_then() {
    let site = narrow("big-flood");
    site.connect(false, |_, _| {});
    let ear = Ear::open(&site.guests[0], "eth0", IPV4);
    let echo = packet4(ICMP, ip4(guest(0)), ip4(guest(1)), [DF, 0], &icmp(8, LONG));
    let frame = ethernet(guest_mac(1), guest_mac(0), IPV4, &echo);
    const FRAMES: u64 = 5000;
    const PER_S: u64 = 100;
    let began = Instant::now();
    for _ in 0..FRAMES {
        ear.send(&frame);
    }
    // What waits in a queue passes meanwhile.
    thread::sleep(QUIET);
    let seconds = began.elapsed().as_secs() + 1;
    let counted = counters(&site, "p0");
    let cpus = thread::available_parallelism().unwrap().get() as u64;
    assert_eq!(counted.dropped().collect::<Vec<_>>(), [("mtu", FRAMES)]);
    let most = cpus * PER_S * (1 + seconds);
    assert!(
        (PER_S..=most).contains(&counted.too_big),
        "{}",
        counted.too_big
    );
}
