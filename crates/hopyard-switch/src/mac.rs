//! Ethernet addresses.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// An Ethernet address.
///
/// ```
/// use hopyard_switch::Mac;
///
/// let mac: Mac = "02:00:00:00:00:01".parse()?;
/// assert!(mac.is_station());
/// assert_eq!(mac.to_string(), "02:00:00:00:00:01");
/// # Ok::<(), hopyard_switch::NotAMac>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// As the maps have it: the first octet is the lowest byte (`bpf/layout.h`).
    pub(crate) fn to_number(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
    }

    /// The inverse of [`Mac::to_number`]; the 16 bits above are not looked at.
    pub(crate) fn from_number(number: u64) -> Self {
        let [a, b, c, d, e, f, ..] = number.to_le_bytes();
        Self([a, b, c, d, e, f])
    }

    /// Can a station have it: neither a group address nor zero?
    #[must_use]
    pub fn is_station(self) -> bool {
        self.0[0] & 1 == 0 && self.0 != [0; 6]
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Not six hexadecimal octets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no Ethernet address: six hexadecimal octets with `:` between them, 02:00:00:00:00:01"
)]
pub struct NotAMac(String);

impl FromStr for Mac {
    type Err = NotAMac;

    fn from_str(text: &str) -> Result<Self, NotAMac> {
        let not = || NotAMac(text.to_owned());
        let octets: Vec<u8> = text
            .split(':')
            .map(|octet| match octet.len() {
                // `from_str_radix` would take a sign.
                1 | 2 if octet.bytes().all(|b| b.is_ascii_hexdigit()) => {
                    u8::from_str_radix(octet, 16).map_err(|_| not())
                }
                _ => Err(not()),
            })
            .collect::<Result<_, _>>()?;
        octets.try_into().map(Self).map_err(|_| not())
    }
}

impl Serialize for Mac {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_addresses() {
        let mac: Mac = "02:0:aB:cd:ef:01".parse().unwrap();
        assert_eq!(mac.to_string(), "02:00:ab:cd:ef:01");
        assert_eq!(Mac::from_number(mac.to_number() | 7 << 48), mac);
        assert_eq!(mac.to_number() & 0xff, 2);
        for wrong in [
            "",
            "02:00",
            "02:00:00:00:00:00:00",
            "02:00:00:00:00:+1",
            "02-00-00-00-00-01",
            "gg:0:0:0:0:0",
        ] {
            assert!(wrong.parse::<Mac>().is_err(), "{wrong}");
        }
        assert!(!Mac([1, 0, 0, 0, 0, 0]).is_station());
        assert!(!Mac([0; 6]).is_station());
    }
}
