//! Work that the program behind a device does instead of the kernel.

use crate::error::{Error, Result};

const TUN_F_CSUM: u32 = 0x01;
const TUN_F_TSO4: u32 = 0x02;
const TUN_F_TSO6: u32 = 0x04;
const TUN_F_TSO_ECN: u32 = 0x08;
const TUN_F_USO4: u32 = 0x20;
const TUN_F_USO6: u32 = 0x40;

/// Which unfinished frames the program takes (`TUNSETOFFLOAD`); a [`VnetHeader`](crate::VnetHeader) says what is left
/// to do. None by default.
///
/// This is about frames that the program *reads*. On a device with such headers, the kernel always takes unfinished
/// frames that the program *writes*.
///
/// UDP fragmentation (`TUN_F_UFO`) is not offered: Linux has not done it since 4.14.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Offloads {
    /// Frames without their TCP or UDP checksum (`TUN_F_CSUM`); all others need this one.
    pub checksum: bool,
    /// TCP over IPv4 in segments of up to 64 KiB (`TUN_F_TSO4`).
    pub tso4: bool,
    /// TCP over IPv6 in segments of up to 64 KiB (`TUN_F_TSO6`).
    pub tso6: bool,
    /// TCP segments that also have ECN's "congestion window reduced" (`TUN_F_TSO_ECN`).
    pub tso_ecn: bool,
    /// Joined UDP datagrams, over both families: the kernel takes `TUN_F_USO4` and `TUN_F_USO6` only together (Linux
    /// 6.2).
    pub uso: bool,
}

impl Offloads {
    /// Everything for TCP; every kernel since 2.6.27 has it.
    pub const TCP: Self = Self {
        checksum: true,
        tso4: true,
        tso6: true,
        tso_ecn: true,
        uso: false,
    };
    /// Everything; Linux 6.2.
    pub const ALL: Self = Self {
        uso: true,
        ..Self::TCP
    };

    pub(crate) fn bits(self) -> u32 {
        [
            (self.checksum, TUN_F_CSUM),
            (self.tso4, TUN_F_TSO4),
            (self.tso6, TUN_F_TSO6),
            (self.tso_ecn, TUN_F_TSO_ECN),
            (self.uso, TUN_F_USO4 | TUN_F_USO6),
        ]
        .iter()
        .filter_map(|&(on, bit)| on.then_some(bit))
        .sum()
    }

    /// Checks for which `set_offload` would return a bare `EINVAL`.
    pub(crate) fn check(self, what: &str) -> Result<()> {
        if self != Self::default() && !self.checksum {
            let why = "every other offload needs `checksum`: a segment's checksums cannot be done before it is cut";
            return Err(Error::invalid(what, why));
        }
        if self.tso_ecn && !self.tso4 && !self.tso6 {
            return Err(Error::invalid(what, "`tso_ecn` needs `tso4` or `tso6`"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_of_the_header() {
        assert_eq!(Offloads::default().bits(), 0);
        assert_eq!(Offloads::TCP.bits(), 0x0f);
        assert_eq!(Offloads::ALL.bits(), 0x6f);
    }

    #[test]
    fn what_the_kernel_would_refuse_is_refused_with_a_reason() {
        let lone = |offloads: Offloads| offloads.check("x").unwrap_err().to_string();
        let tso = Offloads {
            tso4: true,
            ..Offloads::default()
        };
        assert!(lone(tso).contains("`checksum`"));
        let ecn = Offloads {
            checksum: true,
            tso_ecn: true,
            ..Offloads::default()
        };
        assert!(lone(ecn).contains("`tso4`"));
        Offloads::ALL.check("x").unwrap();
    }
}
