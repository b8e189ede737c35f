//! STATUS: could a container be added now? Runtimes ask every few seconds: nothing waits for a lock, nothing is changed.

use hopyard_net::{Handle, probe_kind};
use hopyard_switch::Switch;

use crate::call::Call;
use crate::conf::{Conf, Device};
use crate::error::{Error, Result, code};
use crate::switch::{look, other_switch_on};

/// Answers 50 where no container can be added, 51 where those that there are may be cut off as well.
pub(crate) fn status(call: &Call) -> Result<()> {
    let mut conf = Conf::of(call)?;
    let here = Handle::here()?;
    check_switch(call, &here, &mut conf)?;
    if conf.device == Device::Netkit {
        probe_kind("netkit").map_err(|error| unavailable(false, error.to_string()))?;
    }
    match &conf.ipam {
        Some(kind) => call.ipam(kind).status(),
        None => Ok(()),
    }
}

fn check_switch(call: &Call, here: &Handle, conf: &mut Conf) -> Result<()> {
    let looked = look(here, conf, &call.conf);
    let name = &conf.switch.name;
    let found = looked.map_err(|error| {
        let room = Switch::room(name).ok().flatten();
        // A configuration that does not fit leaves containers alone; without its uplink the switch cuts them off.
        let is_cut_off = room.is_some_and(|room| room.has_ports) && lost_its_uplink(here, name);
        unavailable(is_cut_off, error.to_string())
    })?;
    let room = Switch::room(name)?;
    let has_ports = room.is_some_and(|room| room.has_ports);
    if let Some(uplink) = &found.uplink {
        if !uplink.up || !uplink.carrier {
            let why = if uplink.up {
                "has no carrier"
            } else {
                "is down"
            };
            return Err(unavailable(
                has_ports,
                format!("the uplink `{}` {why}", uplink.name),
            ));
        }
        if found.glance.is_none()
            && let Some(other) = other_switch_on(here.ns().inode()?, uplink.index, name)
        {
            let why = format!(
                "`{}` is the uplink of switch `{other}`: name that with `switch`",
                uplink.name
            );
            return Err(unavailable(false, why));
        }
    }
    if room.is_some_and(|room| room.is_full) {
        return Err(unavailable(
            false,
            format!("switch `{name}` has as many ports as it can have"),
        ));
    }
    Ok(())
}

fn lost_its_uplink(here: &Handle, switch: &str) -> bool {
    let Ok(Some(glance)) = Switch::glance(switch) else {
        return false;
    };
    let is_here = here.ns().inode().is_ok_and(|inode| inode == glance.netns);
    let had = glance.uplink.zip(glance.uplink_name);
    is_here && had.is_some_and(|(index, name)| here.index(&name).ok() != Some(index))
}

fn unavailable(limited: bool, why: String) -> Error {
    let code = if limited {
        code::NOT_AVAILABLE_LIMITED
    } else {
        code::NOT_AVAILABLE
    };
    Error::new(code, why)
}
