//! IP prefixes that a port may use.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// An IP prefix, without bits behind it.
///
/// ```
/// use hopyard_switch::Prefix;
///
/// let prefix: Prefix = "192.0.2.0/24".parse()?;
/// assert_eq!(prefix.ip().to_string(), "192.0.2.0");
/// assert!("192.0.2.1/24".parse::<Prefix>().is_err());
/// # Ok::<(), hopyard_switch::NotAPrefix>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    ip: IpAddr,
    bits: u8,
}

/// Bits before an IPv4 address that is written as an IPv6 address.
const MAPPED: u8 = 96;

impl Prefix {
    /// The prefix that has `bits` bits of `ip`, which has none behind them.
    ///
    /// # Errors
    /// More bits than the address has, or bits set behind them.
    pub fn new(ip: IpAddr, bits: u8) -> Result<Self, NotAPrefix> {
        // `::ffff:10.0.0.0/104` is another way to write `10.0.0.0/8`.
        let (ip, bits) = match ip.to_canonical() {
            IpAddr::V4(mapped) if ip.is_ipv6() && bits >= MAPPED => (mapped.into(), bits - MAPPED),
            _ => (ip, bits),
        };
        let all = if ip.is_ipv4() { 32 } else { 128 };
        if bits > all {
            return Err(NotAPrefix(format!(
                "`{ip}/{bits}` is no prefix: an address of this family has {all} bits"
            )));
        }
        let first = first_of(ip, u32::from(all - bits));
        if first != ip {
            return Err(NotAPrefix(format!(
                "`{ip}/{bits}` is no prefix: it has bits set behind its first {bits}; is it {first}/{bits}, or the \
                 address {ip} alone?"
            )));
        }
        Ok(Self { ip, bits })
    }

    /// First address of the prefix: all host bits are 0.
    #[must_use]
    pub fn ip(self) -> IpAddr {
        self.ip
    }

    /// Its length, as that of an IPv6 prefix: IPv4 addresses are kept as `::ffff:a.b.c.d`.
    pub(crate) fn mapped_bits(self) -> u8 {
        if self.ip.is_ipv4() {
            MAPPED + self.bits
        } else {
            self.bits
        }
    }

    /// The inverse of [`Prefix::mapped_bits`].
    pub(crate) fn from_mapped(ip: IpAddr, mapped_bits: u64) -> Self {
        let base = if ip.is_ipv4() { MAPPED } else { 0 };
        let bits = u8::try_from(mapped_bits.saturating_sub(base.into())).unwrap_or(u8::MAX);
        Self { ip, bits }
    }
}

/// The address without its last bits.
fn first_of(ip: IpAddr, last: u32) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => (u32::from(ip) & u32::MAX.checked_shl(last).unwrap_or(0))
            .to_be_bytes()
            .into(),
        IpAddr::V6(ip) => (u128::from(ip) & u128::MAX.checked_shl(last).unwrap_or(0))
            .to_be_bytes()
            .into(),
    }
}

/// What is wrong with a prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAPrefix(String);

impl FromStr for Prefix {
    type Err = NotAPrefix;

    fn from_str(text: &str) -> Result<Self, NotAPrefix> {
        let not = || {
            NotAPrefix(format!(
                "`{text}` is no prefix: write an address and its length, 2001:db8:1::/64"
            ))
        };
        let (ip, bits) = text.split_once('/').ok_or_else(not)?;
        // `u8::from_str` would take a sign.
        if !bits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(not());
        }
        let ip = ip.parse().map_err(|_| not())?;
        Self::new(ip, bits.parse().map_err(|_| not())?)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.bits)
    }
}

impl Serialize for Prefix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_prefixes() {
        for text in [
            "2001:db8:1::/64",
            "::/0",
            "0.0.0.0/0",
            "10.1.0.0/16",
            "10.1.2.3/32",
            "fe80::1/128",
        ] {
            let prefix: Prefix = text.parse().unwrap();
            assert_eq!(prefix.to_string(), text);
            let bits = u64::from(prefix.mapped_bits());
            assert_eq!(Prefix::from_mapped(prefix.ip(), bits), prefix);
        }
        for (mapped, plain) in [
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("::ffff:0.0.0.0/96", "0.0.0.0/0"),
            ("::ffff:192.0.2.1/128", "192.0.2.1/32"),
        ] {
            assert_eq!(mapped.parse::<Prefix>().unwrap().to_string(), plain);
        }
        for wrong in [
            "",
            "::",
            "::/",
            "::/129",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "10.0.0.0/8/8",
            "x/8",
        ] {
            assert!(wrong.parse::<Prefix>().is_err(), "{wrong}");
        }
        let error = "2001:db8::5/64".parse::<Prefix>().unwrap_err();
        assert!(error.to_string().contains("is it 2001:db8::/64"), "{error}");
    }
}
