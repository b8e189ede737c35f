//! How many services a hub translates, and how many connections it already tracks.

use super::axis::{Decides, Descriptor, number};

pub(super) struct Services;

impl Descriptor for Services {
    type Value = Option<u32>;
    const NAME: &'static str = "services";
    const SUMMARY: &'static str = "services that the hub translates; the client uses the last of them (service-iptables: the last rule)";
    const VALUES: &'static str = "1 to 30000 (default 1)";
    const OTHER: &'static str = "100";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_PATH: bool = true;
    const COUNTS: bool = true;

    number!(1, 30_000);
}

pub(super) struct Conntrack;

impl Descriptor for Conntrack {
    type Value = Option<u32>;
    const NAME: &'static str = "conntrack";
    const SUMMARY: &'static str =
        "connections that the hub tracks already: established TCP, without traffic";
    const VALUES: &'static str = "0 to 2000000 (default 0)";
    const OTHER: &'static str = "1000";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_PATH: bool = true;
    const COUNTS: bool = true;

    number!(0, 2_000_000);
}
