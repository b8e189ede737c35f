//! `TCP_INFO`: what the kernel's TCP knows of a connection.

use std::io;
use std::os::fd::BorrowedFd;

use crate::socket::read_option;

/// Bytes of `struct tcp_info` up to and with `tcpi_sndbuf_limited` (Linux 4.10).
const BYTES: usize = 192;

/// The fields of `struct tcp_info` (`include/uapi/linux/tcp.h`) that a meter needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TcpInfo {
    /// Segments sent again since the connection began.
    pub total_retransmits: u32,
    /// Smoothed round-trip time, µs.
    pub rtt_us: u32,
    /// Congestion window, segments.
    pub congestion_window: u32,
    /// Payload received, read by the program or not, bytes; a FIN counts as one.
    pub bytes_received: u64,
    /// Time with data in flight or waiting to be sent, µs.
    pub busy_time_us: u64,
    /// Of that, held back by the receiver's window, µs.
    pub receive_window_limited_us: u64,
    /// Of that, held back by the send buffer, µs.
    pub send_buffer_limited_us: u64,
}

/// Reads the state of a TCP socket.
///
/// # Errors
/// `EOPNOTSUPP` if it is no TCP socket; `Unsupported` on kernels before 4.10.
pub fn read(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    let mut bytes = [0u8; BYTES];
    if read_option(socket, (libc::IPPROTO_TCP, libc::TCP_INFO), &mut bytes)? < BYTES {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this kernel's TCP_INFO ends before tcpi_sndbuf_limited; Linux 4.10 has it",
        ));
    }
    Ok(parse(&bytes))
}

fn parse(bytes: &[u8; BYTES]) -> TcpInfo {
    let u32_at = |offset: usize| {
        let mut word = [0; 4];
        word.copy_from_slice(&bytes[offset..offset + 4]);
        u32::from_ne_bytes(word)
    };
    let u64_at = |offset: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[offset..offset + 8]);
        u64::from_ne_bytes(word)
    };
    TcpInfo {
        total_retransmits: u32_at(100),
        rtt_us: u32_at(68),
        congestion_window: u32_at(80),
        bytes_received: u64_at(128),
        busy_time_us: u64_at(168),
        receive_window_limited_us: u64_at(176),
        send_buffer_limited_us: u64_at(184),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsFd;

    #[test]
    fn a_connection_that_moved_data_was_busy() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            server.read_to_end(&mut all).unwrap();
            (all.len(), read(server.as_fd()).unwrap().bytes_received)
        });
        for _ in 0..64 {
            client.write_all(&[0; 65536]).unwrap();
        }
        let info = read(client.as_fd()).unwrap();
        drop(client);
        // The FIN is the last byte.
        assert_eq!(reader.join().unwrap(), (64 * 65536, 64 * 65536 + 1));
        assert!(info.rtt_us > 0 && info.congestion_window > 0, "{info:?}");
        assert!(
            info.busy_time_us >= info.receive_window_limited_us,
            "{info:?}"
        );
    }

    #[test]
    fn other_sockets_are_refused() {
        assert!(read(UdpSocket::bind("127.0.0.1:0").unwrap().as_fd()).is_err());
    }
}
