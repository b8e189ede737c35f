//! The container's end: its namespace, settings, addresses and routes.

use std::path::Path;

use hopyard_net::{Error as NetError, Handle, LinkLocal, NetNs, Route};

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

/// Sets what has to be set before the device is up.
///
/// A port that `is_held` to its addresses must not choose others: no addresses from router advertisements, and none of the
/// link but that made from its Ethernet address, which the switch lets pass. Nor does it take routes from router
/// advertisements, until [`welcome_ipv6`].
pub(crate) fn prepare(inside: &Handle, ifname: &str, is_held: bool) -> Result<()> {
    let mut settings = Vec::new();
    if is_held {
        inside.set_link_local(ifname, LinkLocal::FromMac)?;
        settings.extend([("ipv6", "autoconf", "0"), ("ipv6", "accept_ra", "0")]);
    }
    // Neighbours that knew an address under another Ethernet address learn of this one at once.
    settings.extend([("ipv6", "ndisc_notify", "1"), ("ipv4", "arp_notify", "1")]);
    let keys: Vec<String> = settings
        .iter()
        .map(|(family, name, _)| format!("net/{family}/conf/{ifname}/{name}"))
        .collect();
    let settings: Vec<(&str, &str)> = keys
        .iter()
        .zip(&settings)
        .map(|(key, (_, _, value))| (key.as_str(), *value))
        .collect();
    // Kernels without it, and without IPv6, are left as they are.
    inside
        .set_sysctls(&settings)?
        .into_iter()
        .try_for_each(unless_missing)
}

/// Turns IPv6 on for a device that gets IPv6 addresses. One of a port that `is_held` takes routes from router advertisements as usual.
pub(crate) fn welcome_ipv6(inside: &Handle, ifname: &str, is_held: bool) -> Result<()> {
    let of = |device: &str, name: &str| format!("net/ipv6/conf/{device}/{name}");
    if is_held {
        // What a new device begins with (`ipv6_add_dev`).
        match inside.sysctl(&of("default", "accept_ra")) {
            Ok(usual) => inside.set_sysctl(&of(ifname, "accept_ra"), &usual)?,
            missing => unless_missing(missing.map(drop))?,
        }
    }
    unless_missing(inside.set_sysctl(&of(ifname, "disable_ipv6"), "0"))
}

fn unless_missing(set: hopyard_net::Result<()>) -> Result<()> {
    match set {
        Err(NetError::Missing { .. }) => Ok(()),
        set => Ok(set?),
    }
}

/// Gives the device its addresses, brings it up, and makes the routes.
pub(crate) fn configure(inside: &Handle, ifname: &str, addresses: &Addresses) -> Result<()> {
    for ip in &addresses.ips {
        inside.add_address(ifname, ip.address, ip.prefix)?;
    }
    inside.set_up(ifname)?;
    let device = inside.index(ifname)?;
    for to in &addresses.routes {
        make_route(inside, &addresses.route(to, device))?;
    }
    Ok(())
}

/// Makes a route, unless it is there: given twice, or the one that comes with the address. Beside one of another device or gateway it is
/// made as well, as the reference plugins do.
fn make_route(inside: &Handle, route: &Route) -> Result<()> {
    match inside.make_route(route) {
        Err(error) if error.errno() == Some(EEXIST) => {}
        made => return Ok(made?),
    }
    if inside.has_route(route)? {
        return Ok(());
    }
    match inside.make_route_beside(route) {
        Err(error) if error.errno() == Some(EEXIST) => Ok(()),
        made => Ok(made?),
    }
}
