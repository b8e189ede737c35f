//! The two addresses of a frame.

/// A MAC address, in the low 48 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Mac(u64);

/// The bit of the first byte that makes an address a group's (IEEE 802, section 8.2.2).
const GROUP: u64 = 1 << 40;
/// Addresses that no bridge forwards, without their last four bits: spanning tree, pause, link aggregation, 802.1X,
/// LLDP (IEEE 802.1Q, table 8-1).
const RESERVED: u64 = 0x0180_c200_0000;
const HEADER: usize = 14;

impl Mac {
    pub(super) fn of(bytes: [u8; 6]) -> Self {
        let [a, b, c, d, e, f] = bytes;
        Self(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }

    /// Whether it is broadcast or multicast.
    pub(super) fn is_group(self) -> bool {
        self.0 & GROUP != 0
    }

    /// Whether it is one of the group addresses that no bridge forwards.
    pub(super) fn is_reserved(self) -> bool {
        self.0 & !0xf == RESERVED
    }

    /// Whether a station can send from it.
    pub(super) fn is_station(self) -> bool {
        self.0 != 0 && !self.is_group()
    }

    pub(super) fn bits(self) -> u64 {
        self.0
    }
}

/// Destination and source of an Ethernet frame; `None` for one too short to have an Ethernet header.
pub(super) fn addresses(frame: &[u8]) -> Option<(Mac, Mac)> {
    let header = frame.first_chunk::<HEADER>()?;
    let [a, b, c, d, e, f, g, h, i, j, k, l, _, _] = *header;
    Some((Mac::of([a, b, c, d, e, f]), Mac::of([g, h, i, j, k, l])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_the_first_twelve_bytes() {
        let frame = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0];
        let (to, from) = addresses(&frame).unwrap();
        assert_eq!(
            (to.bits(), from.bits()),
            (0x0200_0000_0001, 0x0200_0000_0009)
        );
        assert!(to.is_station() && !to.is_group());
        assert_eq!(addresses(&frame[..13]), None);
    }

    #[test]
    fn groups_and_nobody_are_no_stations() {
        let mac = |first| Mac::of([first, 0, 0, 0, 0, 0]);
        assert!(!mac(0).is_station());
        assert!(mac(0x33).is_group() && !mac(0x33).is_station());
        assert!(Mac::of([0xff; 6]).is_group());
        assert!(mac(2).is_station());
    }

    #[test]
    fn sixteen_addresses_are_reserved() {
        let mac = |last| Mac::of([0x01, 0x80, 0xc2, 0, 0, last]);
        let reserved: Vec<u8> = (0..=255).filter(|last| mac(*last).is_reserved()).collect();
        assert_eq!(reserved, (0..16).collect::<Vec<u8>>());
        assert!(!Mac::of([0x01, 0x80, 0xc2, 0, 1, 0]).is_reserved());
        assert!(!Mac::of([0x00, 0x80, 0xc2, 0, 0, 0]).is_reserved());
    }
}
