//! A namespace where IPv6 says nothing unasked.

use std::fs;
use std::io;
use std::net::Ipv6Addr;

use crate::error::{Error, Result};
use crate::handle::Handle;

/// No duplicate address detection, no router solicitations or advertisements, no link-local
/// addresses (mode 1, `IN6_ADDR_GEN_MODE_NONE`). The multicast groups of an address are reported
/// twice; the second report follows within a millisecond instead of a second, in nobody's window.
const QUIET: [(&str, &str); 7] = [
    ("accept_dad", "0"),
    ("dad_transmits", "0"),
    ("router_solicitations", "0"),
    ("accept_ra", "0"),
    ("addr_gen_mode", "1"),
    ("mldv1_unsolicited_report_interval", "1"),
    ("mldv2_unsolicited_report_interval", "1"),
];

impl Handle {
    /// Stops IPv6 background traffic and delays in the namespace. Call it before devices are made:
    /// they copy `default` when they are registered. Neighbour discovery keeps working, from the
    /// global addresses given with [`Handle::add_address`]; only where IPv6 is *forwarded* the kernel
    /// insists on a link-local address (`ndisc_send_ns`): call [`Handle::add_link_local`] there.
    ///
    /// Kernels without IPv6, and those without one of the settings, are left as they are.
    ///
    /// # Errors
    /// [`Error::Kernel`] if a setting that exists cannot be changed.
    pub fn quiet_ipv6(&self) -> Result<()> {
        self.ns().run(quiet_here)?
    }

    /// Gives a device the link-local address that belongs to its Ethernet address (EUI-64, RFC 4291
    /// appendix A), usable at once.
    ///
    /// # Errors
    /// [`Error::Missing`] for the device, [`Error::Invalid`] if it has no Ethernet address,
    /// [`Error::Kernel`] (`EEXIST`) if it has the address already.
    pub fn add_link_local(&self, name: &str) -> Result<()> {
        let Some(mac) = self.link(name)?.mac else {
            let what = format!("add a link-local address to `{name}`");
            return Err(Error::invalid(what, "the device has no Ethernet address"));
        };
        self.add_address(name, link_local(mac).into(), 64)
    }
}

/// [`Handle::quiet_ipv6`] in the namespace of the calling thread.
pub(crate) fn quiet_here() -> Result<()> {
    for (name, value) in QUIET {
        for scope in ["default", "all"] {
            let path = format!("/proc/sys/net/ipv6/conf/{scope}/{name}");
            match write(&path, value) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // `all/addr_gen_mode` of some kernels takes no value.
                Err(error) if scope == "all" && error.kind() == io::ErrorKind::InvalidInput => {}
                Err(error) => {
                    return Err(Error::from_io(format!("set `{path}` to {value}"), error));
                }
            }
        }
    }
    Ok(())
}

fn link_local(mac: [u8; 6]) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac;
    Ipv6Addr::from([
        0xfe,
        0x80,
        0,
        0,
        0,
        0,
        0,
        0,
        a ^ 2,
        b,
        c,
        0xff,
        0xfe,
        d,
        e,
        f,
    ])
}

fn write(path: &str, value: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    io::Write::write_all(&mut file, value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_addresses_are_eui64() {
        let address = link_local([0x02, 0x00, 0x5e, 0x10, 0x00, 0x52]);
        assert_eq!(address.to_string(), "fe80::5eff:fe10:52");
    }
}
