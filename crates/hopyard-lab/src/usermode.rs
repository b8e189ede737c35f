//! User-mode networking: a program in the hub holds the other end of the client's tap. It ends the client's connections and makes
//! its own to the server, with plain sockets, as the rootless container engines have it.
//!
//! No device of the hub sees the client's frames, and the server sees the hub's address. The tap counts what the client sends, and
//! the devices behind the program's sockets count what the program sends on: as many bytes, in other packets.

use std::fs;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::daemon::{Home, PATIENCE, Program, Ready, Service};
use super::guest::Carried;
use super::part::Part;
use super::topology::{Addresses, Endpoint, Topology, host, role};
use super::wire::UPLINK;
use super::{Builder, Error, Result, Subnet};
use crate::model::{Datapath, DatapathKind, Hop, OffloadFlag, Peer};
use crate::programs::in_path;
use crate::tap::probe_taps;

/// A program of this kind.
pub(super) struct UserMode {
    pub(super) program: &'static Program,
    pub(super) home: &'static Home,
    /// Name of the client's tap.
    pub(super) tap: &'static str,
    /// Largest MTU that the program takes, bytes.
    pub(super) most_mtu: u32,
    /// The client's addresses, and those of the router that the program plays.
    pub(super) client: Addresses,
    pub(super) router: Addresses,
}

/// The file by which the program opens the client's namespace, which is its standard input: it has no right to look into the
/// files of hopyard's process.
pub(super) const CLIENT_NETNS: &str = "/proc/self/fd/0";

/// What the program is told about its lab.
pub(super) struct Place {
    pub(super) directory: PathBuf,
    pub(super) mtu: u32,
}

/// What a machine has to carry for a program of this name.
pub(super) const fn carried(programs: &'static [&'static str]) -> Carried {
    Carried {
        programs,
        ..Carried::modules(&["tun"])
    }
}

/// Can this host run it? `package` provides it on Debian and Ubuntu.
pub(super) fn probe(name: &str, package: &str) -> hopyard_net::Result<()> {
    probe_taps()?;
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    if is_initial(&mounts) {
        return Err(unsupported(
            format!("run {name}"),
            "pivot_root".to_owned(),
            "the program's sandbox exchanges the root file system, which a guest of `--kernel` cannot: measure this path \
             outside of guests".to_owned(),
        ));
    }
    in_path(name).map(drop).ok_or_else(|| {
        unsupported(
            format!("run {name}"),
            name.to_owned(),
            format!(
                "there is no such program in PATH: install package `{package}` (Debian, Ubuntu)"
            ),
        )
    })
}

/// Is `/` still the kernel's initial file system, which nothing can take the place of?
fn is_initial(mounts: &str) -> bool {
    let fields = mounts.lines().map(|line| line.split(' ').skip(1));
    let mut roots =
        fields.filter_map(|mut fields| (fields.next()? == "/").then(|| fields.next())?);
    // What is mounted later covers what was there.
    roots.next_back() == Some("rootfs")
}

fn unsupported(what: String, feature: String, remedy: String) -> hopyard_net::Error {
    hopyard_net::Error::Unsupported {
        what,
        feature,
        remedy,
    }
}

/// The version that a program prints; nothing where it does not know its own, as some packages do not.
pub(super) fn version(program: &str) -> String {
    let output = Command::new(program).arg("--version").output();
    let said = output.map(|output| output.stdout).unwrap_or_default();
    version_in(&String::from_utf8_lossy(&said))
}

fn version_in(said: &str) -> String {
    let mut words = said.lines().next().unwrap_or_default().split_whitespace();
    let version = words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    version.unwrap_or_default().to_owned()
}

impl Builder {
    /// The client behind such a program in the hub, and the server: the hub itself or the far end of the wire. `command` makes the
    /// program's command and says when the program is ready.
    ///
    /// # Errors
    /// The MTU is more than the program takes, the program does not start, or the kernel refused.
    pub(super) fn user_mode(
        &mut self,
        of: &UserMode,
        peer: Peer,
        command: fn(&UserMode, &Place) -> (Command, Ready),
    ) -> Result<Topology> {
        let name = of.program.name;
        if self.mtu() > of.most_mtu {
            return Err(Error::Net(unsupported(
                format!("carry an MTU of {}", self.mtu()),
                format!("frames of more than {} bytes in {name}", of.most_mtu),
                format!(
                    "set `mtu` to {} or less, or choose path `veth`",
                    of.most_mtu
                ),
            )));
        }
        let mut way = vec![Hop::tx(role::A, of.tap)];
        let server = self.server_of_the_hub(peer, &mut way)?;
        // Echo requests leave by datagram sockets of ICMP, which the kernel keeps from all groups until told
        // otherwise; systemd opens them to all groups of a host.
        self.space(role::HUB)?
            .set_sysctl("net/ipv4/ping_group_range", "0 0")?;
        self.run_beside_client(of, command)?;
        let client = self
            .client_on_tap(of)
            .map_err(|error| self.death_of_program().unwrap_or(error))?;
        Ok(Topology {
            spliced_at: Some(1),
            ..Topology::pair(client, server, way)
        })
    }

    /// The server, and the way there from sockets in the hub.
    fn server_of_the_hub(&mut self, peer: Peer, way: &mut Vec<Hop>) -> Result<Endpoint> {
        let hub = Subnet::WIRE.host(host::HUB);
        self.wire()?;
        self.address(role::HUB, UPLINK, hub)?;
        // As hosts have it; without one pasta takes the host for one that has no IPv6.
        self.space(role::HUB)?.add_link_local(UPLINK)?;
        if peer == Peer::Far {
            return self.far_end(Subnet::WIRE, way);
        }
        // To its own address a host sends over loopback, whichever device has the address.
        self.loopback(role::HUB)?;
        way.push(Hop::loopback(role::HUB, "lo"));
        Ok(Endpoint::new(role::HUB, "lo", hub))
    }

    /// Starts the program, which makes the client's tap.
    fn run_beside_client(
        &mut self,
        of: &UserMode,
        command: fn(&UserMode, &Place) -> (Command, Ready),
    ) -> Result<()> {
        let netns = self.space(role::A)?.ns().as_fd().try_clone_to_owned();
        let netns = netns.map_err(|source| Error::File {
            what: format!("hand the client's namespace to {}", of.program.name),
            source,
        })?;
        let mtu = self.mtu();
        let datapath = Datapath {
            switch: of.program.name.to_owned(),
            version: version(of.program.name),
            kind: DatapathKind::Userspace,
            hook: None,
        };
        let service = self.service(of.home, datapath)?;
        let place = Place {
            directory: service.directory(),
            mtu,
        };
        let (mut command, ready) = command(of, &place);
        command.stdin(netns);
        service.start(of.program, command, Some(ready))
    }

    /// How the program ended: with it goes its tap, a moment before its end can be told.
    fn death_of_program(&self) -> Option<Error> {
        const MOMENT: Duration = Duration::from_millis(200);
        let deadline = Instant::now() + MOMENT;
        loop {
            let death = self
                .parts::<Service>()
                .find_map(Part::death)
                .map(Error::from);
            if death.is_some() || Instant::now() > deadline {
                return death;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The client's end of the tap, with its addresses and everything sent to the router there.
    fn client_on_tap(&mut self, of: &UserMode) -> Result<Endpoint> {
        let mtu = self.mtu();
        let handle = self.space(role::A)?;
        let deadline = Instant::now() + PATIENCE;
        while handle.link(of.tap).is_err() && Instant::now() < deadline {
            thread::sleep(Duration::from_micros(500));
        }
        handle.set_mtu(of.tap, mtu)?;
        handle.set_up(of.tap)?;
        self.note_device(role::A, of.tap);
        // The program opens its tap without offloads, so they never come into effect.
        self.fix_off(
            role::A,
            of.tap,
            &[OffloadFlag::TxChecksum, OffloadFlag::Tso],
        );
        let client = self.endpoint(role::A, of.tap, of.client)?;
        self.default_route(role::A, of.router)?;
        Ok(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initial_file_system_is_told_from_what_covers_it() {
        let guest = "rootfs / rootfs rw 0 0\nproc /proc proc rw 0 0\n";
        assert!(is_initial(guest));
        assert!(!is_initial(&format!("{guest}/dev/vda / ext4 rw 0 0\n")));
        assert!(!is_initial(
            "overlay / overlay rw 0 0\nrootfs /mnt rootfs rw 0 0\n"
        ));
        assert!(!is_initial(""));
    }

    #[test]
    fn versions_are_those_that_programs_print() {
        assert_eq!(
            version_in("slirp4netns version 1.2.0\ncommit: 656041d\n"),
            "1.2.0"
        );
        assert_eq!(
            version_in("pasta 0.0~git20240814.61c0b0d-1\nCopyright Red Hat\n"),
            "0.0~git20240814.61c0b0d-1"
        );
        assert_eq!(version_in("pasta unknown version\nCopyright 2022\n"), "");
        assert_eq!(version_in(""), "");
    }
}
