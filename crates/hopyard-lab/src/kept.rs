//! What is written down of a kept lab.

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Error, Result};
use crate::model::{Axes, Peer};

/// The file with it, in the lab's directory.
pub(super) const STATE: &str = "lab.json";

/// What is known of a kept lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Name of the lab: 1 to 32 letters, digits, `-` and `_`.
    pub name: String,
    /// Name of the path that was built.
    pub path: String,
    /// Name of the peer: `local`, `far` or `host`.
    pub peer: Peer,
    /// Axis values that the lab was built with.
    pub axes: Axes,
    /// Who built it.
    pub(super) owner: String,
    /// Is it whole? Until then it belongs to its builder, and to `clean` after the builder's death.
    pub complete: bool,
    /// Namespaces of the lab, with their devices and addresses.
    pub spaces: Vec<KeptSpace>,
    /// What else it has, each under the key of its kind.
    #[serde(flatten)]
    pub(super) parts: Map<String, Value>,
}

impl Kept {
    /// Writes down a part of the lab.
    pub(super) fn note(&mut self, key: &str, part: &impl Serialize) -> Result<()> {
        let part = serde_json::to_value(part).map_err(io::Error::from);
        let part = part.map_err(file_error(format!("write `{key}` into {STATE}")))?;
        self.parts.insert(key.to_owned(), part);
        Ok(())
    }
}

/// A namespace of a kept lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptSpace {
    pub role: String,
    /// Devices and addresses, for people.
    pub devices: Vec<String>,
    /// The address to talk to, where it is an endpoint.
    pub address: Option<String>,
}

pub(super) fn file_error(what: String) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::File { what, source }
}
