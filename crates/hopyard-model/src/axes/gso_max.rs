//! The largest GSO and GRO packets of every device; beyond 64 KiB this is BIG TCP.

use super::axis::Decides;
use super::descriptor::{Descriptor, bytes};

pub(super) const GSO_MAX: Descriptor<Option<u32>> = Descriptor {
    name: "gso_max",
    summary: "largest GSO and GRO packet of every device, over both IP versions (BIG TCP)",
    values: "4 KiB to 524280 B (default: as the kernel makes the device, 64 KiB)",
    other: "180KiB",
    of_devices: true,
    ..bytes::<4096, { 8 * 65535 }>(Decides::Lab)
};
