//! The one error type of the crate.

use std::io;

use crate::sys;

/// An error, with operation and device in `what` ("open another queue of `tap0`").
///
/// The text of an error never contains the text of its [`source`](std::error::Error::source), so printing the whole
/// chain repeats nothing.
///
/// Reading and writing frames returns [`std::io::Result`] instead, see [`Queue`](crate::Queue).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no `/dev/net/tun`, or no driver behind it.
    #[error(
        "cannot {what}: this host has no tun driver at /dev/net/tun; load module `tun` (CONFIG_TUN), and in a container hand the device through"
    )]
    NoDriver {
        /// Operation and object.
        what: String,
    },
    /// `EPERM` or `EACCES`.
    #[error("cannot {what}: permission denied; {remedy}")]
    Denied {
        /// Operation and object.
        what: String,
        /// What the caller can do.
        remedy: String,
    },
    /// A new device was requested, but the name is taken.
    #[error("cannot {what}: the name is taken by {by}; choose another one{}", if *.usable { ", or open that device" } else { "" })]
    NameTaken {
        /// Operation and object.
        what: String,
        /// What has the name: "a tap", "a device of kind `veth`".
        by: String,
        /// Whether [`Device::open`](crate::Device::open) can take it.
        usable: bool,
    },
    /// There is no device with that name in the calling thread's network namespace.
    #[error("cannot {what}: there is no such device in this network namespace")]
    Missing {
        /// Operation and object.
        what: String,
    },
    /// The device exists, but is neither tap nor tun.
    #[error("cannot {what}: it is {kind}, neither tap nor tun")]
    OtherKind {
        /// Operation and object.
        what: String,
        /// What it is: "a device of kind `veth`".
        kind: String,
    },
    /// The device was made with a single queue, which cannot change.
    #[error(
        "cannot {what}: the device has a single queue; make it with Queues::Multi (IFF_MULTI_QUEUE)"
    )]
    NotMultiQueue {
        /// Operation and object.
        what: String,
    },
    /// Another program has the only queue of the device (`EBUSY`).
    #[error(
        "cannot {what}: its only queue is open already; close it there, or make the device multi-queue"
    )]
    InUse {
        /// Operation and object.
        what: String,
    },
    /// More queues than the kernel allows, attached and detached ones together (`E2BIG`).
    #[error(
        "cannot {what}: a device has at most {} queues, detached ones included; close one first",
        crate::MAX_QUEUES
    )]
    TooManyQueues {
        /// Operation and object.
        what: String,
    },
    /// The queue is already attached.
    #[error("cannot {what}: it is attached already")]
    AlreadyAttached {
        /// Operation and object.
        what: String,
    },
    /// The queue is already detached.
    #[error("cannot {what}: it is detached already")]
    AlreadyDetached {
        /// Operation and object.
        what: String,
    },
    /// The device was deleted while it was in use (`EBADFD`).
    #[error("cannot {what}: the device was deleted; make it anew")]
    Gone {
        /// Operation and object.
        what: String,
    },
    /// This kernel cannot do it.
    #[error("cannot {what}: this kernel has no {feature}; {remedy}")]
    Unsupported {
        /// Operation and object.
        what: String,
        /// The feature that the kernel lacks.
        feature: String,
        /// What provides it, or what to do without.
        remedy: String,
    },
    /// A limit of this process is too low.
    #[error("{failed}: {limit}")]
    Limit {
        /// What could not be done ("cannot start ...").
        failed: String,
        /// The limit and how to raise it.
        limit: String,
        /// The kernel's error number.
        source: io::Error,
    },
    /// The request is invalid; found before asking the kernel.
    #[error("cannot {what}: {why}")]
    Invalid {
        /// Operation and object.
        what: String,
        /// Why it is invalid, and what is valid.
        why: String,
    },
    /// The kernel refused, for the reason in `source`.
    #[error("cannot {what}")]
    Kernel {
        /// Operation and object.
        what: String,
        /// The kernel's error number.
        source: io::Error,
    },
    /// The kernel refused a steering program or its map.
    #[error("cannot {what}")]
    Bpf {
        /// Operation and object.
        what: String,
        /// Why it failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Reading devices, or entering a network namespace, failed.
    #[error(transparent)]
    Net(#[from] hopyard_net::Error),
}

/// The result of everything in this crate that can fail, except reading and writing frames.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// From a failed operation on a file of the driver, attached to a device or not.
    pub(crate) fn on_queue(what: impl Into<String>, source: io::Error) -> Self {
        let what = what.into();
        match source.raw_os_error() {
            Some(libc::EBADFD) => Self::Gone { what },
            Some(libc::EPERM | libc::EACCES) => Self::Denied {
                what,
                remedy: NEEDS_ADMIN.into(),
            },
            _ => Self::Kernel { what, source },
        }
    }

    pub(crate) fn invalid(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Invalid {
            what: what.into(),
            why: why.into(),
        }
    }

    /// Turns the kernel's answer to a BPF call into an error about `what`.
    pub(crate) fn bpf<E>(what: impl Into<String>) -> impl FnOnce(E) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let what = what.into();
        move |source| Self::Bpf {
            what,
            source: source.into(),
        }
    }

    /// Checks that the process may open this many more files.
    ///
    /// Call it before anything is made: a library that runs out of files may report something else (aya reports an old
    /// kernel).
    pub(crate) fn need_files(what: &str, more: u64) -> Result<()> {
        match sys::files() {
            Some((open, most)) if open + more > most => {
                Err(Self::too_few_files(format!("cannot {what}"), open + more))
            }
            _ => Ok(()),
        }
    }

    fn too_few_files(failed: String, files: u64) -> Self {
        Self::Limit {
            failed,
            limit: format!(
                "the process may not open enough files; raise the limit (`ulimit -n`, LimitNOFILE= of a service) to {files} or more"
            ),
            source: io::Error::from_raw_os_error(libc::EMFILE),
        }
    }

    /// Adds advice, if a limit of this process was reached by something that needs this many files.
    pub(crate) fn at_limit(self, files: u64) -> Self {
        let limit = match self.errno() {
            Some(libc::EMFILE) => return Self::too_few_files(self.to_string(), files),
            Some(libc::ENFILE) => "the host has too many open files; raise fs.file-max".to_owned(),
            Some(libc::ENOMEM) => "there is no memory left for it; raise the limits of the control group (memory.max) and \
                                   of locked memory (`ulimit -l`)"
                .to_owned(),
            Some(libc::EAGAIN) => "the process may not have enough threads; raise the limits (`ulimit -u`, pids.max of the \
                                   control group)"
                .to_owned(),
            _ => return self,
        };
        Self::Limit {
            failed: self.to_string(),
            limit,
            source: io::Error::from_raw_os_error(self.errno().unwrap_or_default()),
        }
    }

    /// The kernel's error number in the chain.
    fn errno(&self) -> Option<i32> {
        let mut next: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = next {
            if let Some(error) = error.downcast_ref::<io::Error>() {
                return error.raw_os_error();
            }
            next = error.source();
        }
        None
    }

    /// True when the host lacks a feature, as opposed to a failure.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        match self {
            Self::NoDriver { .. } | Self::Unsupported { .. } => true,
            Self::Net(error) => error.is_unsupported(),
            _ => false,
        }
    }

    /// True when the request was wrong or cannot be met here, as opposed to a malfunction.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Kernel { .. } | Self::Bpf { .. } => false,
            Self::Net(error) => error.is_usage(),
            _ => true,
        }
    }
}

/// An error with all its sources, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text += &format!(": {cause}");
        next = cause.source();
    }
    text
}

const NEEDS_ADMIN: &str =
    "it takes CAP_NET_ADMIN, or a persistent device that you own (NewDevice::owner or ::group)";

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn texts_name_operation_device_and_way_out() {
        let error = Error::TooManyQueues {
            what: "open another queue of `tap0`".into(),
        };
        assert_eq!(
            error.to_string(),
            "cannot open another queue of `tap0`: a device has at most 256 queues, detached ones included; close one first"
        );
        let error = Error::NameTaken {
            what: "create tap `x`".into(),
            by: "a tun".into(),
            usable: true,
        };
        assert!(
            error
                .to_string()
                .ends_with("taken by a tun; choose another one, or open that device")
        );
    }

    #[test]
    fn the_source_is_printed_once() {
        let errno = |number| io::Error::from_raw_os_error(number);
        let error = Error::on_queue("read `x`", errno(libc::EBUSY));
        assert_eq!(error.to_string(), "cannot read `x`");
        assert!(error.source().is_some());
        let error = Error::on_queue("read `x`", errno(libc::EBADFD));
        assert!(matches!(error, Error::Gone { .. }), "{error}");
        let error = Error::on_queue("read `x`", errno(libc::EPERM));
        assert!(error.to_string().contains("CAP_NET_ADMIN"), "{error}");
    }
}
