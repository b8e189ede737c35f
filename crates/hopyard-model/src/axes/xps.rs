//! Transmit packet steering: each CPU sends by transmit queues of its own.

use super::axis::{Decides, Descriptor, one_of};
use super::offloads::SWITCHES;
use crate::Switch;

/// Transmit packet steering of every device with several transmit queues.
pub(super) struct Xps;

impl Descriptor for Xps {
    type Value = Option<Switch>;
    const NAME: &'static str = "xps";
    const SUMMARY: &'static str =
        "transmit packet steering: each CPU sends by queues of its own, on devices with several";
    const VALUES: &'static str = "on, off (default off)";
    const OTHER: &'static str = "on";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_DEVICES: bool = true;

    one_of!(SWITCHES);
}
