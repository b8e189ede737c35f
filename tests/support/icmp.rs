//! ICMP echo from a namespace, without a program.

use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hopyard_net::NetNs;
use socket2::{Domain, Protocol, Socket, Type};

/// Tells one's own answers from others'.
static NEXT: AtomicU16 = AtomicU16::new(1);

/// Sends echo requests (RFC 792, RFC 4443) until one is answered.
pub(crate) fn ping(from: &NetNs, to: IpAddr) -> Result<Duration, String> {
    ping_within(from, to, Duration::from_secs(5))
}

pub(crate) fn ping_within(
    from: &NetNs,
    to: IpAddr,
    patience: Duration,
) -> Result<Duration, String> {
    /// Between two requests.
    const AGAIN: Duration = Duration::from_millis(300);
    let (domain, protocol, request, reply) = match to {
        IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4, 8, 0),
        IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6, 128, 129),
    };
    let open = || {
        let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
        socket.connect(&SocketAddr::new(to, 0).into())?;
        socket.set_read_timeout(Some(AGAIN))?;
        Ok::<_, std::io::Error>(socket)
    };
    let socket = from
        .run(open)
        .map_err(|e| e.to_string())?
        .map_err(|e| format!("cannot open an ICMP socket to {to}: {e}"))?;
    let id = NEXT.fetch_add(1, Relaxed).to_be_bytes();
    let began = Instant::now();
    while began.elapsed() < patience {
        let sent = Instant::now();
        // A refusal may be a passing one, like a neighbour that did not answer in time.
        let _ = socket.send(&echo(request, id));
        while sent.elapsed() < AGAIN {
            let mut buffer = [0; 256];
            let Ok(length) = (&socket).read(&mut buffer) else {
                break;
            };
            // An IPv4 raw socket gives the IP header too; its length is in words.
            let skip = if to.is_ipv4() {
                usize::from(buffer[0] & 0xf) * 4
            } else {
                0
            };
            let message = &buffer[skip.min(length)..length];
            if message.len() >= 8 && message[0] == reply && message[4..6] == id {
                return Ok(sent.elapsed());
            }
        }
    }
    Err(format!("no echo reply from {to} within {patience:?}"))
}

fn echo(kind: u8, id: [u8; 2]) -> [u8; 16] {
    let mut message = [0; 16];
    message[0] = kind;
    message[4..6].copy_from_slice(&id);
    message[8..].copy_from_slice(b"hopyard!");
    // The kernel fills in the checksum of ICMPv6 by itself; it does no harm there.
    let sum: u32 = message
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !u16::try_from(folded & 0xffff).unwrap_or(0);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    message
}
