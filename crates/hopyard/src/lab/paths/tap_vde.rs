//! `tap-vde`: taps joined by vde_switch, as `tap-mq` is by our own switch.

use super::{Need, Path};
use crate::lab::topology::{host, role};
use crate::lab::{Builder, Result, Subnet, Topology, vde};
use crate::meter::path_proof::Hop;
use crate::model::Peer;

/// The endpoints' devices; both are made in one namespace, so their names differ.
const TAP_A: &str = "vde-a";
const TAP_B: &str = "vde-b";

pub(super) struct TapVde;

impl Path for TapVde {
    fn name(&self) -> &'static str {
        "tap-vde"
    }

    fn summary(&self) -> &'static str {
        "taps joined by vde_switch in user space"
    }

    fn peers(&self) -> &'static [Peer] {
        &[Peer::Local]
    }

    fn needs(&self) -> &'static [Need] {
        &[vde::NEED]
    }

    fn build(&self, lab: &mut Builder, _: Peer) -> Result<Topology> {
        lab.vde_switch(&[(role::A, TAP_A), (role::B, TAP_B)])?;
        Ok(Topology {
            client: lab.endpoint(role::A, TAP_A, Subnet::LAN.host(host::A))?,
            server: lab.endpoint(role::B, TAP_B, Subnet::LAN.host(host::B))?,
            way: vec![Hop::tx(role::A, TAP_A), Hop::rx(role::B, TAP_B)],
            containers: Vec::new(),
        })
    }
}
