//! Multipath TCP (RFC 8684).

use super::axis::{Decides, Descriptor, one_of};
use super::offloads::SWITCHES;
use crate::{LoadKind, Peer, Switch};

pub(super) struct Mptcp;

impl Descriptor for Mptcp {
    type Value = Option<Switch>;
    const NAME: &'static str = "mptcp";
    const SUMMARY: &'static str =
        "connections of Multipath TCP, with one subflow each: what its headers and locks cost";
    const VALUES: &'static str = "on, off (default off)";
    const OTHER: &'static str = "on";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Traffic;
    const OF_DEVICES: bool = true;

    one_of!(SWITCHES);

    fn fits(load: LoadKind, _: Peer) -> bool {
        load.is_tcp()
    }
}
