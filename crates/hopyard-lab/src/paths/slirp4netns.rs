//! `slirp4netns`: what connected rootless containers before pasta: a tap, and a TCP/IP stack in user space (libslirp).

use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::Command;

use super::{Echo, Need, Path};
use crate::daemon::{Home, Program, Ready};
use crate::model::{Axes, Family, Peer};
use crate::topology::Addresses;
use crate::usermode::{self, CLIENT_NETNS, UserMode};
use crate::{Builder, Result, Topology};

const SLIRP4NETNS: Program = Program {
    name: "slirp4netns",
    called: "slirp4netns",
    remedy: "repair package `slirp4netns`",
};
/// Where its directories are.
pub(crate) static HOME: Home = Home::new(
    SLIRP4NETNS.name,
    "/run/hopyard-slirp4netns",
    &[SLIRP4NETNS.name],
);
/// slirp4netns, and taps for it.
const NEED: Need = Need {
    carried: usermode::carried(&[SLIRP4NETNS.name]),
    ..Need::new(SLIRP4NETNS.name, |name| usermode::probe(name, name))
};
/// Its own network, where the IPv6 one is fixed: client 100, router 2.
const USER_MODE: UserMode = UserMode {
    program: &SLIRP4NETNS,
    home: &HOME,
    tap: "tap0",
    most_mtu: 65521,
    client: in_its_network(100, 0x100),
    router: in_its_network(2, 2),
};

const fn in_its_network(v4: u8, v6: u16) -> Addresses {
    Addresses {
        v4: Ipv4Addr::new(10, 0, 2, v4),
        v6: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, v6),
    }
}

pub(super) struct Slirp4netns;

impl Path for Slirp4netns {
    fn name(&self) -> &'static str {
        SLIRP4NETNS.name
    }

    fn summary(&self) -> &'static str {
        "a tap, and a TCP/IP stack in user space that speaks by sockets of the hub, as for rootless containers"
    }

    fn peers(&self) -> &'static [Peer] {
        &[Peer::Far, Peer::Host]
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::VETH, NEED]
    }

    /// They see the program's packets, from the host's own address.
    fn filter_sees(&self, _: Peer) -> bool {
        false
    }

    fn rules_instead(&self, _: Peer) -> &'static str {
        "the host, as packets of its own address"
    }

    /// It is made for that.
    fn is_unprivileged(&self, peer: Peer, _: &Axes) -> bool {
        self.peers().contains(&peer)
    }

    /// libslirp answers echo requests over IPv6 for its own addresses alone.
    fn echo(&self, family: Family) -> Echo {
        match family {
            Family::V4 => Echo::ToServer,
            Family::V6 => Echo::None,
        }
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        lab.user_mode(&USER_MODE, peer, |place| {
            let socket = place.directory.join("api");
            let mut slirp = Command::new(SLIRP4NETNS.name);
            // As podman runs it; the sandbox and the filter of system calls are part of what it costs.
            slirp.args(["--disable-host-loopback", "--enable-ipv6"]);
            slirp.args(["--enable-sandbox", "--enable-seccomp", "--disable-dns"]);
            slirp.args(["--mtu", &place.mtu.to_string()]);
            slirp.arg("--api-socket").arg(&socket);
            slirp.args(["--netns-type", "path", CLIENT_NETNS, USER_MODE.tap]);
            (slirp, Ready::Socket(socket))
        })
    }
}
