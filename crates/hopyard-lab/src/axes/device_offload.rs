//! Offload switches of single devices are set with all others (`lab/offloads.rs`); those for one path alone name one that there is.

use super::OnLab;
use crate::Result;
use crate::model::{Axes, DeviceOffloads};

pub(super) struct DeviceOffload;

impl OnLab for DeviceOffload {
    fn check(&self, axes: &Axes) -> Result<()> {
        let switches = axes.device_offload.iter().flat_map(DeviceOffloads::iter);
        for path in switches.filter_map(|one| one.path.as_deref()) {
            crate::path(path)?;
        }
        Ok(())
    }
}
