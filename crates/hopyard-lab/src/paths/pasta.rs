//! `pasta`: what connects rootless containers of podman 5: a tap, and a program that maps its connections to sockets.

use std::process::Command;

use super::user_mode::by_program;
use super::{Echo, Need, Path};
use crate::Subnet;
use crate::daemon::{Home, Program, Ready};
use crate::topology::host;
use crate::usermode::{self, CLIENT_NETNS, Place, UserMode};
use crate::wire::UPLINK;

const PROGRAM: Program = Program {
    name: "pasta",
    called: "pasta",
    remedy: "repair package `passt`",
};
/// Where its directories are. Its file is `passt`, or a build of it for newer CPUs.
pub(crate) static HOME: Home = Home::new(PROGRAM.name, "/run/hopyard-pasta", &["passt", "pasta"]);
/// pasta, and taps for it.
const NEED: Need = Need {
    carried: usermode::carried(&[PROGRAM.name]),
    ..Need::new(PROGRAM.name, |name| usermode::probe(name, "passt"))
};

pub(super) static PASTA: Path = Path {
    name: PROGRAM.name,
    summary: "a tap, whose connections pasta maps to sockets of the hub, as for rootless containers",
    needs: &[Need::VETH, NEED],
    echo: |_| Echo::ToServer,
    ..by_program(|lab, peer| lab.user_mode(&mode(), peer, command))
};

fn mode() -> UserMode {
    UserMode {
        program: &PROGRAM,
        home: &HOME,
        tap: "pasta0",
        // The longest IPv4 packet in whole words, without the frame's header; pasta's own default too.
        most_mtu: 65520,
        client: Subnet::SIDE_A.host(host::A),
        router: Subnet::SIDE_A.host(host::HUB),
    }
}

fn command(of: &UserMode, place: &Place) -> (Command, Ready) {
    let pid = place.directory.join("pid");
    let mut pasta = Command::new(PROGRAM.name);
    // It would become `nobody`, who may not enter the client's namespace; in a container engine it keeps its user.
    pasta.args(["--foreground", "--quiet", "--runas", "0", "--no-map-gw"]);
    // The lab has no DHCP client and asks for no router.
    pasta.args(["--no-dhcp", "--no-dhcpv6", "--no-ra"]);
    // Connections from outside have no ports to go to.
    for ports in ["-t", "-u", "-T", "-U"] {
        pasta.args([ports, "none"]);
    }
    for (option, own) in [("-a", of.client), ("-g", of.router)] {
        pasta.args([option, &own.v4.to_string(), option, &own.v6.to_string()]);
    }
    pasta.args(["-n", &Subnet::V4_PREFIX.to_string(), "-i", UPLINK]);
    pasta.args(["-I", of.tap, "-m", &place.mtu.to_string()]);
    pasta.arg("--pid").arg(&pid);
    // Its file does not go away: the program ends with the lab.
    pasta.args(["--netns", CLIENT_NETNS, "--no-netns-quit"]);
    // Written when all is set up.
    (pasta, Ready::File(pid))
}
