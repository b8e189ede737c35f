//! What is asked of a socket and nix has no words for.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;

use crate::error::{Error, Result};

/// How many bytes a socket says it has for its reader (`FIONREAD`).
///
/// # Errors
/// The descriptor is none of a socket.
pub fn readable_bytes(socket: impl AsFd) -> Result<usize> {
    let mut count: libc::c_int = 0;
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: FIONREAD writes one c_int, which `count` is.
    let outcome = unsafe { libc::ioctl(socket, libc::FIONREAD, &raw mut count) };
    Errno::result(outcome)
        .map_err(|errno| Error::from_errno("ask for the bytes in a socket", errno))?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// Reads an option of a socket into `bytes`, whose content the kernel sees before it writes there. Gives the number of bytes that it wrote.
pub(crate) fn read_option(
    socket: BorrowedFd<'_>,
    (level, name): (libc::c_int, libc::c_int),
    bytes: &mut [u8],
) -> io::Result<usize> {
    let mut length = libc::socklen_t::try_from(bytes.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: the buffer is writable for `length` bytes, and both pointers live through the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    Errno::result(result)?;
    Ok(length as usize)
}

/// Lets a socket send with `MSG_ZEROCOPY` (`SO_ZEROCOPY`).
///
/// # Errors
/// The kernel has none for this kind of socket.
pub fn allow_zerocopy(socket: impl AsFd) -> Result<()> {
    let on: libc::c_int = 1;
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: SO_ZEROCOPY reads one c_int, which `on` is.
    let outcome = unsafe {
        libc::setsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_ZEROCOPY,
            (&raw const on).cast(),
            size,
        )
    };
    Errno::result(outcome)
        .map(drop)
        .map_err(|errno| Error::from_errno("let a socket send without copies", errno))
}

/// `enum bpf_attach_type` of include/uapi/linux/bpf.h: what a map of sockets asks about each message.
const BPF_SK_MSG_VERDICT: u32 = 7;
/// `enum bpf_cmd`.
const BPF_PROG_ATTACH: libc::c_int = 8;

/// The part of `union bpf_attr` that `BPF_PROG_ATTACH` reads.
#[repr(C)]
struct Attach {
    target_fd: u32,
    program_fd: u32,
    kind: u32,
    flags: u32,
}

/// Has a map of sockets ask an eBPF program about each message sent (`BPF_SK_MSG_VERDICT`, Linux 4.17), for as long as the map
/// lives. No descriptor is kept.
///
/// # Errors
/// [`Error::Denied`] without `CAP_NET_ADMIN` and `CAP_BPF`; [`Error::Kernel`].
pub fn attach_message_program(program: impl AsFd, sockets: impl AsFd) -> Result<()> {
    let number = |fd: &dyn AsRawFd| fd.as_raw_fd().cast_unsigned();
    let attributes = Attach {
        target_fd: number(&sockets.as_fd()),
        program_fd: number(&program.as_fd()),
        kind: BPF_SK_MSG_VERDICT,
        flags: 0,
    };
    let size = size_of::<Attach>();
    // SAFETY: the attributes are whole, of the size given, and live to the end of the call, which only reads them.
    let outcome =
        unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_ATTACH, &raw const attributes, size) };
    Errno::result(outcome)
        .map(drop)
        .map_err(|errno| Error::from_errno("attach a program to a map of sockets", errno))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn counts_what_was_written_and_not_read() {
        let (mut from, to) = UnixStream::pair().unwrap();
        assert_eq!(readable_bytes(&to).unwrap(), 0);
        from.write_all(b"seven..").unwrap();
        assert_eq!(readable_bytes(&to).unwrap(), 7);
    }
}
