//! The largest GSO and GRO packets of every device; beyond 64 KiB this is BIG TCP.

use super::axis::{Decides, Descriptor, bytes};

pub(super) struct GsoMax;

impl Descriptor for GsoMax {
    type Value = Option<u32>;
    const NAME: &'static str = "gso_max";
    const SUMMARY: &'static str =
        "largest GSO and GRO packet of every device, over both IP versions (BIG TCP)";
    const VALUES: &'static str =
        "4 KiB to 524280 B (default: as the kernel makes the device, 64 KiB)";
    const OTHER: &'static str = "180KiB";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_DEVICES: bool = true;

    bytes!(4096, 8 * 65535);
}
