//! Versions of the specification.

use serde_json::{Value, json};

use crate::error::{Error, Result, code};
use crate::values;

/// A version that the plugin speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    V0_4_0,
    V1_0_0,
    V1_1_0,
}

/// All of them, in order.
pub(crate) const SUPPORTED: [Version; 3] = [Version::V0_4_0, Version::V1_0_0, Version::V1_1_0];

impl Version {
    pub(crate) const NEWEST: Self = Self::V1_1_0;

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V0_4_0 => "0.4.0",
            Self::V1_0_0 => "1.0.0",
            Self::V1_1_0 => "1.1.0",
        }
    }

    /// The version of a network configuration.
    pub(crate) fn of(conf: &Value) -> Result<Self> {
        let asked = conf["cniVersion"].as_str().unwrap_or("0.1.0");
        SUPPORTED
            .into_iter()
            .find(|version| version.name() == asked)
            .ok_or_else(|| {
                let names = SUPPORTED.map(Self::name).join(", ");
                let msg = format!(
                    "incompatible CNI versions: the configuration has `cniVersion` {asked}, the plugin supports {names}"
                );
                Error::new(code::INCOMPATIBLE_VERSION, msg)
            })
    }
}

/// The answer to VERSION, in whatever version it was asked.
pub(crate) fn answer(text: &[u8]) -> Result<Value> {
    let conf = if text.trim_ascii().is_empty() {
        json!({})
    } else {
        values::parse(text)?
    };
    Ok(json!({
        "cniVersion": conf["cniVersion"].as_str().unwrap_or(Version::NEWEST.name()),
        "supportedVersions": SUPPORTED.map(Version::name),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Command;

    #[test]
    fn only_supported_versions_are_taken() {
        for (asked, found) in [
            ("0.4.0", Some(Version::V0_4_0)),
            ("1.0.0", Some(Version::V1_0_0)),
            ("1.1.0", Some(Version::V1_1_0)),
            ("0.3.1", None),
            ("1.2.0", None),
            ("", None),
        ] {
            let version = Version::of(&json!({ "cniVersion": asked }));
            assert_eq!(version.clone().ok(), found, "{asked}");
            if let Err(error) = version {
                assert_eq!(error.code, code::INCOMPATIBLE_VERSION);
            }
        }
        assert!(Version::of(&json!({})).is_err());
        assert!(Command::Status.must_be_of(Version::V1_0_0).is_err());
        assert!(Command::Gc.must_be_of(Version::V1_1_0).is_ok());
    }
}
