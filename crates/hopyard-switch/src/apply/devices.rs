//! The devices that a description names.

use std::path::{Path, PathBuf};

use hopyard_net::{Handle, Link, NetNs, XdpHook};

use super::PortSpec;
use crate::error::Error;
use crate::here::{Here, device_name, is_pair};
use crate::mac::Mac;
use crate::port::check_kind;

/// What the ends of a port take, bytes of payload.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ends {
    /// The host's end.
    pub host: u32,
    /// The guest's, where there is one.
    pub guest: Option<u32>,
    /// Where the guest's end is found by name; `None`: it cannot be reached, or there is none.
    pub(super) place: Option<Place>,
}

/// Where a device is: in the namespace of this file, or in the caller's, and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) netns: Option<PathBuf>,
    pub(super) device: String,
}

impl Ends {
    /// Is the MTU this already?
    pub(super) fn are(&self, mtu: u32) -> bool {
        self.host == mtu && self.guest.is_none_or(|guest| guest == mtu)
    }
}

/// Why a device cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sought {
    /// It is not there; it may come.
    Missing(String),
    /// It is there, and cannot be a port or an uplink.
    Unfit(String),
}

impl Sought {
    pub(super) fn from_net(error: hopyard_net::Error) -> Self {
        match error {
            hopyard_net::Error::Missing { object, .. } => {
                Self::Missing(format!("there is no {object}"))
            }
            error => Self::Unfit(error.to_string()),
        }
    }
}

impl From<Error> for Sought {
    fn from(error: Error) -> Self {
        match error {
            Error::Net(error) => Self::from_net(error),
            Error::Invalid { why, .. } => Self::Unfit(why),
            error => Self::Unfit(error.to_string()),
        }
    }
}

/// A device that can be a port.
pub(super) struct Device {
    pub(super) link: Link,
    /// The guest's address, where it can be read.
    pub(super) guest_mac: Option<Mac>,
    /// Do frames to it have to take the queue, since the guest has an XDP program in its driver?
    pub(super) queued: bool,
    pub(super) ends: Ends,
}

/// Finds the device of a port.
pub(super) fn find(here: &Here, port: &PortSpec) -> Result<Device, Sought> {
    let name = match &port.guest {
        None => port.device.clone(),
        Some(guest) => host_end(here, &guest.netns, &guest.device)?,
    };
    let link = here.fit_device("", &name)?;
    check_kind("", &link)?;
    let peer = here.handle.lower_of(&link).map_err(Sought::from_net)?;
    let peer = peer.filter(|_| is_pair(&link));
    let place = match (&port.guest, &peer) {
        (Some(guest), _) => Some(Place {
            netns: Some(guest.netns.clone()),
            device: guest.device.clone(),
        }),
        (None, Some(peer)) if link.lower_ns.is_none() => Some(Place {
            netns: None,
            device: peer.name.clone(),
        }),
        _ => None,
    };
    Ok(Device {
        guest_mac: peer.as_ref().and_then(|peer| peer.mac).map(Mac),
        queued: peer
            .as_ref()
            .is_some_and(|peer| peer.xdp == Some(XdpHook::Driver)),
        ends: Ends {
            host: link.mtu,
            guest: peer.map(|peer| peer.mtu),
            place,
        },
        link,
    })
}

/// The name of the host's end of a guest's device.
fn host_end(here: &Here, netns: &Path, device: &str) -> Result<String, Sought> {
    let ns = NetNs::open(netns).map_err(Sought::from_net)?;
    let there = Handle::new(&ns).map_err(Sought::from_net)?;
    let inside = there
        .link(device)
        .map_err(|error| match Sought::from_net(error) {
            Sought::Missing(what) => Sought::Missing(format!("{what} in {}", netns.display())),
            unfit => unfit,
        })?;
    let wrong = || {
        let why = format!(
            "`{device}` in {} is no end of a pair whose other end is in this namespace",
            netns.display()
        );
        Sought::Unfit(why)
    };
    let name = inside.lower.and_then(device_name).ok_or_else(wrong)?;
    let link = here.handle.link(&name).map_err(Sought::from_net)?;
    // Its number may be another device's here.
    let back = here.handle.lower_of(&link).map_err(Sought::from_net)?;
    let is_it = is_pair(&link)
        && back.is_some_and(|back| {
            (back.index, &back.name, back.mac) == (inside.index, &inside.name, inside.mac)
        });
    if is_it { Ok(name) } else { Err(wrong()) }
}
