//! A switch as a TOML file: every error names file, line and key.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use hopyard_switch::Mac;
use hopyard_switch::apply::{GuestEnd, PortSpec, Problem, SETTINGS, Setting, SwitchSpec, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Keys of the whole switch.
const SWITCH_KEYS: [&str; 8] = [
    "name",
    "uplink",
    "host_mac",
    "answer",
    "behind_others",
    "shortcut",
    "defaults",
    "ports",
];
/// Keys of a port besides its settings.
const PORT_KEYS: [&str; 4] = ["device", "netns", "optional", "mtu"];
/// The directory for `netns = "NAME"`.
const NAMED: &str = "/run/netns";

mod shortcut;

type Found<'a, 'i> = (&'a str, &'a Spanned<DeValue<'i>>);

/// A switch as a file describes it.
#[derive(Debug)]
pub(super) struct Described {
    pub(super) spec: SwitchSpec,
    file: String,
    /// The lines of the keys of the switch, and of each port.
    lines: Lines,
    ports: Vec<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    start: usize,
    keys: BTreeMap<String, usize>,
}

impl Lines {
    /// A key of a table that is not there stands for the table.
    fn of(&self, key: &str) -> usize {
        let table = key.split('.').next().unwrap_or(key);
        let found = self.keys.get(key).or_else(|| self.keys.get(table));
        found.copied().unwrap_or(self.start)
    }
}

impl Described {
    /// The problem, with file, line and key.
    pub(super) fn say(&self, problem: &Problem) -> String {
        let port = problem.port.and_then(|n| self.ports.get(n));
        let line = port.unwrap_or(&self.lines).of(problem.key);
        format!("{}:{line}: {}: {}", self.file, problem.key, problem.why)
    }
}

struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.bytes().take(span.start);
        before.filter(|byte| *byte == b'\n').count() + 1
    }

    fn wrong(&self, (key, value): Found<'_, '_>, why: impl std::fmt::Display) -> String {
        let line = self.line(&value.span());
        format!("{}:{line}: {key}: {why}", self.file)
    }

    fn unknown(&self, at: &Range<usize>, key: &str, known: &[&str]) -> String {
        let line = self.line(at);
        let known = known.join(", ");
        format!(
            "{}:{line}: {key}: unknown key; known are {known}",
            self.file
        )
    }

    fn lines(&self, span: &Range<usize>, table: &DeTable<'_>) -> Lines {
        let mut keys = BTreeMap::new();
        for (key, value) in table {
            let name = key.get_ref().to_string();
            for key in value
                .get_ref()
                .as_table()
                .into_iter()
                .flat_map(|of| of.keys())
            {
                keys.insert(format!("{name}.{}", key.get_ref()), self.line(&key.span()));
            }
            keys.insert(name, self.line(&key.span()));
        }
        Lines {
            start: self.line(span),
            keys,
        }
    }

    fn text(&self, found: Found<'_, '_>) -> Result<String, String> {
        let text = found.1.get_ref().as_str().filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| self.wrong(found, "takes a text in quotes"))?;
        Ok(text.to_owned())
    }

    fn flag(&self, found: Found<'_, '_>) -> Result<bool, String> {
        let flag = found.1.get_ref().as_bool();
        flag.ok_or_else(|| self.wrong(found, "takes true or false"))
    }

    fn mtu(&self, found: Found<'_, '_>) -> Result<u32, String> {
        let mtu = match value(found.1.get_ref()) {
            Some(Value::Number(number)) => u32::try_from(number).ok(),
            _ => None,
        };
        // The least for IPv4, and the most for a device (RFC 791).
        mtu.filter(|mtu| (68..=65535).contains(mtu))
            .ok_or_else(|| self.wrong(found, "takes a number, 68 to 65535"))
    }

    fn set(
        &self,
        port: &mut PortSpec,
        setting: &Setting,
        found: Found<'_, '_>,
    ) -> Result<(), String> {
        let value = value(found.1.get_ref()).ok_or_else(|| {
            self.wrong(
                found,
                "takes a text, a number, true, false, or a list of texts",
            )
        })?;
        (setting.read)(port, &value).map_err(|why| self.wrong(found, why))
    }
}

/// A value in the form of settings; `None` for a kind that no setting accepts.
fn value(value: &DeValue<'_>) -> Option<Value> {
    Some(match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => {
            Value::Number(i64::from_str_radix(number.as_str(), number.radix()).ok()?)
        }
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Array(items) => {
            let text = |item: &Spanned<DeValue<'_>>| item.get_ref().as_str().map(str::to_owned);
            Value::List(items.iter().map(text).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// Reads a switch.
pub(super) fn read(path: &Path) -> Result<Described, String> {
    let file = path.display().to_string();
    let bytes =
        crate::bounded::read(path).map_err(|error| format!("cannot read {file}: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{file}: it is no text in UTF-8"))?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy());
    parse(&file, &stem.unwrap_or_default(), &text)
}

/// Reads a switch; `name` is its default name.
fn parse(file: &str, name: &str, text: &str) -> Result<Described, String> {
    let root = DeTable::parse(text)
        .map_err(|error| format!("{file}: {}", error.to_string().trim_end()))?;
    let source = Source { file, text };
    let mut spec = SwitchSpec {
        name: name.to_owned(),
        ..SwitchSpec::default()
    };
    let table = root.get_ref();
    let mut ports = Vec::new();
    // The ports' defaults first, wherever they are in the file.
    let defaults = match table.get("defaults") {
        Some(value) => defaults(&source, value)?,
        None => PortSpec::default(),
    };
    for (key, value) in table {
        let found = (&**key.get_ref(), value);
        match found.0 {
            "name" => spec.name = source.text(found)?,
            "uplink" => spec.uplink = Some(source.text(found)?),
            "host_mac" => spec.host_macs = macs(&source, found)?,
            "answer" => spec.answers = source.flag(found)?,
            "behind_others" => spec.behind_others = source.flag(found)?,
            "shortcut" => spec.shortcut = Some(shortcut::read(&source, found)?),
            "defaults" => {}
            "ports" => {
                let all = value.get_ref().as_array();
                let all = all.ok_or_else(|| source.wrong(found, "write each as [[ports]]"))?;
                for one in all {
                    let of = one.get_ref().as_table();
                    let of = of.ok_or_else(|| source.wrong(found, "write each as [[ports]]"))?;
                    spec.ports.push(port(&source, &defaults, one.span(), of)?);
                    ports.push(source.lines(&one.span(), of));
                }
            }
            other => return Err(source.unknown(&key.span(), other, &SWITCH_KEYS)),
        }
    }
    Ok(Described {
        spec,
        file: file.to_owned(),
        lines: Lines {
            start: 1,
            ..source.lines(&(0..0), table)
        },
        ports,
    })
}

/// Other addresses of the host, written like a port's.
fn macs(source: &Source<'_>, found: Found<'_, '_>) -> Result<Vec<Mac>, String> {
    let mut port = PortSpec::default();
    if let Some(setting) = Setting::of("mac") {
        source.set(&mut port, setting, found)?;
    }
    Ok(port.macs)
}

/// `[defaults]`: the settings of every port that does not set them itself.
fn defaults(source: &Source<'_>, value: &Spanned<DeValue<'_>>) -> Result<PortSpec, String> {
    let mut port = PortSpec::default();
    let table = value.get_ref().as_table();
    let table = table.ok_or_else(|| {
        let why = "write it as [defaults], with settings of ports below";
        source.wrong(("defaults", value), why)
    })?;
    for (key, value) in table {
        let found = (&**key.get_ref(), value);
        match (found.0, Setting::of(found.0)) {
            ("mtu", _) => port.mtu = Some(source.mtu(found)?),
            // These belong to one port only.
            ("mac" | "ip", _) => return Err(source.wrong(found, "each port has its own")),
            (_, Some(setting)) => source.set(&mut port, setting, found)?,
            (other, None) => {
                let mut known = vec!["mtu"];
                let keys = SETTINGS.iter().map(|setting| setting.key);
                known.extend(keys.filter(|key| !["mac", "ip"].contains(key)));
                return Err(source.unknown(&key.span(), other, &known));
            }
        }
    }
    Ok(port)
}

fn port(
    source: &Source<'_>,
    defaults: &PortSpec,
    span: Range<usize>,
    table: &DeTable<'_>,
) -> Result<PortSpec, String> {
    let mut port = defaults.clone();
    let mut device = None;
    let mut netns = None;
    for (key, value) in table {
        let found = (&**key.get_ref(), value);
        match (found.0, Setting::of(found.0)) {
            ("device", _) => device = Some(source.text(found)?),
            ("netns", _) => netns = Some(source.text(found)?),
            ("optional", _) => port.optional = source.flag(found)?,
            ("mtu", _) => port.mtu = Some(source.mtu(found)?),
            (_, Some(setting)) => source.set(&mut port, setting, found)?,
            (other, None) => {
                let mut known = PORT_KEYS.to_vec();
                known.extend(SETTINGS.iter().map(|setting| setting.key));
                return Err(source.unknown(&key.span(), other, &known));
            }
        }
    }
    let device = device.ok_or_else(|| {
        let line = source.line(&span);
        format!("{}:{line}: device: every port takes one", source.file)
    })?;
    match netns {
        None => port.device = device,
        Some(netns) => {
            port.guest = Some(GuestEnd {
                netns: namespace(&netns),
                device,
            });
        }
    }
    Ok(port)
}

/// A namespace by its name in `ip netns`, or by its file.
fn namespace(text: &str) -> PathBuf {
    Path::new(NAMED).join(text)
}

#[cfg(test)]
mod tests;
