//! A wire that pauses is one with a rate. The wire itself is made by its path.

use super::OnLab;
use crate::model::{Axes, Rate};
use crate::need::Need;
use crate::{Error, Result};

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
            _ => Ok(()),
        }
    }
}
