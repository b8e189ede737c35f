//! Addresses that nobody else at the switch can have: those of ports, and those of the host.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::{PortSpec, SwitchSpec};
use crate::layout::AddressKey;
use crate::mac::Mac;

/// What one port of a switch alone can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Claim {
    Mac(u16, Mac),
    Ip(u16, IpAddr),
}

pub(super) fn claims(port: &PortSpec) -> impl Iterator<Item = Claim> + '_ {
    let vlan = port.vlan.unwrap_or(0);
    let macs = port.macs.iter().map(move |mac| Claim::Mac(vlan, *mac));
    macs.chain(port.ips.iter().map(move |ip| Claim::Ip(vlan, *ip)))
}

/// What is known of the host beside the switch.
#[derive(Debug, Default)]
pub(super) struct Host {
    /// Of the uplink that is wanted.
    pub(super) mac: Option<Mac>,
    /// The IP addresses that the host has behind it.
    pub(super) addresses: BTreeSet<AddressKey>,
}

impl Host {
    /// Is it the host's in the switch that is wanted?
    pub(super) fn has(&self, wanted: &SwitchSpec, claim: &Claim) -> bool {
        match claim {
            Claim::Mac(_, mac) => self.key_of(wanted, *mac).is_some(),
            Claim::Ip(vlan, ip) => self.addresses.contains(&AddressKey::new(*ip, *vlan)),
        }
    }

    /// The key of the description by which the host has an Ethernet address, in every VLAN; `None`: it has not.
    pub(super) fn key_of(&self, wanted: &SwitchSpec, mac: Mac) -> Option<&'static str> {
        if wanted.host_macs.contains(&mac) {
            return Some("host_mac");
        }
        (self.mac == Some(mac)).then_some("uplink")
    }
}
