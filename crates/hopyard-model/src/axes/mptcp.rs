//! Multipath TCP (RFC 8684).

use super::axis::Decides;
use super::descriptor::{Descriptor, word};
use crate::Switch;

pub(super) const MPTCP: Descriptor<Option<Switch>> = Descriptor {
    name: "mptcp",
    summary: "connections of Multipath TCP, with one subflow each: what its headers and locks cost",
    values: "on, off (default off)",
    other: "on",
    of_devices: true,
    fits: |load, _| load.is_tcp(),
    ..word(Decides::Traffic)
};
