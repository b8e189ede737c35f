//! The first packet of a container, and who answers it.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use hopyard_net::NetNs;
use serde_json::Value;

/// RFC 862.
const ECHO: u16 = 7;
/// Without an answer the next packet follows after so long.
const INTERVAL: Duration = Duration::from_millis(1);
/// A network that has not answered by then does not.
const PATIENCE: Duration = Duration::from_secs(10);

/// The first address of a result of ADD.
pub(crate) fn address(result: &Value) -> Option<IpAddr> {
    let text = result.pointer("/ips/0/address")?.as_str()?;
    let (address, _prefix) = text.split_once('/')?;
    address.parse().ok()
}

/// Answers whatever comes to a namespace, until it is dropped.
pub(crate) struct Answers(UdpSocket);

impl Answers {
    pub(crate) fn start(netns: &NetNs) -> std::io::Result<Self> {
        // One socket for both families; a kernel without IPv6 has the other.
        let bind =
            || UdpSocket::bind((any(true), ECHO)).or_else(|_| UdpSocket::bind((any(false), ECHO)));
        let socket = netns.run(bind).map_err(std::io::Error::other)??;
        let own = socket.try_clone()?;
        thread::spawn(move || {
            let mut room = [0; 64];
            while let Ok((length @ 1.., from)) = own.recv_from(&mut room) {
                let _unsent = own.send_to(&room[..length], from);
            }
        });
        Ok(Self(socket))
    }
}

impl Drop for Answers {
    /// The thread is in the namespaces of the host, which would stay: nothing at all ends it.
    fn drop(&mut self) {
        let own = Ipv4Addr::LOCALHOST;
        let is_six = self.0.local_addr().is_ok_and(|at| at.is_ipv6());
        let own = if is_six {
            own.to_ipv6_mapped().into()
        } else {
            IpAddr::from(own)
        };
        // The loopback device is up for as long as its namespace is there.
        let _sent = self.0.send_to(&[], (own, ECHO));
    }
}

fn any(six: bool) -> IpAddr {
    match six {
        true => Ipv6Addr::UNSPECIFIED.into(),
        false => Ipv4Addr::UNSPECIFIED.into(),
    }
}

/// A socket in a namespace, made before there is any address.
pub(crate) fn socket(netns: &NetNs, six: bool) -> std::io::Result<UdpSocket> {
    let made = netns.run(|| UdpSocket::bind((any(six), 0)));
    let socket = made.map_err(std::io::Error::other)??;
    socket.set_read_timeout(Some(INTERVAL))?;
    Ok(socket)
}

/// Sends until there is an answer.
pub(crate) fn ask(socket: &UdpSocket, peer: IpAddr, nonce: u64) -> Result<(), String> {
    let to = SocketAddr::new(peer, ECHO);
    let began = Instant::now();
    let mut last = None;
    while began.elapsed() < PATIENCE {
        match socket.send_to(&nonce.to_ne_bytes(), to) {
            Ok(_) => {
                if is_answered(socket, nonce)? {
                    return Ok(());
                }
            }
            Err(error) => {
                last = Some(error);
                thread::sleep(INTERVAL);
            }
        }
    }
    let why = last.map_or_else(|| "nothing came back".to_owned(), |error| error.to_string());
    Err(format!(
        "{peer} did not answer within {} s: {why}",
        PATIENCE.as_secs()
    ))
}

/// Waits for the answer; an old one is passed over.
fn is_answered(socket: &UdpSocket, nonce: u64) -> Result<bool, String> {
    let mut room = [0; 64];
    loop {
        match socket.recv(&mut room) {
            Ok(8) if room[..8] == nonce.to_ne_bytes() => return Ok(true),
            Ok(_) => {}
            Err(error) => {
                return match error.kind() {
                    ErrorKind::WouldBlock
                    | ErrorKind::TimedOut
                    | ErrorKind::Interrupted
                    // An earlier packet found no way.
                    | ErrorKind::HostUnreachable
                    | ErrorKind::NetworkUnreachable
                    | ErrorKind::ConnectionRefused => Ok(false),
                    _ => Err(format!("cannot receive: {error}")),
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_address_counts() {
        let result = json!({"ips": [{"address": "10.0.0.2/24"}, {"address": "fd00::2/64"}]});
        assert_eq!(address(&result), Some(IpAddr::from([10, 0, 0, 2])));
        for nothing in [
            json!({}),
            json!({"ips": []}),
            json!({"ips": [{"address": "x"}]}),
        ] {
            assert_eq!(address(&nothing), None);
        }
    }
}
