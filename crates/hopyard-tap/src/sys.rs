//! The ioctls of `/dev/net/tun` (`include/uapi/linux/if_tun.h`), and reading and writing in pieces.
//!
//! All unsafe code of the crate is here, except passing requests to an io_uring (`ring.rs`).

use std::ffi::{c_char, c_int, c_short, c_uint, c_ulong};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::ptr;
use std::time::Duration;

pub(crate) const IFF_TUN: u16 = 0x0001;
pub(crate) const IFF_TAP: u16 = 0x0002;
pub(crate) const IFF_NO_CARRIER: u16 = 0x0040;
pub(crate) const IFF_MULTI_QUEUE: u16 = 0x0100;
pub(crate) const IFF_ATTACH_QUEUE: u16 = 0x0200;
pub(crate) const IFF_DETACH_QUEUE: u16 = 0x0400;
pub(crate) const IFF_NO_PI: u16 = 0x1000;
pub(crate) const IFF_VNET_HDR: u16 = 0x4000;
pub(crate) const IFF_TUN_EXCL: u16 = 0x8000;

/// The effective user of this process.
pub(crate) fn user() -> u32 {
    // SAFETY: it takes nothing and cannot fail (geteuid(2)).
    unsafe { libc::geteuid() }
}

const fn iow(number: u32, size: usize) -> libc::Ioctl {
    ioc(1, number, size)
}

const fn ior(number: u32, size: usize) -> libc::Ioctl {
    ioc(2, number, size)
}

/// `_IOC` of `asm-generic/ioctl.h`, on the type 'T'.
const fn ioc(direction: u32, number: u32, size: usize) -> libc::Ioctl {
    (direction << 30 | (size as u32) << 16 | (b'T' as u32) << 8 | number) as libc::Ioctl
}

const INT: usize = size_of::<c_int>();

pub(crate) const TUNSETIFF: libc::Ioctl = iow(202, INT);
pub(crate) const TUNSETPERSIST: libc::Ioctl = iow(203, INT);
pub(crate) const TUNSETOWNER: libc::Ioctl = iow(204, INT);
pub(crate) const TUNSETGROUP: libc::Ioctl = iow(206, INT);
pub(crate) const TUNGETFEATURES: libc::Ioctl = ior(207, INT);
pub(crate) const TUNSETOFFLOAD: libc::Ioctl = iow(208, INT);
pub(crate) const TUNGETIFF: libc::Ioctl = ior(210, INT);
pub(crate) const TUNGETSNDBUF: libc::Ioctl = ior(211, INT);
pub(crate) const TUNSETSNDBUF: libc::Ioctl = iow(212, INT);
pub(crate) const TUNGETVNETHDRSZ: libc::Ioctl = ior(215, INT);
pub(crate) const TUNSETVNETHDRSZ: libc::Ioctl = iow(216, INT);
pub(crate) const TUNSETQUEUE: libc::Ioctl = iow(217, INT);
pub(crate) const TUNSETVNETLE: libc::Ioctl = iow(220, INT);
pub(crate) const TUNSETSTEERINGEBPF: libc::Ioctl = ior(224, INT);
pub(crate) const TUNSETCARRIER: libc::Ioctl = iow(226, INT);
const TUNGETDEVNETNS: libc::Ioctl = ioc(0, 227, 0);

/// Opens the driver; the file belongs to the calling thread's current network namespace.
pub(crate) fn open() -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_CLOEXEC)
        .open("/dev/net/tun")
}

/// Name and flags, as the interface ioctls take and give them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameFlags {
    pub(crate) name: String,
    pub(crate) flags: u16,
}

/// `TUNSETIFF`, `TUNSETQUEUE` or `TUNGETIFF`.
pub(crate) fn name_flags(
    file: impl AsFd,
    request: libc::Ioctl,
    name: &str,
    flags: u16,
) -> io::Result<NameFlags> {
    // SAFETY: `ifreq` is plain data (integers, arrays, a union of such); all zeroes are valid.
    let mut ifreq: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= ifreq.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    for (slot, byte) in ifreq.ifr_name.iter_mut().zip(name.bytes()) {
        *slot = c_char::from_ne_bytes([byte]);
    }
    ifreq.ifr_ifru.ifru_flags = c_short::from_ne_bytes(flags.to_ne_bytes());
    // SAFETY: the three requests read and write at most one `struct ifreq`, exclusively borrowed here.
    check(unsafe { libc::ioctl(file.as_fd().as_raw_fd(), request, ptr::from_mut(&mut ifreq)) })?;
    // SAFETY: the requests leave or set `ifru_flags`, and any bits are an integer.
    let flags = unsafe { ifreq.ifr_ifru.ifru_flags };
    let name: Vec<u8> = ifreq
        .ifr_name
        .iter()
        .map(|byte| byte.to_ne_bytes()[0])
        .take_while(|&byte| byte != 0)
        .collect();
    Ok(NameFlags {
        name: String::from_utf8_lossy(&name).into_owned(),
        flags: u16::from_ne_bytes(flags.to_ne_bytes()),
    })
}

/// A request whose argument is a number itself: `TUNSETPERSIST`, `TUNSETOWNER`, `TUNSETGROUP`,
/// `TUNSETOFFLOAD`.
pub(crate) fn set_value(file: impl AsFd, request: libc::Ioctl, value: u32) -> io::Result<()> {
    // SAFETY: the kernel takes the argument of these requests as a number and follows no pointer.
    check(unsafe { libc::ioctl(file.as_fd().as_raw_fd(), request, c_ulong::from(value)) })
}

/// A request that reads an int: `TUNSETVNETHDRSZ`, `TUNSETVNETLE`, `TUNSETSNDBUF`, `TUNSETCARRIER`,
/// `TUNSETSTEERINGEBPF`.
pub(crate) fn set_int(file: impl AsFd, request: libc::Ioctl, value: c_int) -> io::Result<()> {
    // SAFETY: these requests read one int, which lives until the call returns.
    check(unsafe { libc::ioctl(file.as_fd().as_raw_fd(), request, ptr::from_ref(&value)) })
}

/// A request that writes an int: `TUNGETSNDBUF`, `TUNGETVNETHDRSZ`, `TUNGETFEATURES`.
pub(crate) fn get_int(file: impl AsFd, request: libc::Ioctl) -> io::Result<c_uint> {
    let mut value: c_uint = 0;
    // SAFETY: these requests write one int, exclusively borrowed for the call.
    check(unsafe { libc::ioctl(file.as_fd().as_raw_fd(), request, ptr::from_mut(&mut value)) })?;
    Ok(value)
}

/// A descriptor of the network namespace that the device is in (`TUNGETDEVNETNS`, Linux 5.2).
pub(crate) fn device_namespace(file: impl AsFd) -> io::Result<OwnedFd> {
    // SAFETY: the request takes no argument.
    let fd = unsafe { libc::ioctl(file.as_fd().as_raw_fd(), TUNGETDEVNETNS, 0) };
    check(fd)?;
    // SAFETY: the kernel made this descriptor for us, and it is not shared.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets or clears `O_NONBLOCK`.
pub(crate) fn set_nonblocking(file: impl AsFd, on: bool) -> io::Result<()> {
    let value = c_int::from(on);
    // SAFETY: FIONBIO reads one int, which lives until the call returns.
    check(unsafe {
        libc::ioctl(
            file.as_fd().as_raw_fd(),
            libc::FIONBIO,
            ptr::from_ref(&value),
        )
    })
}

/// The index of a device of the calling thread's namespace.
pub(crate) fn index(name: &str) -> io::Result<u32> {
    let name = std::ffi::CString::new(name)?;
    // SAFETY: the name is zero-terminated and lives until the call returns.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// Whether any of the files is ready now for one of `events`, `POLLIN` and `POLLOUT`. Never if the device was deleted.
pub(crate) fn is_ready<'a>(
    files: impl IntoIterator<Item = BorrowedFd<'a>>,
    events: c_short,
) -> io::Result<bool> {
    let files = files.into_iter().map(|file| file.as_raw_fd());
    let asked = poll(files, events, 0)?;
    Ok(asked.iter().any(|file| file.revents & events != 0))
}

/// Waits until any of the files can be read or hangs up, or the limit is over. A signal ends it too, as an error.
pub(crate) fn wait_to_read(
    files: impl Iterator<Item = RawFd>,
    limit: Option<Duration>,
) -> io::Result<()> {
    let limit_ms = limit.map_or(-1, |limit| {
        c_int::try_from(limit.as_millis()).unwrap_or(c_int::MAX)
    });
    poll(files, libc::POLLIN, limit_ms).map(drop)
}

/// `poll(2)` for the same events of each file. A negative limit is none.
fn poll(
    files: impl Iterator<Item = RawFd>,
    events: c_short,
    limit_ms: c_int,
) -> io::Result<Vec<libc::pollfd>> {
    let ask = |fd| libc::pollfd {
        fd,
        events,
        revents: 0,
    };
    let mut asked: Vec<libc::pollfd> = files.map(ask).collect();
    // SAFETY: the kernel reads and writes as many entries as there are, exclusively borrowed until the call returns.
    check(unsafe { libc::poll(asked.as_mut_ptr(), asked.len() as libc::nfds_t, limit_ms) })?;
    Ok(asked)
}

/// Waits until every RCU section that had begun on any CPU has ended (`synchronize_rcu`, which is all that
/// `MEMBARRIER_CMD_GLOBAL` of `membarrier(2)` does); some 10 ms.
///
/// # Errors
/// `EINVAL` if CPUs run without a tick (`nohz_full`), `ENOSYS` without `CONFIG_MEMBARRIER`.
pub(crate) fn wait_for_readers() -> io::Result<()> {
    const MEMBARRIER_CMD_GLOBAL: c_int = 1;
    // SAFETY: the call takes three numbers.
    let answer = unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
    check(answer as c_int)
}

/// How many files the process has open, and how many it may have; `None` if `/proc` does not show it.
pub(crate) fn files() -> Option<(u64, u64)> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the call writes one `rlimit`, exclusively borrowed until it returns.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, ptr::from_mut(&mut limit)) }).ok()?;
    let open = match std::fs::read_dir("/proc/self/fd") {
        Ok(files) => files.count() as u64,
        // No further file can be opened.
        Err(error) if error.raw_os_error() == Some(libc::EMFILE) => limit.rlim_cur,
        Err(_) => return None,
    };
    Some((open, limit.rlim_cur))
}

fn check(answer: c_int) -> io::Result<()> {
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_header() {
        assert_eq!(TUNSETIFF, 0x4004_54ca);
        assert_eq!(TUNGETIFF, 0x8004_54d2);
        assert_eq!(TUNSETQUEUE, 0x4004_54d9);
        assert_eq!(TUNSETSTEERINGEBPF, 0x8004_54e0);
        assert_eq!(TUNGETDEVNETNS, 0x54e3);
    }
}
