//! `pasta`: what connects rootless containers of podman 5: a tap, and a program that maps its connections to sockets.

use std::process::Command;

use super::{Echo, Need, Path};
use crate::daemon::{Home, Program, Ready};
use crate::model::{Axes, Family, Peer};
use crate::topology::host;
use crate::usermode::{self, CLIENT_NETNS, UserMode};
use crate::wire::UPLINK;
use crate::{Builder, Result, Subnet, Topology};

const PASTA: Program = Program {
    name: "pasta",
    called: "pasta",
    remedy: "repair package `passt`",
};
/// Where its directories are. Its file is `passt`, or a build of it for newer CPUs.
pub(crate) static HOME: Home = Home::new(PASTA.name, "/run/hopyard-pasta", &["passt", "pasta"]);
/// pasta, and taps for it.
const NEED: Need = Need {
    carried: usermode::carried(&[PASTA.name]),
    ..Need::new(PASTA.name, |name| usermode::probe(name, "passt"))
};
/// The client's tap.
const TAP: &str = "pasta0";
/// The longest IPv4 packet in whole words, without the frame's header; pasta's own default too.
const MOST_MTU: u32 = 65520;

pub(super) struct Pasta;

impl Path for Pasta {
    fn name(&self) -> &'static str {
        PASTA.name
    }

    fn summary(&self) -> &'static str {
        "a tap, whose connections pasta maps to sockets of the hub, as for rootless containers"
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

    fn echo(&self, _: Family) -> Echo {
        Echo::ToServer
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        let client = Subnet::SIDE_A.host(host::A);
        let router = Subnet::SIDE_A.host(host::HUB);
        let pasta = UserMode {
            program: &PASTA,
            home: &HOME,
            tap: TAP,
            most_mtu: MOST_MTU,
            client,
            router,
        };
        lab.user_mode(&pasta, peer, |place| {
            let pid = place.directory.join("pid");
            let mut pasta = Command::new(PASTA.name);
            // It would become `nobody`, who may not enter the client's namespace; in a container engine it keeps its user.
            pasta.args(["--foreground", "--quiet", "--runas", "0", "--no-map-gw"]);
            // The lab has no DHCP client and asks for no router.
            pasta.args(["--no-dhcp", "--no-dhcpv6", "--no-ra"]);
            // Connections from outside have no ports to go to.
            for ports in ["-t", "-u", "-T", "-U"] {
                pasta.args([ports, "none"]);
            }
            for (option, own) in [("-a", client), ("-g", router)] {
                pasta.args([option, &own.v4.to_string(), option, &own.v6.to_string()]);
            }
            pasta.args(["-n", &Subnet::V4_PREFIX.to_string(), "-i", UPLINK]);
            pasta.args(["-I", TAP, "-m", &place.mtu.to_string()]);
            pasta.arg("--pid").arg(&pid);
            // Its file does not go away: the program ends with the lab.
            pasta.args(["--netns", CLIENT_NETNS, "--no-netns-quit"]);
            // Written when all is set up.
            (pasta, Ready::File(pid))
        })
    }
}
