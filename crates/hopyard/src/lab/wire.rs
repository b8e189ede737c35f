//! The wire between the hub and the far end.

use super::topology::{Endpoint, Subnet, host, role};
use super::{Builder, Result};
use crate::model::{Hop, Rate};

/// The hub's end of the wire.
pub(super) const UPLINK: &str = "up0";
/// The far end of the wire.
pub(super) const FAR_END: &str = "far0";

impl Builder {
    /// The wire: a veth pair from the hub's `up0` to `far0` in `far`, shaped both ways where the
    /// axes ask for a rate.
    ///
    /// # Errors
    /// The kernel cannot or will not.
    pub fn wire(&mut self) -> Result<()> {
        self.veth((role::HUB, UPLINK), (role::FAR, FAR_END))?;
        if let Some(Rate(Some(rate_bps))) = self.axes().rate_bps {
            for (role, device) in [(role::HUB, UPLINK), (role::FAR, FAR_END)] {
                self.space(role)?
                    .shape(device, rate_bps)
                    .map_err(|error| error.or("leave the rate out"))?;
            }
        }
        Ok(())
    }

    /// The far end of the wire as the server: traffic leaves the hub by the uplink.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn far_end(&mut self, subnet: Subnet, way: &mut Vec<Hop>) -> Result<Endpoint> {
        way.extend([Hop::tx(role::HUB, UPLINK), Hop::rx(role::FAR, FAR_END)]);
        self.endpoint(role::FAR, FAR_END, subnet.host(host::FAR))
    }
}
