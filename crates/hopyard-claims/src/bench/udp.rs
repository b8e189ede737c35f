//! UDP sockets in namespaces.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::Duration;

use hopyard_net::Handle;

use super::{Result, socket};

/// Any address of the namespace at this port; 0: one that the kernel chooses.
fn bound(at: &Handle, port: u16) -> Result<UdpSocket> {
    let bound = at
        .ns()
        .run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)))?;
    bound.map_err(socket("open a UDP socket in a namespace"))
}

/// A socket that waits for each datagram for so long.
pub(super) fn receiver(at: &Handle, port: u16, patience: Duration) -> Result<UdpSocket> {
    let receiver = bound(at, port)?;
    receiver
        .set_read_timeout(Some(patience))
        .map_err(socket("set how long a socket waits"))?;
    Ok(receiver)
}

/// The socket of a flow to an address.
pub(super) fn sender(at: &Handle, to: (IpAddr, u16)) -> Result<UdpSocket> {
    let sender = bound(at, 0)?;
    sender.connect(to).map_err(socket("connect a UDP socket"))?;
    Ok(sender)
}
