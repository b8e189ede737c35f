//! Receive flow steering: packets are processed on the CPU of their reader.

use super::axis::Decides;
use super::descriptor::{Descriptor, word};
use crate::Switch;

pub(super) const RFS: Descriptor<Option<Switch>> = Descriptor {
    name: "rfs",
    summary: "receive flow steering: a flow's packets are worked on by the CPU that reads them",
    values: "on, off (default off)",
    other: "on",
    of_devices: true,
    ..word(Decides::Lab)
};
