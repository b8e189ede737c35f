//! The switch of a network: what can be said of it beforehand, and its ports.

use std::time::{Duration, Instant};

use hopyard_net::{Error as NetError, Handle, Link};
use hopyard_switch::{
    Error as SwitchError, Glance, NewPort, NewSwitch, NewUplink, Switch, has_tcx,
};

use crate::conf::Conf;
use crate::error::{Error, Result, code};
use crate::names::SwitchName;
use crate::values::invalid;

/// How long others may make and remove the switch over and over while a port is to be added.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is there before anything is made.
pub(crate) struct Found {
    /// The switch, if it is there.
    pub(crate) glance: Option<Glance>,
    /// The MTU that containers get; `None`: the kernel's.
    pub(crate) mtu: Option<u32>,
    /// The device to the wire.
    pub(crate) uplink: Option<Link>,
    /// Was that device made again, given another Ethernet address, or rid of the programs, since the plugin's switch has it as its uplink?
    /// Then the containers there are cut off from the wire or from the host.
    pub(crate) uplink_is_remade: bool,
}

/// Looks whether the configuration fits what is there, and gives it the switch's name as [`glance`] does. Takes no lock and changes
/// nothing.
pub(crate) fn look(here: &Handle, conf: &mut Conf, document: &serde_json::Value) -> Result<Found> {
    if !has_tcx() {
        let msg = "the direct switch takes Linux 6.6 or newer (tcx hooks)";
        return Err(Error::new(code::KERNEL, msg));
    }
    let glance = glance(here, conf)?;
    let name = &conf.switch.name;
    if glance.is_none() && !conf.switch.is_own {
        let why = format!(
            "is no switch that is there: `hopyard switch create {name} --uplink DEV`, or leave the key out and give `master`"
        );
        return Err(invalid("switch", &document["switch"], &why));
    }
    if let Some(glance) = &glance
        && glance.netns != here.ns().inode()?
    {
        let msg = format!(
            "switch `{name}` is in another network namespace than the plugin runs in; if that namespace is gone: `hopyard switch delete {name}`"
        );
        return Err(Error::new(code::BAD_CONFIG, msg));
    }
    let uplink = match &conf.master {
        Some(master) => match here.link(master) {
            Err(NetError::Missing { .. }) => {
                let why = "is no device of this host";
                return Err(invalid("master", &document["master"], why));
            }
            link => Some(link?),
        },
        None => match glance
            .as_ref()
            .and_then(|glance| glance.uplink_name.as_ref())
        {
            // Of one that is gone the advice is below.
            Some(device) => match here.link(device) {
                Err(NetError::Missing { .. }) => None,
                link => Some(link?),
            },
            None => None,
        },
    };
    let index = uplink.as_ref().map(|link| link.index);
    let mac = uplink.as_ref().and_then(|link| link.mac);
    // A new namespace may get the inode number of one that is gone, and a device in it the index of the old uplink.
    let other = glance.as_ref().filter(|glance| {
        let has_its_mac = glance.uplink_mac.map(|mac| mac.0) == mac;
        glance.uplink != index || conf.switch.is_own && !has_its_mac
    });
    // `master` may be an alternative name of it.
    let uplink_name = uplink.as_ref().map(|link| link.name.as_str());
    let is_remade = |glance: &Glance| {
        conf.switch.is_own
            && uplink.is_some()
            && [uplink_name, conf.master.as_deref()].contains(&glance.uplink_name.as_deref())
    };
    if let Some(glance) = other.filter(|glance| !is_remade(glance)) {
        return Err(other_uplink(name, glance, uplink_name, conf, document));
    }
    let is_bare = glance
        .as_ref()
        .is_some_and(|glance| !glance.has_uplink_files);
    if is_bare && !conf.switch.is_own {
        let msg = bare_uplink(name, uplink_name.unwrap_or_default());
        return Err(Error::new(code::BAD_CONFIG, msg));
    }
    let uplink_is_remade = other.is_some() || is_bare;
    let most = uplink.as_ref().map(|link| link.mtu);
    if let (Some(mtu), Some(link)) = (conf.mtu, &uplink)
        && mtu > link.mtu
    {
        let why = format!(
            "is more than the {} of `{}`: longer frames would be dropped",
            link.mtu, link.name
        );
        return Err(invalid("mtu", &document["mtu"], &why));
    }
    Ok(Found {
        glance,
        mtu: conf.mtu.or(most),
        uplink,
        uplink_is_remade,
    })
}

/// What to say of an uplink at which no program runs.
pub(crate) fn bare_uplink(switch: &str, uplink: &str) -> String {
    format!(
        "the programs of switch `{switch}` do not run at its uplink `{uplink}` any more: somebody detached them; \
         `hopyard switch uplink {switch} {uplink}`"
    )
}

fn other_uplink(
    name: &str,
    glance: &Glance,
    uplink: Option<&str>,
    conf: &Conf,
    document: &serde_json::Value,
) -> Error {
    let had = glance.uplink_name.as_deref().unwrap_or("none");
    match &conf.master {
        Some(master)
            if [Some(master.as_str()), uplink].contains(&glance.uplink_name.as_deref()) =>
        {
            let why = format!(
                "was made again since switch `{name}` has it as its uplink: `hopyard switch uplink {name} {master}`"
            );
            invalid("master", &document["master"], &why)
        }
        Some(master) => {
            let why = format!(
                "is not the uplink of switch `{name}`, which has {had}: `hopyard switch uplink {name} {master}`, or another \
                 switch"
            );
            invalid("master", &document["master"], &why)
        }
        None => {
            let msg = format!(
                "the uplink of switch `{name}` ({had}) is gone: `hopyard switch uplink {name} DEV` when it is back"
            );
            Error::new(code::BAD_CONFIG, msg)
        }
    }
}

/// The switch of a network, if it is there. A `master` that was renamed keeps the switch that was made for it under its former name,
/// which the configuration gets.
pub(crate) fn glance(here: &Handle, conf: &mut Conf) -> Result<Option<Glance>> {
    let name = &conf.switch.name;
    let found = Switch::glance(name)?;
    let Some(master) = conf.master.as_deref().filter(|_| conf.switch.is_own) else {
        return Ok(found);
    };
    if found.is_none()
        && let Ok(index) = here.index(master)
        && let Some(other) = other_switch_on(here.ns().inode()?, index, name)
        && SwitchName::is_of_the_plugin(&other)
    {
        conf.switch.name = other;
        return Ok(Switch::glance(&conf.switch.name)?);
    }
    Ok(found)
}

/// Makes `master`, which was made again, the uplink of the plugin's switch again.
pub(crate) fn find_uplink_again(conf: &Conf) -> Result<()> {
    let Some(device) = conf.master.as_deref() else {
        return Ok(());
    };
    let again = NewUplink {
        device,
        host_macs: None,
    };
    let found = Switch::open(&conf.switch.name).and_then(|mut switch| switch.set_uplink(&again));
    match found {
        // Whoever adds a port makes it anew.
        Err(SwitchError::NoSwitch { .. }) => Ok(()),
        found => Ok(found?),
    }
}

/// Adds a port, making the switch first where that is the plugin's to do. Others may remove it meanwhile, after its last
/// port: then it is made again.
pub(crate) fn add_port(conf: &Conf, port: &NewPort<'_>) -> Result<Switch> {
    let end = Instant::now() + PATIENCE;
    loop {
        let added = match Switch::add_port_to(&conf.switch.name, port) {
            Err(SwitchError::NoSwitch { .. }) if conf.switch.is_own && Instant::now() < end => {
                match make(conf) {
                    Ok(_) | Err(SwitchError::NoSwitch { .. }) => continue,
                    Err(error) => Err(error),
                }
            }
            added => added,
        };
        return added.map_err(|error| with_advice(error, conf));
    }
}

/// Makes the switch, or finds it where somebody else has made it first.
fn make(conf: &Conf) -> hopyard_switch::Result<Switch> {
    let name = &conf.switch.name;
    let new = NewSwitch {
        name,
        uplink: conf.master.as_deref(),
        // The switch knows the addresses of its ports. Otherwise it would copy each ARP request and neighbour solicitation to all of them.
        answers: true,
        ..NewSwitch::default()
    };
    match Switch::create(&new) {
        Err(_) if Switch::glance(name).is_ok_and(|found| found.is_some()) => Switch::open(name),
        made => made,
    }
}

/// The name of a switch that has a device of this namespace (by its inode) as its uplink, but for this one.
pub(crate) fn other_switch_on(netns: u64, device: u32, but: &str) -> Option<String> {
    let names = Switch::names().unwrap_or_default();
    names.into_iter().filter(|name| name != but).find(|name| {
        // Those of other versions cannot be looked into.
        let glance = Switch::glance(name).ok().flatten();
        glance.is_some_and(|glance| glance.netns == netns && glance.uplink == Some(device))
    })
}

fn with_advice(error: SwitchError, conf: &Conf) -> Error {
    let mut error = Error::from(error);
    if let Some(master) = &conf.master
        && conf.switch.is_own
        && error.msg.contains("is the uplink of switch")
    {
        error.msg +=
            &format!(": name that with `switch` instead of making another one on {master}");
    }
    error
}

/// Takes a device that is about to be removed off the switch, if it can be a port in the network namespace of the switch. There is nothing
/// to do where the switch is gone. Where it is in another namespace, it must have no port whose device is there: then that namespace is gone.
pub(crate) fn release_port(
    switch: &str,
    device: &str,
    can_be_in: impl Fn(u64) -> bool,
) -> Result<()> {
    match Switch::release_ports(switch, &[device]) {
        Err(SwitchError::OtherNamespace { home, .. }) if !can_be_in(home) => Ok(()),
        Err(error @ SwitchError::OtherNamespace { .. }) => match Switch::open(switch) {
            Err(SwitchError::NoSwitch { .. }) => Ok(()),
            Err(error) => Err(error.into()),
            // Ports without a device, and half-made ones, went as it was opened.
            Ok(_) if Switch::room(switch)?.is_some_and(|room| room.has_ports) => Err(error.into()),
            Ok(_) => Ok(()),
        },
        released => unless_foreign(released),
    }
}

/// Removes a switch of the plugin's that has no ports any more.
pub(crate) fn remove_unused(switch: &SwitchName) -> Result<()> {
    if !switch.is_own {
        return Ok(());
    }
    match Switch::remove_unused(&switch.name) {
        // Whoever made it there, where its devices are, removes it there.
        Err(SwitchError::OtherNamespace { .. }) => Ok(()),
        removed => unless_foreign(removed.map(drop)),
    }
}

/// A switch of another version stays as it is, and nothing has to be done there: the program of a port goes with its device,
/// which the caller removes.
fn unless_foreign(done: hopyard_switch::Result<()>) -> Result<()> {
    match done {
        Err(SwitchError::OtherLayout { .. }) => Ok(()),
        done => Ok(done?),
    }
}
