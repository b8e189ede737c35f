//! Offloads: groups of device features that people switch together.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{Error, Result};
use crate::ethtool::{self, Feature};
use crate::handle::{Handle, missing_device};

/// An offload, as `ethtool -K` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Offload {
    /// TCP segmentation by the device, all `tx-tcp*-segmentation`.
    Tso,
    /// Segmentation by the kernel just above the device, `tx-generic-segmentation`.
    Gso,
    /// Joining received packets, `rx-gro`. On veth it also switches NAPI on and off
    /// (`veth_set_features`): with it, packets pass through a softirq of their own.
    Gro,
    /// Joining received packets in hardware, `rx-lro`; must be off where packets are forwarded.
    Lro,
    /// Checksums of sent packets by the device, all `tx-checksum-*`. Switching it off switches the
    /// segmentation offloads off that need it (`netdev_fix_features`).
    TxChecksum,
}

/// The state of an offload, as it is in effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OffloadState {
    /// On, and in effect.
    On,
    /// Not in effect, though the device could.
    Off,
    /// As it is and cannot be changed.
    Fixed(bool),
    /// Some features of the group on, some off.
    Mixed,
}

/// The state of all offloads of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Offloads {
    /// See [`Offload::Tso`].
    pub tso: OffloadState,
    /// See [`Offload::Gso`].
    pub gso: OffloadState,
    /// See [`Offload::Gro`].
    pub gro: OffloadState,
    /// See [`Offload::Lro`].
    pub lro: OffloadState,
    /// See [`Offload::TxChecksum`].
    pub tx_checksum: OffloadState,
}

impl Offload {
    /// All of them, in the order they depend on each other: checksums first.
    pub const ALL: [Self; 5] = [Self::TxChecksum, Self::Tso, Self::Gso, Self::Gro, Self::Lro];

    /// The short name: `tso`, `gso`, `gro`, `lro`, `tx_checksum`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tso => "tso",
            Self::Gso => "gso",
            Self::Gro => "gro",
            Self::Lro => "lro",
            Self::TxChecksum => "tx_checksum",
        }
    }

    fn covers(self, feature: &str) -> bool {
        match self {
            Self::Tso => feature.starts_with("tx-tcp") && feature.ends_with("-segmentation"),
            Self::Gso => feature == "tx-generic-segmentation",
            Self::Gro => feature == "rx-gro",
            Self::Lro => feature == "rx-lro",
            Self::TxChecksum => feature.starts_with("tx-checksum-"),
        }
    }
}

impl fmt::Display for Offload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl OffloadState {
    /// Whether it is in effect; `None` when only partly.
    #[must_use]
    pub fn is_on(self) -> Option<bool> {
        match self {
            Self::On => Some(true),
            Self::Off => Some(false),
            Self::Fixed(on) => Some(on),
            Self::Mixed => None,
        }
    }
}

impl Offloads {
    /// The state of one.
    #[must_use]
    pub fn get(&self, offload: Offload) -> OffloadState {
        match offload {
            Offload::Tso => self.tso,
            Offload::Gso => self.gso,
            Offload::Gro => self.gro,
            Offload::Lro => self.lro,
            Offload::TxChecksum => self.tx_checksum,
        }
    }
}

impl Handle {
    /// The offloads of a device, as they are in effect.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no such device.
    pub fn offloads(&self, name: &str) -> Result<Offloads> {
        let features = self.features(&format!("read the offloads of `{name}`"), name)?;
        let of = |offload| state(offload, &features);
        Ok(Offloads {
            tso: of(Offload::Tso),
            gso: of(Offload::Gso),
            gro: of(Offload::Gro),
            lro: of(Offload::Lro),
            tx_checksum: of(Offload::TxChecksum),
        })
    }

    /// Switches an offload and reports the state then in effect, which may differ from the wish: a
    /// device may not be able to, and segmentation needs checksums.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no such device, [`Error::Denied`] without root.
    pub fn set_offload(&self, name: &str, offload: Offload, on: bool) -> Result<OffloadState> {
        let what = format!(
            "switch {offload} of `{name}` {}",
            if on { "on" } else { "off" }
        );
        let features = self.features(&what, name)?;
        let bits: Vec<usize> = features
            .iter()
            .filter(|feature| feature.changeable && offload.covers(feature.name))
            .map(|feature| feature.bit)
            .collect();
        if bits.is_empty() {
            return Ok(state(offload, &features));
        }
        ethtool::set(self.ioctl_socket(), name, &bits, on)
            .map_err(|error| explain(&what, name, error))?;
        Ok(state(offload, &self.features(&what, name)?))
    }

    /// The single features of all offloads that can be changed, by the names that the kernel has for them: whether each is in effect.
    ///
    /// # Errors
    /// As [`Handle::offloads`].
    pub fn offload_features(&self, name: &str) -> Result<BTreeMap<String, bool>> {
        let features = self.features(&format!("read the offloads of `{name}`"), name)?;
        let of_offloads = features.iter().filter(|feature| is_switched(feature));
        let states = of_offloads.map(|feature| (feature.name.to_owned(), feature.active));
        Ok(states.collect())
    }

    /// Puts single features back as [`Handle::offload_features`] gave them. Names that the device has not are passed over.
    ///
    /// # Errors
    /// As [`Handle::set_offload`].
    pub fn restore_offload_features(
        &self,
        name: &str,
        wanted: &BTreeMap<String, bool>,
    ) -> Result<()> {
        let what = format!("put the offloads of `{name}` back");
        // What needs another one is switched on with it, and off without it.
        for on in [true, false] {
            let features = self.features(&what, name)?;
            let differs = |feature: &&Feature| {
                let here = wanted.get(feature.name);
                is_switched(feature) && here == Some(&on) && feature.active != on
            };
            let bits: Vec<usize> = features.iter().filter(differs).map(|f| f.bit).collect();
            if !bits.is_empty() {
                ethtool::set(self.ioctl_socket(), name, &bits, on)
                    .map_err(|error| explain(&what, name, error))?;
            }
        }
        Ok(())
    }

    fn features(&self, what: &str, name: &str) -> Result<Vec<Feature>> {
        ethtool::features(self.ioctl_socket(), name).map_err(|error| explain(what, name, error))
    }
}

fn is_switched(feature: &Feature) -> bool {
    let is_covered = |offload: Offload| offload.covers(feature.name);
    feature.changeable && Offload::ALL.into_iter().any(is_covered)
}

fn explain(what: &str, name: &str, error: std::io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::ENODEV) => missing_device(what, name),
        _ => Error::from_io(what, error),
    }
}

/// Features that qualify others and segment nothing by themselves are switched with the rest, but do not
/// make a group mixed: many devices keep fixed IPv4 identifiers (`mangleid`) off while everything else is
/// on, and the kernel leaves accurate ECN (`accecn`, Linux 6.18) on when it takes everything else away for
/// want of checksums (`netdev_fix_features`).
fn state(offload: Offload, features: &[Feature]) -> OffloadState {
    let qualifies = |name: &str| name.contains("mangleid") || name.contains("accecn");
    let group = || {
        features
            .iter()
            .filter(|feature| offload.covers(feature.name) && !qualifies(feature.name))
    };
    let changeable = || group().filter(|feature| feature.changeable);
    if changeable().next().is_none() {
        return OffloadState::Fixed(group().any(|feature| feature.active));
    }
    match (
        changeable().all(|feature| feature.active),
        changeable().any(|feature| feature.active),
    ) {
        (true, _) => OffloadState::On,
        (false, false) => OffloadState::Off,
        (false, true) => OffloadState::Mixed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_a_group() {
        let feature = |name, active, changeable| Feature {
            bit: 0,
            name,
            active,
            changeable,
        };
        let tso = |features: &[Feature]| state(Offload::Tso, features);
        let (four, six) = ("tx-tcp-segmentation", "tx-tcp6-segmentation");
        assert_eq!(tso(&[]), OffloadState::Fixed(false));
        assert_eq!(
            tso(&[feature(four, true, false)]),
            OffloadState::Fixed(true)
        );
        assert_eq!(
            tso(&[feature(four, true, true), feature(six, true, true)]),
            OffloadState::On
        );
        assert_eq!(
            tso(&[feature(four, true, true), feature(six, false, true)]),
            OffloadState::Mixed
        );
        // What the device cannot do at all does not count.
        assert_eq!(
            tso(&[feature(four, true, true), feature(six, false, false)]),
            OffloadState::On
        );
        let mangle = feature("tx-tcp-mangleid-segmentation", false, true);
        assert_eq!(tso(&[feature(four, true, true), mangle]), OffloadState::On);
        let accurate = feature("tx-tcp-accecn-segmentation", true, true);
        assert_eq!(
            tso(&[feature(four, false, true), accurate]),
            OffloadState::Off
        );
        assert_eq!(OffloadState::Mixed.is_on(), None);
    }
}
