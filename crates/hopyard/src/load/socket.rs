//! Data sockets, opened as a load asks: options before `listen` and `connect`, read back after.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::sys::socket::{getsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

use super::spec::LoadSpec;

/// After this the client of `udp_rr` takes a datagram for lost.
const DATAGRAM_PATIENCE: Duration = Duration::from_millis(250);
/// Between two greetings of a datagram flow that has not been answered.
const GREETING_EVERY: Duration = Duration::from_millis(50);
/// First datagram of a flow, before any traffic: tells the server whom to talk to.
const GREETING: &[u8] = b"hopyard?";
const ANSWER: &[u8] = b"hopyard!";

/// How the sockets of a load are set.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    tcp: bool,
    no_delay: bool,
    buffer: Option<u32>,
    congestion: Option<String>,
}

impl Settings {
    pub(crate) fn of(spec: &LoadSpec) -> Self {
        Self {
            tcp: spec.kind.is_tcp(),
            no_delay: spec.kind.is_tcp() && !spec.kind.is_stream(),
            buffer: spec.socket_buffer,
            congestion: spec.congestion.clone(),
        }
    }

    fn open(&self, address: IpAddr) -> io::Result<Socket> {
        let domain = if address.is_ipv4() {
            Domain::IPV4
        } else {
            Domain::IPV6
        };
        let (kind, protocol) = if self.tcp {
            (Type::STREAM, Protocol::TCP)
        } else {
            (Type::DGRAM, Protocol::UDP)
        };
        let socket = Socket::new(domain, kind, Some(protocol))?;
        if let Some(bytes) = self.buffer {
            socket.set_send_buffer_size(bytes as usize)?;
            socket.set_recv_buffer_size(bytes as usize)?;
        }
        if self.no_delay {
            socket.set_tcp_nodelay(true)?;
        }
        if let Some(congestion) = &self.congestion {
            set_congestion(&socket, congestion)?;
        }
        Ok(socket)
    }

    /// A bound socket, listening where the load has connections, and its port.
    ///
    /// # Errors
    /// The address is not this end's own, or no port is free.
    pub(crate) fn listen(&self, address: IpAddr) -> io::Result<(Socket, u16)> {
        let socket = self.open(address)?;
        socket.bind(&SocketAddr::new(address, 0).into())?;
        if self.tcp {
            socket.listen(4096)?;
        }
        let port = socket.local_addr()?.as_socket().map_or(0, |a| a.port());
        Ok((socket, port))
    }

    /// A connection to the server, made at once.
    ///
    /// # Errors
    /// As `connect(2)`.
    pub(crate) fn connect(&self, server: SocketAddr) -> io::Result<Socket> {
        let socket = self.open(server.ip())?;
        socket.connect(&server.into())?;
        Ok(socket)
    }

    /// A standing flow to the server: a TCP connection, or a datagram socket that was answered.
    ///
    /// # Errors
    /// Nobody answers within `patience`, or the congestion control is not the one asked for.
    pub(crate) fn connect_flow(
        &self,
        server: SocketAddr,
        patience: Duration,
    ) -> Result<OwnedFd, String> {
        let to = format!("connect to {server}");
        let socket = self
            .open(server.ip())
            .map_err(|e| format!("cannot {to}: {e}"))?;
        socket
            .connect_timeout(&server.into(), patience)
            .map_err(|e| format!("cannot {to} within {} ms: {e}", patience.as_millis()))?;
        if self.tcp {
            self.require_congestion(&socket)?;
        } else {
            greet(&socket, patience)
                .map_err(|e| format!("no answer to datagrams from {server}: {e}"))?;
            socket
                .set_read_timeout(Some(DATAGRAM_PATIENCE))
                .map_err(|e| format!("cannot set a receive time-out: {e}"))?;
        }
        Ok(socket.into())
    }

    /// The server's end of a standing flow: accepts, or waits for the greeting and answers it.
    ///
    /// # Errors
    /// The socket was shut down, or failed, before a client came.
    pub(crate) fn accept_flow(&self, listener: &Socket) -> Result<OwnedFd, String> {
        if self.tcp {
            let (socket, _) = listener
                .accept()
                .map_err(|e| format!("cannot accept: {e}"))?;
            if self.no_delay {
                socket
                    .set_tcp_nodelay(true)
                    .map_err(|e| format!("cannot set TCP_NODELAY: {e}"))?;
            }
            self.require_congestion(&socket)?;
            return Ok(socket.into());
        }
        answer_greeting(listener).map_err(|e| format!("cannot take a datagram flow: {e}"))?;
        let socket = listener
            .try_clone()
            .map_err(|e| format!("cannot copy a socket: {e}"))?;
        Ok(socket.into())
    }

    /// Reads the congestion control back: kernels fall back without a word.
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

/// By socket, not by sysctl: a new namespace may only choose among the host's *allowed* algorithms.
/// Accepted connections take it over from their listener.
fn set_congestion(socket: &Socket, wanted: &str) -> io::Result<()> {
    nix::sys::socket::setsockopt(socket, sockopt::TcpCongestion, &wanted.into()).map_err(|e| {
        let why = format!(
            "cannot use congestion control `{wanted}` ({e}); \
             net.ipv4.tcp_available_congestion_control lists what there is"
        );
        io::Error::new(io::Error::from(e).kind(), why)
    })
}

fn greet(socket: &Socket, patience: Duration) -> io::Result<()> {
    let deadline = Instant::now() + patience;
    socket.set_read_timeout(Some(GREETING_EVERY))?;
    let mut buffer = [0u8; 16];
    while Instant::now() < deadline {
        socket.send(GREETING)?;
        match nix_recv(socket, &mut buffer) {
            Ok(n) if &buffer[..n] == ANSWER => return Ok(()),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        format!("nothing came back for {} ms", patience.as_millis()),
    ))
}

/// Takes the first greeting, answers it and connects to whom it came from. Greetings that were sent
/// again meanwhile are read away.
fn answer_greeting(socket: &Socket) -> io::Result<()> {
    use nix::sys::socket::{MsgFlags, SockaddrStorage, recvfrom};
    use std::os::fd::AsRawFd;

    let mut buffer = [0u8; 16];
    loop {
        let (n, from) = recvfrom::<SockaddrStorage>(socket.as_raw_fd(), &mut buffer)?;
        let Some(from) = from.as_ref().and_then(to_std) else {
            return Err(io::Error::new(
                io::ErrorKind::NotConnected,
                "the socket was shut down",
            ));
        };
        if &buffer[..n] == GREETING {
            socket.connect(&from.into())?;
            break;
        }
    }
    while nix::sys::socket::recv(socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT).is_ok() {}
    socket.send(ANSWER).map(drop)
}

fn to_std(from: &nix::sys::socket::SockaddrStorage) -> Option<SocketAddr> {
    if let Some(v4) = from.as_sockaddr_in() {
        return Some(SocketAddr::new(v4.ip().into(), v4.port()));
    }
    from.as_sockaddr_in6()
        .map(|v6| SocketAddr::new(v6.ip().into(), v6.port()))
}

fn nix_recv(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    use std::os::fd::AsRawFd;
    Ok(nix::sys::socket::recv(
        socket.as_raw_fd(),
        buffer,
        nix::sys::socket::MsgFlags::empty(),
    )?)
}
