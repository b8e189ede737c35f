//! Receive packet steering: packets are processed on any CPU, chosen by their flow's hash.

use super::axis::{Decides, Descriptor, one_of};
use super::offloads::SWITCHES;
use crate::Switch;

pub(super) struct Rps;

impl Descriptor for Rps {
    type Value = Option<Switch>;
    const NAME: &'static str = "rps";
    const SUMMARY: &'static str =
        "receive packet steering: a hash of a flow chooses which CPU works on its packets";
    const VALUES: &'static str = "on, off (default off)";
    const OTHER: &'static str = "on";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_DEVICES: bool = true;

    one_of!(SWITCHES);
}
