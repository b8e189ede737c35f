//! What paths build labs with; dropping it takes down what was built.

mod devices;

use std::any::Any;
use std::path::Path;

use hopyard_net::{Handle, allow_files};

use super::kept::Kept;
use super::part::{Part, undo};
use super::topology::{Addresses, Endpoint, Space, Subnet, role};
use super::{Endpoints, Error, LabId, Result};
use crate::model::{Axes, OffloadFlag};

/// Name of the device that carries an endpoint's addresses.
pub(super) const ETH: &str = "eth0";

/// New namespaces take reverse path filters over from the host, whatever it has.
pub(super) const SYSCTLS: [(&str, &str); 3] = [
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    ("net/ipv4/ip_local_port_range", "1024 65535"),
];
/// Files that a namespace takes: what acts in it, and the pipes of a worker.
const FILES_EACH: u64 = 10;

/// Labs have addresses of both IP versions, whichever one is measured.
fn check_ipv6() -> Result<()> {
    if Path::new("/proc/sys/net/ipv6").exists() {
        return Ok(());
    }
    Err(Error::Net(hopyard_net::Error::Unsupported {
        what: "give a lab its addresses of both IP versions".to_owned(),
        feature: "IPv6".to_owned(),
        remedy: "boot without `ipv6.disable=1`, or a kernel that has CONFIG_IPV6".to_owned(),
    }))
}

/// An offload flag that is off and stays so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fixed {
    pub(super) role: &'static str,
    pub(super) device: String,
    pub(super) flag: OffloadFlag,
}

/// A lab in the making: what the paths build with. Dropping it undoes what was made so far.
#[derive(Debug)]
pub struct Builder {
    /// Id of the lab; control groups, daemons and the direct switch carry it.
    pub id: LabId,
    axes: Axes,
    /// The bottom of the stack: namespaces, in which all else is made.
    pub(super) spaces: Vec<Space>,
    /// What else was made, in that order.
    parts: Vec<Box<dyn Part>>,
    devices: Vec<(&'static str, String)>,
    /// Offload flags that the path's switch does not bear, whatever the axes ask for.
    pub(super) fixed: Vec<Fixed>,
    /// Is it built to stand when its process is gone?
    to_keep: bool,
    /// The endpoints of path `as-is`.
    pub(super) endpoints: Option<Endpoints>,
    /// Does it stay when this value goes?
    pub(super) stays: bool,
}

impl Builder {
    pub(super) fn new(axes: &Axes, to_keep: bool) -> Self {
        let mut builder = Self {
            id: LabId::next(),
            // Nothing else can shape it: labs that are alike in these are one to whoever tries them out.
            axes: axes.of_lab(),
            spaces: Vec::new(),
            parts: Vec::new(),
            devices: Vec::new(),
            fixed: Vec::new(),
            to_keep,
            endpoints: None,
            stays: false,
        };
        builder.make_group();
        builder
    }

    /// Takes on what was made, to be undone with the lab.
    pub(super) fn push<P: Part>(&mut self, part: P) -> &mut P {
        self.parts.push(Box::new(part));
        let last = self.parts.last_mut();
        let part = last.and_then(|part| (&mut **part as &mut dyn Any).downcast_mut());
        part.unwrap_or_else(|| unreachable!("what was pushed is there, and of its type"))
    }

    /// All that was made, in that order.
    pub(super) fn stack(&self) -> impl DoubleEndedIterator<Item = &dyn Part> {
        let spaces = self.spaces.iter().map(|space| space as &dyn Part);
        spaces.chain(self.parts.iter().map(|part| &**part))
    }

    fn stack_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut (dyn Part + 'static)> {
        let spaces = self.spaces.iter_mut();
        let spaces = spaces.map(|space| space as &mut (dyn Part + 'static));
        spaces.chain(self.parts.iter_mut().map(|part| &mut **part))
    }

    /// Has all of it stand as a kept lab with this directory; what is needed to undo it is then in the state.
    pub(super) fn keep(&mut self, home: &Path, kept: &mut Kept) -> Result<()> {
        self.stack_mut().try_for_each(|part| part.keep(home, kept))
    }

    /// The parts of one type.
    pub(super) fn parts<P: Part>(&self) -> impl Iterator<Item = &P> {
        let parts = self.parts.iter();
        parts.filter_map(|part| (&**part as &dyn Any).downcast_ref())
    }

    /// MTU that endpoints are to have, bytes.
    #[must_use]
    pub fn mtu(&self) -> u32 {
        self.axes.mtu_bytes
    }

    /// Forgets offload switches that are for the devices of other paths.
    pub(super) fn keep_switches_of(&mut self, path: &str) {
        let switches = self.axes.device_offload.take();
        self.axes.device_offload = switches.and_then(|switches| switches.on_path(path));
    }

    /// Every device made, by role and name.
    #[must_use]
    pub fn devices(&self) -> &[(&'static str, String)] {
        &self.devices
    }

    /// Every device made in a namespace that the lab can act in, with its handle.
    pub(super) fn devices_in_reach(&self) -> impl Iterator<Item = (&'static str, &str, &Handle)> {
        let devices = self.devices.iter();
        devices.filter_map(|(role, device)| Some((*role, device.as_str(), self.handle(role)?)))
    }

    /// What the cells ask for.
    pub(crate) fn axes(&self) -> &Axes {
        &self.axes
    }

    pub(super) fn is_to_keep(&self) -> bool {
        self.to_keep
    }

    /// Takes note of a device that somebody else made.
    pub(super) fn note_device(&mut self, role: &'static str, device: &str) {
        self.devices.push((role, device.to_owned()));
    }

    pub(super) fn find(&self, role: &str) -> Option<&Space> {
        self.spaces.iter().find(|space| space.role == role)
    }

    /// What acts in the namespace of a role, which is made at first use.
    ///
    /// # Errors
    /// No privilege, or no room for another namespace.
    pub fn space(&mut self, role: &'static str) -> Result<&Handle> {
        if self.find(role).is_none() {
            self.make_spaces(&[role])?;
        }
        self.handle(role)
            .ok_or_else(|| Error::Kept(format!("namespace `{role}` is gone")))
    }

    /// Makes the namespaces of roles that have none yet, all at once.
    pub(super) fn make_spaces(&mut self, roles: &[&'static str]) -> Result<()> {
        check_ipv6()?;
        allow_files(FILES_EACH * roles.len() as u64)?;
        let handles = Handle::create_many(roles.len(), &SYSCTLS)?;
        let named = roles.iter().zip(handles);
        self.spaces
            .extend(named.map(|(role, handle)| Space::new(role, handle)));
        Ok(())
    }

    /// Gives a device its addresses of both families.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn address(&mut self, role: &'static str, device: &str, own: Addresses) -> Result<()> {
        for (address, prefix) in self.of_families(role, own.with_prefixes()) {
            self.space(role)?.add_address(device, address, prefix)?;
        }
        Ok(())
    }

    /// An endpoint's device with its addresses.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn endpoint(
        &mut self,
        role: &'static str,
        device: &str,
        addresses: Addresses,
    ) -> Result<Endpoint> {
        self.address(role, device, addresses)?;
        Ok(Endpoint::new(role, device, addresses))
    }

    /// Sends everything that is not on a link of its own to a router.
    ///
    /// # Errors
    /// The kernel refused.
    pub(crate) fn default_route(&mut self, role: &'static str, router: Addresses) -> Result<()> {
        for (router, _) in self.of_families(role, router.alone()) {
            self.space(role)?.add_route(None, Some(router), None)?;
        }
        Ok(())
    }

    /// Sends what is for a subnet to a router.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn route(&mut self, role: &'static str, to: Subnet, router: Addresses) -> Result<()> {
        let handle = self.space(role)?;
        for (to, (by, _)) in to.prefixes().into_iter().zip(router.alone()) {
            handle.add_route(Some(to), Some(by), None)?;
        }
        Ok(())
    }

    /// Makes a namespace forward between devices. A router needs link-local addresses to ask for its
    /// neighbours (RFC 4861, section 7.2.2), which these labs otherwise do without.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn forward(&mut self, role: &'static str, devices: &[&str]) -> Result<()> {
        let handle = self.space(role)?;
        for device in devices {
            handle.add_link_local(device)?;
        }
        handle.set_sysctl("net/ipv4/ip_forward", "1")?;
        handle.set_sysctl("net/ipv6/conf/all/forwarding", "1")?;
        Ok(())
    }

    /// Loopback as the path itself: the lab's MTU, and its offload flags count.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn loopback(&mut self, role: &'static str) -> Result<Endpoint> {
        let mtu = self.mtu();
        self.space(role)?.set_mtu("lo", mtu)?;
        self.devices.push((role, "lo".to_owned()));
        Ok(Endpoint::new(role, "lo", Addresses::LOOPBACK))
    }

    /// Devices of the hub that nobody uses, so that with those in use there are as many ports as the axes
    /// ask for. They are up, and so are their other ends in a namespace of their own.
    ///
    /// # Errors
    /// The kernel cannot or will not.
    pub(crate) fn idle_ports(&mut self, in_use: usize) -> Result<Vec<String>> {
        let wanted = self.axes.ports.map_or(in_use, |ports| ports as usize);
        if wanted < in_use {
            let why = format!("{in_use} ports are in use; set `ports` to {in_use} or more");
            return Err(Error::refused(
                "the bridge or switch",
                "ports",
                wanted.to_string(),
                why,
            ));
        }
        let names = (in_use..wanted).map(|n| format!("idle{n}"));
        let names: Vec<String> = names.collect();
        for name in &names {
            self.veth((role::CROWD, name), (role::HUB, name))?;
        }
        // No traffic is theirs: what the axes say of devices is not for them.
        self.devices.retain(|(_, device)| !names.contains(device));
        Ok(names)
    }

    /// Takes note of offload flags that the path's switch does not bear.
    pub(super) fn fix_off(&mut self, role: &'static str, device: &str, flags: &[OffloadFlag]) {
        self.fixed.extend(flags.iter().map(|flag| Fixed {
            role,
            device: device.to_owned(),
            flag: *flag,
        }));
    }

    /// Has the kernel act now on the devices' coming up, rather than within the window.
    pub(super) fn settle(&self) -> Result<()> {
        for (_, device, handle) in self.devices_in_reach() {
            handle.settle(device)?;
        }
        Ok(())
    }

    /// Acts in a namespace that exists already.
    pub(crate) fn handle(&self, role: &str) -> Option<&Handle> {
        self.find(role).map(|space| &space.handle)
    }
}

impl Drop for Builder {
    fn drop(&mut self) {
        if self.stays {
            return;
        }
        for problem in undo(self.stack_mut()) {
            crate::note(format_args!("could not remove all of a lab: {problem}"));
        }
    }
}
