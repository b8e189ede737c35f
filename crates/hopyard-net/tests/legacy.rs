//! Rules of the old iptables, put in as its program does, in a throw-away namespace. Needs root.

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../../../tests/support/skip.rs"]
mod skip;

use std::io;
use std::os::fd::AsRawFd;

use hopyard_net::{NetNs, legacy_chains};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use skip::skip;

/// `IPT_SO_SET_REPLACE` (`linux/netfilter_ipv4/ip_tables.h`), and the shapes that it takes.
const SET_REPLACE: libc::c_int = 64;
const ENTRY: usize = 112;
const STANDARD: usize = ENTRY + 40;
const ERROR: usize = ENTRY + 64;
/// `-NF_ACCEPT - 1`.
const ACCEPT: i32 = -2;

/// `struct ipt_entry` for every packet, with its target.
fn entry(size: usize, target: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; size];
    bytes[88..90].copy_from_slice(&(ENTRY as u16).to_ne_bytes());
    bytes[90..92].copy_from_slice(&(size as u16).to_ne_bytes());
    bytes[ENTRY..][..2].copy_from_slice(&((size - ENTRY) as u16).to_ne_bytes());
    bytes[ENTRY + 2..][..target.len()].copy_from_slice(target.as_bytes());
    bytes[ENTRY + 32..][..payload.len()].copy_from_slice(payload);
    bytes
}

/// The table `filter` that accepts all, with a number of rules to forward.
fn filter(rules: usize) -> io::Result<()> {
    let accept = entry(STANDARD, "", &ACCEPT.to_ne_bytes());
    let mut entries = accept.repeat(3 + rules);
    entries.extend(entry(ERROR, "ERROR", b"ERROR"));
    let at = |n: usize| (n * STANDARD) as u32;
    let mut counters = vec![0_u64; 2 * 64];
    let mut request = b"filter".to_vec();
    request.resize(32, 0);
    let begins = [0, 0, at(1), at(2 + rules), 0];
    let policies = [0, 0, at(1 + rules), at(2 + rules), 0];
    let counts = [0b01110, 4 + rules as u32, entries.len() as u32];
    let old_entries = 4_u32;
    for word in counts
        .into_iter()
        .chain(begins)
        .chain(policies)
        .chain([old_entries])
    {
        request.extend(word.to_ne_bytes());
    }
    request.extend((counters.as_mut_ptr() as usize).to_ne_bytes());
    request.extend(entries);
    let fd = socket(
        AddressFamily::Inet,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::Raw,
    )?;
    // SAFETY: `request` is a whole ipt_replace with its entries, of the length told; the counters that it
    // points at have room for more than the old table's entries, and outlive the call.
    let answer = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_IP,
            SET_REPLACE,
            request.as_ptr().cast(),
            request.len() as libc::socklen_t,
        )
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[test]
fn chains_of_the_old_iptables_are_found_by_their_rules() {
    let ns = NetNs::create().unwrap();
    assert_eq!(legacy_chains(&ns).unwrap(), []);
    match ns.run(|| filter(0)).unwrap() {
        Ok(()) => {}
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOPROTOOPT)) => {
            let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap();
            let present = symbols.contains("iptable_filter_table_init");
            skip("old iptables", present, &error.to_string());
            return;
        }
        Err(error) => panic!("{error}"),
    }
    let names = || ns.run(|| std::fs::read_to_string("/proc/thread-self/net/ip_tables_names"));
    assert_eq!(names().unwrap().unwrap(), "filter\n");
    assert_eq!(legacy_chains(&ns).unwrap(), [], "a table without rules");
    ns.run(|| filter(2)).unwrap().unwrap();
    let chains = legacy_chains(&ns).unwrap();
    let short: Vec<_> = chains
        .iter()
        .map(|c| (c.family.as_str(), c.table.as_str(), c.hook.as_str()))
        .collect();
    assert_eq!(short, [("ip", "filter", "forward")]);
    // Another namespace has none of it.
    assert_eq!(legacy_chains(&NetNs::create().unwrap()).unwrap(), []);
}
