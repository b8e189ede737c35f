//! Namespaces that a switch joins, and raw frames in them.

use std::cell::RefCell;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hopyard_net::{Handle, NetNs};
use hopyard_tap::switch::{Counters, NewPort, NewSwitch, PortState, Rules, Switch};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrLike, bind, recv,
    send, setsockopt, socket, sockopt,
};

/// Ethernet type for local experiments (IEEE 802).
pub(crate) const TYPE: u16 = 0x88b5;
pub(crate) const BROADCAST: [u8; 6] = [0xff; 6];
/// Time in which expected frames arrive.
pub(crate) const SOON: Duration = Duration::from_secs(60);
/// The device of every station.
pub(crate) const TAP: &str = "tap0";

/// A namespace with a tap of a switch.
pub(crate) struct Station {
    pub(crate) handle: Handle,
    socket: Option<OwnedFd>,
    /// Frames that the kernel accepted from it.
    accepted: AtomicU64,
}

/// A switch with this many stations, 10.7.0.1 and up.
pub(crate) fn joined(count: usize, new: NewSwitch) -> (Switch, Vec<Station>) {
    joined_by(vec![Rules::default(); count], new)
}

/// A switch with a station for each of these rules.
#[expect(
    clippy::needless_pass_by_value,
    reason = "callers make one of its own for each"
)]
pub(crate) fn joined_by(rules: Vec<Rules>, new: NewSwitch) -> (Switch, Vec<Station>) {
    let mut stations: Vec<Station> = rules.iter().map(|_| Station::new()).collect();
    let port = |(station, rules): (&Station, Rules)| NewPort {
        device: TAP.into(),
        ns: station.handle.ns().try_clone().unwrap(),
        rules,
    };
    let ports = stations.iter().zip(rules).map(port).collect();
    let switch = NewSwitch { ports, ..new }.start().unwrap();
    for (number, station) in (1..).zip(&mut stations) {
        let address = [10, 7, 0, number].into();
        station.handle.add_address(TAP, address, 24).unwrap();
        station.handle.settle(TAP).unwrap();
        station.socket = Some(station.open());
    }
    (switch, stations)
}

/// A station's address, which no kernel has.
pub(crate) fn mac(number: u32) -> [u8; 6] {
    let [a, b, c, d] = number.to_be_bytes();
    [2, 0, a, b, c, d]
}

/// A frame of [`TYPE`] that contains a number.
pub(crate) fn frame(to: [u8; 6], from: [u8; 6], number: u32) -> Vec<u8> {
    [
        &to[..],
        &from,
        &TYPE.to_be_bytes(),
        &number.to_be_bytes(),
        &[0; 42],
    ]
    .concat()
}

impl Station {
    fn new() -> Self {
        let handle = Handle::new(&NetNs::create().expect("these tests need root")).unwrap();
        handle.quiet_ipv6().unwrap();
        Self {
            handle,
            socket: None,
            accepted: AtomicU64::new(0),
        }
    }

    fn open(&self) -> OwnedFd {
        let open = || {
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            let none = None::<SockProtocol>;
            let fd = socket(AddressFamily::Packet, SockType::Raw, flags, none).unwrap();
            setsockopt(&fd, sockopt::RcvBufForce, &(8 << 20)).unwrap();
            let index = nix::net::if_::if_nametoindex(TAP).unwrap();
            bind(fd.as_raw_fd(), &link_address(index)).unwrap();
            fd
        };
        self.handle.ns().run(open).unwrap()
    }

    fn socket(&self) -> &OwnedFd {
        self.socket.as_ref().unwrap()
    }

    /// Sends a frame by the tap; false if the kernel refuses it.
    pub(crate) fn send(&self, frame: &[u8]) -> bool {
        let fd = self.socket().as_raw_fd();
        let accepted = send(fd, frame, MsgFlags::empty()).is_ok();
        self.accepted.fetch_add(accepted.into(), Relaxed);
        accepted
    }

    /// From now on, frames are sent with a virtio-net header of ten bytes in front (`PACKET_VNET_HDR`).
    pub(crate) fn with_headers(&self) {
        const PACKET_VNET_HDR: i32 = 15;
        let on = 1;
        let size = size_of_val(&on) as libc::socklen_t;
        let fd = self.socket().as_raw_fd();
        // SAFETY: the option is an int, which lives until the call returns.
        let set = unsafe {
            let on = std::ptr::from_ref(&on).cast();
            libc::setsockopt(fd, libc::SOL_PACKET, PACKET_VNET_HDR, on, size)
        };
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    }

    /// The number of the next frame that has arrived, if any.
    fn next(&self) -> Option<u32> {
        let mut buffer = [0; 2048];
        let fd = self.socket().as_raw_fd();
        loop {
            match recv(fd, &mut buffer, MsgFlags::empty()) {
                Ok(length) if length >= 18 => {
                    return Some(u32::from_be_bytes(buffer[14..18].try_into().unwrap()));
                }
                // Too short to contain one.
                Ok(_) => {}
                Err(Errno::EAGAIN) => return None,
                Err(error) => panic!("hearing: {error}"),
            }
        }
    }

    /// Waits for the frame with a number. Frames sent before it on the same path have arrived by then, or never will.
    pub(crate) fn hear(&self, number: u32) {
        let deadline = Instant::now() + SOON;
        while !std::iter::from_fn(|| self.next()).any(|next| next == number) {
            assert!(Instant::now() < deadline, "{number} does not come");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The numbers of the frames that a station received, after all sent frames were forwarded or dropped.
pub(crate) fn heard(switch: &Switch, stations: &[Station], at: usize) -> Vec<u32> {
    all_gone(switch, stations);
    std::iter::from_fn(|| stations[at].next()).collect()
}

/// Waits until the switch has read all sent frames, and written or dropped each (for a flooded frame, a copy for each
/// other port). The sockets have what was written.
pub(crate) fn all_gone(switch: &Switch, stations: &[Station]) {
    let last = RefCell::new(Vec::new());
    until(switch, "all that was sent went somewhere", |ports| {
        // Ports are read one after the other, so their counters are consistent if they are equal the second time.
        let before = last.replace(ports.to_vec());
        all_read(ports, stations) && are_balanced(ports) && before == ports
    });
}

fn all_read(ports: &[PortState], stations: &[Station]) -> bool {
    ports.iter().zip(stations).all(|(port, station)| {
        let read = port.counters.rx_frames + port.unread.unwrap_or(0);
        read == station.accepted.load(Relaxed)
    })
}

/// Whether all read frames were written or dropped. Counters are read one after the other, so they must not change any more.
pub(crate) fn are_balanced(ports: &[PortState]) -> bool {
    let gone = sum(ports, |port| port.tx_frames + port.joined + port.dropped());
    let copies = sum(ports, |port| port.flooded) * (ports.len() as u64 - 2);
    gone == sum(ports, |port| port.rx_frames) + copies
}

fn sum(ports: &[PortState], of: fn(&Counters) -> u64) -> u64 {
    ports.iter().map(|port| of(&port.counters)).sum()
}

fn link_address(index: u32) -> LinkAddr {
    let raw = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: TYPE.to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: `raw` is a complete sockaddr_ll, and its family says so.
    unsafe { LinkAddr::from_raw((&raw const raw).cast(), Some(size)) }.unwrap()
}

/// Waits until the counters meet the condition.
pub(crate) fn until(switch: &Switch, what: &str, so: impl Fn(&[PortState]) -> bool) {
    let deadline = Instant::now() + SOON;
    while !so(&switch.state().ports) {
        assert!(Instant::now() < deadline, "{what}: {:#?}", switch.state());
        std::thread::sleep(Duration::from_millis(5));
    }
}
