//! `af-xdp`: a veth pair into the host for each end, between which a process forwards by AF_XDP sockets in copy mode.

use super::veth_xdp::Pairs;
use super::{Need, Path};
use crate::model::Peer;
use crate::{Builder, Error, Result, Topology, af_xdp};

/// A frame has to fit into a page with what XDP keeps before and behind it.
const MOST_MTU: u32 = 3490;

pub(super) static AF_XDP: Path = Path {
    name: "af-xdp",
    summary: "a veth pair into the host for each end; a process there forwards by AF_XDP sockets in copy mode",
    peers: &[Peer::Local, Peer::Far],
    needs: &[Need::VETH, af_xdp::NEED],
    rules_instead: |_| "the program in between; the endpoints",
    mtu_owner: "each pair, 3490 at most",
    // A question of its own, as `veth-xdp` is.
    by_name_only: true,
    ..Path::new(build)
};

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    if lab.mtu() > MOST_MTU {
        return Err(Error::Net(hopyard_net::Error::Unsupported {
            what: format!("carry an MTU of {}", lab.mtu()),
            feature: "frames of more than a page in AF_XDP sockets".to_owned(),
            remedy: format!("set `mtu` to {MOST_MTU} or less, or choose path `veth-xdp`"),
        }));
    }
    let pairs = Pairs::make(lab, peer)?;
    let forwarded = lab.forward_by_af_xdp(pairs.hub)?;
    pairs.topology(lab, forwarded)
}
