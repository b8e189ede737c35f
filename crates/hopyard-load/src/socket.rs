//! Data sockets, opened as a load asks: options before `listen` and `connect`, read back after.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use hopyard_net::{clock, datagrams, mptcp};
use nix::sys::socket::{getsockopt, sockopt};
use socket2::{Domain, SockRef, Socket};

use super::greeting::{self, Greeted};
use super::sockets::{Place, SocketFile, Sockets, Target, bind};
use super::spec::LoadSpec;

/// After this the client of `udp_rr` takes a datagram for lost.
pub const DATAGRAM_PATIENCE: Duration = Duration::from_millis(250);
/// Receive buffer of numbered datagrams where none is asked for: the receiver is an instrument, and is to sit out a
/// pause of some ms.
const GATHERER_BUFFER_BYTES: usize = 16 * 1024 * 1024;

/// Sets a data socket for messages of so many bytes; an error says which option the kernel does not have.
pub(crate) type SetSocket = fn(&Socket, u32) -> io::Result<()>;

/// When a connection was opened, `CLOCK_MONOTONIC`, ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opened {
    /// Before the SYN.
    pub(crate) syn_ns: u64,
    /// When the program heard that it is established.
    pub(crate) established_ns: u64,
}

/// Connects a socket to the server, for as long as TCP tries, and says how long that took.
///
/// # Errors
/// As `connect(2)`; the socket was shut down meanwhile.
pub(crate) fn connect(socket: impl AsFd, server: &Target) -> io::Result<Opened> {
    let syn_ns = clock::monotonic_ns();
    SockRef::from(&socket).connect(&server.address)?;
    Ok(Opened {
        syn_ns,
        established_ns: clock::monotonic_ns(),
    })
}

/// How the sockets of a load are set.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    sockets: Sockets,
    set: SetSocket,
    message_size: u32,
    tcp: bool,
    numbered: bool,
    no_delay: bool,
    buffer: Option<u32>,
    send_buffer: Option<u32>,
    congestion: Option<String>,
    mptcp: bool,
}

impl Settings {
    pub(crate) fn of(spec: &LoadSpec, set: SetSocket) -> Self {
        Self {
            sockets: spec.sockets,
            set,
            message_size: spec.message_size,
            tcp: spec.kind.is_tcp(),
            numbered: spec.kind.is_numbered(),
            no_delay: spec.sockets == Sockets::Internet
                && spec.kind.is_tcp()
                && !spec.kind.is_stream(),
            buffer: spec.socket_buffer,
            send_buffer: spec.send_buffer,
            congestion: spec.congestion.clone(),
            mptcp: spec.mptcp,
        }
    }

    fn open(&self, domain: Domain) -> io::Result<Socket> {
        let socket = self
            .sockets
            .open(domain, self.tcp, self.mptcp)
            .map_err(|e| self.explain(e))?;
        if let Some(bytes) = self.buffer {
            datagrams::receive_buffer(&socket, bytes as usize)?;
            has_room(socket.recv_buffer_size()?, bytes, "net.core.rmem_max")?;
        }
        if let Some(bytes) = self.send_buffer.or(self.buffer) {
            datagrams::send_buffer(&socket, bytes as usize)?;
            has_room(socket.send_buffer_size()?, bytes, "net.core.wmem_max")?;
        }
        if self.no_delay {
            socket.set_tcp_nodelay(true)?;
        }
        if let Some(congestion) = &self.congestion {
            set_congestion(&socket, congestion)?;
        }
        (self.set)(&socket, self.message_size)?;
        Ok(socket)
    }

    /// A bound socket, listening where the load has connections, with its port, and its file where it is one of a directory;
    /// `last` is the port of the one before.
    ///
    /// # Errors
    /// The place is not this end's own, or no port is free.
    pub(crate) fn listen(
        &self,
        place: &Place,
        last: u16,
    ) -> io::Result<(Socket, u16, Option<SocketFile>)> {
        let socket = self.open(place.domain())?;
        let (port, file) = bind(&socket, place, last)?;
        if self.tcp {
            socket.listen(4096)?;
        }
        if self.numbered {
            datagrams::stamp_arrivals(&socket)?;
            if self.buffer.is_none() {
                datagrams::receive_buffer(&socket, GATHERER_BUFFER_BYTES)?;
            }
        }
        Ok((socket, port, file))
    }

    /// A socket that is to be connected to the server.
    ///
    /// # Errors
    /// As `socket(2)`.
    pub(crate) fn open_to(&self, server: &Target) -> io::Result<Socket> {
        self.open(server.address.domain())
    }

    /// A socket that does not block, on its way to the server, and when its SYN went.
    ///
    /// # Errors
    /// As `socket(2)` and `connect(2)`.
    pub(crate) fn begin_connecting(&self, server: &Target) -> io::Result<(Socket, u64)> {
        let socket = self.open(server.address.domain())?;
        socket.set_nonblocking(true)?;
        let syn_ns = clock::monotonic_ns();
        match socket.connect(&server.address) {
            Ok(()) => {}
            Err(e) if e.raw_os_error() == Some(nix::libc::EINPROGRESS) => {}
            Err(e) => return Err(e),
        }
        Ok((socket, syn_ns))
    }

    /// Time from sending the first datagram of a fresh socket to its answer, ns; `None` where there was none.
    ///
    /// # Errors
    /// As `socket(2)`, `connect(2)`, `send(2)` and `recv(2)`.
    pub(crate) fn first_exchange(&self, server: &Target) -> io::Result<Option<u64>> {
        let socket = self.open(server.address.domain())?;
        socket.connect(&server.address)?;
        socket.set_read_timeout(Some(DATAGRAM_PATIENCE))?;
        greeting::first_exchange(&socket)
    }

    /// A standing flow to the server: a TCP connection, or a datagram socket that was answered; and its number, where
    /// the server gives it one.
    ///
    /// # Errors
    /// Nobody answers within `patience`, or the congestion control is not the one asked for.
    pub(crate) fn connect_flow(
        &self,
        server: &Target,
        patience: Duration,
    ) -> Result<(OwnedFd, Option<u32>), String> {
        let to = format!("connect to {server}");
        let socket = self
            .open(server.address.domain())
            .map_err(|e| format!("cannot {to}: {e}"))?;
        socket
            .connect_timeout(&server.address, patience)
            .map_err(|e| format!("cannot {to} within {} ms: {e}", patience.as_millis()))?;
        let mut number = None;
        if self.tcp {
            self.require(&socket)?;
        } else {
            number = greeting::greet(&socket, patience)
                .map_err(|e| format!("no answer to datagrams from {server}: {e}"))?;
            socket
                .set_read_timeout(Some(DATAGRAM_PATIENCE))
                .map_err(|e| format!("cannot set a receive time-out: {e}"))?;
        }
        Ok((socket.into(), number))
    }

    /// The server's ends of the standing flows of a thread: accepts each, or waits for the greetings and answers them.
    ///
    /// # Errors
    /// A socket was shut down, or failed, before a client came.
    pub(crate) fn accept_flows(
        &self,
        listeners: &[&Socket],
    ) -> Result<Vec<(OwnedFd, Greeted)>, String> {
        if self.tcp {
            let accepted = listeners.iter().map(|listener| self.accept(listener));
            return accepted.collect();
        }
        let greeted =
            Greeted::by_each(listeners).map_err(|e| format!("cannot take a datagram flow: {e}"))?;
        let copy = |socket: &Socket| {
            socket
                .try_clone()
                .map_err(|e| format!("cannot copy a socket: {e}"))
        };
        listeners
            .iter()
            .zip(greeted)
            .map(|(listener, greeted)| Ok((copy(listener)?.into(), greeted)))
            .collect()
    }

    /// The next connection.
    fn accept(&self, listener: &Socket) -> Result<(OwnedFd, Greeted), String> {
        let (socket, _) = listener
            .accept()
            .map_err(|e| format!("cannot accept: {e}"))?;
        if self.no_delay {
            socket
                .set_tcp_nodelay(true)
                .map_err(|e| format!("cannot set TCP_NODELAY: {e}"))?;
        }
        self.require(&socket)?;
        Ok((socket.into(), Greeted::default()))
    }

    /// The server's end of so many flows of numbered datagrams: answers the greeting of each with its number.
    ///
    /// # Errors
    /// The socket was shut down, or failed, before all clients came.
    pub(crate) fn gather_flows(
        &self,
        socket: &Socket,
        flows: u32,
    ) -> Result<(OwnedFd, Greeted), String> {
        let greeted = Greeted::by_several(socket, flows)
            .map_err(|e| format!("cannot take {flows} datagram flows: {e}"))?;
        let socket = socket
            .try_clone()
            .map_err(|e| format!("cannot copy a socket: {e}"))?;
        Ok((socket.into(), greeted))
    }

    /// Reads back what the kernel may have fallen back from without a word.
    fn require(&self, socket: &impl AsFd) -> Result<(), String> {
        self.require_congestion(socket)?;
        if !self.mptcp {
            return Ok(());
        }
        match mptcp::is_multipath(socket.as_fd()) {
            Ok(true) => Ok(()),
            Ok(false) => Err("the connection fell back to plain TCP, and mptcp=on was asked for: both ends need \
                              net.mptcp.enabled=1, and nothing between them may take TCP options away"
                .to_owned()),
            Err(e) => Err(format!("cannot read whether the connection is Multipath TCP: {e}")),
        }
    }

    /// Says what a kernel lacks that has no socket of this protocol.
    fn explain(&self, error: io::Error) -> io::Error {
        let lacks = matches!(
            error.raw_os_error(),
            Some(nix::libc::EPROTONOSUPPORT | nix::libc::ENOPROTOOPT)
        );
        if !(self.mptcp && lacks) {
            return error;
        }
        let why = format!(
            "no Multipath TCP ({error}); it needs CONFIG_MPTCP (Linux 5.6) and net.mptcp.enabled=1"
        );
        io::Error::new(error.kind(), why)
    }

    /// The congestion control.
    fn require_congestion(&self, socket: &impl AsFd) -> Result<(), String> {
        let Some(wanted) = &self.congestion else {
            return Ok(());
        };
        let got = getsockopt(socket, sockopt::TcpCongestion)
            .map_err(|e| format!("cannot read the congestion control back: {e}"))?;
        let got = got.to_string_lossy();
        let got = got.trim_end_matches('\0');
        if got == wanted {
            Ok(())
        } else {
            Err(format!("congestion control is `{got}`, not `{wanted}`"))
        }
    }
}

/// Checks that a buffer has the size asked for. The kernel doubles it for its own bookkeeping, and cuts what is beyond its limit without
/// saying so.
fn has_room(doubled: usize, asked: u32, limit: &str) -> io::Result<()> {
    if doubled / 2 >= asked as usize {
        return Ok(());
    }
    let why = format!(
        "cannot have a socket buffer of {asked} bytes: the kernel gave {}; raise {limit}, or run with CAP_NET_ADMIN",
        doubled / 2
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// By socket, not by sysctl: a new namespace may only choose among the host's *allowed* algorithms.
/// Accepted connections take it over from their listener.
fn set_congestion(socket: &Socket, wanted: &str) -> io::Result<()> {
    nix::sys::socket::setsockopt(socket, sockopt::TcpCongestion, &wanted.into()).map_err(|e| {
        // Without CAP_NET_ADMIN, as in a container, it is what the machine allows to everybody.
        let list = match e {
            nix::errno::Errno::EPERM => "without CAP_NET_ADMIN it is one of net.ipv4.tcp_allowed_congestion_control: --set congestion=reno",
            _ => "net.ipv4.tcp_available_congestion_control lists what there is",
        };
        let why = format!("cannot use congestion control `{wanted}` ({e}); {list}");
        io::Error::new(io::Error::from(e).kind(), why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_was_cut_is_refused() {
        has_room(2 * 65_536, 65_536, "net.core.rmem_max").unwrap();
        let cut = has_room(425_984, 1 << 20, "net.core.rmem_max").unwrap_err();
        assert_eq!(
            cut.to_string(),
            "cannot have a socket buffer of 1048576 bytes: the kernel gave 212992; raise net.core.rmem_max, or run with CAP_NET_ADMIN"
        );
    }

    #[test]
    fn a_buffer_has_the_size_that_was_asked_for() {
        let socket = Socket::new(Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
        for bytes in [4096, 1 << 20, 64 << 20] {
            datagrams::receive_buffer(&socket, bytes as usize).unwrap();
            has_room(socket.recv_buffer_size().unwrap(), bytes, "").unwrap();
            datagrams::send_buffer(&socket, bytes as usize).unwrap();
            has_room(socket.send_buffer_size().unwrap(), bytes, "").unwrap();
        }
    }
}
