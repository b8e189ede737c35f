//! `unix` and `unix-seqpacket`: Unix sockets in a directory that both ends see. No packets, and no devices.

use super::{Echo, Need, Path};
use crate::load::Sockets;
use crate::model::{Axes, Family, Peer};
use crate::topology::{Addresses, role};
use crate::{Builder, Endpoint, Result, Topology};

pub(super) static STREAM: Unix = Unix {
    name: "unix",
    summary: "Unix stream sockets in a directory of the host, in place of TCP; no devices, no packets",
    sockets: Sockets::UnixStream,
};

pub(super) static SEQPACKET: Unix = Unix {
    name: "unix-seqpacket",
    summary: "the same with sockets that keep messages apart (SOCK_SEQPACKET)",
    sockets: Sockets::UnixSeqpacket,
};

pub(super) struct Unix {
    name: &'static str,
    summary: &'static str,
    sockets: Sockets,
}

impl Path for Unix {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn peers(&self) -> &'static [Peer] {
        &[Peer::Local, Peer::Host]
    }

    fn mtu_owner(&self) -> &'static str {
        "nobody: there are no packets"
    }

    fn needs(&self) -> &'static [Need] {
        &[]
    }

    fn filter_sees(&self, _: Peer) -> bool {
        false
    }

    fn rules_instead(&self, _: Peer) -> &'static str {
        "permissions of the sockets' files"
    }

    fn is_unprivileged(&self, peer: Peer, _: &Axes) -> bool {
        peer == Peer::Local
    }

    fn sockets(&self) -> Sockets {
        self.sockets
    }

    fn echo(&self, _: Family) -> Echo {
        Echo::None
    }

    /// Programs have to be written for it.
    fn by_name_only(&self) -> bool {
        true
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        let server = match peer {
            Peer::Host => role::HUB,
            _ => role::B,
        };
        lab.make_spaces(&[role::A, server])?;
        lab.socket_directory()?;
        let end = |role| Endpoint::new(role, "", Addresses::LOOPBACK);
        Ok(Topology {
            client: end(role::A),
            server: end(server),
            way: Vec::new(),
            containers: Vec::new(),
            spliced_at: None,
        })
    }
}
