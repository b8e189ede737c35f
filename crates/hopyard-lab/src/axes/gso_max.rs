//! Sets the largest GSO and GRO packets of every device, and reads them back.

use hopyard_net::MaxSizes;

use super::{OnLab, need_no_guests};
use crate::model::Family;
use crate::units::show_bytes;
use crate::{Builder, Error, Result};

/// Beyond this size a kernel has a size of its own for IPv4, or does without (`GSO_LEGACY_MAX_SIZE`).
const LEGACY_MAX: u32 = 65536;

const AXIS: &str = "gso_max";

pub(super) struct GsoMax;

impl OnLab for GsoMax {
    fn apply(&self, lab: &mut Builder) -> Result<()> {
        let Some(bytes) = lab.axes().gso_max_bytes else {
            return Ok(());
        };
        let wanted = show_bytes(bytes);
        need_no_guests(lab, AXIS, &wanted, "keeps its own sizes")?;
        let refused = |device: String, why: String| Error::refused(device, AXIS, &wanted, why);
        for (role, device, handle) in lab.devices_in_reach() {
            let limit = handle.max_sizes(device)?.limit.unwrap_or(LEGACY_MAX);
            if bytes > limit {
                let why = format!(
                    "it takes {limit} bytes at most; set `gso_max` to {limit} or less, or choose another path"
                );
                return Err(refused(format!("{role}/{device}"), why));
            }
            handle.set_max_sizes(device, bytes)?;
        }
        // Only now: what one device is set to may change another, as a bridge's ports do.
        let family = lab.axes().family;
        for (role, device, handle) in lab.devices_in_reach() {
            if let Some(why) = amiss(handle.max_sizes(device)?, bytes, family) {
                return Err(refused(format!("{role}/{device}"), why));
            }
        }
        Ok(())
    }
}

/// Why these sizes are not what was asked; `None` if they are.
fn amiss(sizes: MaxSizes, bytes: u32, family: Family) -> Option<String> {
    let all = [
        ("gso_max_size", sizes.gso, "4.17"),
        ("gro_max_size", sizes.gro, "5.19"),
        ("gso_ipv4_max_size", sizes.gso_ipv4, "6.3"),
        ("gro_ipv4_max_size", sizes.gro_ipv4, "6.3"),
    ];
    // Kernels without the last two have one size for both IP versions, and no more than this over IPv4.
    let without = bytes <= LEGACY_MAX || family == Family::V6;
    all.into_iter().find_map(|(name, size, since)| match size {
        Some(size) if size == bytes => None,
        Some(size) => Some(format!(
            "the kernel keeps {name} at {size}; set `gso_max` to another value, or choose another path"
        )),
        None if without && name.contains("ipv4") => None,
        None => Some(format!("{name} needs Linux {since} or newer; leave `gso_max` out")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_the_kernel_does_not_keep_is_refused() {
        let all = |bytes| MaxSizes {
            gso: Some(bytes),
            gro: Some(bytes),
            gso_ipv4: Some(bytes),
            gro_ipv4: Some(bytes),
            limit: Some(524_280),
            ..MaxSizes::default()
        };
        assert_eq!(amiss(all(184_320), 184_320, Family::V4), None);
        let kept = MaxSizes {
            gro_ipv4: Some(LEGACY_MAX),
            ..all(184_320)
        };
        let why = amiss(kept, 184_320, Family::V4).unwrap();
        assert!(why.contains("keeps gro_ipv4_max_size at 65536"), "{why}");
        // Linux 5.19 to 6.2.
        let older = |bytes| MaxSizes {
            gso_ipv4: None,
            gro_ipv4: None,
            ..all(bytes)
        };
        let why = amiss(older(184_320), 184_320, Family::V4).unwrap();
        assert!(why.contains("Linux 6.3"), "{why}");
        assert_eq!(amiss(older(184_320), 184_320, Family::V6), None);
        assert_eq!(amiss(older(32_768), 32_768, Family::V4), None);
    }
}
