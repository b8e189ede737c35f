//! One call of the plugin: the environment and the configuration that a runtime gives.

use std::env;
use std::path::PathBuf;

use serde_json::Value;

use crate::error::{Error, Result, code};
use crate::values::{is_identifier, network_name};
use crate::version::Version;

/// The operations of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Add,
    Del,
    Check,
    Gc,
    Status,
    Version,
}

impl Command {
    pub(crate) fn from_name(name: &str) -> Result<Self> {
        Ok(match name {
            "ADD" => Self::Add,
            "DEL" => Self::Del,
            "CHECK" => Self::Check,
            "GC" => Self::Gc,
            "STATUS" => Self::Status,
            "VERSION" => Self::Version,
            other => {
                let msg = format!("unknown CNI_COMMAND `{other}`");
                return Err(Error::new(code::BAD_ENVIRONMENT, msg));
            }
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Add => "ADD",
            Self::Del => "DEL",
            Self::Check => "CHECK",
            Self::Gc => "GC",
            Self::Status => "STATUS",
            Self::Version => "VERSION",
        }
    }

    /// Is it about one attachment?
    fn has_container(self) -> bool {
        matches!(self, Self::Add | Self::Del | Self::Check)
    }

    /// Refuses a command that came with a later version.
    pub(crate) fn must_be_of(self, version: Version) -> Result<()> {
        if matches!(self, Self::Gc | Self::Status) && version < Version::V1_1_0 {
            let msg = format!(
                "`cniVersion` {} of the configuration has no {}: it came with 1.1.0",
                version.name(),
                self.name()
            );
            return Err(Error::new(code::INCOMPATIBLE_VERSION, msg));
        }
        Ok(())
    }
}

/// What a runtime asks for.
pub(crate) struct Call {
    pub(crate) version: Version,
    /// The network's name.
    pub(crate) network: String,
    /// Empty for GC and STATUS, as are the next two.
    pub(crate) container: String,
    /// The file of the container's network namespace; empty at a DEL where that is gone.
    pub(crate) netns: PathBuf,
    /// The device's name in the container.
    pub(crate) ifname: String,
    /// `CNI_ARGS` as it came.
    pub(crate) args: String,
    /// Directories of plugins.
    pub(crate) path: String,
    /// The configuration as it came, for the IPAM plugin.
    pub(crate) text: String,
    pub(crate) conf: Value,
}

impl Call {
    pub(crate) fn from_environment(
        command: Command,
        version: Version,
        text: &[u8],
        conf: Value,
    ) -> Result<Self> {
        let get = |key: &str| env::var(key).unwrap_or_default();
        let (container, netns, ifname) =
            (get("CNI_CONTAINERID"), get("CNI_NETNS"), get("CNI_IFNAME"));
        if command.has_container() {
            check_container(&container)?;
            check_ifname(&ifname)?;
            if netns.is_empty() && command != Command::Del {
                return Err(bad("CNI_NETNS", &netns, "is missing"));
            }
        }
        Ok(Self {
            version,
            network: network_name(&conf)?,
            container,
            netns: netns.into(),
            ifname,
            args: get("CNI_ARGS"),
            path: get("CNI_PATH"),
            text: String::from_utf8_lossy(text).into_owned(),
            conf,
        })
    }

    /// The value of a key in `CNI_ARGS`.
    pub(crate) fn arg(&self, key: &str) -> Option<&str> {
        arg(&self.args, key)
    }
}

/// The value of a key in the text of `CNI_ARGS`: the last one, as for the reference plugins.
pub(crate) fn arg<'a>(args: &'a str, key: &str) -> Option<&'a str> {
    let pairs = args.split(';').filter_map(|pair| pair.split_once('='));
    pairs
        .rev()
        .find_map(|(name, value)| (name == key && !value.is_empty()).then_some(value))
}

/// Is a plugin to pass over keys of `CNI_ARGS` that it does not know?
pub(crate) fn ignores_unknown(args: &str) -> bool {
    arg(args, "IgnoreUnknown")
        .is_some_and(|value| matches!(value, "1" | "true" | "True" | "TRUE" | "t" | "T"))
}

fn bad(key: &str, value: &str, why: &str) -> Error {
    Error::new(code::BAD_ENVIRONMENT, format!("{key} `{value}` {why}"))
}

/// Its file has this name, and some more.
const LONGEST_CONTAINER: usize = 200;

pub(crate) fn check_container(id: &str) -> Result<()> {
    if id.is_empty() {
        return Err(bad("CNI_CONTAINERID", id, "is missing"));
    }
    if !is_identifier(id) || id.len() > LONGEST_CONTAINER {
        let why = format!(
            "is no container: 1 to {LONGEST_CONTAINER} letters, digits, `.`, `_` and `-`, a letter or digit first"
        );
        return Err(bad("CNI_CONTAINERID", id, &why));
    }
    Ok(())
}

pub(crate) fn check_ifname(name: &str) -> Result<()> {
    let bad_byte = |byte: u8| matches!(byte, b'/' | b':' | b'%' | 0) || byte.is_ascii_whitespace();
    if name.is_empty() {
        return Err(bad("CNI_IFNAME", name, "is missing"));
    }
    if name.len() > 15 || name == "." || name == ".." || name.bytes().any(bad_byte) {
        let why = "is no device name: 1 to 15 bytes without blanks, `/`, `:` and `%`";
        return Err(bad("CNI_IFNAME", name, why));
    }
    Ok(())
}

/// Checks that `CNI_ARGS` has pairs alone, and none that nobody knows unless told to pass over them.
pub(crate) fn check_args(call: &Call) -> Result<()> {
    let ignore = ignores_unknown(&call.args);
    for pair in call.args.split(';').filter(|pair| !pair.is_empty()) {
        let Some((key, _)) = pair.split_once('=') else {
            return Err(bad("CNI_ARGS", &call.args, "is no list of KEY=VALUE pairs"));
        };
        // `IP` and `GATEWAY` are the IPAM plugin's.
        if !ignore && !matches!(key, "IgnoreUnknown" | "MAC" | "IP" | "GATEWAY") {
            let why = format!("has the unknown key `{key}`; `IgnoreUnknown=1` passes over it");
            return Err(bad("CNI_ARGS", &call.args, &why));
        }
    }
    Ok(())
}
