//! Sizes of messages, requests and responses.

use super::axis::Decides;
use super::descriptor::{Descriptor, bytes};

pub(super) const MESSAGE_SIZE: Descriptor<Option<u32>> = Descriptor {
    name: "message_size",
    summary: "bytes per message of a stream: of a send call, or of a datagram",
    values: "1 B to 1 MiB; 65507 at most over UDP, 32 at least of numbered datagrams (default 16 KiB TCP, 1400 B UDP)",
    other: "128KiB",
    fits: |load, _| load.is_stream() && !load.replays(),
    ..bytes::<1, { 1024 * 1024 }>(Decides::Message)
};

pub(super) const REQUEST_SIZE: Descriptor<Option<u32>> = Descriptor {
    name: "request_size",
    summary: "bytes per request",
    values: "1 B to 64 KiB; 65507 at most over UDP (default 1)",
    other: "100",
    default: || Some(1),
    fits: |load, _| !load.is_stream(),
    ..bytes::<1, { 64 * 1024 }>(Decides::Message)
};

pub(super) const RESPONSE_SIZE: Descriptor<Option<u32>> = Descriptor {
    name: "response_size",
    summary: "bytes per response",
    values: "1 B to 64 KiB; 65507 at most over UDP (default 1)",
    other: "1KiB",
    default: || Some(1),
    fits: |load, _| !load.is_stream(),
    ..bytes::<1, { 64 * 1024 }>(Decides::Message)
};
