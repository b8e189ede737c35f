//! eBPF programs of devices.

use std::os::fd::{AsFd, AsRawFd};

use netlink_packet_route::link::{LinkAttribute, LinkXdp};
use nix::errno::Errno;

use crate::error::{Error, Result};
use crate::handle::Handle;

/// In the driver, and refused where it has no place for it (`XDP_FLAGS_DRV_MODE`, `linux/if_link.h`).
const DRIVER: u32 = 1 << 2;

/// Of `enum bpf_cmd`, `linux/bpf.h`.
const BPF_PROG_ATTACH: libc::c_int = 8;

/// Where the kernel runs a program of a device that works on packets, as `enum bpf_attach_type` of `linux/bpf.h` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceHook {
    /// On what the device receives (tcx, Linux 6.6).
    TcxIngress = 46,
    /// On what the device sends (tcx, Linux 6.6).
    TcxEgress = 47,
    /// On what the other end of a netkit pair sends; the device is the pair's first one (Linux 6.7).
    NetkitPeer = 55,
}

/// The part of `union bpf_attr` that `BPF_PROG_ATTACH` reads of a device's programs.
#[repr(C)]
struct Attach {
    device: u32,
    program: u32,
    hook: u32,
    flags: u32,
}

impl Handle {
    /// Has the kernel run a program at a device, behind those that are there. It stays as long as the device; no descriptor is
    /// kept, which a link would need.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no such device; [`Error::Kernel`]: `EINVAL` where the kernel has no such hook, `ENXIO` where the
    /// device is no netkit; [`Error::Denied`] where it is the second one of a netkit pair, and without `CAP_BPF` and `CAP_NET_ADMIN`.
    pub fn attach_program(&self, name: &str, program: impl AsFd, hook: DeviceHook) -> Result<()> {
        let what = format!("run an eBPF program at `{name}`");
        let attributes = Attach {
            device: self.index_for(&what, name)?,
            program: program.as_fd().as_raw_fd().cast_unsigned(),
            hook: hook as u32,
            flags: 0,
        };
        // The kernel looks for the device in the namespace of who asks.
        let outcome = self.ns().run(|| {
            // SAFETY: the attributes are those of the command, of which the kernel keeps none.
            unsafe { bpf(BPF_PROG_ATTACH, &attributes) }
        })?;
        outcome
            .map(drop)
            .map_err(|errno| Error::from_errno(what, errno))
    }

    /// Has the driver of a device run an XDP program for each frame that it receives, in place of any other. The program stays
    /// as long as the device; no descriptor is kept.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no such device; [`Error::Kernel`]
    /// (`EOPNOTSUPP`) where the driver runs none, (`ERANGE`) where frames are too long for it.
    pub fn set_xdp(&self, name: &str, program: impl AsFd) -> Result<()> {
        let attributes = vec![
            LinkXdp::Fd(program.as_fd().as_raw_fd()),
            LinkXdp::Flags(DRIVER),
        ];
        let what = format!("run an XDP program in the driver of `{name}`");
        self.set_attribute(&what, name, LinkAttribute::Xdp(attributes))
    }
}

/// Asks the kernel for something of `bpf(2)`.
///
/// # Safety
/// The attributes are what `union bpf_attr` has for the command, and the kernel only reads them.
pub(crate) unsafe fn bpf<T>(
    command: libc::c_int,
    attributes: &T,
) -> std::result::Result<libc::c_long, Errno> {
    let attributes: *const T = attributes;
    // SAFETY: the attributes are of the size given and live to the end of the call; the caller vouches for the rest.
    let done = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<T>()) };
    Errno::result(done)
}
