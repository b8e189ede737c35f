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
        match (axes.wire_pause_ns, axes.rate_bps) {
            (Some(pause), None | Some(Rate(None))) => Err(Error::AxisRefused {
                device: "the wire".to_owned(),
                axis: "wire_pause",
                value: pause.to_string(),
                why: "a wire without a rate has nothing to pause for; set `rate` too".to_owned(),
            }),
            (Some(pause), _) if axes.gso_max_bytes.is_some_and(|most| most > LARGEST) => {
                Err(Error::AxisRefused {
                    device: "the wire".to_owned(),
                    axis: "wire_pause",
                    value: pause.to_string(),
                    why: "packets that wait take 64 KiB at most: set `gso_max` to 65536 or less, or leave one of the two out"
                        .to_owned(),
                })
            }
            _ => Ok(()),
        }
    }
}
