//! A namespace with a device in it, and numbered datagrams that leave through the device.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use hopyard_net::{Handle, NetNs};
use hopyard_tap::{Device, Flow, NewDevice, Queue, TunLayer};
use nix::sys::socket::{setsockopt, sockopt};

/// The station behind the device, and its port.
pub(crate) const STATION: [u8; 6] = [2, 0, 0, 0, 0, 0x99];
pub(crate) const PORT: u16 = 9000;
/// Time in which an expected frame arrives.
pub(crate) const SOON: Duration = Duration::from_secs(60);

pub(crate) fn namespace() -> Handle {
    let handle = Handle::new(&NetNs::create().expect("these tests need root")).unwrap();
    handle.quiet_ipv6().unwrap();
    handle
}

pub(crate) fn make(handle: &Handle, new: &NewDevice) -> (Device, Vec<Queue>) {
    handle.ns().run(|| new.create()).unwrap().unwrap()
}

/// A nonblocking device in a namespace of its own, up, with 10.9.0.1 for the kernel and .2 for the station. It has no
/// IPv6 address, because the kernel would send multicast reports by itself later.
pub(crate) fn world(new: NewDevice) -> (Handle, Device, Vec<Queue>) {
    let handle = namespace();
    let new = NewDevice {
        nonblocking: true,
        ..new
    };
    let (device, queues) = make(&handle, &new);
    address(&handle, &device, 9);
    (handle, device, queues)
}

/// Brings the device up in net 10.`net`.0.0/24.
pub(crate) fn address(handle: &Handle, device: &Device, net: u8) {
    let name = device.name();
    handle.set_up(name).unwrap();
    let [ours, theirs] = [1, 2].map(|host| [10, net, 0, host].into());
    handle.add_address(name, ours, 24).unwrap();
    if device.layer() == TunLayer::Tap {
        handle.add_neighbour(name, theirs, STATION).unwrap();
    }
    handle.settle(name).unwrap();
}

/// A socket of the kernel that sends to the station.
pub(crate) struct Sender {
    pub(crate) socket: UdpSocket,
}

impl Sender {
    pub(crate) fn new(handle: &Handle, to: &str, mark: u32) -> Self {
        let to: IpAddr = to.parse().unwrap();
        let any: SocketAddr = if to.is_ipv4() {
            "0.0.0.0:0".parse().unwrap()
        } else {
            "[::]:0".parse().unwrap()
        };
        let socket = handle.ns().run(|| UdpSocket::bind(any)).unwrap().unwrap();
        setsockopt(&socket, sockopt::Mark, &mark).unwrap();
        socket.connect((to, PORT)).unwrap();
        Self { socket }
    }

    pub(crate) fn send(&self, number: u64) -> io::Result<()> {
        self.socket.send(&number.to_be_bytes()).map(drop)
    }

    pub(crate) fn flow(&self) -> Flow {
        let here = self.socket.local_addr().unwrap();
        Flow::udp(here, self.socket.peer_addr().unwrap())
    }
}

/// The number in a datagram of a [`Sender`] (the last eight bytes); `None` for anything else that a kernel sends.
pub(crate) fn number(layer: TunLayer, frame: &[u8]) -> Option<u64> {
    let packet = match layer {
        TunLayer::Tap => frame.get(14..)?,
        TunLayer::Tun => frame,
    };
    let header = match packet.first()? >> 4 {
        4 if packet.get(9)? == &17 => 20,
        6 if packet.get(6)? == &17 => 40,
        _ => return None,
    };
    let port = packet.get(header + 2..header + 4)?;
    if port != PORT.to_be_bytes() || packet.len() != header + 16 {
        return None;
    }
    Some(u64::from_be_bytes(packet[header + 8..].try_into().unwrap()))
}

/// The next numbered datagram of a queue, if any.
pub(crate) fn next(queue: &Queue) -> Option<u64> {
    let mut frame = [0; 2048];
    let layer = queue.device().layer();
    loop {
        match queue.read_frame(&mut frame) {
            Ok((_, length)) => {
                if let Some(number) = number(layer, &frame[..length]) {
                    return Some(number);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
            Err(error) => panic!("reading: {error}"),
        }
    }
}

/// The queue that gets the next numbered datagram, and the number.
pub(crate) fn arrival(queues: &[Queue]) -> (usize, u64) {
    let start = Instant::now();
    while start.elapsed() < SOON {
        for (at, queue) in queues.iter().enumerate() {
            if let Some(number) = next(queue) {
                return (at, number);
            }
        }
    }
    panic!("no datagram arrived");
}
