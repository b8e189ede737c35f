//! Multipath TCP (RFC 8684): is a connection one?

use std::io;
use std::os::fd::BorrowedFd;

use crate::socket::read_option;

/// `SOL_MPTCP` (`include/linux/socket.h`).
const SOL_MPTCP: libc::c_int = 284;
/// `MPTCP_INFO` (`include/uapi/linux/mptcp.h`).
const MPTCP_INFO: libc::c_int = 1;
/// Bytes of `struct mptcp_info` (`include/uapi/linux/mptcp.h`) up to and with `mptcpi_flags`.
const BYTES: usize = 12;
/// Where the flags are in it.
const FLAGS: usize = 8;
/// The connection goes on as plain TCP.
const FLAG_FALLBACK: u32 = 1;

/// Does a connected stream socket speak Multipath TCP? Not where one of its ends, or something between them, fell back to plain
/// TCP.
///
/// # Errors
/// `EBADF` if there is no such socket; `Unsupported` on kernels before 5.16, which do not tell.
pub fn is_multipath(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let mut bytes = [0u8; BYTES];
    let length = match read_option(socket, (SOL_MPTCP, MPTCP_INFO), &mut bytes) {
        Ok(length) => length,
        Err(error) => {
            return match error.raw_os_error() {
                // A plain TCP socket.
                Some(libc::EOPNOTSUPP | libc::ENOPROTOOPT) => Ok(false),
                _ => Err(error),
            };
        }
    };
    if length < BYTES {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this kernel's MPTCP_INFO ends before its flags; Linux 5.16 has them",
        ));
    }
    let mut flags = [0; 4];
    flags.copy_from_slice(&bytes[FLAGS..]);
    Ok(u32::from_ne_bytes(flags) & FLAG_FALLBACK == 0)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn plain_connections_are_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).unwrap();
        assert!(!is_multipath(client.as_fd()).unwrap());
    }
}
