//! What a new port cannot be, found before anything is changed.

use std::net::IpAddr;

use hopyard_net::{Link, XdpHook};

use super::{MAX_VLAN, NewPort, sure_len, way_in};
use crate::error::{Error, Result};
use crate::here::has_master;
use crate::layout::{
    AddressKey, Limits, PORT_ANY_SOURCE, PORT_CLASSIFIER, PORT_DECLARED, PORT_DHCP, PORT_FOLLOW,
    PORT_HELD, PORT_ISOLATED, PORT_PEER, PORT_QUEUED, PORT_RATE_IN, PORT_RATE_OUT, PORT_ROUTER,
    SLOT_HOST, SLOT_WIRE, STATION_OWN, station_key,
};
use crate::limit::Broadcasts;
use crate::mac::Mac;
use crate::prefix::Prefix;
use crate::programs;
use crate::rate::Rate;
use crate::switch::Switch;

/// A port as it will be, checked.
pub(super) struct Bound {
    pub(super) macs: Vec<Mac>,
    pub(super) own: Option<Mac>,
    pub(super) ips: Vec<IpAddr>,
    pub(super) prefixes: Vec<Prefix>,
    pub(super) broadcasts: Broadcasts,
    pub(super) limits: Limits,
    pub(super) vlan: u16,
    pub(super) flags: u16,
    pub(super) sure_len: u32,
    pub(super) net_device: u64,
}

impl Bound {
    /// The flags of the station of the nth address.
    pub(super) fn station_flags(&self, n: usize, mac: Mac) -> u16 {
        let is_own = self.own.map_or(n == 0, |own| own == mac);
        if is_own { STATION_OWN } else { 0 }
    }
}

impl Switch {
    /// Everything that can be found wrong before anything is changed.
    pub(super) fn check(
        &self,
        what: &str,
        new: &NewPort<'_>,
        link: &Link,
        peer: Option<&Link>,
    ) -> Result<Bound> {
        if let Some(vlan) = new.vlan
            && !(1..=MAX_VLAN).contains(&vlan)
        {
            let why = format!("VLAN {vlan} is outside 1 to {MAX_VLAN}");
            return Err(Error::invalid(what, why));
        }
        check_kind(what, link)?;
        let vlan = new.vlan.unwrap_or(0);
        let own = peer.and_then(|peer| peer.mac).map(Mac);
        let mut macs = new.macs.clone();
        if macs.is_empty() {
            macs.push(own.ok_or_else(|| Error::NoGuestMac {
                what: what.to_owned(),
                device: new.device.to_owned(),
            })?);
        }
        let invalid = |why| Error::invalid(what, why);
        let host = self.state.config()?.host_mac;
        self.check_stations(&macs, vlan, host).map_err(invalid)?;
        self.check_addresses(&new.ips, vlan).map_err(invalid)?;
        check_prefixes(&new.prefixes).map_err(invalid)?;
        let mut flags = 0;
        // What is handed over passes the XDP program by that the guest has in its driver.
        let queued = new.queued || peer.is_some_and(|peer| peer.xdp == Some(XdpHook::Driver));
        let seen = programs::see_device(&self.directory, link.index, peer.is_some())?;
        let (direct, follow) = way_in(queued, link, peer, &seen);
        for (set, bit) in [
            (new.isolated, PORT_ISOLATED),
            (new.allow_spoof, PORT_ANY_SOURCE),
            (
                new.ips_follow || !new.ips.is_empty() || !new.prefixes.is_empty(),
                PORT_HELD,
            ),
            (new.router, PORT_ROUTER),
            (new.dhcp_server, PORT_DHCP),
            (direct, PORT_PEER),
            (follow, PORT_FOLLOW),
            (queued, PORT_QUEUED),
            (new.declared, PORT_DECLARED),
            (new.rate_in != Rate::Unlimited, PORT_RATE_IN),
            (new.rate_out != Rate::Unlimited, PORT_RATE_OUT),
            (new.classifier, PORT_CLASSIFIER),
        ] {
            if set {
                flags |= bit;
            }
        }
        Ok(Bound {
            sure_len: sure_len(link, peer),
            own,
            macs,
            ips: new.ips.clone(),
            prefixes: new.prefixes.clone(),
            broadcasts: new.broadcasts,
            limits: Limits {
                inward: new.rate_in.to_bucket(),
                outward: new.rate_out.to_bucket(),
            },
            vlan,
            flags,
            net_device: seen.address,
        })
    }

    /// Are the Ethernet addresses fit and free? The error says why not.
    fn check_stations(
        &self,
        macs: &[Mac],
        vlan: u16,
        host: u64,
    ) -> std::result::Result<(), String> {
        let hosts = self.state.hosts().unwrap_or_default();
        for (n, mac) in macs.iter().enumerate() {
            let why = if !mac.is_station() {
                "is no address of a station".to_owned()
            } else if macs[..n].contains(mac) {
                "is given twice".to_owned()
            } else if mac.to_number() == host || hosts.contains(mac) {
                "is the host's own address".to_owned()
            } else if let Ok(owner) = self.state.stations.get(&station_key(*mac, vlan), 0) {
                format!("is taken by port {}", self.device_of(owner.slot))
            } else {
                continue;
            };
            return Err(format!("{mac} {why}"));
        }
        Ok(())
    }

    /// Are the IP addresses fit and free? The error says why not.
    pub(super) fn check_addresses(
        &self,
        ips: &[IpAddr],
        vlan: u16,
    ) -> std::result::Result<(), String> {
        for (n, ip) in ips.iter().enumerate() {
            let why = if ip.is_unspecified() || ip.is_multicast() {
                "is no address of a station".to_owned()
            } else if ips[..n].contains(ip) {
                "is given twice".to_owned()
            } else {
                match self.state.addresses.get(&AddressKey::new(*ip, vlan), 0) {
                    Ok(owner) if owner.slot == SLOT_HOST => "is the host's own address".to_owned(),
                    // A gateway may be a guest.
                    Ok(owner) if owner.slot != SLOT_WIRE => {
                        format!("is taken by port {}", self.device_of(owner.slot))
                    }
                    _ => continue,
                }
            };
            return Err(format!("{ip} {why}"));
        }
        Ok(())
    }
}

/// Is each prefix given once? The error says which is not.
fn check_prefixes(prefixes: &[Prefix]) -> std::result::Result<(), String> {
    for (n, prefix) in prefixes.iter().enumerate() {
        if prefixes[..n].contains(prefix) {
            return Err(format!("{prefix} is given twice"));
        }
    }
    Ok(())
}

/// Does the device hand over Ethernet frames of a guest at its own hook, and to nobody else?
pub(crate) fn check_kind(what: &str, link: &Link) -> Result<()> {
    let name = &link.name;
    let why = match link.kind.as_deref() {
        Some(kind @ ("macvlan" | "macvtap" | "ipvlan" | "ipvtap")) => format!(
            "`{name}` is a {kind}: what its guest sends goes to the device below it and never passes the \
             switch; use a veth or a tap"
        ),
        _ if link.mac.is_none() => {
            format!("`{name}` carries no Ethernet frames; use a veth or a tap")
        }
        _ if link.master.is_some() => has_master(name),
        _ => return Ok(()),
    };
    Err(Error::invalid(what, why))
}
