//! The direct switch: virtual interfaces bound to a device, frames forwarded by Ethernet address, no
//! bridge.
//!
//! Three eBPF programs (`bpf/switch.bpf.c`) run at the tcx hooks of the ports and of the uplink; their
//! maps and links are pinned in the BPF file system, so a [`Switch`] outlives the process that made it
//! and is found again by name. [`Hooks::Clsact`] is for namespaces that end with their switch. All that
//! refers to devices acts in the network namespace of the calling thread. `docs/switch.md` of the
//! project tells the way of a frame.
//!
//! ```no_run
//! use hopyard_switch::{NewPort, NewSwitch, Switch};
//!
//! let mut switch = Switch::create(&NewSwitch { name: "guests", ..NewSwitch::default() })?;
//! switch.add_port(&NewPort { device: "veth-web", ..NewPort::default() })?;
//! for party in switch.stats()? {
//!     println!("{}: {} packets", party.party, party.counters.rx_packets);
//! }
//! # Ok::<(), hopyard_switch::Error>(())
//! ```

/// Its examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod bpffs;
mod bypass;
mod change;
mod classifier;
mod error;
mod glance;
mod here;
mod host;
mod kernel_function;
mod layout;
mod limit;
mod mac;
mod port;
mod prefix;
mod programs;
mod remove;
mod running;
mod show;
mod state;
mod switch;
mod upgrade;
mod uplink;

pub use bypass::{Bypassed, bypassed_rules};
pub use change::PortChange;
pub use error::{Error, PORTS_NAMED, Result};
pub use glance::{Glance, Port};
pub use here::has_tcx;
pub use layout::{BROADCAST_BURST_S, Counters, DROP_REASONS};
pub use limit::{Broadcasts, NotALimit};
pub use mac::{Mac, NotAMac};
pub use port::NewPort;
pub use prefix::{NotAPrefix, Prefix};
pub use programs::Hooks;
pub use show::{Shown, ShownPort, ShownUplink, Warning, WayOut};
pub use switch::{NewSwitch, PartyStats, Switch};
pub use uplink::NewUplink;
