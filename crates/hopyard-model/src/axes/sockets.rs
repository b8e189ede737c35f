//! Options of the data sockets.

use super::axis::{AxisError, Decides, Descriptor, bytes, shown};
use crate::{LoadKind, Peer};

pub(super) struct SocketBuffer;

impl Descriptor for SocketBuffer {
    type Value = Option<u32>;
    const NAME: &'static str = "socket_buffer";
    const SUMMARY: &'static str = "send and receive buffer asked for on every data socket";
    const VALUES: &'static str = "4 KiB to 64 MiB (default: the kernel's own sizing)";
    const OTHER: &'static str = "1MiB";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Traffic;

    bytes!(4096, 64 * 1024 * 1024);
}

/// Send buffer of every data socket.
pub(super) struct SendBuffer;

impl Descriptor for SendBuffer {
    type Value = Option<u32>;
    const NAME: &'static str = "send_buffer";
    const SUMMARY: &'static str = "send buffer alone asked for on every data socket: how much a sender has under way before it waits";
    const VALUES: &'static str = "4 KiB to 64 MiB (default: as socket_buffer)";
    const OTHER: &'static str = "16KiB";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Traffic;

    bytes!(4096, 64 * 1024 * 1024);
}

/// TCP congestion control.
pub(super) struct Congestion;

impl Descriptor for Congestion {
    type Value = Option<String>;
    const NAME: &'static str = "congestion";
    const SUMMARY: &'static str = "TCP congestion control";
    const VALUES: &'static str =
        "what net.ipv4.tcp_available_congestion_control lists (default cubic)";
    const OTHER: &'static str = "reno";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Traffic;
    const OF_DEVICES: bool = true;

    fn default() -> Self::Value {
        Some("cubic".to_owned())
    }

    fn parse(text: &str) -> Result<Self::Value, AxisError> {
        Ok(Some(text.to_owned()))
    }

    fn print(value: &Self::Value) -> Option<String> {
        shown(value)
    }

    fn fits(load: LoadKind, _: Peer) -> bool {
        load.is_tcp()
    }
}
