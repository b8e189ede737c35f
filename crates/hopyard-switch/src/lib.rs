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
#![warn(missing_docs)]

/// Its examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod again;
pub mod apply;
mod attached;
mod bpffs;
mod bypass;
mod change;
mod classifier;
mod error;
mod glance;
mod guest;
mod here;
mod hook;
mod host;
mod joining;
mod kernel;
mod kernel_function;
mod layout;
mod leave;
mod limit;
mod lock;
mod mac;
mod making;
mod netkit;
mod port;
mod prefix;
mod programs;
mod rate;
mod remove;
mod running;
mod shortcut;
mod shortcut_files;
mod show;
mod state;
mod switch;
mod teardown;
mod trace;
mod upgrade;
mod uplink;

pub use bypass::{Bypassed, bypassed_rules};
pub use change::PortChange;
pub use error::{Error, PORTS_NAMED, Result};
pub use glance::{Glance, Port, Room, runs_at_uplink};
pub use hook::Hooks;
pub use kernel::has_tcx;
pub use layout::{BROADCAST_BURST_S, Counters, DROP_REASONS, MOST_TOLD};
pub use limit::{Broadcasts, NotALimit};
pub use lock::are_hidden as switches_are_hidden;
pub use mac::{Mac, NotAMac};
pub use making::NewSwitch;
pub use port::NewPort;
pub use prefix::{NotAPrefix, Prefix};
pub use rate::{NotARate, Rate, RateLimit};
pub use running::{Running, at as running_at};
pub use shortcut::{
    LOSSES, Loss, NewShortcut, NotALoss, PairShortcut, SHORTCUT_MAX_MESSAGE, SelfTest, Shortcut,
    ShortcutCounters, test_shortcut,
};
pub use show::{Shown, ShownPort, ShownUplink, Warning, WayOut};
pub use switch::{PartyStats, Role, Switch};
pub use trace::{Dropped, Party, Trace, Traced};
pub use uplink::NewUplink;
