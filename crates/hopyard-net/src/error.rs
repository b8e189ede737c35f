//! The one error type of the crate.

use std::io;

use nix::errno::Errno;

/// What went wrong, with the operation and the object in `what` ("create macvlan `mv0` on `up0`").
///
/// The text of an error never contains the text of its [`source`](std::error::Error::source), so a
/// reporter prints the whole chain without repeating itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This host cannot do it: a module, a kernel option or a program is missing.
    #[error("cannot {what}: this host has no {feature} support; {remedy}")]
    Unsupported {
        /// Operation and object.
        what: String,
        /// The missing feature, by the kernel's or the program's own name.
        feature: String,
        /// What would provide it.
        remedy: String,
    },
    /// `EPERM` or `EACCES`.
    #[error("cannot {what}: permission denied; run as root (CAP_NET_ADMIN and CAP_SYS_ADMIN)")]
    Denied {
        /// Operation and object.
        what: String,
    },
    /// The operation names something that does not exist.
    #[error("cannot {what}: there is no {object}")]
    Missing {
        /// Operation and object.
        what: String,
        /// What was not found, with its kind ("device `x0`").
        object: String,
    },
    /// The request makes no sense, found before asking the kernel.
    #[error("cannot {what}: {why}")]
    Invalid {
        /// Operation and object.
        what: String,
        /// What is wrong with it and what would be right.
        why: String,
    },
    /// The kernel refused, for the reason in `source`.
    #[error("cannot {what}{}", .detail.as_ref().map(|text| format!(" ({text})")).unwrap_or_default())]
    Kernel {
        /// Operation and object.
        what: String,
        /// The kernel's error number.
        source: io::Error,
        /// The kernel's own words (netlink extended acknowledgement), where it gave any.
        detail: Option<String>,
    },
    /// A helper program ran and failed.
    #[error("cannot {what}: {program} says: {output}")]
    Program {
        /// Operation and object.
        what: String,
        /// Name of the program.
        program: String,
        /// What the program printed.
        output: String,
    },
    /// An answer of the kernel or of a program could not be understood.
    #[error("cannot {what}: unexpected answer: {why}")]
    Reply {
        /// Operation and object.
        what: String,
        /// What the answer has that was not expected, or lacks.
        why: String,
    },
}

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// From a failed system call or file operation; permission errors become [`Error::Denied`].
    pub(crate) fn from_io(what: impl Into<String>, source: io::Error) -> Self {
        let what = what.into();
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::Denied { what },
            _ => Self::Kernel {
                what,
                source,
                detail: None,
            },
        }
    }

    pub(crate) fn from_errno(what: impl Into<String>, errno: Errno) -> Self {
        Self::from_io(what, errno.into())
    }

    pub(crate) fn invalid(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Invalid {
            what: what.into(),
            why: why.into(),
        }
    }

    /// True when the request was wrong or cannot be met here, as opposed to something that broke.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Invalid { .. }
                | Self::Missing { .. }
                | Self::Unsupported { .. }
                | Self::Denied { .. }
        )
    }

    /// The same error with a further way out, where the host lacks a feature: "or `alternative`". What else its user could
    /// ask for is known to the program alone.
    #[must_use]
    pub fn or(self, alternative: &str) -> Self {
        match self {
            Self::Unsupported {
                what,
                feature,
                remedy,
            } => Self::Unsupported {
                what,
                feature,
                remedy: format!("{remedy}, or {alternative}"),
            },
            other => other,
        }
    }

    /// True when the host lacks a feature, as opposed to a failure.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::Unsupported { .. })
    }

    /// The kernel's error number, where one is behind this error and was not made a variant of its own.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Kernel { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn texts_name_operation_object_and_way_out() {
        let error = Error::Unsupported {
            what: "create macvlan `mv0` on `up0`".into(),
            feature: "macvlan".into(),
            remedy: "load module `macvlan`".into(),
        };
        let text = "cannot create macvlan `mv0` on `up0`: this host has no macvlan support; load module `macvlan`";
        assert_eq!(error.to_string(), text);
        let error = error.or("use veth");
        assert_eq!(error.to_string(), format!("{text}, or use veth"));
        assert!(error.is_usage());
        let error = Error::from_io("delete `x`", io::Error::from_raw_os_error(libc::EPERM));
        assert!(matches!(error, Error::Denied { .. }));
        assert!(error.to_string().contains("run as root"));
    }

    #[test]
    fn the_source_is_printed_once() {
        let error = Error::from_io("read `x`", io::Error::from_raw_os_error(libc::EBUSY));
        assert_eq!(error.to_string(), "cannot read `x`");
        assert!(
            error
                .source()
                .is_some_and(|source| source.to_string().contains("busy"))
        );
        assert_eq!(error.errno(), Some(libc::EBUSY));
        let error = Error::Kernel {
            what: "add `x`".into(),
            source: io::Error::from_raw_os_error(libc::EINVAL),
            detail: Some("Invalid MTU".into()),
        };
        assert_eq!(error.to_string(), "cannot add `x` (Invalid MTU)");
    }
}
