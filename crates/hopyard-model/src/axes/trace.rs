//! The datagrams that `udp_trace` sends.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{AxisError, Decides};
use super::descriptor::{Descriptor, text};
use super::digested;
use crate::UnknownName;
use crate::text::as_text;

/// A file with the sizes of datagrams and the times between them. As text `FILE` or, once it was read, `FILE#DIGEST`: files of one
/// name with other datagrams are other values. `sample` is a small one that comes with hopyard.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Trace {
    /// The one that comes with hopyard.
    Sample,
    /// That of a file.
    File {
        /// As the user named it, relative to where hopyard was started.
        name: String,
        /// The [digest](crate::short_digest) of sizes and gaps; absent until it was read.
        digest: Option<String>,
    },
}

const SAMPLE: &str = "sample";

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sample => f.pad(SAMPLE),
            Self::File { name, digest } => f.pad(&digested::joined(name, digest.as_deref())),
        }
    }
}

impl FromStr for Trace {
    type Err = AxisError;

    fn from_str(text: &str) -> Result<Self, AxisError> {
        let text = text.trim();
        if text == SAMPLE {
            return Ok(Self::Sample);
        }
        let (name, digest) = digested::split(text);
        if name.is_empty() {
            return Err(AxisError::UnknownName(UnknownName::new(
                "trace",
                text,
                [TRACE.values],
            )));
        }
        Ok(Self::File {
            name: name.to_owned(),
            digest,
        })
    }
}

as_text!(Trace);

/// The datagrams that are replayed.
pub(super) const TRACE: Descriptor<Option<Trace>> = Descriptor {
    name: "trace",
    summary: "sizes of the datagrams of udp_trace and the times between them",
    values: "FILE with lines `gap_s,bytes` (docs/datagrams.md makes one of a pcap); sample (default)",
    other: "calls.csv#0123456789ab",
    default: || Some(Trace::Sample),
    fits: |load, _| load.replays(),
    ..text(Decides::Message)
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_digest_once_it_was_read() {
        for (text, name, digest) in [
            ("a.csv", "a.csv", None),
            ("a.csv#0123456789ab", "a.csv", Some("0123456789ab")),
            ("a#b", "a#b", None),
        ] {
            let trace: Trace = text.parse().unwrap();
            let expected = Trace::File {
                name: name.to_owned(),
                digest: digest.map(str::to_owned),
            };
            assert_eq!(trace, expected, "{text}");
            assert_eq!(trace.to_string(), text);
        }
        assert_eq!("sample".parse::<Trace>().unwrap(), Trace::Sample);
        assert!("#0123456789ab".parse::<Trace>().is_err());
    }
}
