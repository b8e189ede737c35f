//! Taking a port away to add it again: its program stays at the device meanwhile, and drops what that sends, which would otherwise
//! reach the host's own stack.

use aya::programs::links::{FdLink, PinnedLink};
use hopyard_net::ProgramLink;

use crate::error::{Error, Result};
use crate::here::Here;
use crate::hook::{Hook, port_link};
use crate::layout::SWITCH_BEHIND;
use crate::netkit;
use crate::port::{Found, NewPort, Program};
use crate::running;
use crate::switch::Switch;

/// The program of a port that was taken away; it leaves the device with this value.
pub(crate) struct LastProgram {
    link: FdLink,
    /// Of a netkit, the one where the guest sends.
    guest: Option<ProgramLink>,
    /// Index of the device.
    device: u32,
}

impl LastProgram {
    fn id(&self) -> Result<u32> {
        let info = self.link.info();
        let what = "ask which program a link runs";
        Ok(info.map_err(Error::bpf(what))?.program_id())
    }
}

impl Switch {
    /// Takes a port away as [`Switch::remove_port`] does, and gives its program, which goes on running. `None`: the program is gone, since
    /// it had no link (a classifier), or since another program came before it and a new one has to be attached.
    ///
    /// # Errors
    /// As [`Switch::remove_port`].
    pub(crate) fn remove_for_now(&mut self, device: &str) -> Result<Option<LastProgram>> {
        self.remove_after(device, |switch, here, slot| {
            let file = switch.directory.join(port_link(slot));
            if !file.exists() {
                return Ok(None);
            }
            let what = format!("open {}", file.display());
            let link = PinnedLink::from_pin(&file).map_err(Error::bpf(what))?;
            let last = LastProgram {
                link: link.into(),
                guest: netkit::held(&switch.directory, slot)?,
                device: here.handle.index(device)?,
            };
            let stays = switch.runs_in_place(here, device, &last)?;
            Ok(stays.then_some(last))
        })
    }

    /// Binds a device as [`Switch::add_port`] does. The program of its last port becomes that of this one, if it still runs at
    /// the device and no other program comes before it.
    ///
    /// # Errors
    /// As [`Switch::add_port`].
    pub(crate) fn add_again(&mut self, new: &NewPort<'_>, last: LastProgram) -> Result<()> {
        let what = format!("add port `{}` to switch `{}`", new.device, self.name);
        let _lock = self.lock()?;
        let taken = self.repair()?;
        let here = self.here(&what)?;
        self.learn_host(&here)?;
        let (link, programs) = if self.runs_in_place(&here, new.device, &last)? {
            let link = here.free_device_but(&what, new.device, Some(last.id()?))?;
            (link, (Program::Linked(last.link), last.guest))
        } else {
            // The kernel has to detach it before another one comes.
            drop(last);
            let link = here.free_device(&what, new.device)?;
            (link, (Program::None, None))
        };
        let found = Found::of(&here, link)?;
        self.add_found(&here, &taken, new, &found, programs)
            .map(drop)
    }

    /// Does the program run at the device of this name, which may be another one by now, and before those of others?
    fn runs_in_place(&self, here: &Here, device: &str, last: &LastProgram) -> Result<bool> {
        if here.handle.index(device)? != last.device {
            return Ok(false);
        }
        let id = last.id()?;
        let there = running::at(&here.handle, device, Hook::Port.side())?;
        let is_behind = self.state.config()?.flags & SWITCH_BEHIND != 0;
        let place = there.iter().position(|one| one.program == Some(id));
        Ok(place.is_some_and(|place| place == 0 || is_behind))
    }
}

/// They need root, as they make switches.
#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread;
    use std::time::{Duration, Instant};

    use aya::programs::tc::TcAttachOptions;
    use aya::programs::{LinkOrder, SchedClassifier};
    use hopyard_net::{Handle, LinkKind, NetNs, NewLink};

    use super::*;
    use crate::NewSwitch;
    use crate::hook::{DEVICE, program_file};

    fn port() -> NewPort<'static> {
        NewPort {
            device: "p0",
            ..NewPort::default()
        }
    }

    fn make_device(hub: &Handle) {
        let new = NewLink::new("p0", LinkKind::veth("q0", None));
        hub.add_link(&new).unwrap();
    }

    /// Runs a test in a namespace with a port `p0` of a switch.
    fn with_port(name: &str, test: impl FnOnce(&mut Switch, &Handle) + Send) {
        let name = format!("{name}-{}", std::process::id());
        let ns = NetNs::create().unwrap();
        let hub = Handle::new(&ns).unwrap();
        make_device(&hub);
        ns.run(|| {
            let new = NewSwitch {
                name: &name,
                ..NewSwitch::default()
            };
            let mut switch = Switch::create(&new).unwrap();
            switch.add_port(&port()).unwrap();
            test(&mut switch, &hub);
            Switch::remove(&name).unwrap();
        })
        .unwrap();
    }

    /// For each program at the port, in their order: is it a switch's?
    fn at_port(hub: &Handle) -> Vec<bool> {
        let there = running::at(hub, "p0", Hook::Port.side()).unwrap();
        there.iter().map(running::Running::is_ours).collect()
    }

    /// Attaches a program that is not one of ports before all others; it stays as long as this value.
    fn come_first(switch: &Switch) -> SchedClassifier {
        let file = switch.directory.join(program_file(DEVICE));
        let mut other = SchedClassifier::from_pin(file).unwrap();
        let first = TcAttachOptions::TcxOrder(LinkOrder::first());
        let hook = Hook::Port.attach_type();
        other.attach_with_options("p0", hook, first).unwrap();
        other
    }

    #[test]
    fn a_program_stays_between_two_ports() {
        with_port("stays", |switch, hub| {
            for _ in 0..3 {
                let last = switch.remove_for_now("p0").unwrap().unwrap();
                assert_eq!(at_port(hub), [true]);
                switch.add_again(&port(), last).unwrap();
                assert_eq!(at_port(hub), [true]);
            }
        });
    }

    #[test]
    fn a_device_that_was_made_anew_gets_a_program() {
        with_port("anew", |switch, hub| {
            let last = switch.remove_for_now("p0").unwrap().unwrap();
            hub.delete_link("p0").unwrap();
            make_device(hub);
            switch.add_again(&port(), last).unwrap();
            assert_eq!(at_port(hub), [true]);
            // The old device is there still, by another name.
            let last = switch.remove_for_now("p0").unwrap().unwrap();
            for (name, new) in [("p0", "old"), ("q0", "old-in")] {
                let words = ["link", "set", name, "name", new];
                assert!(Command::new("ip").args(words).status().unwrap().success());
            }
            make_device(hub);
            switch.add_again(&port(), last).unwrap();
            assert_eq!(at_port(hub), [true]);
        });
    }

    #[test]
    fn a_program_comes_first_again() {
        with_port("first", |switch, hub| {
            let other = come_first(switch);
            assert_eq!(at_port(hub), [false, true]);
            assert!(switch.remove_for_now("p0").unwrap().is_none());
            switch.add_port(&port()).unwrap();
            assert_eq!(at_port(hub), [true, false]);
            drop(other);
            let began = Instant::now();
            while at_port(hub) != [true] {
                assert!(began.elapsed() < Duration::from_secs(10));
                thread::sleep(Duration::from_millis(1));
            }
            // Another one comes in between.
            let last = switch.remove_for_now("p0").unwrap().unwrap();
            let _other = come_first(switch);
            switch.add_again(&port(), last).unwrap();
            assert_eq!(at_port(hub), [true, false]);
        });
    }
}
