//! What IPsec has encrypted in a lab, counted in place of a device.

use std::net::IpAddr;

use super::encrypted::{ESP, Encrypted};
use super::{Lab, Result};
use crate::model::DeviceCount;

impl Lab {
    /// What was encrypted and decrypted in each namespace, where the path is proved by it.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub(super) fn encrypted_counts(&self) -> Result<Vec<DeviceCount>> {
        let Some(Encrypted(ends)) = self.builder.parts().next() else {
            return Ok(Vec::new());
        };
        let counts = ends.iter().map(|end| {
            let mut count = DeviceCount::new(end.role, ESP, [0, 0, 0, 0]);
            for state in self.space(end.role)?.handle.esp_traffic()? {
                let is_own = [IpAddr::from(end.outer.v4), end.outer.v6.into()].contains(&state.to);
                let (packets, bytes) = match is_own {
                    true => (&mut count.rx_packets, &mut count.rx_bytes),
                    false => (&mut count.tx_packets, &mut count.tx_bytes),
                };
                *packets += state.packets;
                *bytes += state.bytes;
            }
            Ok(count)
        });
        counts.collect()
    }
}
