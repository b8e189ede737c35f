//! What programs ask that attach guests by themselves: is there room, is this a port, is the switch still used?

use std::net::IpAddr;
use std::path::Path;

use hopyard_net::Handle;

use crate::attached::UPLINK;
use crate::bpffs::{check_name, directory, is_directory};
use crate::error::Result;
use crate::here::{Here, device_name};
use crate::hook::{Hook, Hooks, uplink_link};
use crate::layout::{
    Config, FIRST_PORT, HOLDS_ADDRESS, HOLDS_STATION, MAX_SLOTS, PORT_ANY_SOURCE, PORT_ISOLATED,
    SWITCH_MOVING,
};
use crate::lock::Lock;
use crate::mac::Mac;
use crate::programs;
use crate::rate::Rate;
use crate::running::ours_at;
use crate::state::{self, Stage, State, stage};
use crate::switch::Switch;
use crate::teardown;

/// A switch as it is found without waiting for anybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glance {
    /// Inode number of its network namespace.
    pub netns: u64,
    /// Index of the uplink, where it has one.
    pub uplink: Option<u32>,
    /// The name of the uplink; the one it had where it is gone or in another namespace.
    pub uplink_name: Option<String>,
    /// The Ethernet address that the uplink had when it became that.
    pub uplink_mac: Option<Mac>,
    /// Are the files there that keep the programs at the uplink? Whether these run, [`runs_at_uplink`] asks the kernel, which takes its RTNL
    /// lock for the answer.
    pub has_uplink_files: bool,
}

/// How many ports a switch has, as far as anybody asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Is there a port whose device is there?
    pub has_ports: bool,
    /// Are there as many ports as there can be?
    pub is_full: bool,
}

/// A port of a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// The Ethernet addresses that are its, the guest's own among them.
    pub macs: Vec<Mac>,
    /// The IP addresses that it is held to; none: any, or none until it gets some ([`NewPort::ips_follow`](crate::NewPort)).
    pub ips: Vec<IpAddr>,
    /// Its VLAN; `None`: untagged.
    pub vlan: Option<u16>,
    /// Does it talk to the uplink and the host only?
    pub isolated: bool,
    /// May the guest send from addresses that are not its own?
    pub allow_spoof: bool,
    /// How fast it may get frames.
    pub rate_in: Rate,
    /// How fast it may send.
    pub rate_out: Rate,
    /// Does the switch's program run at the device? Without it the guest's frames go to the host's own stack.
    pub runs: bool,
}

/// Do a switch's programs run at its uplink, a device of the handle's namespace, which is the calling thread's? Somebody may have detached
/// them, or removed their files. Takes no lock.
///
/// # Errors
/// The device is gone, or may not be looked at.
pub fn runs_at_uplink(handle: &Handle, device: &str) -> Result<bool> {
    for hook in UPLINK {
        if ours_at(handle, device, hook)?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Switch {
    /// Looks at a switch without the lock, and finishes nothing that an interrupted command left: for programs that ask
    /// every few seconds. `None`: there is none of that name, or it is not finished.
    ///
    /// # Errors
    /// Its state is another version's, or cannot be read.
    pub fn glance(name: &str) -> Result<Option<Glance>> {
        of_whole(name, glance_at)
    }

    /// Does a switch have ports, and could it have more? Without the lock, too.
    ///
    /// # Errors
    /// As [`Switch::glance`].
    pub fn room(name: &str) -> Result<Option<Room>> {
        of_whole(name, room_at)
    }

    /// What is known of a device as a port; `None`: it is no port of this switch, or there is no such device in the calling
    /// thread's namespace.
    ///
    /// # Errors
    /// The switch is in another namespace, or the kernel's maps cannot be read.
    pub fn port(&self, device: &str) -> Result<Option<Port>> {
        let here = self.here(&format!(
            "look for port `{device}` of switch `{}`",
            self.name
        ))?;
        let index = match here.handle.index(device) {
            Err(hopyard_net::Error::Missing { .. }) => return Ok(None),
            found => found?,
        };
        let Some(slot) = self.state.slot_of(index) else {
            return Ok(None);
        };
        let record = self.state.port(slot)?;
        let [rate_in, rate_out] = self.rates(slot, &record)?;
        let mut port = Port {
            macs: Vec::new(),
            ips: Vec::new(),
            vlan: (record.vlan != 0).then_some(record.vlan),
            isolated: record.flags & PORT_ISOLATED != 0,
            allow_spoof: record.flags & PORT_ANY_SOURCE != 0,
            rate_in,
            rate_out,
            runs: !ours_at(&here.handle, device, Hook::Port)?.is_empty(),
        };
        for (_, holding) in self.state.holdings(slot, record.holdings)? {
            match holding.kind {
                HOLDS_STATION => port.macs.push(Mac::from_number(holding.station)),
                HOLDS_ADDRESS => port.ips.push(holding.address.ip()),
                _ => {}
            }
        }
        Ok(Some(port))
    }

    /// Removes the switch of a name if it has no ports, under the lock: nobody adds one in between. Says whether there is
    /// none of that name now. One that had an uplink which is gone, with its namespace for example, is removed from any other.
    ///
    /// # Errors
    /// The switch is in another namespace or of another version; something of it cannot be removed.
    pub fn remove_unused(name: &str) -> Result<bool> {
        check_name("remove a switch", name)?;
        let directory = directory(name);
        // To see a port takes no lock. Each caller has let go of its own port before, so that the last one sees none.
        if of_whole(name, state::has_ports)? == Some(true) {
            return Ok(false);
        }
        let Some(_lock) = Lock::at_home()?.filter(|_| is_directory(&directory)) else {
            return Ok(true);
        };
        stage(&directory)?.check_layout(name)?;
        let mut switch = Self {
            name: name.to_owned(),
            state: State::open(&directory)?,
            directory,
            forgotten: Vec::new(),
        };
        if !switch.is_deserted()? {
            let _: Here = switch.here(&format!("remove switch `{name}`"))?;
            if switch.state.has_ports()? || !switch.repair()?.is_empty() {
                return Ok(false);
            }
        }
        teardown::all(&switch.directory)?;
        Ok(true)
    }

    /// Are its uplink and all its ports gone, as after the end of its namespace? The links of the uplink tell. Classifiers have none, so a
    /// switch with classifiers counts as in use.
    fn is_deserted(&self) -> Result<bool> {
        let config = self.state.config()?;
        let may_be = config.uplink != 0 && config.hooks() == Hooks::Tcx;
        // While the uplink is being exchanged, programs run at another device already.
        if !may_be || config.flags & SWITCH_MOVING != 0 || self.state.has_ports()? {
            return Ok(false);
        }
        for hook in UPLINK {
            let link = uplink_link(hook);
            if !self.directory.join(link).exists() || programs::update(&self.directory, hook, link)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What `look` finds in the directory of a switch that is whole; `None`: there is none.
pub(crate) fn of_whole<T>(name: &str, look: impl FnOnce(&Path) -> Result<T>) -> Result<Option<T>> {
    check_name("find a switch", name)?;
    let directory = directory(name);
    let found = || {
        if !is_directory(&directory) {
            return Ok(None);
        }
        match stage(&directory)? {
            Stage::Unfinished => return Ok(None),
            found => found.check_layout(name)?,
        }
        look(&directory).map(Some)
    };
    match found() {
        // Somebody removed it meanwhile, or is about to: the settings say so first.
        Err(_) if matches!(stage(&directory), Ok(Stage::Unfinished)) => Ok(None),
        found => found,
    }
}

/// Opens no map but those that it reads: plugins ask for this each time that they attach a guest.
fn glance_at(directory: &Path) -> Result<Glance> {
    let config = state::config_of(directory)?;
    let uplink = (config.uplink != 0).then_some(config.uplink);
    let uplink_name = match uplink.map(device_name) {
        Some(Some(name)) => Some(name),
        Some(None) => Some(State::open(directory)?.uplink_name()?),
        None => None,
    };
    Ok(Glance {
        netns: config.netns,
        uplink,
        uplink_name,
        uplink_mac: uplink.map(|_| Mac::from_number(config.host_mac)),
        has_uplink_files: has_uplink_files(directory, &config),
    })
}

/// Of a switch without an uplink, or with classifiers, which have none, nothing is missing.
fn has_uplink_files(directory: &Path, config: &Config) -> bool {
    let has_some = config.uplink != 0 && config.hooks() == Hooks::Tcx;
    let is_there = |hook| directory.join(uplink_link(hook)).exists();
    !has_some || UPLINK.into_iter().all(is_there)
}

fn room_at(directory: &Path) -> Result<Room> {
    let state = State::open(directory)?;
    let config = state.config()?;
    let mut has_ports = false;
    let mut has_room = config.slots < MAX_SLOTS;
    for slot in FIRST_PORT..config.slots {
        if has_ports && has_room {
            break;
        }
        match state.is_tied(slot)? {
            true => has_ports = true,
            false => has_room = true,
        }
    }
    Ok(Room {
        has_ports,
        is_full: !has_room,
    })
}

/// They need root, as they make switches.
#[cfg(test)]
mod tests {
    use hopyard_net::{LinkKind, NetNs, NewLink};

    use super::*;
    use crate::error::Error;
    use crate::{NewSwitch, NewUplink};

    /// Runs a test with a switch that has an uplink and no port, in a namespace of its own.
    fn with_uplink(name: &str, test: impl FnOnce(&str, &Handle)) {
        let name = format!("{name}-{}", std::process::id());
        let hub = Handle::new(&NetNs::create().unwrap()).unwrap();
        for device in ["up0", "up1"] {
            let kind = LinkKind::veth(format!("{device}-far"), None);
            hub.add_link(&NewLink::new(device, kind)).unwrap();
        }
        let create = || {
            let new = NewSwitch {
                name: &name,
                uplink: Some("up0"),
                ..NewSwitch::default()
            };
            Switch::create(&new).map(drop).unwrap();
        };
        hub.ns().run(create).unwrap();
        test(&name, &hub);
        Switch::discard(&name).unwrap();
    }

    fn elsewhere(name: &str) -> Result<bool> {
        let other = NetNs::create().unwrap();
        other.run(|| Switch::remove_unused(name)).unwrap()
    }

    #[test]
    fn a_switch_is_removed_from_elsewhere_only_when_its_uplink_is_gone() {
        with_uplink("deserted", |name, hub| {
            let refused = elsewhere(name).unwrap_err();
            assert!(matches!(refused, Error::OtherNamespace { .. }), "{refused}");
            assert!(Switch::glance(name).unwrap().is_some());
            hub.delete_link("up0").unwrap();
            assert!(elsewhere(name).unwrap());
            assert_eq!(Switch::glance(name).unwrap(), None);
        });
    }

    /// The old uplink is gone, and the programs run at the new one already.
    #[test]
    fn a_switch_whose_uplink_is_being_exchanged_stays() {
        with_uplink("exchanged", |name, hub| {
            let begin = || {
                let mut switch = Switch::open(name).unwrap();
                let config = switch.state.config().unwrap();
                let flags = config.flags | SWITCH_MOVING;
                switch
                    .state
                    .set_config(crate::layout::Config { flags, ..config })
                    .unwrap();
            };
            hub.ns().run(begin).unwrap();
            hub.delete_link("up0").unwrap();
            let refused = elsewhere(name).unwrap_err();
            assert!(matches!(refused, Error::OtherNamespace { .. }), "{refused}");
            assert!(Switch::glance(name).unwrap().is_some());
            // It is finished at home.
            let again = || {
                let mut switch = Switch::open(name).unwrap();
                let device = "up1";
                switch
                    .set_uplink(&NewUplink {
                        device,
                        host_macs: None,
                    })
                    .unwrap();
            };
            hub.ns().run(again).unwrap();
            assert_eq!(
                Switch::glance(name).unwrap().unwrap().uplink,
                Some(hub.index("up1").unwrap())
            );
        });
    }
}
