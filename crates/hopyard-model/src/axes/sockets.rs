//! Options of the data sockets.

use super::axis::Decides;
use super::descriptor::{Descriptor, bytes, optional, word};
use crate::Switch;

pub(super) const SOCKET_BUFFER: Descriptor<Option<u32>> = Descriptor {
    name: "socket_buffer",
    summary: "send and receive buffer asked for on every data socket",
    values: "4 KiB to 64 MiB (default: the kernel's own sizing)",
    other: "1MiB",
    ..bytes::<4096, { 64 * 1024 * 1024 }>(Decides::Traffic)
};

/// Send buffer of every data socket.
pub(super) const SEND_BUFFER: Descriptor<Option<u32>> = Descriptor {
    name: "send_buffer",
    summary: "send buffer alone asked for on every data socket: how much a sender has under way before it waits",
    values: "4 KiB to 64 MiB (default: as socket_buffer)",
    other: "16KiB",
    ..bytes::<4096, { 64 * 1024 * 1024 }>(Decides::Traffic)
};

/// TCP congestion control.
pub(super) const CONGESTION: Descriptor<Option<String>> = Descriptor {
    name: "congestion",
    summary: "TCP congestion control",
    values: "what net.ipv4.tcp_available_congestion_control lists (default cubic)",
    other: "reno",
    of_devices: true,
    default: || Some("cubic".to_owned()),
    fits: |load, _| load.is_tcp(),
    ..optional(Decides::Traffic, |_, text| Ok(Some(text.to_owned())))
};

/// Multipath TCP (RFC 8684).
pub(super) const MPTCP: Descriptor<Option<Switch>> = Descriptor {
    name: "mptcp",
    summary: "connections of Multipath TCP, with one subflow each: what its headers and locks cost",
    values: "on, off (default off)",
    other: "on",
    of_devices: true,
    fits: |load, _| load.is_tcp(),
    ..word(Decides::Traffic)
};

/// Does the sender of a stream ask the kernel to send from its memory?
pub(super) const ZERO_COPY: Descriptor<Option<Switch>> = Descriptor {
    name: "zerocopy",
    summary: "the sender of a stream asks the kernel to send from its memory (MSG_ZEROCOPY; SEND_ZC with api=uring)",
    values: "on, off (default off)",
    other: "on",
    fits: |load, _| load.sends_without_copies(),
    ..word(Decides::Traffic)
};
