//! `unix` and `unix-seqpacket`: Unix sockets in a directory that both ends see. No packets, and no devices.

use super::{Echo, Path};
use crate::load::Sockets;
use crate::model::Peer;
use crate::topology::{Addresses, role};
use crate::{Builder, Endpoint, Result, Topology};

pub(super) static STREAM: Path = Path {
    name: "unix",
    summary: "Unix stream sockets in a directory of the host, in place of TCP; no devices, no packets",
    ..path(Sockets::UnixStream)
};

pub(super) static SEQPACKET: Path = Path {
    name: "unix-seqpacket",
    summary: "the same with sockets that keep messages apart (SOCK_SEQPACKET)",
    ..path(Sockets::UnixSeqpacket)
};

/// What both have in common.
const fn path(sockets: Sockets) -> Path {
    Path {
        peers: &[Peer::Local, Peer::Host],
        filter_sees: &[],
        rules_instead: |_| "permissions of the sockets' files",
        mtu_owner: "nobody: there are no packets",
        sockets,
        echo: |_| Echo::None,
        // Programs have to be written for it.
        by_name_only: true,
        ..Path::new(build)
    }
}

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    let server = match peer {
        Peer::Host => role::HUB,
        _ => role::B,
    };
    lab.make_spaces(&[role::A, server])?;
    lab.socket_directory()?;
    let end = |role| Endpoint::new(role, "", Addresses::LOOPBACK);
    Ok(Topology::pair(end(role::A), end(server), Vec::new()))
}
