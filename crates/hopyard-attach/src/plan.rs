//! What is to be measured.

use std::path::{Path, PathBuf};

use hopyard_host::bounded;
use hopyard_model::plain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conflist::{Network, is_name};
use crate::error::{Error, Result};

/// The plan that there is.
const BUILT_IN: &str = include_str!("../../../plans/attach.toml");
const BUILT_IN_NAME: &str = "attach";

/// Most containers of a network that are there before: the switch has 4,094 ports.
const MOST_PORTS: u32 = 4000;
const MOST_BESIDE: u32 = 256;
const MOST_BLOCKS: u32 = 1000;
const MOST_ROUNDS: u32 = 10_000;

/// Which networks, how many containers, how often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// The networks beside each other.
    pub networks: Vec<Network>,
    /// The name of the network that the others are compared with.
    pub base: String,
    /// Containers of each network that are there before.
    pub ports: Vec<u32>,
    /// ADDs side by side.
    pub beside: Vec<u32>,
    /// Fresh hosts for each number of ports.
    pub blocks: u32,
    /// Attachments of each network in a block, for each number of ADDs side by side: a round has one such number of them.
    pub attachments: u32,
    /// A ratio this close to 1 is as good as 1 (0.02 for 2 %).
    pub margin: f64,
    /// Of intervals and verdicts.
    pub confidence: f64,
    /// Where plugins are looked for.
    pub cni_path: Vec<PathBuf>,
    /// The device of the host that plugins find; its other end is in a namespace of its own.
    pub uplink: String,
    /// Networks of the plan that were left out, and why.
    pub left_out: Vec<String>,
}

/// What the command line says in place of the plan.
#[derive(Debug, Default, Clone)]
pub struct Changes {
    /// Files of networks, in place of the plan's.
    pub conflists: Vec<PathBuf>,
    /// See [`Plan`], as the rest.
    pub base: Option<String>,
    /// Empty: the plan's.
    pub ports: Vec<u32>,
    /// Empty: the plan's.
    pub beside: Vec<u32>,
    /// `None`: the plan's.
    pub blocks: Option<u32>,
    /// `None`: the plan's.
    pub attachments: Option<u32>,
    /// Empty: the plan's.
    pub cni_path: Vec<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    #[expect(dead_code, reason = "for whoever reads the file")]
    summary: String,
    /// Files, relative to the plan's.
    #[serde(default)]
    conflists: Vec<PathBuf>,
    /// The texts of such files.
    #[serde(default)]
    networks: Vec<String>,
    /// Leave out networks whose plugins are not installed.
    #[serde(default)]
    where_installed: bool,
    base: Option<String>,
    ports: Vec<u32>,
    beside: Vec<u32>,
    blocks: u32,
    attachments: u32,
    margin: f64,
    confidence: f64,
    cni_path: Vec<PathBuf>,
    uplink: String,
}

impl Plan {
    /// The plan in a file (or the one that is built in), with changes.
    ///
    /// # Errors
    /// It is no plan, or a network is none, or a plugin is nowhere.
    pub fn read(file: Option<&Path>, changes: &Changes) -> Result<Self> {
        let file = file.filter(|file| *file != Path::new(BUILT_IN_NAME));
        let (name, text, folder) = match file {
            None => (
                BUILT_IN_NAME.to_owned(),
                BUILT_IN.to_owned(),
                PathBuf::new(),
            ),
            Some(file) => {
                let name = plain::line(&file.display().to_string());
                let text = bounded::read(file).map_err(|source| Error::Read {
                    file: name.clone(),
                    source,
                })?;
                let folder = file.parent().unwrap_or(Path::new(""));
                (
                    name,
                    String::from_utf8_lossy(&text).into_owned(),
                    folder.to_owned(),
                )
            }
        };
        Self::parse(&name, &text, &folder, changes)
    }

    fn parse(source: &str, text: &str, folder: &Path, changes: &Changes) -> Result<Self> {
        let wrong = |why: &str| Error::Wrong(format!("{source}: {why}"));
        let file: File = toml::from_str(text)
            .map_err(|error| Error::Wrong(plain::message(&format!("{source}: {error}"))))?;
        let mut networks = Vec::new();
        if changes.conflists.is_empty() {
            for conflist in &file.conflists {
                networks.push(Network::read(&folder.join(conflist))?);
            }
            for text in &file.networks {
                networks.push(Network::parse(&format!("{source}: networks"), text)?);
            }
        } else {
            for conflist in &changes.conflists {
                networks.push(Network::read(conflist)?);
            }
        }
        let own = |given: &[u32], plans: Vec<u32>| {
            if given.is_empty() {
                plans
            } else {
                given.to_vec()
            }
        };
        let cni_path = if changes.cni_path.is_empty() {
            file.cni_path
        } else {
            changes.cni_path.clone()
        };
        let mut left_out = Vec::new();
        let may_lack = file.where_installed && changes.conflists.is_empty();
        networks.retain(|network| match network.find_plugins(&cni_path) {
            Err(error) if may_lack => {
                left_out.push(error.to_string());
                false
            }
            _ => true,
        });
        for network in &networks {
            network.find_plugins(&cni_path)?;
        }
        let Some(first) = networks.first() else {
            return Err(wrong(&format!(
                "no network is left to be measured; {}",
                left_out.join("; ")
            )));
        };
        // That of the plan is not meant where it was left out, or where all its networks are replaced.
        let is_there = |base: &String| networks.iter().any(|network| network.name == *base);
        let may_lack = !left_out.is_empty() || !changes.conflists.is_empty();
        let plans = file.base.filter(|base| !may_lack || is_there(base));
        let base = changes.base.clone().or(plans);
        let plan = Self {
            name: file.name,
            base: base.unwrap_or_else(|| first.name.clone()),
            networks,
            ports: own(&changes.ports, file.ports),
            beside: own(&changes.beside, file.beside),
            blocks: changes.blocks.unwrap_or(file.blocks),
            attachments: changes.attachments.unwrap_or(file.attachments),
            margin: file.margin,
            confidence: file.confidence,
            cni_path,
            uplink: file.uplink,
            left_out,
        };
        plan.check()?;
        Ok(plan)
    }

    /// Bounds that every plan keeps, one from a document too.
    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |why: String| {
            Err(Error::Wrong(format!(
                "plan `{}`: {why}",
                plain::line(&self.name)
            )))
        };
        for (at, network) in self.networks.iter().enumerate() {
            if !is_name(&network.name) {
                return wrong(format!(
                    "`{}` is no name of a network",
                    plain::line(&network.name)
                ));
            }
            if self.networks[..at]
                .iter()
                .any(|other| other.name == network.name)
            {
                return wrong(format!("two networks have the name `{}`", network.name));
            }
        }
        if !self
            .networks
            .iter()
            .any(|network| network.name == self.base)
        {
            let names: Vec<&str> = self.networks.iter().map(|n| n.name.as_str()).collect();
            return wrong(format!(
                "base `{}` is none of the networks: {}",
                plain::line(&self.base),
                names.join(", ")
            ));
        }
        for (key, counts, most) in [
            ("ports", &self.ports[..], MOST_PORTS),
            ("beside", &self.beside[..], MOST_BESIDE),
            ("blocks", &[self.blocks][..], MOST_BLOCKS),
            ("attachments", &[self.attachments][..], MOST_ROUNDS),
        ] {
            if counts.is_empty() || counts.iter().any(|n| !(1..=most).contains(n)) {
                return wrong(format!("{key}: numbers from 1 to {most}"));
            }
            if (1..counts.len()).any(|at| counts[..at].contains(&counts[at])) {
                return wrong(format!("{key}: the same number twice"));
            }
        }
        if !(0.5..1.0).contains(&self.confidence) {
            return wrong("confidence: from 0.5 to below 1".to_owned());
        }
        if !(0.0..=1.0).contains(&self.margin) {
            return wrong("margin: from 0 to 1".to_owned());
        }
        let fits = (1..=15).contains(&self.uplink.len());
        if !fits || !self.uplink.chars().all(|c| c.is_ascii_alphanumeric()) {
            return wrong("uplink: 1 to 15 letters and digits".to_owned());
        }
        Ok(())
    }

    /// Rounds of a block with so many ADDs side by side.
    pub(crate) fn rounds(&self, beside: u32) -> u32 {
        self.attachments.div_ceil(beside).max(FEWEST_ROUNDS)
    }
}

/// Fewer tell nothing of where the ratios of a block lie.
const FEWEST_ROUNDS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
name = "mine"
summary = "two"
networks = [
  '{"cniVersion": "1.0.0", "name": "one", "type": "a"}',
  '{"cniVersion": "1.0.0", "name": "two", "type": "a"}',
]
base = "two"
ports = [1]
beside = [1, 16]
blocks = 8
attachments = 20
margin = 0.02
confidence = 0.95
cni_path = ["PATH"]
uplink = "up0"
"#;

    fn text() -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "").unwrap();
        let text = TEXT.replace("PATH", folder.path().to_str().unwrap());
        (folder, text)
    }

    fn parsed(text: &str, changes: &Changes) -> Result<Plan> {
        Plan::parse("p", text, Path::new(""), changes)
    }

    #[test]
    fn a_plan_is_read_and_changed() {
        let (_folder, text) = text();
        let plan = parsed(&text, &Changes::default()).unwrap();
        assert_eq!((plan.base.as_str(), plan.networks.len()), ("two", 2));
        assert_eq!((plan.rounds(1), plan.rounds(16)), (20, 3));
        let changes = Changes {
            base: Some("one".to_owned()),
            ports: vec![7],
            blocks: Some(2),
            ..Changes::default()
        };
        let plan = parsed(&text, &changes).unwrap();
        assert_eq!(
            (plan.base.as_str(), &plan.ports[..], plan.blocks),
            ("one", &[7][..], 2)
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let (_folder, text) = text();
        for (from, to, why) in [
            ("blocks = 8", "blocks = 0", "blocks: numbers from 1"),
            ("[1, 16]", "[16, 16]", "beside: the same number twice"),
            ("[1, 16]", "[]", "beside: numbers"),
            (
                "\"two\"\nports",
                "\"three\"\nports",
                "base `three` is none of",
            ),
            (
                "name\": \"two\"",
                "name\": \"one\"",
                "two networks have the name `one`",
            ),
            ("0.95", "1.5", "confidence"),
            ("0.02", "-1", "margin"),
            ("\"up0\"", "\"a b\"", "uplink"),
            ("blocks = 8", "block = 8", "block"),
            ("\"type\": \"a\"", "\"type\": \"b\"", "no plugin `b`"),
        ] {
            let error = parsed(&text.replacen(from, to, 1), &Changes::default()).unwrap_err();
            assert!(error.to_string().contains(why), "{to}: {error}");
        }
    }

    #[test]
    fn a_plugin_that_is_not_installed_may_be_left_out() {
        let (_folder, text) = text();
        let text = text.replacen("\"a\"", "\"b\"", 1) + "where_installed = true\n";
        let plan = parsed(&text, &Changes::default()).unwrap();
        assert_eq!(plan.networks.len(), 1);
        assert!(plan.left_out[0].contains("`one`"), "{:?}", plan.left_out);
    }

    #[test]
    fn the_built_in_plan_is_one() {
        let everything = tempfile::tempdir().unwrap();
        for plugin in ["hopyard", "bridge", "macvlan", "ptp", "host-local"] {
            std::fs::write(everything.path().join(plugin), "").unwrap();
        }
        let changes = Changes {
            cni_path: vec![everything.path().to_owned()],
            ..Changes::default()
        };
        let plan = Plan::read(None, &changes).unwrap();
        let names: Vec<&str> = plan.networks.iter().map(|n| n.name.as_str()).collect();
        let all = ["bridge", "macvlan", "ptp", "hopyard", "hopyard-program"];
        assert_eq!(names, all);
        assert_eq!(
            (plan.base.as_str(), plan.name.as_str()),
            ("bridge", "attach")
        );
    }
}
