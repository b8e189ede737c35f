//! The state of an offload flag that the values of all axes together ask for.

use super::device_offload::DeviceOffloads;
use super::offloads::{OffloadFlag, Switch};
use super::registry::Axes;

impl Axes {
    /// The value of the flag's own axis.
    #[must_use]
    pub fn offload_named(&self, flag: OffloadFlag) -> Option<Switch> {
        match flag {
            OffloadFlag::Tso => self.tso,
            OffloadFlag::Gso => self.gso,
            OffloadFlag::Gro => self.gro,
            OffloadFlag::Lro => self.lro,
            OffloadFlag::TxChecksum => self.tx_checksum,
        }
    }

    pub(crate) fn offload_named_mut(&mut self, flag: OffloadFlag) -> &mut Option<Switch> {
        match flag {
            OffloadFlag::Tso => &mut self.tso,
            OffloadFlag::Gso => &mut self.gso,
            OffloadFlag::Gro => &mut self.gro,
            OffloadFlag::Lro => &mut self.lro,
            OffloadFlag::TxChecksum => &mut self.tx_checksum,
        }
    }

    /// The state asked for one offload flag on one device, and whether the flag was named. The device's own switches
    /// count first, then the flag's axis, then `offload`. A switch that names the flag counts before one of all flags,
    /// and one that names the namespace before one that does not.
    #[must_use]
    pub fn offload_of(
        &self,
        namespace: &str,
        device: &str,
        flag: OffloadFlag,
    ) -> Option<(Switch, bool)> {
        let own = self.device_offload.iter().flat_map(DeviceOffloads::iter);
        let own = own
            .filter(|one| one.is_of(namespace, device))
            .filter(|one| one.flag.is_none_or(|of| of == flag));
        let nearest = own.max_by_key(|one| (one.flag.is_some(), one.device.contains('/')));
        let of_path = || {
            let named = self.offload_named(flag).map(|to| (to, true));
            named.or(self.offload.map(|to| (to, false)))
        };
        nearest
            .map(|one| (one.to, one.flag.is_some()))
            .or_else(of_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_switch_counts() {
        let axes = Axes {
            offload: Some(Switch::On),
            gro: Some(Switch::Off),
            device_offload: Some("offload@br0=off+tso@hub/br0=on+gso@br0=on".parse().unwrap()),
            ..Axes::default()
        };
        let (on, off) = (Switch::On, Switch::Off);
        for (namespace, device, flag, wanted) in [
            ("a", "eth0", OffloadFlag::Tso, (on, false)),
            ("a", "eth0", OffloadFlag::Gro, (off, true)),
            ("a", "br0", OffloadFlag::Tso, (off, false)),
            ("hub", "br0", OffloadFlag::Tso, (on, true)),
            ("hub", "br0", OffloadFlag::Gso, (on, true)),
            ("hub", "br0", OffloadFlag::Gro, (off, false)),
        ] {
            let found = axes.offload_of(namespace, device, flag);
            assert_eq!(found, Some(wanted), "{namespace}/{device} {}", flag.name());
        }
        let none = Axes::default();
        assert_eq!(none.offload_of("a", "eth0", OffloadFlag::Tso), None);
    }
}
