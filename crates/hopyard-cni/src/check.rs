//! CHECK.

use hopyard_net::Handle;
use hopyard_switch::{Glance, Switch, runs_at_uplink};

use crate::call::Call;
use crate::conf::Conf;
use crate::container;
use crate::error::{Error, Result, code};
use crate::ipam::{Ipam, Kind};
use crate::names;
use crate::outcome::{Addresses, previous};
use crate::record::{Entry, Record};
use crate::switch;

fn changed(why: impl Into<String>) -> Error {
    Error::new(code::CHANGED, why)
}

/// Holds an attachment against what ADD said of it, then has the IPAM plugin do the same.
pub(crate) fn check(call: &Call) -> Result<()> {
    let mut conf = Conf::of(call)?;
    let (addresses, mac) = previous(call)?;
    let here = Handle::here()?;
    let glance = switch::glance(&here, &mut conf)?;
    let inside = container::open(&here, &call.netns)?;
    check_device(call, &conf, &inside, mac.as_deref())?;
    check_addresses(call, &inside, &addresses)?;
    check_port(call, &conf, &here, &addresses, mac.as_deref())?;
    check_uplink(&conf, &here, glance.as_ref())?;
    match (Record::peek(&call.attachment()), &conf.ipam) {
        (Some(entry), kind) => ask_whoever_reserved(call, &entry, kind.as_ref()),
        (None, Some(kind)) => call.ipam(kind).check(),
        (None, None) => Ok(()),
    }
}

/// Whoever has reserved the addresses knows of them, whatever program, key and configuration (`now`) are there by now.
fn ask_whoever_reserved(call: &Call, entry: &Entry, now: Option<&Kind>) -> Result<()> {
    let (kind, conf) = match entry.conf_with_result_of(&call.conf) {
        Some(conf) => (Kind::of(&conf, &entry.args, &call.path)?, conf.to_string()),
        None => (now.cloned(), call.text.clone()),
    };
    let Some(mut kind) = kind else {
        return Ok(());
    };
    kind.in_process |= entry.is_reserved_here();
    let ipam = Ipam {
        args: &entry.args,
        conf: &conf,
        ..call.ipam(&kind)
    };
    ipam.check()
}

fn check_device(call: &Call, conf: &Conf, inside: &Handle, mac: Option<&str>) -> Result<()> {
    let ifname = &call.ifname;
    let link = inside
        .link(ifname)
        .map_err(|_| changed(format!("the container has no device `{ifname}`")))?;
    if link.kind.as_deref() != Some(conf.device.kind()) {
        return Err(changed(format!(
            "`{ifname}` is not a {}, which the configuration has",
            conf.device.kind()
        )));
    }
    if !link.up {
        return Err(changed(format!("`{ifname}` is down")));
    }
    let has = link.mac.map(|mac| hopyard_switch::Mac(mac).to_string());
    if mac.is_some_and(|mac| has.as_deref() != Some(&mac.to_ascii_lowercase())) {
        let msg = format!(
            "`{ifname}` has the Ethernet address {}, not {}",
            has.unwrap_or_default(),
            mac.unwrap_or_default()
        );
        return Err(changed(msg));
    }
    Ok(())
}

fn check_addresses(call: &Call, inside: &Handle, addresses: &Addresses) -> Result<()> {
    let device = inside.index(&call.ifname)?;
    let has = inside.addresses()?;
    for ip in &addresses.ips {
        if !has.contains(&(device, ip.address)) {
            let msg = format!("`{}` has the address {} no longer", call.ifname, ip.address);
            return Err(changed(msg));
        }
    }
    for to in &addresses.routes {
        if !inside.has_route(&addresses.route(to, device))? {
            let msg = format!(
                "the container has the route to {}/{} no longer",
                to.destination, to.prefix
            );
            return Err(changed(msg));
        }
    }
    Ok(())
}

/// The way to the wire and to the host, where there is one.
fn check_uplink(conf: &Conf, here: &Handle, glance: Option<&Glance>) -> Result<()> {
    let name = &conf.switch.name;
    let Some((index, uplink)) =
        glance.and_then(|glance| glance.uplink.zip(glance.uplink_name.as_deref()))
    else {
        return Ok(());
    };
    if here.index(uplink).ok() != Some(index) {
        let msg = format!("the uplink `{uplink}` of switch `{name}` is gone, or was made again");
        return Err(changed(msg));
    }
    if !runs_at_uplink(here, uplink)? {
        return Err(changed(switch::bare_uplink(name, uplink)));
    }
    Ok(())
}

fn check_port(
    call: &Call,
    conf: &Conf,
    here: &Handle,
    addresses: &Addresses,
    mac: Option<&str>,
) -> Result<()> {
    let device = names::device(&call.network, &call.container, &call.ifname);
    let name = &conf.switch.name;
    let link = here
        .link(&device)
        .map_err(|_| changed(format!("the host's end `{device}` is gone")))?;
    if !link.up {
        return Err(changed(format!("the host's end `{device}` is down")));
    }
    let is_no_port = || changed(format!("`{device}` is no port of switch `{name}`"));
    // Without the lock: many may be asked about at once.
    let found = Switch::as_it_is(name)?.ok_or_else(is_no_port)?;
    let port = found.port(&device)?.ok_or_else(is_no_port)?;
    if !port.runs {
        let msg = format!(
            "the program of switch `{name}` does not run at `{device}` any more: somebody detached it"
        );
        return Err(changed(msg));
    }
    if let Some(mac) = mac
        && !port
            .macs
            .iter()
            .any(|own| own.to_string() == mac.to_ascii_lowercase())
    {
        let msg = format!("port `{device}` is not held to the Ethernet address {mac}");
        return Err(changed(msg));
    }
    if (port.vlan, port.isolated) != (conf.vlan, conf.isolated) {
        let msg = format!("port `{device}` has another VLAN or isolation than the configuration");
        return Err(changed(msg));
    }
    if port.allow_spoof != conf.may_spoof {
        let has = if port.allow_spoof {
            "any address"
        } else {
            "its own addresses alone"
        };
        return Err(changed(format!(
            "port `{device}` may send from {has}, which is not what the configuration has"
        )));
    }
    let bandwidth = &conf.bandwidth;
    for (does, has, wanted) in [
        ("gets", port.rate_in, bandwidth.ingress),
        ("sends", port.rate_out, bandwidth.egress),
    ] {
        if has != wanted {
            let msg = format!("the limit of what port `{device}` {does} is {has}, not {wanted}");
            return Err(changed(msg));
        }
    }
    let is_held = conf.ipam.is_some() && !conf.may_spoof;
    let missing = addresses
        .ips
        .iter()
        .find(|ip| !port.ips.contains(&ip.address));
    match missing.filter(|_| is_held) {
        Some(ip) => Err(changed(format!(
            "port `{device}` has the address {} no longer",
            ip.address
        ))),
        None => Ok(()),
    }
}
