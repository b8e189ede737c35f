//! The shapes of `bpf/shortcut.h`, which asserts the same sizes and offsets.

use serde::Serialize;

pub(crate) const SHORTCUT_VERSION: u32 = 1;

/// The longest path of a control group that is kept, octets.
pub(crate) const PATH_LEN: usize = 256;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) version: u32,
    pub(crate) on: u32,
    pub(crate) max_message: u32,
    /// What joined sockets may lack: a bit for each [`Loss`](super::Loss).
    pub(crate) accepted: u32,
    pub(crate) cgroup: u64,
    /// The last of the numbers that ports got.
    pub(crate) lives: u64,
    pub(crate) path: [u8; PATH_LEN],
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GuestKey {
    pub(crate) netns: u64,
    pub(crate) ifindex: u32,
    pub(crate) unused: u32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GuestSeen {
    pub(crate) netns: u64,
    pub(crate) address: u64,
    pub(crate) ifindex: u32,
    pub(crate) unused: u32,
}

/// What of a port's traffic went by the shortcut. None of it is in the port's [`Counters`](crate::Counters).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ShortcutCounters {
    /// Sockets of the port that found the other end of their connection.
    pub joined: u64,
    /// Messages from the port's sockets.
    pub rx_messages: u64,
    /// Bytes in them.
    pub rx_bytes: u64,
    /// Messages to the port's sockets.
    pub tx_messages: u64,
    /// Bytes in them.
    pub tx_bytes: u64,
    /// Sockets of the port that the kernel did not take, as they are in another program's map.
    pub refused: u64,
}

impl ShortcutCounters {
    pub(crate) fn add(&mut self, other: &Self) {
        self.joined += other.joined;
        self.rx_messages += other.rx_messages;
        self.rx_bytes += other.rx_bytes;
        self.tx_messages += other.tx_messages;
        self.tx_bytes += other.tx_bytes;
        self.refused += other.refused;
    }
}

macro_rules! pod {
    ($($shape:ty),*) => {$(
        // SAFETY: `repr(C)` integers and arrays of them, without padding (see the sizes below); any
        // bytes are a value.
        unsafe impl aya::Pod for $shape {}
    )*};
}

pod!(Settings, GuestKey, GuestSeen, ShortcutCounters);

const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(Settings, cgroup) == 16);
    assert!(offset_of!(Settings, path) == 32);
    assert!(size_of::<Settings>() == 288);
    assert!(offset_of!(GuestKey, ifindex) == 8);
    assert!(size_of::<GuestKey>() == 16);
    assert!(offset_of!(GuestSeen, ifindex) == 16);
    assert!(size_of::<GuestSeen>() == 24);
    assert!(size_of::<ShortcutCounters>() == 48);
};
