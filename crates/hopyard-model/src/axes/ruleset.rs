//! The user's own packet filter rules.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{AxisError, Decides};
use super::descriptor::{Descriptor, text};
use super::digested;
use crate::UnknownName;
use crate::text::as_text;

/// Packet filter rules. As text `none`, the name of a [sample](RulesSample), `FILE` or, after it was read, `FILE#DIGEST`: files
/// of one name with different contents are different values.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Ruleset {
    /// No rules.
    None,
    /// Rules that come with hopyard.
    Sample(RulesSample),
    /// The rules of a file.
    File {
        /// As the user named it, relative to where hopyard was started.
        name: String,
        /// The [digest](crate::short_digest) of its contents; absent until it was read.
        digest: Option<String>,
    },
}

/// A chain of family bridge that sees every bridged frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RulesSample {
    /// Without a rule.
    Bridge,
    /// With one that matches no frame.
    BridgeRule,
}

impl RulesSample {
    const ALL: [Self; 2] = [Self::Bridge, Self::BridgeRule];

    fn name(self) -> &'static str {
        match self {
            Self::Bridge => "sample:bridge",
            Self::BridgeRule => "sample:bridge-rule",
        }
    }
}

impl Ruleset {
    /// The file or the sample.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::None => None,
            Self::Sample(sample) => Some(sample.name()),
            Self::File { name, .. } => Some(name),
        }
    }
}

const NONE: &str = "none";

impl fmt::Display for Ruleset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad(NONE),
            Self::Sample(sample) => f.pad(sample.name()),
            Self::File { name, digest } => f.pad(&digested::joined(name, digest.as_deref())),
        }
    }
}

impl FromStr for Ruleset {
    type Err = AxisError;

    fn from_str(text: &str) -> Result<Self, AxisError> {
        let text = text.trim();
        if text == NONE {
            return Ok(Self::None);
        }
        if let Some(sample) = RulesSample::ALL
            .into_iter()
            .find(|sample| sample.name() == text)
        {
            return Ok(Self::Sample(sample));
        }
        let (name, digest) = digested::split(text);
        if name.is_empty() {
            return Err(AxisError::UnknownName(UnknownName::new(
                "file with rules",
                text,
                [RULESET.values],
            )));
        }
        Ok(Self::File {
            name: name.to_owned(),
            digest,
        })
    }
}

as_text!(Ruleset);

pub(super) const RULESET: Descriptor<Option<Ruleset>> = Descriptor {
    name: "ruleset",
    summary: "packet filter rules of a file in the hub; also written --ruleset FILE",
    values: "FILE for `nft -f`, or of iptables-save; sample:bridge, sample:bridge-rule; none (default)",
    other: "fw.nft#0123456789ab",
    of_devices: true,
    ..text(Decides::Lab)
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_digest_once_it_was_read() {
        for (text, name, digest) in [
            ("fw.nft", "fw.nft", None),
            ("a#b.nft", "a#b.nft", None),
            ("fw#0123456789ab", "fw", Some("0123456789ab")),
            ("a#b#0123456789ab", "a#b", Some("0123456789ab")),
            ("fw#0123456789a", "fw#0123456789a", None),
            ("fw#0123456789ax", "fw#0123456789ax", None),
        ] {
            let ruleset: Ruleset = text.parse().unwrap();
            let expected = Ruleset::File {
                name: name.to_owned(),
                digest: digest.map(str::to_owned),
            };
            assert_eq!(ruleset, expected, "{text}");
            assert_eq!(ruleset.to_string(), text);
        }
        assert_eq!("none".parse::<Ruleset>().unwrap(), Ruleset::None);
        for sample in RulesSample::ALL {
            let ruleset: Ruleset = sample.name().parse().unwrap();
            assert_eq!(ruleset, Ruleset::Sample(sample));
            assert_eq!(ruleset.to_string(), sample.name());
            assert!(RULESET.values.contains(sample.name()));
        }
        for wrong in ["", " ", "#0123456789ab"] {
            let error = wrong.parse::<Ruleset>().unwrap_err().to_string();
            assert!(error.contains("iptables-save"), "{error}");
        }
    }
}
