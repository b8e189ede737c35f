//! A guest's CPUs and memory, and what its card is attached to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{Decides, shown_by_name};
use super::descriptor::{Descriptor, bytes, number, word};
use super::offloads::Switch;

/// What a guest's card is attached to in the hub.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Attach {
    /// A tap, a port of a Linux bridge.
    #[default]
    Bridge,
    /// A tap, a port of the direct switch.
    Direct,
    /// A macvtap on the uplink, bridge mode.
    Macvtap,
}

impl Attach {
    pub const ALL: [Self; 3] = [Self::Bridge, Self::Direct, Self::Macvtap];
}

shown_by_name!(Attach);

pub(super) const GUEST_CPUS: Descriptor<Option<u32>> = Descriptor {
    name: "guest_cpus",
    summary: "CPUs of a guest",
    values: "1 to 64 (default 1)",
    other: "2",
    of_path: true,
    counts: true,
    ..number::<1, 64>(Decides::Lab)
};

pub(super) const GUEST_MEMORY: Descriptor<Option<u32>> = Descriptor {
    name: "guest_memory",
    summary: "memory of a guest",
    values: "256 MiB to 2048 MiB (default 512 MiB)",
    other: "1024MiB",
    of_path: true,
    ..bytes::<{ 256 << 20 }, { 2 << 30 }>(Decides::Lab)
};

pub(super) const ATTACH: Descriptor<Option<Attach>> = Descriptor {
    name: "attach",
    summary: "what a guest's card is attached to in the hub",
    values: "bridge, direct, macvtap (default bridge)",
    other: "macvtap",
    of_path: true,
    ..word(Decides::Lab)
};

/// Does the kernel carry the frames of a guest's card (vhost-net)?
pub(super) const VHOST: Descriptor<Option<Switch>> = Descriptor {
    name: "vhost",
    summary: "who carries the frames of a guest's card: vhost-net in the kernel, or QEMU",
    values: "on, off (default on where /dev/vhost-net is)",
    other: "off",
    of_path: true,
    ..word(Decides::Lab)
};
