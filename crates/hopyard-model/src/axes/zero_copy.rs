//! Sends without a copy of the bytes.

use super::axis::Decides;
use super::descriptor::{Descriptor, word};
use crate::Switch;

/// Does the sender of a stream ask the kernel to send from its memory?
pub(super) const ZERO_COPY: Descriptor<Option<Switch>> = Descriptor {
    name: "zerocopy",
    summary: "the sender of a stream asks the kernel to send from its memory (MSG_ZEROCOPY; SEND_ZC with api=uring)",
    values: "on, off (default off)",
    other: "on",
    fits: |load, _| load.sends_without_copies(),
    ..word(Decides::Traffic)
};
