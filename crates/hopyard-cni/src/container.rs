//! The container's end: its namespace, settings, addresses and routes.

use std::path::Path;

use hopyard_net::{Error as NetError, Handle, NetNs};

use crate::error::{Error, Result, code};
use crate::outcome::Addresses;

const EEXIST: i32 = 17;

/// Opens the namespace of a container, which must not be the host's own.
pub(crate) fn open(here: &Handle, netns: &Path) -> Result<Handle> {
    let ns = NetNs::open(netns).map_err(|error| {
        let error = Error::from(error);
        Error::new(code::BAD_ENVIRONMENT, format!("CNI_NETNS: {}", error.msg))
    })?;
    if ns.inode()? == here.ns().inode()? {
        let msg = format!(
            "CNI_NETNS `{}` is the namespace that the plugin runs in: a container has one of its own",
            netns.display()
        );
        return Err(Error::new(code::BAD_ENVIRONMENT, msg));
    }
    Ok(Handle::new(&ns)?)
}

/// A setting of the device; kernels without it, and without IPv6, are left as they are.
fn set(inside: &Handle, key: &str, value: &str) -> Result<()> {
    match inside.set_sysctl(key, value) {
        Err(NetError::Missing { .. }) => Ok(()),
        set => Ok(set?),
    }
}

/// Sets what has to be set before the device is up.
///
/// A port that is held to its addresses must not choose others: no addresses from router advertisements, and none of the
/// link but that made from its Ethernet address, which the switch lets pass.
pub(crate) fn prepare(inside: &Handle, ifname: &str, held: Option<&Addresses>) -> Result<()> {
    let has_ipv6 = |addresses: &Addresses| addresses.ips.iter().any(|ip| ip.address.is_ipv6());
    let key = |name: &str| format!("net/ipv6/conf/{ifname}/{name}");
    if let Some(addresses) = held {
        set(inside, &key("autoconf"), "0")?;
        set(inside, &key("addr_gen_mode"), "0")?;
        if has_ipv6(addresses) {
            set(inside, &key("disable_ipv6"), "0")?;
        } else {
            set(inside, &key("accept_ra"), "0")?;
        }
    }
    // Neighbours that knew an address under another Ethernet address learn of this one at once.
    set(inside, &key("ndisc_notify"), "1")?;
    set(inside, &format!("net/ipv4/conf/{ifname}/arp_notify"), "1")
}

/// Gives the device its addresses, brings it up, and makes the routes.
pub(crate) fn configure(inside: &Handle, ifname: &str, addresses: &Addresses) -> Result<()> {
    for ip in &addresses.ips {
        inside.add_address(ifname, ip.address, ip.prefix)?;
    }
    inside.set_up(ifname)?;
    let device = inside.index(ifname)?;
    for to in &addresses.routes {
        match inside.make_route(&addresses.route(to, device)) {
            // Given twice, or the one that comes with the address.
            Err(error) if error.errno() == Some(EEXIST) => {}
            made => made?,
        }
    }
    Ok(())
}
