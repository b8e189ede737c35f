//! What of nf_tables hangs on single devices, by its netlink (`include/uapi/linux/netfilter/nf_tables.h`): the `nft` program does not
//! tell in every version.

use std::io;

use crate::attrs::{attribute, attributes, text};
use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::nfnetlink::{DUMP, HEADER, Message, ask, connect};

const SUBSYSTEM: u8 = 10;
/// `NFTA_HOOK_DEV` (one device) and `NFTA_HOOK_DEVS`.
const HOOK_DEVICE: u16 = 3;
const HOOK_DEVICES: u16 = 4;
/// `NFTA_DEVICE_PREFIX`: the beginning of the names of several devices (Linux 6.16).
const DEVICE_PREFIX: u16 = 2;

/// Objects that have a hook, for each of which the kernel has a list.
struct Hooked {
    called: &'static str,
    /// `NFT_MSG_GET…`.
    get: u8,
    table: u16,
    name: u16,
    hook: u16,
    devices: u16,
}

const HOOKED: [Hooked; 2] = [
    Hooked {
        called: "chain",
        get: 4,
        table: 1,
        name: 3,
        hook: 4,
        devices: HOOK_DEVICES,
    },
    Hooked {
        called: "flowtable",
        get: 23,
        table: 1,
        name: 2,
        hook: 3,
        devices: 3,
    },
];

impl Handle {
    /// The chains and flow tables of nf_tables that hang on a device, for people. The kernel takes the device out of them when it
    /// leaves its namespace.
    ///
    /// # Errors
    /// [`Error::Denied`] without `CAP_NET_ADMIN`, [`Error::Kernel`].
    pub fn nft_hooks_of(&self, device: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        self.ns().run(|| {
            for hooked in &HOOKED {
                hooked.list(|object| {
                    if hooked.names(object, device) {
                        found.push(hooked.shown(object));
                    }
                })?;
            }
            Ok(())
        })??;
        Ok(found)
    }
}

impl Hooked {
    fn list(&self, each: impl FnMut(&[u8])) -> Result<()> {
        let request = Message::new(SUBSYSTEM, self.get, DUMP, 0).done();
        let listed = connect().and_then(|socket| ask(&socket, &request, each));
        match listed {
            Err(error) if is_unknown(&error) => Ok(()),
            listed => listed.map_err(|error| {
                Error::from_io(format!("list the {}s of nf_tables", self.called), error)
            }),
        }
    }

    fn names(&self, object: &[u8], device: &str) -> bool {
        let hook = attribute(object, HEADER, self.hook).unwrap_or_default();
        attributes(hook, 0).any(|(kind, value)| {
            if kind == self.devices {
                attributes(value, 0).any(|(kind, name)| match kind {
                    DEVICE_PREFIX => device.starts_with(&text(name)),
                    _ => text(name) == device,
                })
            } else {
                kind == HOOK_DEVICE && text(value) == device
            }
        })
    }

    fn shown(&self, object: &[u8]) -> String {
        let word = |kind| {
            attribute(object, HEADER, kind)
                .map(text)
                .unwrap_or_default()
        };
        format!("{} `{} {}`", self.called, word(self.table), word(self.name))
    }
}

/// No nfnetlink at all; no nf_tables, or one without flow tables (before Linux 4.16).
fn is_unknown(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EPROTONOSUPPORT | libc::EINVAL | libc::EOPNOTSUPP)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_a_hook_are_one_or_several_or_the_beginning_of_names() {
        let [chain, flowtable] = &HOOKED;
        let hangs = |of: &Hooked, kind: u16, inner: Option<u16>, name: &[u8]| {
            let mut message = Message::new(SUBSYSTEM, of.get, 0, 0);
            message.put(of.table, b"t\0").put(of.name, b"c\0");
            message.nest(of.hook, |hook| {
                match inner {
                    Some(inner) => hook.nest(kind, |list| {
                        list.put(1, b"eth9\0").put(inner, name);
                    }),
                    None => hook.put(kind, name),
                };
            });
            let message = message.done();
            assert_eq!(of.shown(&message), format!("{} `t c`", of.called));
            of.names(&message, "eth1")
        };
        assert!(hangs(chain, HOOK_DEVICE, None, b"eth1\0"));
        assert!(!hangs(chain, HOOK_DEVICE, None, b"eth10\0"));
        assert!(hangs(chain, HOOK_DEVICES, Some(1), b"eth1\0"));
        assert!(!hangs(chain, HOOK_DEVICES, Some(1), b"eth\0"));
        assert!(hangs(chain, HOOK_DEVICES, Some(DEVICE_PREFIX), b"eth"));
        assert!(hangs(flowtable, 3, Some(1), b"eth1\0"));
        assert!(!hangs(flowtable, 3, Some(1), b"eth2\0"));
    }
}
