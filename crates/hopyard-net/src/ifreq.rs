//! Device ioctls: `struct ifreq` on a plain socket.

use std::ffi::c_char;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

const SIOCGIFINDEX: libc::Ioctl = 0x8933;
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// The index of a device, in the namespace the socket was opened in.
pub(crate) fn index(socket: BorrowedFd<'_>, name: &str) -> io::Result<u32> {
    let mut request = named(name)?;
    call(socket, SIOCGIFINDEX, &mut request)?;
    // SAFETY: SIOCGIFINDEX answers in `ifru_ifindex`, and any bits are an integer.
    let index = unsafe { request.ifr_ifru.ifru_ifindex };
    u32::try_from(index).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))
}

/// An ethtool command.
///
/// # Safety
/// `words` must hold the whole structure of the command in its first word, with room for all that the
/// kernel answers: for most commands that follows from the sizes stated in the structure, for
/// `ETHTOOL_GSTRINGS` and `ETHTOOL_GSSET_INFO` from the kernel's own counts.
pub(crate) unsafe fn ethtool(
    socket: BorrowedFd<'_>,
    name: &str,
    words: &mut [u32],
) -> io::Result<i32> {
    let mut request = named(name)?;
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast::<c_char>();
    call(socket, SIOCETHTOOL, &mut request)
}

fn named(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: `ifreq` is plain data (integers, arrays, a union of such); all zeroes are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (slot, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *slot = c_char::from_ne_bytes([byte]);
    }
    Ok(request)
}

fn call(socket: BorrowedFd<'_>, number: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<i32> {
    // SAFETY: the descriptor is open, `request` is exclusively borrowed for the call, and a pointer
    // inside it was set by `ethtool` from a slice that outlives the call and is large enough by its
    // caller's promise.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), number, ptr::from_mut(request)) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(answer)
}
