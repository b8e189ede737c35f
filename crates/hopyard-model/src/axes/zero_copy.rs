//! Sends without a copy of the bytes.

use super::axis::{Decides, Descriptor, one_of};
use super::offloads::SWITCHES;
use crate::{LoadKind, Peer, Switch};

/// Does the sender of a stream ask the kernel to send from its memory?
pub(super) struct ZeroCopy;

impl Descriptor for ZeroCopy {
    type Value = Option<Switch>;
    const NAME: &'static str = "zerocopy";
    const SUMMARY: &'static str = "the sender of a stream asks the kernel to send from its memory (MSG_ZEROCOPY; SEND_ZC with api=uring)";
    const VALUES: &'static str = "on, off (default off)";
    const OTHER: &'static str = "on";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Traffic;

    one_of!(SWITCHES);

    fn fits(load: LoadKind, _: Peer) -> bool {
        load.sends_without_copies()
    }
}
