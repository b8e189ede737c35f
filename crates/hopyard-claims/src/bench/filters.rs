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
    let axes = Axes::default().for_cell(LoadKind::UdpRr, Peer::Local, path.axes);
    Ok(Lab::build(path, Peer::Local, &axes)?)
}

/// Do datagrams get from one endpoint to the other in spite of such a rule? Where they do not without it, nothing can be said. It takes
/// longer to see that they do not where it is `expected` that they do.
fn pass_despite_rule(lab: &Lab, expected: bool) -> Result<bool> {
    let space = |role| lab.space(role).map(|space| &space.handle);
    let (a, b) = (space(role::A)?, space(role::B)?);
    let to = lab.topology.server.addresses.v4.into();
    if !reaches(a, b, to)? {
        return Err(Error::Lacking(format!(
            "traffic over {} did not pass even before there was a rule",
            lab.path.name
        )));
    }
    apply_ruleset(space(role::HUB)?.ns(), DROP)?;
    if expected {
        reaches(a, b, to)
    } else {
        reaches_soon(a, b, to)
    }
}

fn said(passed: bool) -> &'static str {
    if passed {
        "passed nevertheless"
    } else {
        "was stopped"
    }
}

/// With bridge netfilter a rule stops what is bridged; without its calls it does not.
pub(super) fn rule_stops_bridge() -> Result<FunctionalCheck> {
    let filtered = pass_despite_rule(&build("bridge-nf")?, false)?;
    let bare = pass_despite_rule(&build("bridge")?, true)?;
    Ok(FunctionalCheck {
        passed: !filtered && bare,
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
    let seen = pass_despite_rule(&lab, true)?;
    Ok(FunctionalCheck {
        passed: seen,
        seen: format!(
            "with the same rule, traffic between internal ports {}",
            said(seen)
        ),
    })
}
