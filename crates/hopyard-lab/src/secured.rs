//! What MACsec has encrypted in a lab, counted beside its devices, which would count frames in the clear as well.

use hopyard_net::Handle;

use super::part::{Part, Undone};
use super::{Builder, Result};
use crate::model::DeviceCount;

/// What stands for it among the devices of a namespace.
pub(super) const MACSEC: &str = "encrypted";

/// The namespaces of both ends, and the name of the device in each.
#[derive(Debug)]
struct Secured {
    ends: [(&'static str, Handle); 2],
    device: &'static str,
}

impl Builder {
    /// Counts what the MACsec devices of two namespaces encrypt.
    ///
    /// # Errors
    /// The namespace cannot be acted in.
    pub(super) fn count_encrypted(
        &mut self,
        [near, far]: [&'static str; 2],
        device: &'static str,
    ) -> Result<()> {
        let near = (near, Handle::new(self.space(near)?.ns())?);
        let far = (far, Handle::new(self.space(far)?.ns())?);
        let ends = [near, far];
        self.push(Secured { ends, device });
        Ok(())
    }
}

impl Part for Secured {
    /// Devices and keys go with their namespaces.
    fn undo(&mut self) -> Undone {
        Undone::default()
    }

    fn counted(&self) -> Result<Vec<DeviceCount>> {
        let counts = self.ends.iter().map(|(role, handle)| {
            let traffic = handle.macsec_traffic(self.device)?;
            Ok(DeviceCount::new(
                *role,
                MACSEC,
                [
                    traffic.decrypted_packets,
                    traffic.decrypted_bytes,
                    traffic.encrypted_packets,
                    traffic.encrypted_bytes,
                ],
            ))
        });
        counts.collect()
    }
}
