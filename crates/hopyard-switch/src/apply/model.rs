//! What a switch is to be, and what it is.

use std::net::IpAddr;
use std::path::PathBuf;

use crate::limit::Broadcasts;
use crate::mac::Mac;
use crate::port::NewPort;
use crate::prefix::Prefix;
use crate::rate::Rate;
use crate::shortcut::{Loss, Shortcut};

/// What a switch is to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwitchSpec {
    /// 1 to 32 letters, digits, `-` and `_`.
    pub name: String,
    /// The device to the wire.
    pub uplink: Option<String>,
    /// Ethernet addresses of the host behind the uplink beside its own.
    pub host_macs: Vec<Mac>,
    /// Answer ARP and neighbour solicitations from the table?
    pub answers: bool,
    /// May programs that others have at the hooks come before the switch's?
    pub behind_others: bool,
    /// TCP between two ports without packets. **Experimental.**
    pub shortcut: Option<ShortcutSpec>,
    /// All ports that are described.
    pub ports: Vec<PortSpec>,
}

/// What a shortcut is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortcutSpec {
    /// Directory of the control group (version 2) whose sockets are joined.
    pub cgroup: PathBuf,
    /// What joined sockets may lack.
    pub accept: Vec<Loss>,
}

/// What a port is to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortSpec {
    /// The host's end; empty: it is found by `guest`.
    pub device: String,
    /// The guest's end, where the port is named by that.
    pub guest: Option<GuestEnd>,
    /// May the device be missing? Then the port is left out.
    pub optional: bool,
    /// What both ends are to take, bytes of payload; `None`: what they take.
    pub mtu: Option<u32>,
    /// The guest's addresses; the first is its own. None: read from the other end of the pair.
    pub macs: Vec<Mac>,
    /// The IP addresses that the guest may use; none: any.
    pub ips: Vec<IpAddr>,
    /// IP prefixes that it may use.
    pub prefixes: Vec<Prefix>,
    /// Its VLAN, 1 to 4094; `None`: untagged.
    pub vlan: Option<u16>,
    /// May it talk to the uplink and the host only?
    pub isolated: bool,
    /// May it send from any address that is nobody else's?
    pub allow_spoof: bool,
    /// Are frames to take the queue of the host's end?
    pub queued: bool,
    /// May it advertise itself as a router?
    pub router: bool,
    /// May it answer DHCP?
    pub dhcp_server: bool,
    /// How many broadcasts may it send?
    pub broadcasts: Broadcasts,
    /// How fast may it get frames?
    pub rate_in: Rate,
    /// How fast may it send?
    pub rate_out: Rate,
}

/// The guest's end of a pair, in a namespace that has a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestEnd {
    /// As `/run/netns/web`.
    pub netns: PathBuf,
    /// Name of the device there.
    pub device: String,
}

impl PortSpec {
    /// As the switch takes it.
    pub(super) fn new_port(&self) -> NewPort<'_> {
        NewPort {
            device: &self.device,
            macs: self.macs.clone(),
            ips: self.ips.clone(),
            ips_follow: false,
            prefixes: self.prefixes.clone(),
            vlan: self.vlan,
            isolated: self.isolated,
            allow_spoof: self.allow_spoof,
            queued: self.queued,
            router: self.router,
            dhcp_server: self.dhcp_server,
            broadcasts: self.broadcasts,
            rate_in: self.rate_in,
            rate_out: self.rate_out,
            declared: true,
            classifier: false,
        }
    }

    /// Puts lists into the one order in which they are compared: the guest's own Ethernet address first.
    pub(super) fn sort(&mut self) {
        if let Some((_, others)) = self.macs.split_first_mut() {
            others.sort();
        }
        self.ips.sort();
        self.prefixes.sort_by_key(ToString::to_string);
    }
}

/// What a switch is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Present {
    /// The device to the wire, as it is named now.
    pub uplink: Option<String>,
    /// What is wrong with the uplink that setting it again mends.
    pub uplink_wrong: Option<String>,
    /// Ethernet addresses of the host behind the uplink beside its own.
    pub host_macs: Vec<Mac>,
    /// Does it answer from the table?
    pub answers: bool,
    /// May others come before it?
    pub behind_others: bool,
    /// The shortcut, where it has one.
    pub shortcut: Option<Shortcut>,
    /// Its ports.
    pub ports: Vec<PresentPort>,
}

/// What a port is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PresentPort {
    /// As a description would say it, with the Ethernet addresses; without MTU.
    pub spec: PortSpec,
    /// Was it made from a description?
    pub declared: bool,
    /// Does its device take less than the switch knows of?
    pub shrunk: bool,
    /// Did somebody take the switch's program off its device?
    pub detached: bool,
    /// What comes before the switch's program there, though nothing may; adding the port again mends it.
    pub preceded_by: Option<String>,
}
