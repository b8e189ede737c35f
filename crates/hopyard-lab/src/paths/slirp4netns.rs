//! `slirp4netns`: what connected rootless containers before pasta: a tap, and a TCP/IP stack in user space (libslirp).

use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::Command;

use super::user_mode::by_program;
use super::{Echo, Need, Path};
use crate::daemon::{Home, Program, Ready};
use crate::model::Family;
use crate::topology::Addresses;
use crate::usermode::{self, CLIENT_NETNS, Place, UserMode};

const PROGRAM: Program = Program {
    name: "slirp4netns",
    called: "slirp4netns",
    remedy: "repair package `slirp4netns`",
};
/// Where its directories are.
pub(crate) static HOME: Home = Home::new(PROGRAM.name, "/run/hopyard-slirp4netns", &[PROGRAM.name]);
/// slirp4netns, and taps for it.
const NEED: Need = Need {
    carried: usermode::carried(&[PROGRAM.name]),
    ..Need::new(PROGRAM.name, |name| usermode::probe(name, name))
};

pub(super) static SLIRP4NETNS: Path = Path {
    name: PROGRAM.name,
    summary: "a tap, and a TCP/IP stack in user space that speaks by sockets of the hub, as for rootless containers",
    needs: &[Need::VETH, NEED],
    echo,
    ..by_program(|lab, peer| lab.user_mode(&mode(), peer, command))
};

/// libslirp answers echo requests over IPv6 for its own addresses alone.
fn echo(family: Family) -> Echo {
    match family {
        Family::V4 => Echo::ToServer,
        Family::V6 => Echo::None,
    }
}

/// Its own network, where the IPv6 one is fixed: client 100, router 2.
fn mode() -> UserMode {
    let in_its_network = |v4, v6| Addresses {
        v4: Ipv4Addr::new(10, 0, 2, v4),
        v6: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, v6),
    };
    UserMode {
        program: &PROGRAM,
        home: &HOME,
        tap: "tap0",
        most_mtu: 65521,
        client: in_its_network(100, 0x100),
        router: in_its_network(2, 2),
    }
}

fn command(of: &UserMode, place: &Place) -> (Command, Ready) {
    let socket = place.directory.join("api");
    let mut slirp = Command::new(PROGRAM.name);
    // As podman runs it; the sandbox and the filter of system calls are part of what it costs.
    slirp.args(["--disable-host-loopback", "--enable-ipv6"]);
    slirp.args(["--enable-sandbox", "--enable-seccomp", "--disable-dns"]);
    slirp.args(["--mtu", &place.mtu.to_string()]);
    slirp.arg("--api-socket").arg(&socket);
    slirp.args(["--netns-type", "path", CLIENT_NETNS, of.tap]);
    (slirp, Ready::Socket(socket))
}
