//! STATUS: could a container be added now? Runtimes ask every few seconds: nothing waits for a lock, nothing is changed.

use hopyard_net::Handle;
use hopyard_switch::Switch;

use crate::call::Call;
use crate::conf::Conf;
use crate::error::{Error, Result, code};
use crate::switch::{look, other_switch_on};

/// Answers 50 where no container can be added, 51 where those that there are may be cut off as well.
pub(crate) fn status(call: &Call) -> Result<()> {
    let conf = Conf::of(call)?;
    check_switch(call, &conf)?;
    match &conf.ipam {
        Some(kind) => call.ipam(kind).status(),
        None => Ok(()),
    }
}

fn check_switch(call: &Call, conf: &Conf) -> Result<()> {
    let name = &conf.switch.name;
    let here = Handle::here()?;
    let found = look(&here, conf, &call.conf).map_err(|error| {
        let room = Switch::room(name).ok().flatten();
        unavailable(room.is_some_and(|room| room.has_ports), error.to_string())
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

fn unavailable(limited: bool, why: String) -> Error {
    let code = if limited {
        code::NOT_AVAILABLE_LIMITED
    } else {
        code::NOT_AVAILABLE
    };
    Error::new(code, why)
}
