//! A namespace where IPv6 says nothing unasked.

use std::fs;
use std::io;
use std::net::Ipv6Addr;

use netlink_packet_core::DefaultNla;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::LinkAttribute;

use crate::attrs::nested;
use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::link::named;

/// No duplicate address detection, no router solicitations or advertisements, no link-local
/// addresses (mode 1, `IN6_ADDR_GEN_MODE_NONE`). The multicast groups of an address are reported
/// twice; the second report follows within a millisecond instead of a second, in nobody's window.
///
/// IPv6 itself is on: a host where it is off may hand that down (`net.core.devconf_inherit_init_net`).
const QUIET: [(&str, &str); 8] = [
    ("disable_ipv6", "0"),
    ("accept_dad", "0"),
    ("dad_transmits", "0"),
    ("router_solicitations", "0"),
    ("accept_ra", "0"),
    ("addr_gen_mode", "1"),
    ("mldv1_unsolicited_report_interval", "1"),
    ("mldv2_unsolicited_report_interval", "1"),
];

/// `IFLA_INET6_ADDR_GEN_MODE` (include/uapi/linux/if_link.h).
const ADDR_GEN_MODE: u16 = 8;
/// `IFLA_AF_SPEC`.
const AF_SPEC: u16 = 26;

/// How a device gets its link-local address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkLocal {
    /// Made from its Ethernet address (EUI-64), as usual.
    FromMac = 0,
    /// It gets none.
    None = 1,
}

impl Handle {
    /// Says how a device gets its link-local address when it comes up. The same as the setting `addr_gen_mode` of the device; but who
    /// writes that waits for other changes of the network by trying again and again, and this waits in a queue.
    ///
    /// Kernels without IPv6 are left as they are.
    ///
    /// # Errors
    /// [`Error::Missing`] for the device.
    pub fn set_link_local(&self, name: &str, how: LinkLocal) -> Result<()> {
        let what = format!("set the link-local address of `{name}`");
        let mode = DefaultNla::new(ADDR_GEN_MODE, vec![how as u8]);
        let of_family = nested(libc::AF_INET6 as u16, &[mode]);
        let mut message = named(name);
        let spec = LinkAttribute::Other(nested(AF_SPEC, &[of_family]));
        message.attributes.push(spec);
        match self.ask(&what, name, RouteNetlinkMessage::SetLink(message), 0) {
            Err(error) if error.errno() == Some(libc::EAFNOSUPPORT) => Ok(()),
            set => set.map(drop),
        }
    }

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
