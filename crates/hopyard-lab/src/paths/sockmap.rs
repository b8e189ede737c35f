//! `sockmap`: a veth pair whose TCP sockets a program joins: messages go from one socket into the other's queue. It is the shortcut of the
//! direct switch, without the switch.

use super::direct_shortcut::SHORTCUT;
use super::{Need, Path};
use crate::builder::ETH;
use crate::model::{Hop, Peer};
use crate::topology::{host, role};
use crate::{Builder, Result, Subnet, Topology};

pub(super) struct Sockmap;

impl Path for Sockmap {
    fn name(&self) -> &'static str {
        "sockmap"
    }

    fn summary(&self) -> &'static str {
        "a veth pair, and sockmap joins the TCP sockets at its ends: short messages without packets (experimental)"
    }

    fn peers(&self) -> &'static [Peer] {
        &[Peer::Local]
    }

    fn mtu_owner(&self) -> &'static str {
        "the pair; joined sockets have no packets"
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::VETH, SHORTCUT]
    }

    fn by_name_only(&self) -> bool {
        true
    }

    fn rules_instead(&self, _: Peer) -> &'static str {
        "nobody: TCP makes no packets"
    }

    fn build(&self, lab: &mut Builder, _: Peer) -> Result<Topology> {
        lab.veth((role::A, ETH), (role::B, ETH))?;
        let client = lab.endpoint(role::A, ETH, Subnet::LAN.host(host::A))?;
        let server = lab.endpoint(role::B, ETH, Subnet::LAN.host(host::B))?;
        let [near, far] = lab.join_pair([(role::A, ETH), (role::B, ETH)])?;
        Ok(Topology {
            client,
            server,
            // Frames pass the devices, messages of joined sockets do not; what counts both is first and last.
            way: vec![near, Hop::any(role::A, ETH), Hop::any(role::B, ETH), far],
            containers: Vec::new(),
            spliced_at: None,
        })
    }
}
