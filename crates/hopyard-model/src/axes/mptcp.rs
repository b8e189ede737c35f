//! Multipath TCP (RFC 8684).

use super::axis::{AxisError, Decides, Descriptor, choice, shown};
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

    fn parse(text: &str) -> Result<Self::Value, AxisError> {
        Ok(Some(choice(Self::NAME, text, &SWITCHES)?))
    }

    fn print(value: &Self::Value) -> Option<String> {
        shown(value)
    }

    fn fits(load: LoadKind, _: Peer) -> bool {
        load.is_tcp()
    }
}
