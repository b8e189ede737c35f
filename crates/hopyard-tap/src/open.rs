//! Opening queues of a device.

use std::fs::File;

use hopyard_net::{Handle, NetNs, TunLink};

use crate::device::{self, Device, KEPT, check_name, kind_of, open_driver};
use crate::error::{Error, Result};
use crate::queue::Queue;
use crate::sys::{self, NameFlags};
use crate::vnet::VnetHeaderSize;

impl Device {
    /// Opens a queue of a device that exists in the calling thread's network namespace: a persistent one, or one that
    /// another program holds too. Its headers are not changed, and reads and writes wait ([`Queue::set_nonblocking`]).
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::OtherKind`]; [`Error::Denied`] for a caller who is not its owner and lacks
    /// `CAP_NET_ADMIN`; [`Error::InUse`] if its single queue is open; [`Error::TooManyQueues`]; [`Error::Invalid`] if
    /// other programs hold it with headers that this crate does not read (`tun_pi`, or a `virtio_net_hdr` of neither 10
    /// nor 12 bytes).
    pub fn open(name: &str) -> Result<(Self, Queue)> {
        Self::attach(name, None)
    }

    /// As [`Device::open`], but also sets the header of frames.
    ///
    /// # Errors
    /// Those of [`Device::open`]; [`Error::Invalid`] if other programs hold it with another header, or one of another size: the
    /// kernel does not change the one, and the other would change under those programs.
    pub fn open_with(name: &str, header: Option<VnetHeaderSize>) -> Result<(Self, Queue)> {
        Self::attach(name, Some(header))
    }

    fn attach(name: &str, header: Option<Option<VnetHeaderSize>>) -> Result<(Self, Queue)> {
        let what = format!("open device `{name}`");
        check_name(&what, name, false)?;
        let link = match Handle::here()?.tun_link(name) {
            Err(hopyard_net::Error::Missing { .. }) => return Err(Error::Missing { what }),
            Ok(None) => {
                let kind = kind_of(name);
                return Err(Error::OtherKind { what, kind });
            }
            found => found?,
        };
        let Some(link) = link else {
            return Err(Error::Missing { what });
        };
        let wanted = flags_of(&link, header);
        let file = open_driver(&what)?;
        let found = attach_file(&what, &file, name, wanted, link.index)?;
        if found.flags & KEPT != wanted {
            let why = "other programs hold it with another header before each frame; close it there first";
            return Err(Error::invalid(what, why));
        }
        let size = match header {
            Some(size) => {
                let is_shared = link.attached.unwrap_or(0) + link.detached.unwrap_or(0) > 0;
                if is_shared && size != header_size(&what, &file, wanted)? {
                    let why = "other programs hold it with a header of another size before each frame; close it there first";
                    return Err(Error::invalid(what, why));
                }
                size
            }
            None => header_size(&what, &file, wanted)?,
        };
        let device = Self::new(NetNs::current()?, &found, false, size)?;
        let queue = Queue::new(file, device.clone())?;
        if let Some(size) = size {
            queue.set_vnet_header_size(&what, size)?;
        }
        Ok((device, queue))
    }

    /// Opens another queue and attaches it, from any thread in any namespace.
    ///
    /// # Errors
    /// [`Error::NotMultiQueue`]; [`Error::TooManyQueues`]; [`Error::Missing`] if the device ended, was renamed or moved
    /// to another namespace ([`Queue::find_device`] follows it); [`Error::Denied`] if the device has another owner, or
    /// from a thread in another namespace without `CAP_SYS_ADMIN`.
    pub fn open_queue(&self) -> Result<Queue> {
        let what = format!("open another queue of `{}`", self.name());
        if self.flags() & sys::IFF_MULTI_QUEUE == 0 {
            return Err(Error::NotMultiQueue { what });
        }
        let open = || {
            let file = open_driver(&what)?;
            match sys::index(self.name()) {
                Ok(index) if index == self.index() => {}
                _ => return Err(Error::Missing { what: what.clone() }),
            }
            attach_file(&what, &file, self.name(), self.flags(), self.index())?;
            Ok(file)
        };
        // Entering a namespace needs a privilege that owners of a device may lack.
        let file = if NetNs::current()?.inode()? == self.ns().inode()? {
            open()
        } else {
            self.ns().run(open)?
        }?;
        Queue::new(file, self.clone())
    }
}

fn flags_of(link: &TunLink, header: Option<Option<VnetHeaderSize>>) -> u16 {
    let header = header.map_or(link.vnet_header, |size| size.is_some());
    let wanted = [
        (link.multi_queue, sys::IFF_MULTI_QUEUE),
        (header, sys::IFF_VNET_HDR),
    ];
    device::flags(link.layer, &wanted)
}

/// Attaches a new file to the device with that name and index, in the calling thread's namespace.
fn attach_file(what: &str, file: &File, name: &str, flags: u16, index: u32) -> Result<NameFlags> {
    sys::name_flags(file, sys::TUNSETIFF, name, flags).map_err(|error| {
        let what = what.to_owned();
        match error.raw_os_error() {
            Some(libc::E2BIG) => Error::TooManyQueues { what },
            Some(libc::EBUSY) => Error::InUse { what },
            // The device was replaced by one of another kind after it was looked at.
            Some(libc::EINVAL) => Error::Missing { what },
            // A security module's answer, whatever capabilities there are.
            Some(libc::EACCES) => Error::Kernel {
                what,
                source: error,
            },
            _ => Error::on_queue(what, error),
        }
    })?;
    // If the device ended meanwhile, the kernel made a new one, which ends with the file.
    match sys::index(name) {
        Ok(found) if found == index => {}
        _ => return Err(Error::Missing { what: what.into() }),
    }
    sys::name_flags(file, sys::TUNGETIFF, "", 0).map_err(|error| Error::on_queue(what, error))
}

fn header_size(what: &str, file: &File, flags: u16) -> Result<Option<VnetHeaderSize>> {
    if flags & sys::IFF_VNET_HDR == 0 {
        return Ok(None);
    }
    let bytes =
        sys::get_int(file, sys::TUNGETVNETHDRSZ).map_err(|error| Error::on_queue(what, error))?;
    match bytes {
        10 => Ok(Some(VnetHeaderSize::Basic)),
        12 => Ok(Some(VnetHeaderSize::Mergeable)),
        _ => {
            let why = format!("its frames have a header of {bytes} bytes, not 10 or 12");
            Err(Error::invalid(what, why))
        }
    }
}
