//! Transmit packet steering: each CPU sends by transmit queues of its own.

use super::axis::Decides;
use super::descriptor::{Descriptor, word};
use crate::Switch;

/// Transmit packet steering of every device with several transmit queues.
pub(super) const XPS: Descriptor<Option<Switch>> = Descriptor {
    name: "xps",
    summary: "transmit packet steering: each CPU sends by queues of its own, on devices with several",
    values: "on, off (default off)",
    other: "on",
    of_devices: true,
    ..word(Decides::Lab)
};
