//! Namespaces that a switch joins, and raw frames in them.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use hopyard_net::{Handle, NetNs};
use hopyard_tap::switch::{NewPort, NewSwitch, PortState, Switch};
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrLike, bind, recv,
    send, setsockopt, socket, sockopt,
};

/// Ethernet type for local experiments (IEEE 802).
pub(crate) const TYPE: u16 = 0x88b5;
pub(crate) const BROADCAST: [u8; 6] = [0xff; 6];
/// What is to come has come by then.
pub(crate) const SOON: Duration = Duration::from_secs(3);
/// Nothing more comes after so much silence.
const QUIET: Duration = Duration::from_millis(50);
/// The device of every station.
pub(crate) const TAP: &str = "tap0";

/// A namespace with a tap of a switch.
pub(crate) struct Station {
    pub(crate) handle: Handle,
    socket: Option<OwnedFd>,
}

/// A switch that joins so many stations, 10.7.0.1 and on.
#[expect(
    clippy::needless_pass_by_value,
    reason = "callers make one of its own for each"
)]
pub(crate) fn joined(count: usize, new: NewSwitch) -> (Switch, Vec<Station>) {
    let mut stations: Vec<Station> = (0..count).map(|_| Station::new()).collect();
    let port = |station: &Station| NewPort {
        device: TAP.into(),
        ns: station.handle.ns().try_clone().unwrap(),
    };
    let ports = stations.iter().map(port).collect();
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

/// A frame of [`TYPE`] with a number in it.
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

    /// Has the tap send a frame; false if the kernel refuses to.
    pub(crate) fn send(&self, frame: &[u8]) -> bool {
        let fd = self.socket().as_raw_fd();
        send(fd, frame, MsgFlags::empty()).is_ok()
    }

    /// Frames sent from now on have a virtio-net header of ten bytes in front (`PACKET_VNET_HDR`).
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

    /// The numbers of all frames that come until it is quiet.
    pub(crate) fn heard(&self) -> Vec<u32> {
        let mut numbers = Vec::new();
        let mut buffer = [0; 2048];
        let mut last = Instant::now();
        while last.elapsed() < QUIET {
            match recv(
                self.socket().as_fd().as_raw_fd(),
                &mut buffer,
                MsgFlags::empty(),
            ) {
                Ok(length) if length >= 18 => {
                    numbers.push(u32::from_be_bytes(buffer[14..18].try_into().unwrap()));
                    last = Instant::now();
                }
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        numbers
    }
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
    // SAFETY: `raw` is a whole sockaddr_ll, and its family says so.
    unsafe { LinkAddr::from_raw((&raw const raw).cast(), Some(size)) }.unwrap()
}

/// Waits until the counters say so.
pub(crate) fn until(switch: &Switch, what: &str, so: impl Fn(&[PortState]) -> bool) {
    let deadline = Instant::now() + SOON;
    while !so(&switch.state().ports) {
        assert!(Instant::now() < deadline, "{what}: {:#?}", switch.state());
        std::thread::sleep(Duration::from_millis(5));
    }
}
