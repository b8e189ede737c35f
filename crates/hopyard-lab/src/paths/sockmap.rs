//! `sockmap`: a veth pair whose TCP sockets a program joins: messages go from one socket into the other's queue. It is the shortcut of the
//! direct switch, without the switch.

use super::direct_shortcut::SHORTCUT;
use super::{Need, Path};
use crate::builder::ETH;
use crate::model::{Hop, Peer};
use crate::topology::{host, role};
use crate::{Builder, Result, Subnet, Topology};

pub(super) static SOCKMAP: Path = Path {
    name: "sockmap",
    summary: "a veth pair, and sockmap joins the TCP sockets at its ends: short messages without packets (experimental)",
    peers: &[Peer::Local],
    needs: &[Need::VETH, SHORTCUT],
    rules_instead: |_| "nobody: TCP makes no packets",
    mtu_owner: "the pair; joined sockets have no packets",
    by_name_only: true,
    ..Path::new(build)
};

fn build(lab: &mut Builder, _: Peer) -> Result<Topology> {
    lab.veth((role::A, ETH), (role::B, ETH))?;
    let client = lab.endpoint(role::A, ETH, Subnet::LAN.host(host::A))?;
    let server = lab.endpoint(role::B, ETH, Subnet::LAN.host(host::B))?;
    let [near, far] = lab.join_pair([(role::A, ETH), (role::B, ETH)])?;
    // Frames pass the devices, messages of joined sockets do not; what counts both is first and last.
    let way = vec![near, Hop::any(role::A, ETH), Hop::any(role::B, ETH), far];
    Ok(Topology::pair(client, server, way))
}
