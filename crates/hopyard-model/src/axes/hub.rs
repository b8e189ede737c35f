//! Idle ports and rules of the hub.

use super::axis::{Decides, Descriptor, number};

pub(super) struct Ports;

impl Descriptor for Ports {
    type Value = Option<u32>;
    const NAME: &'static str = "ports";
    const SUMMARY: &'static str =
        "devices attached to the hub's switch; beyond those in use, they are idle";
    const VALUES: &'static str = "2 to 1000, not fewer than are in use (default: those in use)";
    const OTHER: &'static str = "1000";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_PATH: bool = true;
    const COUNTS: bool = true;

    number!(2, 1000);
}

pub(super) struct Rules;

impl Descriptor for Rules {
    type Value = Option<u32>;
    const NAME: &'static str = "rules";
    const SUMMARY: &'static str = "nftables rules that match nothing, in the hub's forward hook";
    const VALUES: &'static str = "0 to 10000 (default 0)";
    const OTHER: &'static str = "100";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_PATH: bool = true;
    const COUNTS: bool = true;

    number!(0, 10_000);
}
