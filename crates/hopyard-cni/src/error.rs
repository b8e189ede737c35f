//! The one error type of the plugin: what the specification says an error is.

use std::error::Error as _;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

/// Codes of the specification (section 5, "Error"), then our own from 100 on.
pub(crate) mod code {
    pub(crate) const INCOMPATIBLE_VERSION: u32 = 1;
    pub(crate) const UNSUPPORTED_FIELD: u32 = 2;
    pub(crate) const BAD_ENVIRONMENT: u32 = 4;
    pub(crate) const IO: u32 = 5;
    pub(crate) const NOT_JSON: u32 = 6;
    pub(crate) const BAD_CONFIG: u32 = 7;
    pub(crate) const NOT_AVAILABLE: u32 = 50;
    pub(crate) const NOT_AVAILABLE_LIMITED: u32 = 51;
    /// The switch or a device could not be made, changed or removed.
    pub(crate) const KERNEL: u32 = 100;
    /// The container has an attachment by that name already.
    pub(crate) const ATTACHED: u32 = 101;
    /// CHECK found something that is not as ADD left it.
    pub(crate) const CHANGED: u32 = 102;
    /// The IPAM plugin could not be run, or gave no usable answer.
    pub(crate) const IPAM: u32 = 103;
}

/// What went wrong: a code, one sentence, and what else there is to say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{msg}{}", if .details.is_empty() { String::new() } else { format!(" ({details})") })]
pub(crate) struct Error {
    pub(crate) code: u32,
    pub(crate) msg: String,
    pub(crate) details: String,
    /// Did the IPAM plugin itself answer it?
    pub(crate) is_of_ipam: bool,
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(code: u32, msg: impl Into<String>) -> Self {
        Self {
            code,
            msg: msg.into(),
            details: String::new(),
            is_of_ipam: false,
        }
    }

    /// A file or pipe that cannot be read or written.
    pub(crate) fn io(what: &str, source: &std::io::Error) -> Self {
        Self::new(code::IO, format!("cannot {what}: {source}"))
    }

    /// The document that the runtime reads on stdout.
    pub(crate) fn document(&self, version: &str) -> Value {
        let mut document = json!({
            "cniVersion": version,
            "code": self.code,
            "msg": self.msg,
        });
        if !self.details.is_empty() {
            document["details"] = self.details.clone().into();
        }
        document
    }

    /// The first error, with the others as its details; `None` where there is none.
    pub(crate) fn all(errors: Vec<Self>) -> Option<Self> {
        let mut errors = errors.into_iter();
        let mut first = errors.next()?;
        for error in errors {
            first.also(&error);
        }
        Some(first)
    }

    /// Notes something that went wrong besides.
    pub(crate) fn also(&mut self, other: &Self) {
        if !self.details.is_empty() {
            self.details += "; ";
        }
        let _ = write!(self.details, "{other}");
    }
}

/// Makes the error of what could not be done to a file.
pub(crate) fn failed<'a>(what: &'a str, path: &'a Path) -> impl Fn(std::io::Error) -> Error + 'a {
    move |error| Error::io(&format!("{what} `{}`", path.display()), &error)
}

/// The text of an error with those of all its sources.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let _ = write!(text, ": {error}");
        source = error.source();
    }
    text
}

impl From<hopyard_net::Error> for Error {
    fn from(error: hopyard_net::Error) -> Self {
        Self::new(code::KERNEL, chain(&error))
    }
}

impl From<hopyard_switch::Error> for Error {
    fn from(error: hopyard_switch::Error) -> Self {
        // `Net` is transparent: its own text is the inner one's.
        let text = match &error {
            hopyard_switch::Error::Net(inner) => chain(inner),
            hopyard_switch::Error::OtherLayout { name, .. } => format!(
                "{error}; use the version of hopyard that made it, or delete it when nothing uses it any more: `hopyard switch delete {name}`"
            ),
            other => {
                let sources = other.source().map(|source| format!(": {}", chain(source)));
                format!("{other}{}", sources.unwrap_or_default())
            }
        };
        Self::new(code::KERNEL, text)
    }
}
