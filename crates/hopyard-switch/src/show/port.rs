//! What is wrong with a port.

use hopyard_net::{Handle, Link, Side, XdpHook};

use super::hook::{Findings, xdp_before};
use super::{Warning, WayOut, is_direct, shrunk};
use crate::hook::Hook;
use crate::layout::{PORT_FOLLOW, PORT_QUEUED, PortRecord};
use crate::running;
use crate::switch::Switch;

/// A port, as its devices are now.
pub(super) struct PortSeen<'a> {
    pub(super) record: &'a PortRecord,
    pub(super) link: &'a Link,
    pub(super) peer: Option<&'a Link>,
    /// The kind of the queueing discipline at the host's end.
    pub(super) qdisc: Option<&'a str>,
}

impl Switch {
    pub(super) fn check_port(&self, handle: &Handle, port: &PortSeen<'_>, found: &mut Findings) {
        let PortSeen { record, link, .. } = port;
        let name = &link.name;
        if !link.up {
            found.warn(format!("`{name}` is down: `ip link set {name} up`"));
        }
        let shrunk = shrunk(link, record.sure_len, WayOut::AddPortAgain);
        found.warnings.extend(shrunk);
        if let Some(peer) = port.peer {
            let wrong = check_pair(record, link, peer).into_iter();
            found.warnings.extend(wrong.map(Warning::from));
        }
        found.warnings.extend(xdp_before(link).map(Warning::from));
        self.check_hook(handle, name, Hook::Port, found);
        if is_direct(record, Some(link)) {
            bypassed_on_the_way_in(handle, port, found);
        }
    }
}

/// What frames pass by that go straight into the guest's namespace: all that runs where others leave by the host's end.
fn bypassed_on_the_way_in(handle: &Handle, port: &PortSeen<'_>, found: &mut Findings) {
    let name = &port.link.name;
    match running::at(handle, name, Side::Egress) {
        Ok(there) => {
            for one in there {
                found.bypass(&one.name, Side::Egress, name);
            }
        }
        Err(error) => found.warn(error.to_string()),
    }
    if let Some(qdisc) = port.qdisc {
        found.bypass(&format!("qdisc {qdisc}"), Side::Egress, name);
    }
}

/// What is wrong between the two ends of a pair.
fn check_pair(record: &PortRecord, link: &Link, peer: &Link) -> Vec<String> {
    let name = &link.name;
    let mut warnings = Vec::new();
    if !peer.up {
        warnings.push(format!(
            "the other end of `{name}` is down: frames to it are dropped and counted as `down`"
        ));
    }
    if peer.mtu != link.mtu {
        warnings.push(format!(
            "`{name}` has an MTU of {}, its other end one of {}",
            link.mtu, peer.mtu
        ));
    }
    if peer.gso_max_size != link.gso_max_size {
        warnings.push(format!(
            "`{name}` and its other end differ in the largest GSO packet they take"
        ));
    }
    let direct = is_direct(record, Some(link));
    let may_be_direct = link.lower_ns.is_some() && record.flags & PORT_QUEUED == 0;
    // Of a port that an earlier version added, or where the program does not see the other end.
    if direct != may_be_direct && record.flags & PORT_FOLLOW == 0 {
        warnings.push(format!(
            "the other end of `{name}` moved to another namespace after the port was added: remove it and add it \
             again{}",
            if direct { "; until then it gets nothing" } else { " for the direct way into it" }
        ));
    }
    if direct && peer.xdp == Some(XdpHook::Driver) {
        warnings.push(format!(
            "the guest behind `{name}` has an XDP program in its driver, and frames are handed to it behind that: \
             remove the port and add it again, then they take the queue"
        ));
    }
    warnings
}
