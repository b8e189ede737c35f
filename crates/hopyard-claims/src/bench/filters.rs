//! NS7: which packets a rule of the host sees.

use hopyard_net::apply_ruleset;

use super::site::{reaches, reaches_soon};
use super::{Error, FunctionalCheck, Result};
use crate::lab::{self, Lab, role};
use crate::model::{Axes, DatapathKind, LoadKind, Peer};

/// Drops all that is forwarded.
const DROP: &str = "table inet claims {
    chain forward {
        type filter hook forward priority filter; policy drop;
    }
}";

/// Two endpoints on a path.
fn build(path: &str) -> Result<Lab> {
    let path = lab::path(path)?;
    let axes = Axes::default().for_cell(LoadKind::UdpRr, Peer::Local, path.axes());
    Ok(Lab::build(path, Peer::Local, &axes)?)
}

/// Do datagrams get from one endpoint to the other before such a rule, and after?
fn with_and_without_rule(lab: &Lab) -> Result<[bool; 2]> {
    let space = |role| lab.space(role).map(|space| &space.handle);
    let (a, b) = (space(role::A)?, space(role::B)?);
    let to = lab.topology.server.addresses.v4.into();
    let before = reaches(a, b, to)?;
    apply_ruleset(space(role::HUB)?.ns(), DROP)?;
    Ok([before, reaches_soon(a, b, to)?])
}

fn said([before, after]: [bool; 2]) -> &'static str {
    match (before, after) {
        (true, true) => "passed nevertheless",
        (true, false) => "was stopped",
        (false, _) => "did not pass even before",
    }
}

/// With bridge netfilter a rule stops what is bridged; without its calls it does not.
pub(super) fn rule_stops_bridge() -> Result<FunctionalCheck> {
    let filtered = with_and_without_rule(&build("bridge-nf")?)?;
    let bare = with_and_without_rule(&build("bridge")?)?;
    Ok(FunctionalCheck {
        passed: filtered == [true, false],
        seen: format!(
            "with a rule in the host that drops all, traffic over a bridge with netfilter calls {}, without them {}",
            said(filtered),
            said(bare)
        ),
    })
}

/// A rule does not see what goes between internal ports.
pub(super) fn rule_misses_internal_ports() -> Result<FunctionalCheck> {
    let lab = build("ovs-internal")?;
    if lab
        .datapath()
        .is_some_and(|d| d.kind == DatapathKind::Userspace)
    {
        return Err(Error::Lacking(
            "internal ports: the openvswitch module is missing, and its userspace datapath does not count".to_owned(),
        ));
    }
    let seen = with_and_without_rule(&lab)?;
    Ok(FunctionalCheck {
        passed: seen == [true, true],
        seen: format!(
            "with the same rule, traffic between internal ports {}",
            said(seen)
        ),
    })
}
