//! Rules of the old iptables, which nf_tables does not list.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};

use crate::attrs::u32_at;
use crate::error::{Error, Result};
use crate::netns::NetNs;
use crate::socket::read_option;

/// A chain of the old iptables that hangs on a hook and has rules.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LegacyChain {
    /// `ip` or `ip6`.
    pub family: String,
    /// Name of the table: `filter`, `nat`, …
    pub table: String,
    /// The hook: `prerouting`, `forward`, …
    pub hook: String,
}

/// A family of tables: its name, the file that lists those in use, and where its socket options are.
struct Family {
    name: &'static str,
    tables: &'static str,
    socket: AddressFamily,
    level: libc::c_int,
}

const FAMILIES: [Family; 2] = [
    Family {
        name: "ip",
        tables: "/proc/thread-self/net/ip_tables_names",
        socket: AddressFamily::Inet,
        level: libc::SOL_IP,
    },
    Family {
        name: "ip6",
        tables: "/proc/thread-self/net/ip6_tables_names",
        socket: AddressFamily::Inet6,
        level: libc::SOL_IPV6,
    },
];

/// The hooks in the order of `enum nf_inet_hooks`.
const HOOKS: [&str; 5] = ["prerouting", "input", "forward", "output", "postrouting"];
/// `IPT_SO_GET_INFO` and `IP6T_SO_GET_INFO`.
const GET_INFO: libc::c_int = 64;
/// Bytes of the name of a table (`XT_TABLE_MAXNAMELEN`).
const NAME: usize = 32;
/// Bytes of `struct ipt_getinfo`: the name, the hooks in use, for each hook where its chain begins and
/// where its policy is, the number of entries and their size.
const INFO: usize = NAME + 4 + 20 + 20 + 4 + 4;

/// The chains of the old iptables and ip6tables that have rules. A policy alone is not found; ebtables and
/// arptables are not looked at.
///
/// Asking makes no table: only those in use are asked for.
///
/// # Errors
/// [`Error::Denied`] without `CAP_NET_ADMIN`, [`Error::Kernel`] where a table cannot be read.
pub fn legacy_chains(ns: &NetNs) -> Result<Vec<LegacyChain>> {
    ns.run(|| {
        let mut found = Vec::new();
        for family in &FAMILIES {
            found.extend(family.chains()?);
        }
        Ok(found)
    })?
}

impl Family {
    /// Of the calling thread's namespace.
    fn chains(&self) -> Result<Vec<LegacyChain>> {
        let what = format!("list the tables of {}", self.tables);
        let tables = match fs::read_to_string(self.tables) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::from_io(what, error)),
        };
        let mut found = Vec::new();
        for table in tables.lines() {
            let what = format!("read table `{table}` of the old iptables");
            let info = self.info(table).map_err(|e| Error::from_io(what, e))?;
            found.extend(used_hooks(&info).map(|hook| LegacyChain {
                family: self.name.to_owned(),
                table: table.to_owned(),
                hook: hook.to_owned(),
            }));
        }
        Ok(found)
    }

    fn info(&self, table: &str) -> io::Result<[u8; INFO]> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let protocol = SockProtocol::Raw;
        let fd: OwnedFd = socket(self.socket, SockType::Raw, flags, protocol)?;
        let mut info = [0; INFO];
        for (slot, byte) in info.iter_mut().take(NAME - 1).zip(table.bytes()) {
            *slot = byte;
        }
        read_option(fd.as_fd(), (self.level, GET_INFO), &mut info)?;
        Ok(info)
    }
}

/// The hooks whose chain has something before its policy.
fn used_hooks(info: &[u8; INFO]) -> impl Iterator<Item = &'static str> + '_ {
    let word = |n: usize| u32_at(info, NAME + 4 * n).unwrap_or(0);
    let used = move |n: &usize| word(0) & (1 << n) != 0 && word(1 + n) != word(6 + n);
    (0..HOOKS.len()).filter(used).map(|n| HOOKS[n])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_is_used_if_something_comes_before_its_policy() {
        let mut info = [0; INFO];
        let mut put = |n: usize, value: u32| {
            info[NAME + 4 * n..][..4].copy_from_slice(&value.to_ne_bytes());
        };
        // The hooks of `filter`: input, forward, output. What stands at the others means nothing.
        put(0, 0b01110);
        put(1, 7);
        for (hook, begins, policy) in [(1, 0, 0), (2, 152, 304), (3, 456, 456)] {
            put(1 + hook, begins);
            put(6 + hook, policy);
        }
        assert_eq!(used_hooks(&info).collect::<Vec<_>>(), ["forward"]);
    }
}
