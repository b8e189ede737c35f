//! ND6: what it takes from nothing to a guest that works, with a bridge and with the direct switch; and
//! whether mistakes are noticed.

use hopyard_net::{Handle, Link, NewLink};
use hopyard_switch::{Mac, NewPort, NewSwitch, Switch};

use super::site::{FAR, HOST, Site, guest, mac, reaches, reaches_soon, v4};
use super::{Error, FunctionalCheck, Result};
use crate::lab::{LabId, forwarding_bridge};

/// Steps of a set-up, each named, done in turn.
struct Steps(Vec<&'static str>);

impl Steps {
    fn step<T>(&mut self, what: &'static str, done: Result<T>) -> Result<T> {
        self.0.push(what);
        done
    }
}

/// A bridge as administrators make it today, in no more steps than it takes: the uplink becomes a port as it is, and its address moves
/// to the bridge.
fn with_a_bridge(site: &Site) -> Result<Steps> {
    let hub: &Handle = &site.hub;
    let side = &site.sides[0];
    let mut steps = Steps(Vec::new());
    let bridge = NewLink {
        up: true,
        ..NewLink::new("br0", forwarding_bridge())
    };
    steps.step("make the bridge", Ok(hub.add_link(&bridge)?))?;
    steps.step("add the uplink", Ok(hub.set_master(&side.uplink, "br0")?))?;
    steps.step("add the guest", Ok(hub.set_master(&side.port(0), "br0")?))?;
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

/// As with an adapter in hardware, which takes frames to its own address alone until it is told otherwise. A bridge tells it.
fn with_the_switch(site: &Site) -> Result<Steps> {
    let uplink = &site.sides[0].uplink;
    let mut steps = Steps(Vec::new());
    steps.step("make the switch on the uplink", site.create(0))?;
    steps.step(
        "have the uplink take all frames",
        Ok(site.hub.take_all_frames(uplink)?),
    )?;
    steps.step("add the guest", site.bind(0, 0))?;
    Ok(steps)
}

/// What a set-up left behind on the host: devices that there were not, and what of the others is not as it was.
fn entities(before: &[Link], after: &[Link], beside: &[&str]) -> Vec<String> {
    let mut all: Vec<String> = beside.iter().map(|one| (*one).to_owned()).collect();
    for link in after {
        let name = &link.name;
        match before.iter().find(|known| known.index == link.index) {
            None => all.push(format!("device {name}")),
            Some(known) => {
                let of = [
                    ("master", known.master != link.master),
                    ("promiscuity", known.promiscuous != link.promiscuous),
                    ("state", known.up != link.up),
                ];
                let changed = of.iter().filter(|(_, changed)| *changed);
                all.extend(changed.map(|(what, _)| format!("{what} of {name}")));
            }
        }
    }
    all
}

/// Each single mistake with the switch; those that it does not refuse.
fn silent_mistakes(site: &Site) -> Result<(usize, Vec<&'static str>)> {
    let side = &site.sides[0];
    let name = &side.switch;
    let create = |name: &str, uplink: Option<&str>| {
        let new = NewSwitch {
            name,
            uplink,
            answers: false,
            ..NewSwitch::default()
        };
        site.hub.ns().run(|| Switch::create(&new).map(drop))
    };
    // Nothing is left of one that is made in spite of the mistake.
    let create_other = |uplink: &str| {
        let other = LabId::next().switch_name();
        let done = create(&other, Some(uplink))?;
        if done.is_ok() {
            Switch::discard(&other)?;
        }
        Ok::<_, Error>(done)
    };
    let add = |name: &str, device: &str| {
        let port = NewPort {
            device,
            ..NewPort::default()
        };
        site.hub.ns().run(|| Switch::open(name)?.add_port(&port))
    };
    let mistakes = [
        ("an uplink that there is not", create_other("nosuch")?),
        ("an uplink that has a switch", create_other(&side.uplink)?),
        ("a name that is taken", create(name, None)?),
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

/// The mistake that no check of a device can find: the guest is bound to another uplink than its own.
fn wrong_uplink(objects: impl Fn(&Site) -> Result<bool>) -> Result<bool> {
    let site = Site::new(2, 1)?;
    let refused = objects(&site)?;
    let own = &site.sides[0];
    let works = !refused && reaches_soon(&own.guests[0], &own.far, v4(0, FAR))?;
    // It is silent where nobody objects and nothing works.
    Ok(!refused && !works)
}

/// By the switch: is the wrong uplink passed over in silence, by its own warnings too?
fn switch_says_nothing() -> Result<bool> {
    wrong_uplink(|site| {
        site.create(1)?;
        let (switch, port) = (&site.sides[1].switch, site.sides[0].port(0));
        let port = NewPort {
            device: &port,
            macs: vec![Mac(mac(0, guest(0)))],
            ..NewPort::default()
        };
        if site
            .hub
            .ns()
            .run(|| Switch::open(switch)?.add_port(&port))?
            .is_err()
        {
            return Ok(true);
        }
        let shown = site.hub.ns().run(|| Switch::open(switch)?.show())??;
        Ok(!shown.warnings.is_empty())
    })
}

/// By the bridge.
fn bridge_says_nothing() -> Result<bool> {
    wrong_uplink(|site| {
        let bridge = NewLink {
            up: true,
            ..NewLink::new("br0", forwarding_bridge())
        };
        site.hub.add_link(&bridge)?;
        site.hub.set_master(&site.sides[1].uplink, "br0")?;
        Ok(site.hub.set_master(&site.sides[0].port(0), "br0").is_err())
    })
}

/// Fewer steps and fewer entities than a bridge, and no mistake goes unnoticed.
pub(super) fn fewer_than_a_bridge() -> Result<FunctionalCheck> {
    let works = |site: &Site| -> Result<bool> {
        let side = &site.sides[0];
        let wire = reaches(&side.guests[0], &side.far, v4(0, FAR))?;
        Ok(wire && reaches(&side.guests[0], &site.hub, v4(0, HOST))?)
    };
    let bridged = Site::new(1, 1)?;
    let before = bridged.hub.links()?;
    let bridge = with_a_bridge(&bridged)?;
    let bridge_works = works(&bridged)?;
    let of_bridge = entities(&before, &bridged.hub.links()?, &["the moved address"]);
    let site = Site::new(1, 1)?;
    let before = site.hub.links()?;
    let direct = with_the_switch(&site)?;
    let direct_works = works(&site)?;
    let of_direct = entities(&before, &site.hub.links()?, &["the switch", "its port"]);
    let (tried, mut silent) = silent_mistakes(&site)?;
    if switch_says_nothing()? {
        silent.push(if bridge_says_nothing()? {
            "an uplink that is not the guest's, as with a bridge"
        } else {
            "an uplink that is not the guest's, which a bridge would have told"
        });
    }
    let tried = tried + 1;
    let unnoticed = match silent.as_slice() {
        [] => format!("all {tried} mistakes tried were refused"),
        silent => format!(
            "of {tried} mistakes tried {} went unnoticed: {}",
            silent.len(),
            silent.join(", ")
        ),
    };
    let does = |works: bool| if works { "works" } else { "does not work" };
    Ok(FunctionalCheck {
        passed: bridge_works
            && direct_works
            && direct.0.len() < bridge.0.len()
            && of_direct.len() < of_bridge.len()
            && silent.is_empty(),
        seen: format!(
            "a guest {} after {} steps ({}) and {} things made or changed ({}), with a bridge it {} after {} ({}) and {} ({}); {unnoticed}",
            does(direct_works),
            direct.0.len(),
            direct.0.join(", "),
            of_direct.len(),
            of_direct.join(", "),
            does(bridge_works),
            bridge.0.len(),
            bridge.0.join(", "),
            of_bridge.len(),
            of_bridge.join(", ")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ND6 counts what the kernel shows to be new or other, the promiscuity of a device as well.
    #[test]
    fn what_a_set_up_changes_is_counted() {
        let link = |index: u32, name: &str| {
            let mut link = Link::default();
            (link.index, link.name, link.up) = (index, name.to_owned(), true);
            link
        };
        let before = [link(1, "lo"), link(2, "up0"), link(3, "p0-0")];
        let mut after = before.to_vec();
        assert!(entities(&before, &after, &[]).is_empty());
        after.push(link(4, "br0"));
        after[1].master = Some(4);
        after[1].promiscuous = true;
        after[2].up = false;
        assert_eq!(
            entities(&before, &after, &["the moved address"]),
            [
                "the moved address",
                "master of up0",
                "promiscuity of up0",
                "state of p0-0",
                "device br0"
            ]
        );
    }
}
