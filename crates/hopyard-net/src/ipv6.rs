//! A namespace where IPv6 says nothing unasked.

use std::fs;
use std::io;

use crate::error::{Error, Result};
use crate::handle::Handle;

/// No duplicate address detection, no router solicitations or advertisements, no link-local
/// addresses (mode 1, `IN6_ADDR_GEN_MODE_NONE`).
const QUIET: [(&str, &str); 5] = [
    ("accept_dad", "0"),
    ("dad_transmits", "0"),
    ("router_solicitations", "0"),
    ("accept_ra", "0"),
    ("addr_gen_mode", "1"),
];

impl Handle {
    /// Stops IPv6 background traffic and delays in the namespace. Call it before devices are made:
    /// they copy `default` when they are registered. Neighbour discovery keeps working, from the
    /// global addresses given with [`Handle::add_address`].
    ///
    /// Kernels without IPv6, and those without one of the settings, are left as they are.
    ///
    /// # Errors
    /// [`Error::Kernel`] if a setting that exists cannot be changed.
    pub fn quiet_ipv6(&self) -> Result<()> {
        self.ns().run(|| {
            for (name, value) in QUIET {
                for scope in ["default", "all"] {
                    let path = format!("/proc/sys/net/ipv6/conf/{scope}/{name}");
                    match write(&path, value) {
                        Ok(()) => {}
                        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                        // `all/addr_gen_mode` of some kernels takes no value.
                        Err(error)
                            if scope == "all" && error.kind() == io::ErrorKind::InvalidInput => {}
                        Err(error) => {
                            return Err(Error::from_io(format!("set `{path}` to {value}"), error));
                        }
                    }
                }
            }
            Ok(())
        })?
    }
}

fn write(path: &str, value: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    io::Write::write_all(&mut file, value.as_bytes())
}
