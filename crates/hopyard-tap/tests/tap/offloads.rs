//! Segments of 64 KiB and unfinished checksums pass from one device to another, with their headers.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hopyard_net::Handle;
use hopyard_tap::{
    Checksum, Error, LARGEST_FRAME, NewDevice, Offloads, Queue, SegmentKind, TunLayer, VnetHeader,
    VnetHeaderSize,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};

use crate::world::{SOON, make, namespace};

const BULK: usize = 24 << 20;

fn device(layer: TunLayer, size: VnetHeaderSize, offloads: Offloads) -> NewDevice {
    NewDevice {
        layer,
        vnet_header: Some(size),
        offloads,
        nonblocking: true,
        ..NewDevice::tap("x0")
    }
}

/// Clears a flag when it is dropped, also by a panic.
struct Clear<'a>(&'a AtomicBool);

impl Drop for Clear<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Frames that passed in one direction.
type Passed = Mutex<Vec<(VnetHeader, usize)>>;

/// Two namespaces, 10.9.0.1 and .2, fd09::1 and ::2, whose devices are joined by a thread.
struct Cable {
    ends: [Handle; 2],
    queues: [Queue; 2],
    passed: [Passed; 2],
    /// Whether headers are passed on, or replaced by the default.
    honest: AtomicBool,
}

impl Cable {
    fn new(new: &NewDevice) -> Self {
        let ends = [namespace(), namespace()];
        let queues = ends.each_ref().map(|end| make(end, new).1.remove(0));
        for (at, end) in ends.iter().enumerate() {
            end.set_up("x0").unwrap();
            for (net, bits) in [("10.9.0.", 24), ("fd09::", 64)] {
                let ours = format!("{net}{}", at + 1).parse().unwrap();
                end.add_address("x0", ours, bits).unwrap();
                if new.layer == TunLayer::Tap {
                    let theirs = format!("{net}{}", 2 - at).parse().unwrap();
                    let mac = ends[1 - at].link("x0").unwrap().mac.unwrap();
                    end.add_neighbour("x0", theirs, mac).unwrap();
                }
            }
            end.settle("x0").unwrap();
        }
        Self {
            ends,
            queues,
            passed: Default::default(),
            honest: AtomicBool::new(true),
        }
    }

    /// Carries frames in both directions while `f` runs.
    fn carry<T>(&self, f: impl FnOnce() -> T) -> T {
        let going = AtomicBool::new(true);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut frame = vec![0; LARGEST_FRAME];
                while going.load(Ordering::Relaxed) {
                    let mut fds = self
                        .queues
                        .each_ref()
                        .map(|queue| PollFd::new(queue.as_fd(), PollFlags::POLLIN));
                    poll(&mut fds, PollTimeout::from(5u8)).unwrap();
                    self.step(0, &mut frame);
                    self.step(1, &mut frame);
                }
            });
            let _carried = Clear(&going);
            f()
        })
    }

    fn step(&self, from: usize, frame: &mut [u8]) {
        for _ in 0..64 {
            let (mut header, length) = match self.queues[from].read_frame(frame) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => panic!("reading: {error}"),
            };
            self.passed[from].lock().unwrap().push((header, length));
            if !self.honest.load(Ordering::Relaxed) {
                header = VnetHeader::default();
            }
            self.queues[1 - from]
                .write_frame(&header, &frame[..length])
                .unwrap();
        }
    }

    fn listener(&self, at: &str) -> TcpListener {
        self.ends[1]
            .ns()
            .run(|| TcpListener::bind((at, 7000)))
            .unwrap()
            .unwrap()
    }

    fn passed(&self, from: usize) -> Vec<(VnetHeader, usize)> {
        self.passed[from].lock().unwrap().clone()
    }
}

fn pattern() -> Vec<u8> {
    (0..BULK).map(|at| (at % 251) as u8).collect()
}

/// Sends much data in one direction, and then in the other.
fn there_and_back(cable: &Cable, address: &str) {
    let listener = cable.listener(address);
    let data = pattern();
    cable.carry(|| {
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                stream.set_read_timeout(Some(SOON)).unwrap();
                let mut got = vec![0; BULK];
                stream.read_exact(&mut got).unwrap();
                assert!(got == data, "what arrives is what was sent");
                stream.write_all(&got).unwrap();
            });
            let connect = || {
                TcpStream::connect_timeout(&SocketAddr::new(address.parse().unwrap(), 7000), SOON)
            };
            let mut stream = cable.ends[0].ns().run(connect).unwrap().unwrap();
            stream.set_read_timeout(Some(SOON)).unwrap();
            stream.write_all(&data).unwrap();
            let mut got = vec![0; BULK];
            stream.read_exact(&mut got).unwrap();
            assert!(got == data, "what comes back is what was sent");
        });
    });
}

#[test]
fn segments_of_64_kib_pass_whole_both_ways() {
    for (layer, size, address, kind) in [
        (
            TunLayer::Tap,
            VnetHeaderSize::Basic,
            "10.9.0.2",
            SegmentKind::TcpV4,
        ),
        (
            TunLayer::Tap,
            VnetHeaderSize::Mergeable,
            "fd09::2",
            SegmentKind::TcpV6,
        ),
        (
            TunLayer::Tun,
            VnetHeaderSize::Mergeable,
            "10.9.0.2",
            SegmentKind::TcpV4,
        ),
    ] {
        let cable = Cable::new(&device(layer, size, Offloads::ALL));
        there_and_back(&cable, address);
        for from in [0, 1] {
            let (header, length) = cable
                .passed(from)
                .into_iter()
                .max_by_key(|passed| passed.1)
                .unwrap();
            println!("{layer:?} {size:?} {address} from {from}: largest {length}, {header:?}");
            assert!(length > 64_000 && length <= LARGEST_FRAME, "{length}");
            let cut = header.segmentation.unwrap();
            assert_eq!(cut.kind, kind);
            assert!((1300..1500).contains(&cut.size), "{cut:?}");
            let front = if layer == TunLayer::Tap { 14 } else { 0 };
            let ip = if kind == SegmentKind::TcpV4 { 20 } else { 40 };
            let partial = Checksum::Partial {
                start: front + ip,
                offset: 16,
            };
            assert_eq!(header.checksum, partial);
        }
    }
}

#[test]
fn without_offloads_every_frame_is_finished() {
    let cable = Cable::new(&device(
        TunLayer::Tap,
        VnetHeaderSize::Basic,
        Offloads::default(),
    ));
    cable.honest.store(false, Ordering::Relaxed);
    there_and_back(&cable, "10.9.0.2");
    for from in [0, 1] {
        let passed = cable.passed(from);
        assert!(!passed.is_empty());
        assert!(passed.iter().all(|(header, length)| {
            header.segmentation.is_none()
                && !matches!(header.checksum, Checksum::Partial { .. })
                && *length <= 1514
        }));
    }
}

/// A socket at end 0, and one at end 1 to which the first sends.
fn pair(cable: &Cable) -> (UdpSocket, UdpSocket) {
    let bind = |end: usize, at: &'static str| {
        cable.ends[end]
            .ns()
            .run(move || UdpSocket::bind(at))
            .unwrap()
            .unwrap()
    };
    let (client, server) = (bind(0, "10.9.0.1:0"), bind(1, "10.9.0.2:9000"));
    client.connect("10.9.0.2:9000").unwrap();
    (client, server)
}

/// Sends a datagram from end 0 to end 1, where it must arrive in `count` pieces; returns the lengths of those that
/// arrive.
fn datagram(cable: &Cable, bytes: &[u8], cut: Option<i32>, count: usize) -> Vec<usize> {
    let (client, server) = pair(cable);
    server.set_read_timeout(Some(SOON)).unwrap();
    if let Some(size) = cut {
        setsockopt(&client, sockopt::UdpGsoSegment, &size).unwrap();
    }
    cable.carry(|| {
        client.send(bytes).unwrap();
        let mut buffer = [0; 2048];
        let wait = |_| server.recv(&mut buffer).unwrap();
        let mut got: Vec<usize> = (0..count).map(wait).collect();
        server.set_nonblocking(true).unwrap();
        got.extend(std::iter::from_fn(|| server.recv(&mut buffer).ok()));
        got
    })
}

/// Sends a datagram that end 1 must refuse for its checksum.
fn refused_datagram(cable: &Cable, bytes: &[u8]) {
    let (client, server) = pair(cable);
    server.set_nonblocking(true).unwrap();
    let errors = || checksum_errors(&cable.ends[1]);
    let (before, deadline) = (errors(), Instant::now() + SOON);
    cable.carry(|| {
        client.send(bytes).unwrap();
        while errors() == before {
            assert!(Instant::now() < deadline, "nothing is refused");
            thread::sleep(Duration::from_millis(1));
        }
    });
    assert_eq!(errors(), before + 1);
    let heard = server.recv(&mut [0; 16]).map_err(|error| error.kind());
    assert_eq!(heard, Err(io::ErrorKind::WouldBlock));
}

/// Datagrams that a namespace's kernel refused for their checksums (`Udp: InCsumErrors` of `/proc/net/snmp`).
fn checksum_errors(end: &Handle) -> u64 {
    let read = || std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let text = end.ns().run(read).unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let at = names.split(' ').position(|name| name == "InCsumErrors");
    let value = values.split(' ').nth(at.unwrap());
    value.unwrap().parse().unwrap()
}

#[test]
fn an_unfinished_checksum_passes_with_its_header_and_not_without() {
    for layer in [TunLayer::Tap, TunLayer::Tun] {
        let start = if layer == TunLayer::Tap { 34 } else { 20 };
        let cable = Cable::new(&device(layer, VnetHeaderSize::Basic, Offloads::TCP));
        assert_eq!(datagram(&cable, b"partial", None, 1), [7]);
        let is_partial = |(header, _): &(VnetHeader, usize)| {
            header.checksum == Checksum::Partial { start, offset: 6 }
        };
        assert!(cable.passed(0).iter().any(is_partial));
        cable.honest.store(false, Ordering::Relaxed);
        refused_datagram(&cable, b"partial");
    }
}

#[test]
fn joined_datagrams_pass_whole() {
    let cable = Cable::new(&device(
        TunLayer::Tap,
        VnetHeaderSize::Mergeable,
        Offloads::ALL,
    ));
    let got = datagram(&cable, &[7; 42_000], Some(1400), 30);
    assert_eq!(got, [1400; 30]);
    let (header, length) = cable
        .passed(0)
        .into_iter()
        .max_by_key(|passed| passed.1)
        .unwrap();
    let cut = header.segmentation.unwrap();
    assert_eq!(
        (cut.kind, cut.size, length),
        (SegmentKind::Udp, 1400, 42_042)
    );
}

#[test]
fn offloads_change_at_run_time() {
    let cable = Cable::new(&device(TunLayer::Tap, VnetHeaderSize::Basic, Offloads::TCP));
    let partial = |cable: &Cable| {
        cable.passed[0].lock().unwrap().clear();
        assert_eq!(datagram(cable, b"x", None, 1), [1]);
        // Ignores what the kernel sends by itself: counts frames of one byte in UDP over IPv4.
        let passed = cable.passed(0);
        let (header, _) = passed.iter().find(|passed| passed.1 == 43).unwrap();
        matches!(header.checksum, Checksum::Partial { .. })
    };
    assert!(partial(&cable));
    cable.queues[0].set_offloads(Offloads::default()).unwrap();
    assert!(!partial(&cable));
    cable.queues[0].set_offloads(Offloads::ALL).unwrap();
    assert!(partial(&cable));
    let bare = make(&namespace(), &NewDevice::tap("bare0")).1;
    let refused = bare[0].set_offloads(Offloads::TCP).unwrap_err();
    assert!(matches!(refused, Error::Invalid { .. }), "{refused}");
    assert!(bare[0].as_raw_fd() >= 0);
}
