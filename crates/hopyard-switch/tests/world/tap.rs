//! The program's end of taps.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use hopyard_net::Handle;

use super::EXPERIMENT;

/// `IFF_TUN`, `IFF_TAP`, `IFF_VNET_HDR` and `IFF_NO_PI` (`linux/if_tun.h`).
pub(crate) const TUN: u16 = 1;
pub(crate) const TAP: u16 = 2;
pub(crate) const OFFLOAD_HEADERS: u16 = 0x4000;
const NO_PACKET_INFO: u16 = 0x1000;
/// A frame that is to come has come by then, and one that must not come would have.
const QUIET: Duration = Duration::from_millis(40);

/// `struct ifreq` as `TUNSETIFF` wants it.
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

nix::ioctl_write_int!(tun_set_iff, b'T', 202);

/// The program's end of a tap or tun device, which lasts as long as this.
pub(crate) struct Tap(pub(crate) File);

impl Tap {
    pub(crate) fn open(handle: &Handle, name: &str, kind: u16) -> Self {
        let mut request = Request {
            name: [0; 16],
            flags: kind | NO_PACKET_INFO,
            rest: [0; 22],
        };
        request.name[..name.len()].copy_from_slice(name.as_bytes());
        let open = || {
            let file = File::options()
                .read(true)
                .write(true)
                .custom_flags(libc::O_NONBLOCK)
                .open("/dev/net/tun")
                .unwrap();
            let at = (&raw const request) as libc::c_ulong;
            // SAFETY: `request` is a whole ifreq, and outlives the call.
            unsafe { tun_set_iff(file.as_raw_fd(), at) }.unwrap();
            file
        };
        let tap = Self(handle.ns().run(open).unwrap());
        handle.set_up(name).unwrap();
        assert!(handle.settle(name).unwrap());
        tap
    }

    pub(crate) fn send(&self, frame: &[u8]) {
        assert_eq!((&self.0).write(frame).unwrap(), frame.len());
    }

    /// The frames of the experiments' type that came until none did for a while.
    pub(crate) fn heard(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let mut deadline = Instant::now() + QUIET;
        loop {
            // Before the look: the last one begins when the while is over, and finds nothing.
            let looked = Instant::now();
            while let Some(frame) = self.one() {
                if frame[12..14] == EXPERIMENT.to_be_bytes() {
                    all.push(frame);
                    deadline = Instant::now() + QUIET;
                }
            }
            if looked >= deadline {
                return all;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn one(&self) -> Option<Vec<u8>> {
        let mut buffer = [0; 2048];
        match (&self.0).read(&mut buffer) {
            Ok(n) => Some(buffer[..n].to_vec()),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                None
            }
        }
    }
}
