//! A guest's CPUs and memory, and what its card is attached to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{Decides, Descriptor, bytes, number, one_of, shown_as};
use super::offloads::{SWITCHES, Switch};

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

const ATTACHES: [(&str, Attach); 3] = [
    ("bridge", Attach::Bridge),
    ("direct", Attach::Direct),
    ("macvtap", Attach::Macvtap),
];

shown_as!(Attach: ATTACHES);

pub(super) struct GuestCpus;

impl Descriptor for GuestCpus {
    type Value = Option<u32>;
    const NAME: &'static str = "guest_cpus";
    const SUMMARY: &'static str = "CPUs of a guest";
    const VALUES: &'static str = "1 to 64 (default 1)";
    const OTHER: &'static str = "2";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_PATH: bool = true;
    const COUNTS: bool = true;

    number!(1, 64);
}

pub(super) struct GuestMemory;

impl Descriptor for GuestMemory {
    type Value = Option<u32>;
    const NAME: &'static str = "guest_memory";
    const SUMMARY: &'static str = "memory of a guest";
    const VALUES: &'static str = "256 MiB to 2048 MiB (default 512 MiB)";
    const OTHER: &'static str = "1024MiB";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_PATH: bool = true;

    bytes!(256 << 20, 2 << 30);
}

pub(super) struct AttachAxis;

impl Descriptor for AttachAxis {
    type Value = Option<Attach>;
    const NAME: &'static str = "attach";
    const SUMMARY: &'static str = "what a guest's card is attached to in the hub";
    const VALUES: &'static str = "bridge, direct, macvtap (default bridge)";
    const OTHER: &'static str = "macvtap";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_PATH: bool = true;

    one_of!(ATTACHES);
}

/// Does the kernel carry the frames of a guest's card (vhost-net)?
pub(super) struct Vhost;

impl Descriptor for Vhost {
    type Value = Option<Switch>;
    const NAME: &'static str = "vhost";
    const SUMMARY: &'static str =
        "who carries the frames of a guest's card: vhost-net in the kernel, or QEMU";
    const VALUES: &'static str = "on, off (default on where /dev/vhost-net is)";
    const OTHER: &'static str = "off";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_PATH: bool = true;

    one_of!(SWITCHES);
}
