//! CNI network configurations, as runtimes read them.

use std::path::{Path, PathBuf};

use hopyard_host::bounded;
use hopyard_model::plain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// A network: one plugin, or several in a chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Network {
    /// Its name, by which results are told apart.
    pub name: String,
    /// The version of the protocol.
    pub cni_version: String,
    /// The configuration of each plugin, in the order of ADD.
    pub plugins: Vec<Map<String, Value>>,
}

/// Letters, digits, `.`, `_` and `-` alone, a letter or digit first.
pub(crate) fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    name.chars().all(is_plain) && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}

impl Network {
    /// Reads a `.conflist`, or the `.conf` of one plugin.
    ///
    /// # Errors
    /// It cannot be read, or is no configuration.
    pub fn read(file: &Path) -> Result<Self> {
        let name = plain::line(&file.display().to_string());
        let text = bounded::read(file).map_err(|source| Error::Read {
            file: name.clone(),
            source,
        })?;
        Self::parse(&name, &String::from_utf8_lossy(&text))
    }

    /// The same from its text, by the name that errors give it.
    ///
    /// # Errors
    /// It is no configuration.
    pub fn parse(source: &str, text: &str) -> Result<Self> {
        let wrong = |why: String| Error::Wrong(format!("{source}: {}", plain::line(&why)));
        let value: Value =
            serde_json::from_str(text).map_err(|error| wrong(format!("no JSON: {error}")))?;
        let Value::Object(mut list) = value else {
            return Err(wrong("a network configuration is a JSON object".to_owned()));
        };
        let text = |list: &Map<String, Value>, key: &str| {
            let found = list.get(key).and_then(Value::as_str);
            let found = found.filter(|text| !text.is_empty()).map(str::to_owned);
            found.ok_or_else(|| wrong(format!("key `{key}` is missing, or no text")))
        };
        let name = text(&list, "name")?;
        if !is_name(&name) {
            return Err(wrong(format!(
                "name `{name}`: letters, digits, `.`, `_` and `-` alone, a letter or digit first"
            )));
        }
        let cni_version = text(&list, "cniVersion")?;
        let plugins = match list.remove("plugins") {
            None => vec![Value::Object(list)],
            Some(Value::Array(plugins)) => plugins,
            Some(_) => return Err(wrong("key `plugins` is no list".to_owned())),
        };
        if plugins.is_empty() {
            return Err(wrong("key `plugins` has no plugin".to_owned()));
        }
        let plugins = plugins.into_iter().map(|plugin| match plugin {
            Value::Object(plugin) => {
                let kind = text(&plugin, "type")?;
                if kind.contains('/') {
                    return Err(wrong(format!(
                        "type `{kind}` is a path; it has to be a name"
                    )));
                }
                Ok(plugin)
            }
            _ => Err(wrong("an entry of `plugins` is no object".to_owned())),
        });
        Ok(Self {
            name,
            cni_version,
            plugins: plugins.collect::<Result<_>>()?,
        })
    }

    /// The plugins, by name: `bridge`, or `ptp` and `portmap` of a chain. That of the addresses is among them.
    pub(crate) fn types(&self) -> impl Iterator<Item = &str> {
        self.plugins.iter().flat_map(|plugin| {
            let own = plugin.get("type").and_then(Value::as_str);
            let ipam = plugin.get("ipam").and_then(|ipam| ipam.get("type"));
            own.into_iter().chain(ipam.and_then(Value::as_str))
        })
    }

    /// Where each of its plugins is.
    ///
    /// # Errors
    /// One is nowhere, or in a place that is covered while plugins are called.
    pub(crate) fn find_plugins(&self, path: &[PathBuf]) -> Result<()> {
        for kind in self.types() {
            let wrong = |why: String| Err(Error::Wrong(format!("network `{}`: {why}", self.name)));
            let kind = plain::line(kind);
            let Some(file) = find(&kind, path) else {
                let searched: Vec<String> = path.iter().map(|p| p.display().to_string()).collect();
                return wrong(format!(
                    "there is no plugin `{kind}` in {}: install it, or name its directory with --cni-path",
                    searched.join(", ")
                ));
            };
            if let Some(covered) = COVERED.iter().find(|covered| file.starts_with(covered)) {
                return wrong(format!(
                    "plugin {} is below {covered}, where plugins see an empty directory: put it elsewhere",
                    file.display()
                ));
            }
        }
        Ok(())
    }
}

/// What plugins write to; each host has its own.
pub(crate) const COVERED: [&str; 3] = ["/run", "/var/run", "/var/lib"];

/// The file of a plugin.
pub(crate) fn find(kind: &str, path: &[PathBuf]) -> Option<PathBuf> {
    let files = path.iter().map(|directory| directory.join(kind));
    files.into_iter().find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conf_is_a_list_of_one() {
        let conf = r#"{"cniVersion": "1.0.0", "name": "a", "type": "bridge", "ipam": {"type": "host-local"}}"#;
        let network = Network::parse("a.conf", conf).unwrap();
        assert_eq!(network.plugins.len(), 1);
        assert_eq!(
            network.types().collect::<Vec<_>>(),
            ["bridge", "host-local"]
        );
    }

    #[test]
    fn what_is_no_configuration_is_refused_by_name() {
        for (text, why) in [
            ("{", "x: no JSON"),
            ("[]", "a JSON object"),
            (r#"{"cniVersion": "1.0.0", "plugins": []}"#, "`name`"),
            (r#"{"cniVersion": "1.0.0", "name": ""}"#, "`name`"),
            (
                r#"{"cniVersion": "1.0.0", "name": "../x", "type": "a"}"#,
                "letters",
            ),
            (r#"{"name": "a", "type": "bridge"}"#, "`cniVersion`"),
            (
                r#"{"cniVersion": "1.0.0", "name": "a", "plugins": []}"#,
                "no plugin",
            ),
            (
                r#"{"cniVersion": "1.0.0", "name": "a", "plugins": {}}"#,
                "no list",
            ),
            (
                r#"{"cniVersion": "1.0.0", "name": "a", "plugins": [1]}"#,
                "no object",
            ),
            (
                r#"{"cniVersion": "1.0.0", "name": "a", "plugins": [{}]}"#,
                "`type`",
            ),
            (
                r#"{"cniVersion": "1.0.0", "name": "a", "type": "/bin/sh"}"#,
                "a path",
            ),
        ] {
            let error = Network::parse("x", text).unwrap_err().to_string();
            assert!(
                error.starts_with("x: ") && error.contains(why),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn a_plugin_that_is_nowhere_or_hidden_is_named() {
        let conf = r#"{"cniVersion": "1.0.0", "name": "a", "type": "no-such-plugin"}"#;
        let network = Network::parse("a", conf).unwrap();
        let error = network.find_plugins(&["/usr/lib/cni".into()]).unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains("`no-such-plugin`") && said.contains("/usr/lib/cni"),
            "{said}"
        );
    }
}
