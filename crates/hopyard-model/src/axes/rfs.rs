//! Receive flow steering: packets are processed on the CPU of their reader.

use super::axis::{Decides, Descriptor, one_of};
use super::offloads::SWITCHES;
use crate::Switch;

pub(super) struct Rfs;

impl Descriptor for Rfs {
    type Value = Option<Switch>;
    const NAME: &'static str = "rfs";
    const SUMMARY: &'static str =
        "receive flow steering: a flow's packets are worked on by the CPU that reads them";
    const VALUES: &'static str = "on, off (default off)";
    const OTHER: &'static str = "on";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_DEVICES: bool = true;

    one_of!(SWITCHES);
}
