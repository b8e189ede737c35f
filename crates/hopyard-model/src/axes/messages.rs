//! Sizes of messages, requests and responses.

use super::axis::{Decides, Descriptor, bytes};
use crate::{LoadKind, Peer};

pub(super) struct MessageSize;

impl Descriptor for MessageSize {
    type Value = Option<u32>;
    const NAME: &'static str = "message_size";
    const SUMMARY: &'static str = "bytes per message of a stream: of a send call, or of a datagram";
    const VALUES: &'static str = "1 B to 1 MiB; 65507 at most over UDP, 32 at least of numbered datagrams (default 16 KiB TCP, 1400 B UDP)";
    const OTHER: &'static str = "128KiB";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Message;

    bytes!(1, 1024 * 1024);

    fn fits(load: LoadKind, _: Peer) -> bool {
        load.is_stream() && !load.replays()
    }
}

pub(super) struct RequestSize;

impl Descriptor for RequestSize {
    type Value = Option<u32>;
    const NAME: &'static str = "request_size";
    const SUMMARY: &'static str = "bytes per request";
    const VALUES: &'static str = "1 B to 64 KiB; 65507 at most over UDP (default 1)";
    const OTHER: &'static str = "100";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Message;

    fn default() -> Self::Value {
        Some(1)
    }

    bytes!(1, 64 * 1024);

    fn fits(load: LoadKind, _: Peer) -> bool {
        !load.is_stream()
    }
}

pub(super) struct ResponseSize;

impl Descriptor for ResponseSize {
    type Value = Option<u32>;
    const NAME: &'static str = "response_size";
    const SUMMARY: &'static str = "bytes per response";
    const VALUES: &'static str = "1 B to 64 KiB; 65507 at most over UDP (default 1)";
    const OTHER: &'static str = "1KiB";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Message;

    fn default() -> Self::Value {
        Some(1)
    }

    bytes!(1, 64 * 1024);

    fn fits(load: LoadKind, _: Peer) -> bool {
        !load.is_stream()
    }
}
