//! How many connections are opened.

use super::axis::{AxisError, Decides, Descriptor, count};
use crate::{LoadKind, Peer};

/// Most open connections of a flow. Connections due beyond that wait, and their latency counts from when they were due.
pub const MOST_OPEN: u32 = 512;

pub(super) struct ConnectionRate;

impl Descriptor for ConnectionRate {
    type Value = Option<u32>;
    const NAME: &'static str = "connection_rate";
    const SUMMARY: &'static str = "connections that tcp_conns opens per second, all flows";
    const VALUES: &'static str = "20 to 1000000 (default 1000)";
    const OTHER: &'static str = "2000";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Traffic;

    fn parse(text: &str) -> Result<Self::Value, AxisError> {
        Ok(Some(count(Self::NAME, text, 20, 1_000_000)?))
    }

    fn print(value: &Self::Value) -> Option<String> {
        value.map(|rate| rate.to_string())
    }

    fn fits(load: LoadKind, _: Peer) -> bool {
        load.default_connections_per_s().is_some()
    }
}
