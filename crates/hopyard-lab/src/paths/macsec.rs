//! `macsec`: MACsec (IEEE 802.1AE) with AES-128-GCM on a veth pair, or on the wire: every frame is encrypted on its link.

use hopyard_net::LinkKind;

use super::tunnel::{Tunnel, ends};
use super::{Need, Path};
use crate::model::{Hop, Peer};
use crate::random::key;
use crate::{Builder, Result, Topology, secured};

const TUNNEL: Tunnel = Tunnel {
    path: "macsec",
    device: "macsec0",
    // The tag with the channel's identifier, and the integrity check value.
    overhead: 16 + 16,
    kind: |own, _| LinkKind::Macsec {
        lower: own.lower.to_owned(),
    },
};

pub(super) static MACSEC: Path = Path {
    name: TUNNEL.path,
    summary: "MACsec, encrypted frames; local: on a veth pair between the endpoints, far: on the wire",
    peers: &[Peer::Local, Peer::Far],
    needs: &[Need::VETH, Need::MACSEC],
    rules_instead: |_| "the endpoints; the host: encrypted frames alone",
    mtu_owner: "MACsec's device: 32 bytes less than below",
    ..Path::new(build)
};

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    let mut topology = TUNNEL.build(lab, peer)?;
    let [near, far] = ends(peer);
    let mut stations = Vec::new();
    for end in [near, far] {
        let mac = lab.space(end.role)?.link(TUNNEL.device)?.mac;
        let mac = mac.ok_or_else(|| hopyard_net::Error::Reply {
            what: format!("read the address of `{}`", TUNNEL.device),
            why: "it has none".to_owned(),
        })?;
        stations.push((mac, key()?));
    }
    for (end, own, other) in [(near, 0, 1), (far, 1, 0)] {
        let (_, key) = stations[own];
        let device = lab.space(end.role)?;
        device.key_macsec(TUNNEL.device, key, stations[other])?;
    }
    lab.count_encrypted([near.role, far.role], TUNNEL.device)?;
    // Behind the device of an end, before the one that sends what was encrypted.
    topology.way.insert(1, Hop::tx(near.role, secured::MACSEC));
    let last = topology.way.len() - 1;
    topology
        .way
        .insert(last, Hop::rx(far.role, secured::MACSEC));
    Ok(topology)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Axes, Feature};

    /// Its device can be made by anybody, but keys are set by root alone.
    #[test]
    fn it_needs_root() {
        let offers = MACSEC.offers(Peer::Local, &Axes::default());
        assert!(!offers.contains(&Feature::Unprivileged));
    }
}
