//! A wire that pauses is one with a rate. The wire itself is made by its path.

use super::OnLab;
use crate::model::{Axes, Rate};
use crate::need::Need;
use crate::{Error, Result};

/// The kernel's own limit of a device's packets, which that of [`wire::pauses`](crate::wire) keeps, bytes.
const LARGEST: u32 = 65536;

pub(super) struct WirePause;

impl OnLab for WirePause {
    fn needs(&self, axes: &Axes) -> &'static [Need] {
        match axes.wire_pause_ns {
            Some(_) => &[Need::CLASSIFIERS],
            None => &[],
        }
    }

    fn check(&self, axes: &Axes) -> Result<()> {
        let Some(pause) = axes.wire_pause_ns else {
            return Ok(());
        };
        let refused = |why| Error::refused("the wire", "wire_pause", pause.to_string(), why);
        if matches!(axes.rate_bps, None | Some(Rate(None))) {
            let why = "a wire without a rate has nothing to pause for; set `rate` too";
            return Err(refused(why));
        }
        if axes.gso_max_bytes.is_some_and(|most| most > LARGEST) {
            let why = "packets that wait take 64 KiB at most: set `gso_max` to 65536 or less, or leave one of the two out";
            return Err(refused(why));
        }
        Ok(())
    }
}
