//! Datagrams, many for each call: the sender's kernel cuts what a call hands over into datagrams of the message size (`UDP_SEGMENT`),
//! the receiver's joins datagrams that follow each other and says of what size they were (`UDP_GRO`).
//!
//! `include/uapi/linux/udp.h`, `net/ipv4/udp_offload.c`; `UDP_SEGMENT` is of Linux 4.18, `UDP_GRO` of 5.0.

use std::cell::RefCell;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use hopyard_model::loads::Packets;
use hopyard_net::datagrams::path_mtu;
use nix::cmsg_space;
use nix::libc;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use socket2::{SockRef, Socket as RawSocket};

use super::ceiling::timed;
use super::stream::{receive, transmit};
use super::{Loops, Run, Work};
use crate::flow::{self, Io, Message, Socket};
use crate::protocol::Tallied;
use crate::socket::SetSocket;
use crate::spec::{LoadSpec, MAX_DATAGRAM};

/// Most datagrams of a call: `UDP_MAX_SEGMENTS` before Linux 6.9, which takes 128.
const MOST_SEGMENTS: u32 = 64;

/// Room for all that a call may hand over: what was joined is as much at most.
const RECEIVE_BYTES: usize = 65_535;

/// How many datagrams a call sends.
fn segments(message_size: u32) -> u32 {
    (MAX_DATAGRAM / message_size.max(1)).clamp(1, MOST_SEGMENTS)
}

fn several(spec: &LoadSpec) -> Message {
    Message::several(spec.message_size, segments(spec.message_size))
}

/// Has the kernel cut what is sent, and join what arrives.
fn set(socket: &RawSocket, message_size: u32) -> io::Result<()> {
    let size = libc::c_int::try_from(message_size).map_err(io::Error::other)?;
    let said = |what: &str, error: nix::Error| {
        let why = format!("cannot set {what}: {error}");
        io::Error::new(io::Error::from(error).kind(), why)
    };
    setsockopt(socket, sockopt::UdpGsoSegment, &size)
        .map_err(|e| said("UDP_SEGMENT, which Linux 4.18 has", e))?;
    setsockopt(socket, sockopt::UdpGroSegment, &true)
        .map_err(|e| said("UDP_GRO, which Linux 5.0 has", e))
}

/// Does a datagram fit the path of its socket? Otherwise the kernel refuses each call, by an `EINVAL` or `EMSGSIZE` that does not say so.
fn fits(socket: &Socket, spec: &LoadSpec) -> Result<(), String> {
    let local = SockRef::from(socket).local_addr();
    let is_ipv6 = local.is_ok_and(|address| address.is_ipv6());
    let mtu_bytes = path_mtu(socket.as_fd(), is_ipv6)
        .map_err(|e| format!("cannot read the MTU of a socket's path: {e}"))?;
    let fits = (spec.kind.info().fits)(Packets {
        message_bytes: spec.message_size,
        mtu_bytes,
        is_ipv6,
    });
    fits.map_err(|why| format!("the path to the server has an MTU of {mtu_bytes} bytes: {why}"))
}

/// Several datagrams for each call, cut and joined by the kernel.
pub(super) struct Segments;

impl Loops for Segments {
    fn set(&self) -> SetSocket {
        set
    }

    fn share_threads(&self) -> bool {
        true
    }

    fn prepare<'a>(&self, work: Work<'a>) -> Result<Run<'a>, String> {
        if work.sends() {
            let sockets = work.sockets()?;
            let spec = work.spec;
            let fit = move || {
                sockets
                    .iter()
                    .try_for_each(|(socket, _)| fits(socket, spec))
            };
            fit()?;
            let run = transmit(&work, several(spec))?;
            // A router on the path may tell the kernel of a smaller MTU once traffic has begun.
            Ok(Box::new(move || {
                run().map_err(|why| fit().err().unwrap_or(why))
            }))
        } else {
            receive(&work, vec![0; RECEIVE_BYTES], Joined::of)
        }
    }

    /// Its receiver takes many datagrams per call, so that it is never the slower end.
    fn ceiling(&self, spec: &LoadSpec, span: Duration) -> Result<Tallied, String> {
        let mut message = several(spec);
        timed(span, |io, context| {
            flow::transmit(io, &mut message, context)
        })
    }
}

/// A socket whose kernel joins datagrams and says of what size they were.
struct Joined<'a> {
    socket: &'a Socket,
    /// Room for the control message of a call.
    control: RefCell<Vec<u8>>,
}

impl<'a> Joined<'a> {
    fn of(socket: &'a Socket) -> Self {
        Self {
            socket,
            control: RefCell::new(cmsg_space!(libc::c_int)),
        }
    }
}

impl AsFd for Joined<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Io for Joined<'_> {
    fn send(&self, message: &[u8]) -> io::Result<usize> {
        self.socket.send(message)
    }

    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.take(buffer).map(|(bytes, _)| bytes)
    }

    #[inline]
    fn take(&self, buffer: &mut [u8]) -> io::Result<(usize, u64)> {
        let mut control = self.control.borrow_mut();
        let mut room = [IoSliceMut::new(buffer)];
        let fd = self.socket.as_fd().as_raw_fd();
        let taken = recvmsg::<()>(
            fd,
            &mut room,
            Some(control.as_mut_slice()),
            MsgFlags::empty(),
        )?;
        let size = taken.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::UdpGroSegments(size) => usize::try_from(size).ok(),
            _ => None,
        });
        // The kernel says nothing of a datagram that was not joined with others.
        let datagrams = match size {
            Some(size) if size > 0 => taken.bytes.div_ceil(size),
            _ => 1,
        };
        Ok((taken.bytes, datagrams as u64))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, UdpSocket};

    use hopyard_net::clock;

    use super::*;
    use crate::protocol::Timetable;
    use crate::session::{Beside, Session};
    use crate::sockets::Place;
    use hopyard_model::{Axes, LoadKind, Peer};

    #[test]
    fn a_call_sends_what_the_kernel_takes() {
        assert_eq!(segments(1), 64);
        assert_eq!(segments(1000), 64);
        assert_eq!(segments(1400), 46);
        assert_eq!(segments(MAX_DATAGRAM), 1);
        for size in 1..=MAX_DATAGRAM {
            assert!(segments(size) <= 64 && segments(size) * size <= MAX_DATAGRAM);
        }
    }

    fn raw() -> UdpSocket {
        UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
    }

    /// A sender to this receiver, set for messages of so many bytes.
    fn sender(receiver: &UdpSocket, size: u32) -> UdpSocket {
        let sender = RawSocket::from(raw());
        set(&sender, size).unwrap();
        let sender = UdpSocket::from(sender);
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        sender
    }

    #[test]
    fn the_kernel_cuts_a_call_into_datagrams_of_the_message_size() {
        let receiver = raw();
        let sender = sender(&receiver, 1000);
        assert_eq!(sender.send(&[7; 3500]).unwrap(), 3500);
        let mut buffer = [0; RECEIVE_BYTES];
        for size in [1000, 1000, 1000, 500] {
            assert_eq!(receiver.recv(&mut buffer).unwrap(), size);
        }
    }

    #[test]
    fn what_was_joined_counts_as_the_datagrams_that_it_was() {
        let receiver = RawSocket::from(raw());
        set(&receiver, 1000).unwrap();
        let receiver = UdpSocket::from(receiver);
        let sender = sender(&receiver, 1000);
        let receiver = Socket(receiver.into());
        let joined = Joined::of(&receiver);
        let mut buffer = vec![0; RECEIVE_BYTES];
        // Twice and more, since the kernel writes into what it is given.
        for (bytes, datagrams) in [(64_000, 64), (1000, 1), (3500, 4), (10, 1), (2000, 2)] {
            assert_eq!(sender.send(&vec![7; bytes]).unwrap(), bytes);
            assert_eq!(joined.take(&mut buffer).unwrap(), (bytes, datagrams));
        }
    }

    fn spec(message_size: u32, flows: u32) -> LoadSpec {
        let mut axes = Axes::default().for_cell(LoadKind::UdpGso, Peer::Local, &[]);
        axes.message_size_bytes = Some(message_size);
        axes.flows = flows;
        LoadSpec::new(LoadKind::UdpGso, &axes)
    }

    #[test]
    fn a_datagram_fits_the_path_and_not_only_the_plan() {
        // Where IPv6 leaves less room than loopback's 65,536 bytes have.
        for (address, size, fit) in [
            ("127.0.0.1:0", 65_507, true),
            ("[::1]:0", 65_488, true),
            ("[::1]:0", 65_489, false),
        ] {
            let socket = UdpSocket::bind(address).unwrap();
            socket.connect(socket.local_addr().unwrap()).unwrap();
            let said = fits(&Socket(socket.into()), &spec(size, 1));
            assert_eq!(said.is_ok(), fit, "{size}: {said:?}");
            let why = "the path to the server has an MTU of 65536 bytes: message_size 65489 is too large for udp_gso";
            assert!(said.err().is_none_or(|said| said.starts_with(why)));
        }
    }

    /// So many flows over loopback for 50 ms, on these CPUs.
    fn carried(flows: u32, cpus: &[usize]) -> [Tallied; 2] {
        let spec = spec(1200, flows);
        let here = Place::from(IpAddr::from(Ipv4Addr::LOCALHOST));
        let (server, ports) = Session::serve(&spec, &here, cpus).unwrap();
        let patience = Duration::from_secs(5);
        let client = Session::connect(&spec, &here, &ports, cpus, patience).unwrap();
        let start_ns = clock::monotonic_ns() + 5_000_000;
        let timetable = Timetable {
            start_ns,
            open_ns: start_ns + 10_000_000,
            close_ns: start_ns + 60_000_000,
            stop_ns: start_ns + 80_000_000,
            slices: 1,
            other_behind_ns: 0,
            edge_ns: 0,
        };
        let wait = |until| clock::sleep_until_monotonic_ns(until).map_err(|e| e.to_string());
        std::thread::scope(|scope| {
            let client = scope.spawn(|| client.run(timetable, Beside::default(), wait).unwrap());
            let server = server.run(timetable, Beside::default(), wait).unwrap();
            [client.join().unwrap(), server]
        })
    }

    #[test]
    fn bytes_messages_and_losses_are_counted_at_both_ends() {
        for (flows, cpus) in [(1, &[][..]), (3, &[0][..])] {
            let [client, server] = carried(flows, cpus);
            let (sent, received) = (client.sent, server.received);
            // Bytes and messages of a call are stored one after the other: an edge may lie between them, in each flow.
            let calls = u64::from(flows) * 2 * u64::from(MAX_DATAGRAM);
            for counted in [sent, received] {
                assert!(counted.messages > 100, "{flows} flows: {counted:?}");
                let apart = counted.bytes.abs_diff(counted.messages * 1200);
                assert!(apart <= calls, "{flows} flows: {counted:?}");
            }
        }
    }
}
