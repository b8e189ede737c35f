//! Calls by the protocol of CNI, as runtimes make them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hopyard_model::plain;
use hopyard_net::Process;
use serde_json::{Map, Value};

use crate::conflist::{Network, find};

/// A call that takes longer has hung.
const PATIENCE: Duration = Duration::from_secs(60);
/// Most characters of what a plugin says that are told.
const MOST_TOLD: usize = 400;

/// Calls the plugins of a network.
pub(crate) struct Caller<'a> {
    pub(crate) network: &'a Network,
    pub(crate) cni_path: &'a [PathBuf],
    /// For what plugins read and say. Files, because nobody waits for whoever keeps one open.
    pub(crate) files: &'a Path,
}

/// Whom a call is about.
pub(crate) struct Container<'a> {
    pub(crate) id: &'a str,
    pub(crate) netns: &'a Path,
}

/// The device in every container.
pub(crate) const DEVICE: &str = "eth0";

impl Caller<'_> {
    /// Calls every plugin of the chain, each with the result of the one before; the last result.
    pub(crate) fn add(&self, container: &Container<'_>) -> Result<Value, String> {
        let mut result = None;
        for plugin in &self.network.plugins {
            let said = self.call("ADD", plugin, container, result.as_ref())?;
            result = Some(said.ok_or_else(|| told("ADD", plugin, "it gave no result"))?);
        }
        result.ok_or_else(|| "there is no plugin".to_owned())
    }

    /// Calls every plugin of the chain, the last one first, each with the result of ADD; goes on after errors.
    pub(crate) fn del(
        &self,
        container: &Container<'_>,
        result: Option<&Value>,
    ) -> Result<(), String> {
        let plugins = self.network.plugins.iter().rev();
        let failed = plugins.filter_map(|plugin| self.call("DEL", plugin, container, result).err());
        let failed: Vec<String> = failed.collect();
        if failed.is_empty() {
            Ok(())
        } else {
            Err(failed.join("; "))
        }
    }

    fn call(
        &self,
        verb: &str,
        plugin: &Map<String, Value>,
        container: &Container<'_>,
        previous: Option<&Value>,
    ) -> Result<Option<Value>, String> {
        let fail = |why: &str| told(verb, plugin, why);
        let kind = plugin
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let program = find(kind, self.cni_path).ok_or_else(|| fail("its file is gone"))?;
        let mut conf = plugin.clone();
        conf.insert("name".to_owned(), self.network.name.clone().into());
        conf.insert(
            "cniVersion".to_owned(),
            self.network.cni_version.clone().into(),
        );
        if let Some(previous) = previous {
            conf.insert("prevResult".to_owned(), previous.clone());
        }
        let file = |what: &str| self.files.join(format!("{}-{what}", container.id));
        let io = |error: std::io::Error| fail(&error.to_string());
        fs::write(file("in"), Value::Object(conf).to_string()).map_err(io)?;
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("CNI_COMMAND", verb)
            .env("CNI_CONTAINERID", container.id)
            .env("CNI_NETNS", container.netns)
            .env("CNI_IFNAME", DEVICE)
            .env(
                "CNI_PATH",
                std::env::join_paths(self.cni_path).unwrap_or_default(),
            )
            .stdin(File::open(file("in")).map_err(io)?)
            .stdout(File::create(file("out")).map_err(io)?)
            .stderr(File::create(file("err")).map_err(io)?);
        let status = ended(command.spawn().map_err(io)?).map_err(|why| fail(&why))?;
        let said = fs::read(file("out")).map_err(io)?;
        let said: Option<Value> = serde_json::from_slice(&said).ok();
        if status.success() {
            return Ok(said.filter(Value::is_object));
        }
        let of_error = |key: &str| Some(said.as_ref()?.get(key)?.as_str()?.to_owned());
        let words = [of_error("msg"), of_error("details")].into_iter().flatten();
        let words: Vec<String> = words.filter(|words| !words.is_empty()).collect();
        if !words.is_empty() {
            return Err(fail(&words.join("; ")));
        }
        let errors = fs::read(file("err")).unwrap_or_default();
        let errors = String::from_utf8_lossy(&errors);
        Err(fail(&format!("it ended with {status}: {}", errors.trim())))
    }
}

impl Caller<'_> {
    /// What each plugin says of itself, called as no runtime does: its version, as a rule.
    pub(crate) fn about(&self) -> BTreeMap<String, String> {
        let types = self.network.types().filter_map(|kind| {
            let program = find(kind, self.cni_path)?;
            let words = self.said_by(&program).unwrap_or_default();
            let text = format!("{}: {words}", program.display());
            Some((kind.to_owned(), plain::line(&text)))
        });
        types.collect()
    }

    fn said_by(&self, program: &Path) -> Option<String> {
        let [out, err] = ["about-out", "about-err"].map(|name| self.files.join(name));
        let child = Command::new(program)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .stdin(Stdio::null())
            .stdout(File::create(&out).ok()?)
            .stderr(File::create(&err).ok()?)
            .spawn();
        ended(child.ok()?).ok()?;
        let text = [fs::read(err).ok()?, fs::read(out).ok()?].concat();
        let text = String::from_utf8_lossy(&text);
        let first = text.lines().find(|line| !line.trim().is_empty())?;
        Some(first.chars().take(MOST_TOLD).collect())
    }
}

/// Waits for the end of a process, and ends it when it hangs.
fn ended(mut child: std::process::Child) -> Result<std::process::ExitStatus, String> {
    let began = Instant::now();
    let held = Process::open(child.id()).map_err(|error| error.to_string())?;
    // It is ours to collect, so it is there.
    let hangs = held.is_some_and(|process| {
        while !process.has_ended(Duration::from_secs(1)) {
            if began.elapsed() > PATIENCE {
                return true;
            }
        }
        false
    });
    if hangs {
        child.kill().map_err(|error| error.to_string())?;
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if hangs {
        return Err(format!("it was not done after {} s", PATIENCE.as_secs()));
    }
    Ok(status)
}

fn told(verb: &str, plugin: &Map<String, Value>, why: &str) -> String {
    let kind = plugin
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let why: String = plain::line(why).chars().take(MOST_TOLD).collect();
    format!("{verb} of plugin `{}`: {why}", plain::line(kind))
}
