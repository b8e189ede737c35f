//! `forward`: traffic enters a container, is routed by its own stack and leaves, through a chain of them.

use hopyard_net::{LinkKind, MacvlanMode};

use super::{Need, Path};
use crate::builder::ETH;
use crate::model::{Axes, Hop, Peer, Segments};
use crate::topology::{host, role};
use crate::wire::UPLINK;
use crate::{Builder, Result, Subnet, Topology};

/// A forwarding container's device towards the server; that towards the client is [`ETH`].
const ONWARD: &str = "eth1";
/// Ends of a segment, by their host numbers in its subnet.
const LEFT: u16 = host::A;
const RIGHT: u16 = host::B;

pub(super) static FORWARD: Path = Path {
    name: "forward",
    summary: "a chain of containers that route, between two namespaces",
    peers: &[Peer::Local],
    needs: &[Need::VETH],
    needs_for: |axes| match segments(axes) {
        Segments::Veth => &[],
        Segments::Bridge => &[Need::BRIDGE],
        Segments::Macvlan => &[Need::MACVLAN],
        Segments::Direct => &[Need::DIRECT_SWITCH],
    },
    axes: &["chain", "segments"],
    rules_instead: |_| "the containers that route; the endpoints",
    by_name_only: true,
    ..Path::new(build)
};

fn build(lab: &mut Builder, _: Peer) -> Result<Topology> {
    let kind = segments(lab.axes());
    let routers = routers(lab.axes());
    if kind == Segments::Macvlan {
        lab.wire()?;
    }
    let mut nodes = vec![(role::A, ETH, ETH)];
    nodes.extend(routers.iter().map(|role| (*role, ETH, ONWARD)));
    nodes.push((role::B, ETH, ETH));
    let mut way = Vec::new();
    let mut ports = Vec::new();
    for (index, pair) in (0..).zip(nodes.windows(2)) {
        let ((left, _, onward), (right, device, _)) = (pair[0], pair[1]);
        let segment = Segment {
            index,
            left: (left, onward),
            right: (right, device),
        };
        way.extend(segment.build(lab, kind, &mut ports)?);
    }
    if !ports.is_empty() {
        lab.switch(None, &ports)?;
    }
    let last = u8::try_from(routers.len()).unwrap_or(u8::MAX);
    let (first, last) = (Subnet::segment(0), Subnet::segment(last));
    let client = lab.endpoint(role::A, ETH, first.host(LEFT))?;
    let server = lab.endpoint(role::B, ETH, last.host(RIGHT))?;
    lab.default_route(role::A, first.host(RIGHT))?;
    lab.default_route(role::B, last.host(LEFT))?;
    route(lab, &routers)?;
    Ok(Topology::pair(client, server, way))
}

fn segments(axes: &Axes) -> Segments {
    axes.segments.unwrap_or(Segments::Veth)
}

fn routers(axes: &Axes) -> Vec<&'static str> {
    let chain = usize::try_from(axes.chain.unwrap_or(1)).unwrap_or(usize::MAX);
    role::FORWARDERS.into_iter().take(chain).collect()
}

/// What lies between two neighbours: their namespaces, and the devices there.
struct Segment {
    index: u8,
    left: (&'static str, &'static str),
    right: (&'static str, &'static str),
}

impl Segment {
    /// Connects the two, and gives the way from left to right.
    fn build(
        &self,
        lab: &mut Builder,
        kind: Segments,
        ports: &mut Vec<String>,
    ) -> Result<Vec<Hop>> {
        let (left, right) = (self.left, self.right);
        let (entry, exit) = (
            format!("s{}-in", self.index),
            format!("s{}-out", self.index),
        );
        let between = match kind {
            Segments::Veth => {
                lab.veth(left, right)?;
                Vec::new()
            }
            Segments::Bridge => {
                let bridge = format!("br{}", self.index);
                lab.bridge(&bridge, false)?;
                for (end, port) in [(left, &entry), (right, &exit)] {
                    lab.veth(end, (role::HUB, port))?;
                    lab.space(role::HUB)?.set_master(port, &bridge)?;
                }
                vec![Hop::rx(role::HUB, &entry), Hop::tx(role::HUB, &exit)]
            }
            Segments::Macvlan => {
                let mtu = lab.mtu();
                for (role, device) in [left, right] {
                    let kind = LinkKind::Macvlan {
                        lower: UPLINK.to_owned(),
                        mode: MacvlanMode::Bridge,
                    };
                    lab.link_into(role::HUB, role, device, kind, mtu)?;
                }
                Vec::new()
            }
            Segments::Direct => {
                for (end, port) in [(left, &entry), (right, &exit)] {
                    lab.veth(end, (role::HUB, port))?;
                    ports.push(port.clone());
                }
                // Frames to a guest are handed into its namespace, past the port's own device.
                vec![
                    Hop::rx_from_client(role::HUB, &entry),
                    Hop::rx_from_server(role::HUB, &exit),
                ]
            }
        };
        let mut way = vec![Hop::tx(left.0, left.1)];
        way.extend(between);
        way.push(Hop::rx(right.0, right.1));
        Ok(way)
    }
}

/// Addresses and routes of the containers.
fn route(lab: &mut Builder, routers: &[&'static str]) -> Result<()> {
    let first = Subnet::segment(0);
    for (index, &router) in (0..).zip(routers) {
        let (before, after) = (Subnet::segment(index), Subnet::segment(index + 1));
        lab.address(router, ETH, before.host(RIGHT))?;
        lab.address(router, ONWARD, after.host(LEFT))?;
        lab.forward(router, &[ETH, ONWARD])?;
        // Several of its devices may be on one link: each answers for its own address alone.
        lab.space(router)?
            .set_sysctl("net/ipv4/conf/all/arp_ignore", "1")?;
        if usize::from(index) + 1 < routers.len() {
            lab.default_route(router, after.host(RIGHT))?;
        }
        if index > 0 {
            lab.route(router, first, before.host(LEFT))?;
        }
    }
    Ok(())
}
