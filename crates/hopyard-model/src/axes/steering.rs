//! Which CPU works on packets, and which queue they leave by (`Documentation/networking/scaling.rst`).

use super::axis::Decides;
use super::descriptor::{Descriptor, word};
use crate::Switch;

/// Receive packet steering: packets are processed on any CPU, chosen by their flow's hash.
pub(super) const RPS: Descriptor<Option<Switch>> = Descriptor {
    name: "rps",
    summary: "receive packet steering: a hash of a flow chooses which CPU works on its packets",
    values: "on, off (default off)",
    other: "on",
    of_devices: true,
    ..word(Decides::Lab)
};

/// Receive flow steering: packets are processed on the CPU of their reader.
pub(super) const RFS: Descriptor<Option<Switch>> = Descriptor {
    name: "rfs",
    summary: "receive flow steering: a flow's packets are worked on by the CPU that reads them",
    values: "on, off (default off)",
    other: "on",
    of_devices: true,
    ..word(Decides::Lab)
};

/// Transmit packet steering of every device with several transmit queues.
pub(super) const XPS: Descriptor<Option<Switch>> = Descriptor {
    name: "xps",
    summary: "transmit packet steering: each CPU sends by queues of its own, on devices with several",
    values: "on, off (default off)",
    other: "on",
    of_devices: true,
    ..word(Decides::Lab)
};
