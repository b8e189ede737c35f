//! ND6: what it takes from nothing to a guest that works, with a bridge and with the direct switch; and
//! whether mistakes are noticed.

use hopyard_net::{Handle, NewLink};
use hopyard_switch::{NewPort, NewSwitch, Switch};

use super::site::{FAR, HOST, Site, reaches, v4};
use super::{FunctionalCheck, Result};
use crate::lab::forwarding_bridge;

/// Steps of a set-up, each named, done in turn.
struct Steps(Vec<&'static str>);

impl Steps {
    fn step<T>(&mut self, what: &'static str, done: Result<T>) -> Result<T> {
        self.0.push(what);
        done
    }
}

/// A bridge as administrators make it: the uplink becomes a port, its address moves to the bridge.
fn with_a_bridge(site: &Site) -> Result<Steps> {
    let hub: &Handle = &site.hub;
    let side = &site.sides[0];
    let mut steps = Steps(Vec::new());
    let bridge = NewLink::new("br0", forwarding_bridge());
    steps.step("make the bridge", Ok(hub.add_link(&bridge)?))?;
    steps.step("take the uplink down", Ok(hub.set_down(&side.uplink)?))?;
    steps.step("add the uplink", Ok(hub.set_master(&side.uplink, "br0")?))?;
    steps.step("bring the uplink up", Ok(hub.set_up(&side.uplink)?))?;
    steps.step("add the guest", Ok(hub.set_master(&side.port(0), "br0")?))?;
    steps.step("bring the bridge up", Ok(hub.set_up("br0")?))?;
    steps.step(
        "take the uplink's address",
        Ok(hub.delete_address(&side.uplink, v4(0, HOST), 24)?),
    )?;
    steps.step(
        "give it to the bridge",
        Ok(hub.add_address("br0", v4(0, HOST), 24)?),
    )?;
    Ok(steps)
}

fn with_the_switch(site: &Site) -> Result<Steps> {
    let mut steps = Steps(Vec::new());
    steps.step("make the switch on the uplink", site.create(0))?;
    steps.step("add the guest", site.bind(0, 0))?;
    Ok(steps)
}

/// Each single mistake with the switch; those that it does not refuse.
fn silent_mistakes(site: &Site) -> Result<(usize, Vec<&'static str>)> {
    let side = &site.sides[0];
    let (name, other) = (&side.switch, "claims-mistake");
    let create = |name: &str, uplink: &str| {
        let new = NewSwitch {
            name,
            uplink: Some(uplink),
            answers: false,
            ..NewSwitch::default()
        };
        site.hub.ns().run(|| Switch::create(&new).map(drop))
    };
    let add = |name: &str, device: &str| {
        let port = NewPort {
            device,
            ..NewPort::default()
        };
        site.hub.ns().run(|| Switch::open(name)?.add_port(&port))
    };
    let mistakes = [
        ("an uplink that there is not", create(other, "nosuch")?),
        ("an uplink that has a switch", create(other, &side.uplink)?),
        ("a name that is taken", create(name, "lo")?),
        (
            "a port of a switch that there is not",
            add("claims-nosuch", &side.port(0))?,
        ),
        ("a device that there is not", add(name, "nosuch")?),
        ("a device that is a port already", add(name, &side.port(0))?),
        ("the uplink as a port", add(name, &side.uplink)?),
    ];
    let silent = mistakes.iter().filter(|(_, done)| done.is_ok());
    Ok((mistakes.len(), silent.map(|(what, _)| *what).collect()))
}

/// Fewer steps and fewer entities than a bridge, and no mistake goes unnoticed.
pub(super) fn fewer_than_a_bridge() -> Result<FunctionalCheck> {
    let works = |site: &Site| -> Result<bool> {
        let side = &site.sides[0];
        let wire = reaches(&side.guests[0], &side.far, v4(0, FAR))?;
        Ok(wire && reaches(&side.guests[0], &site.hub, v4(0, HOST))?)
    };
    let bridged = Site::new(1, 1)?;
    let before = bridged.hub.links()?.len();
    let bridge = with_a_bridge(&bridged)?;
    let bridge_works = works(&bridged)?;
    let devices = bridged.hub.links()?.len() - before;
    let site = Site::new(1, 1)?;
    let direct = with_the_switch(&site)?;
    let direct_works = works(&site)?;
    let (tried, silent) = silent_mistakes(&site)?;
    let unnoticed = match silent.as_slice() {
        [] => format!("all {tried} mistakes tried were refused"),
        silent => format!("unnoticed: {}", silent.join(", ")),
    };
    let does = |works: bool| if works { "works" } else { "does not work" };
    Ok(FunctionalCheck {
        passed: bridge_works
            && direct_works
            && direct.0.len() < bridge.0.len()
            && silent.is_empty(),
        seen: format!(
            "a guest {} after {} steps ({}) and no further device, with a bridge it {} after {} ({}) and {devices} more; {unnoticed}",
            does(direct_works),
            direct.0.len(),
            direct.0.join(", "),
            does(bridge_works),
            bridge.0.len(),
            bridge.0.join(", ")
        ),
    })
}
