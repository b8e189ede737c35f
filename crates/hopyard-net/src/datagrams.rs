//! Datagrams taken many at a time, each with the instant at which the kernel took it in.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;

use nix::sys::socket::{getsockopt, setsockopt, sockopt};

use crate::socket::read_option;

/// Room for the control messages of one datagram: a time stamp takes 32 bytes.
const CONTROL_BYTES: u8 = 64;
/// `struct cmsghdr` on Linux: the length of a word, then level and type.
const CONTROL_HEADER: usize = mem::size_of::<libc::cmsghdr>();
/// Words of `SO_MEMINFO` up to and with `SK_MEMINFO_DROPS` (`include/uapi/linux/sock_diag.h`, Linux 4.12).
const MEMINFO_WORDS: usize = 9;

#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES as usize]);

/// Room for datagrams, made once and used for each call.
pub struct Batch {
    room: Vec<u8>,
    size: usize,
    controls: Vec<Control>,
    // The headers point at the vectors, and both into the two above, which never grow.
    _vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    filled: usize,
}

/// One datagram of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Its payload, cut to the room there was.
    pub payload: &'a [u8],
    /// When the kernel took it in, `CLOCK_REALTIME`, ns; where [`stamp_arrivals`] was asked for.
    pub arrived_ns: Option<u64>,
}

impl Batch {
    /// Room for so many datagrams of up to `size` bytes.
    #[must_use]
    pub fn new(datagrams: usize, size: usize) -> Self {
        let mut room = vec![0; datagrams * size.max(1)];
        let mut controls = vec![Control([0; CONTROL_BYTES as usize]); datagrams];
        let mut vectors: Vec<libc::iovec> = room
            .chunks_exact_mut(size.max(1))
            .map(|chunk| libc::iovec {
                iov_base: chunk.as_mut_ptr().cast(),
                iov_len: chunk.len(),
            })
            .collect();
        let headers = vectors
            .iter_mut()
            .zip(&mut controls)
            .map(|(vector, control)| {
                // Set field by field: musl's structure has padding of its own between them.
                // SAFETY: `mmsghdr` is plain data (integers and raw pointers); all zeroes are valid.
                let mut header: libc::mmsghdr = unsafe { mem::zeroed() };
                header.msg_hdr.msg_iov = vector;
                header.msg_hdr.msg_iovlen = 1;
                header.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
                header.msg_hdr.msg_controllen = CONTROL_BYTES.into();
                header
            })
            .collect();
        Self {
            room,
            size: size.max(1),
            controls,
            _vectors: vectors,
            headers,
            filled: 0,
        }
    }

    /// Waits for a datagram and takes those that have come by then (`recvmmsg`, `MSG_WAITFORONE`).
    ///
    /// # Errors
    /// As `recvmmsg(2)`.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        for header in &mut self.headers[..self.filled] {
            // The kernel left here what it used.
            header.msg_hdr.msg_controllen = CONTROL_BYTES.into();
        }
        self.filled = 0;
        let most = u32::try_from(self.headers.len()).unwrap_or(u32::MAX);
        // SAFETY: the `most` headers are valid, and what they point at is owned by `self`, writable for the
        // lengths they give, and lives through the call.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                most,
                libc::MSG_WAITFORONE as _,
                ptr::null_mut(),
            )
        };
        self.filled = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        Ok(())
    }

    /// What the last call took, in the order of the socket's queue.
    pub fn iter(&self) -> impl Iterator<Item = Datagram<'_>> {
        let payloads = self.room.chunks_exact(self.size);
        let taken = self.headers[..self.filled].iter();
        taken
            .zip(payloads)
            .zip(&self.controls)
            .map(|((header, payload), control)| {
                let length = (header.msg_len as usize).min(self.size);
                let used = size(header.msg_hdr.msg_controllen).min(control.0.len());
                Datagram {
                    payload: &payload[..length],
                    arrived_ns: arrived_ns(&control.0[..used]),
                }
            })
    }
}

/// A length as the C library has it: glibc's is a `size_t`, musl's a `socklen_t`.
fn size(length: impl TryInto<usize>) -> usize {
    length.try_into().unwrap_or(usize::MAX)
}

/// The time stamp among control messages.
fn arrived_ns(mut control: &[u8]) -> Option<u64> {
    while control.len() >= CONTROL_HEADER {
        let length = usize::from_ne_bytes(*control.first_chunk()?);
        let kind = &control[CONTROL_HEADER - 8..CONTROL_HEADER];
        let level = i32::from_ne_bytes(*kind.first_chunk()?);
        let kind = i32::from_ne_bytes(*kind.last_chunk()?);
        if level == libc::SOL_SOCKET && kind == libc::SCM_TIMESTAMPNS {
            return timespec_ns(control.get(CONTROL_HEADER..length)?);
        }
        let next = length
            .clamp(CONTROL_HEADER, CONTROL_BYTES.into())
            .next_multiple_of(mem::size_of::<usize>());
        control = control.get(next..)?;
    }
    None
}

/// `struct timespec` of two words.
fn timespec_ns(bytes: &[u8]) -> Option<u64> {
    let (seconds, rest) = bytes.split_at_checked(mem::size_of::<libc::c_long>())?;
    let seconds = libc::c_long::from_ne_bytes(*seconds.first_chunk()?);
    let rest = libc::c_long::from_ne_bytes(*rest.first_chunk()?);
    u64::try_from(seconds)
        .ok()?
        .checked_mul(1_000_000_000)?
        .checked_add(u64::try_from(rest).ok()?)
}

/// Has the kernel stamp every datagram as it takes it in (`SO_TIMESTAMPNS`).
///
/// # Errors
/// It is no socket.
pub fn stamp_arrivals(socket: &impl AsFd) -> io::Result<()> {
    Ok(setsockopt(socket, sockopt::ReceiveTimestampns, &true)?)
}

/// Asks for a receive buffer past the machine's limit where this process may, else up to it.
///
/// # Errors
/// It is no socket.
pub fn receive_buffer(socket: &impl AsFd, bytes: usize) -> io::Result<()> {
    if setsockopt(socket, sockopt::RcvBufForce, &bytes).is_err() {
        setsockopt(socket, sockopt::RcvBuf, &bytes)?;
    }
    Ok(())
}

/// Asks for a send buffer past the machine's limit where this process may, else up to it.
///
/// # Errors
/// It is no socket.
pub fn send_buffer(socket: &impl AsFd, bytes: usize) -> io::Result<()> {
    if setsockopt(socket, sockopt::SndBufForce, &bytes).is_err() {
        setsockopt(socket, sockopt::SndBuf, &bytes)?;
    }
    Ok(())
}

/// Datagrams that a socket had no room for since it was made (`SO_MEMINFO`), modulo 2³².
///
/// # Errors
/// It is no socket, or the kernel is older than 4.12.
pub fn socket_drops(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut bytes = [0; MEMINFO_WORDS * size_of::<u32>()];
    let option = (libc::SOL_SOCKET, libc::SO_MEMINFO);
    if read_option(socket, option, &mut bytes)? < bytes.len() {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this kernel's SO_MEMINFO does not count drops; Linux 4.12 does",
        ));
    }
    let mut drops = [0; size_of::<u32>()];
    drops.copy_from_slice(&bytes[(MEMINFO_WORDS - 1) * size_of::<u32>()..]);
    Ok(u32::from_ne_bytes(drops))
}

/// Largest packet that the path of a connected socket takes, as far as this kernel knows (`IP_MTU`, `IPV6_MTU`), bytes.
///
/// # Errors
/// It is not connected, or no socket of that IP version.
pub fn path_mtu(socket: BorrowedFd<'_>, is_ipv6: bool) -> io::Result<u32> {
    let mtu = if is_ipv6 {
        let mut bytes = [0; size_of::<libc::c_int>()];
        read_option(socket, (libc::IPPROTO_IPV6, libc::IPV6_MTU), &mut bytes)?;
        libc::c_int::from_ne_bytes(bytes)
    } else {
        getsockopt(&socket, sockopt::IpMtu)?
    };
    u32::try_from(mtu).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use std::net::UdpSocket;
    use std::time::{Duration, Instant};

    fn pair() -> (UdpSocket, UdpSocket) {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        (sender, receiver)
    }

    /// Is a datagram stamped as it is taken in? Until the kernel does, reading makes the stamp, here a while later.
    fn is_stamped_on_arrival(sender: &UdpSocket, receiver: &UdpSocket) -> bool {
        sender.send(b"first").unwrap();
        let after = clock::monotonic_ns();
        std::thread::sleep(Duration::from_millis(1));
        let mut batch = Batch::new(1, 8);
        batch.receive(receiver.as_fd()).unwrap();
        let wall = batch.iter().next().unwrap().arrived_ns.unwrap();
        wall.wrapping_add_signed(-clock::realtime_ahead_ns()) < after + 1_000
    }

    #[test]
    fn batches_come_in_order_with_their_times() {
        let (sender, receiver) = pair();
        stamp_arrivals(&receiver).unwrap();
        // The first of a host to ask has it switched on a little later.
        let deadline = Instant::now() + Duration::from_secs(30);
        while !is_stamped_on_arrival(&sender, &receiver) {
            assert!(Instant::now() < deadline, "reading makes the stamp");
        }
        let mut batch = Batch::new(4, 8);
        // Twice and more, since the kernel writes into what it is given.
        for round in 0..5u8 {
            let before = clock::monotonic_ns();
            for number in 0..6u8 {
                sender.send(&[round, number, 0]).unwrap();
            }
            let after = clock::monotonic_ns();
            for (count, first) in [(4, 0), (2, 4)] {
                batch.receive(receiver.as_fd()).unwrap();
                assert_eq!(batch.iter().count(), count);
                for (datagram, number) in batch.iter().zip(first..) {
                    assert_eq!(datagram.payload, [round, number, 0]);
                    let wall = datagram.arrived_ns.unwrap();
                    let arrived = wall.wrapping_add_signed(-clock::realtime_ahead_ns());
                    assert!((before - 1_000..after + 1_000).contains(&arrived));
                }
            }
        }
    }

    #[test]
    fn without_being_asked_there_is_no_time() {
        let (sender, receiver) = pair();
        sender.send(b"0123456789").unwrap();
        let mut batch = Batch::new(1, 4);
        batch.receive(receiver.as_fd()).unwrap();
        let datagram = batch.iter().next().unwrap();
        assert_eq!(
            (datagram.payload, datagram.arrived_ns),
            (&b"0123"[..], None)
        );
    }

    #[test]
    fn a_full_socket_counts_what_it_drops() {
        let (sender, receiver) = pair();
        receive_buffer(&receiver, 4096).unwrap();
        for _ in 0..1000 {
            sender.send(&[0; 1000]).unwrap();
        }
        let drops = socket_drops(receiver.as_fd()).unwrap();
        assert!((900..1000).contains(&drops), "{drops}");
        receiver.set_nonblocking(true).unwrap();
        let mut batch = Batch::new(1000, 1000);
        batch.receive(receiver.as_fd()).unwrap();
        assert_eq!(batch.iter().count(), 1000 - drops as usize);
    }

    #[test]
    fn a_connected_socket_knows_the_mtu_of_its_path() {
        // Loopback has 65,536, and no packet of IPv4 is as long (`IP_MAX_MTU`).
        for (address, is_ipv6, mtu) in [("127.0.0.1:0", false, 65_535), ("[::1]:0", true, 65_536)] {
            let socket = UdpSocket::bind(address).unwrap();
            assert!(path_mtu(socket.as_fd(), is_ipv6).is_err());
            socket.connect(socket.local_addr().unwrap()).unwrap();
            assert_eq!(path_mtu(socket.as_fd(), is_ipv6).unwrap(), mtu);
        }
    }

    #[test]
    fn other_control_messages_are_passed_over() {
        assert_eq!(arrived_ns(&[]), None);
        assert_eq!(arrived_ns(&[0; 64]), None);
        assert_eq!(arrived_ns(&[0xff; 64]), None);
    }
}
