//! Offload flags of single devices.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{AxisError, Decides, choice, one_of};
use super::descriptor::{Descriptor, text};
use super::offloads::{OffloadFlag, Switch};
use crate::UnknownName;
use crate::text::as_text;

/// A switch of one device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceOffload {
    /// The one path whose devices are meant; `None` for those of every path.
    pub path: Option<String>,
    /// Name of the device, after that of its namespace where that matters: `br0`, `hub/br0`.
    pub device: String,
    /// The flag; `None` for all flags that the device allows to change.
    pub flag: Option<OffloadFlag>,
    /// The state to set.
    pub to: Switch,
}

impl DeviceOffload {
    /// Whether the switch applies to this device.
    #[must_use]
    pub fn is_of(&self, namespace: &str, device: &str) -> bool {
        match self.device.split_once('/') {
            Some((wanted, name)) => (wanted, name) == (namespace, device),
            None => self.device == device,
        }
    }

    /// The flag and the device: `gro@br0`.
    fn key(&self) -> String {
        let flag = self.flag.map_or(ALL, OffloadFlag::name);
        let path = self.path.as_ref().map(|path| format!("{path}{OF}"));
        format!("{flag}{AT}{}{}", path.unwrap_or_default(), self.device)
    }
}

/// The word for all flags.
const ALL: &str = "offload";
/// Separates a flag and a device.
const AT: char = '@';
/// Between a path and a device of it.
const OF: char = ':';
/// Between the switches of one value.
const AND: &str = "+";
/// The value for no switches.
const NONE: &str = "none";

impl fmt::Display for DeviceOffload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}={}", self.key(), self.to))
    }
}

impl FromStr for DeviceOffload {
    type Err = AxisError;

    fn from_str(text: &str) -> Result<Self, AxisError> {
        let parts = text.split_once('=').and_then(|(key, to)| {
            let (flag, device) = key.split_once(AT)?;
            Some((flag.trim(), device.trim(), to.trim()))
        });
        let (flag, device, to) = parts.ok_or_else(|| wrong(text))?;
        let flags = OffloadFlag::ALL.map(|flag| (flag.name(), Some(flag)));
        let flags = [&[(ALL, None)], &flags[..]].concat();
        let is_name = |name: &str| !name.is_empty() && !name.contains(['/', AT, '=', ' ', OF]);
        let (path, device) = match device.split_once(OF) {
            Some((path, device)) => (Some(path), device),
            None => (None, device),
        };
        if !device.splitn(2, '/').chain(path).all(is_name) {
            return Err(wrong(text));
        }
        Ok(Self {
            path: path.map(str::to_owned),
            device: device.to_owned(),
            flag: choice("offload flag", flag, &flags)?,
            to: one_of("switch", to)?,
        })
    }
}

fn wrong(text: &str) -> AxisError {
    AxisError::UnknownName(UnknownName::new(
        "switch of a device",
        text,
        [
            "FLAG@DEVICE=on|off as in gro@br0=off or gro@bridge:br0=off, several joined by +, or none",
        ],
    ))
}

/// Switches of single devices in a fixed order, at most one for each flag and device. As text
/// `gro@br0=off+tso@hub/up0=on`, or `none`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct DeviceOffloads(Vec<DeviceOffload>);

impl DeviceOffloads {
    pub fn iter(&self) -> impl Iterator<Item = &DeviceOffload> {
        self.0.iter()
    }

    /// Those that are for a path, where there are any.
    #[must_use]
    pub fn on_path(&self, path: &str) -> Option<Self> {
        let is_for = |one: &&DeviceOffload| one.path.as_deref().is_none_or(|of| of == path);
        let own: Vec<DeviceOffload> = self.iter().filter(is_for).cloned().collect();
        (!own.is_empty()).then_some(Self(own))
    }

    /// These with those of another in place of their own, if they have all of them.
    #[must_use]
    pub(crate) fn at(&self, other: &Self) -> Option<Self> {
        let keys: Vec<String> = other.iter().map(DeviceOffload::key).collect();
        let mut left = self.0.clone();
        left.retain(|own| !keys.contains(&own.key()));
        let has_all = left.len() + keys.len() == self.0.len() && !keys.is_empty();
        left.extend(other.0.iter().cloned());
        left.sort();
        has_all.then_some(Self(left))
    }
}

impl fmt::Display for DeviceOffloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.pad(&match &all[..] {
            [] => NONE.to_owned(),
            all => all.join(AND),
        })
    }
}

impl FromStr for DeviceOffloads {
    type Err = AxisError;

    fn from_str(text: &str) -> Result<Self, AxisError> {
        if text.trim() == NONE {
            return Ok(Self(Vec::new()));
        }
        let mut all: Vec<DeviceOffload> = text
            .split(AND)
            .map(|one| one.trim().parse())
            .collect::<Result<_, _>>()?;
        all.sort();
        if all.windows(2).any(|two| two[0].key() == two[1].key()) {
            return Err(AxisError::UnknownName(UnknownName::new(
                "value with one switch twice",
                text,
                ["each flag of a device once"],
            )));
        }
        Ok(Self(all))
    }
}

as_text!(DeviceOffloads);

pub(super) const DEVICE_OFFLOAD: Descriptor<Option<DeviceOffloads>> = Descriptor {
    name: "device_offload",
    summary: "offload flags of single devices, before those above; also written gro@br0=on,off",
    values: "FLAG@DEVICE=on|off, several joined by +; FLAG may be `offload`, DEVICE of one path alone `PATH:DEVICE`; none (default: as the others)",
    other: "gro@br0=off+tso@bridge:hub/up0=on",
    of_devices: true,
    ..text(Decides::Lab)
};

/// The axis and the value of `NAME=VALUE`, where NAME may be `gro@br0`.
#[must_use]
pub fn as_axis(name: &str, value: &str) -> (String, String) {
    if name.contains(AT) {
        let name = name.trim();
        (
            DEVICE_OFFLOAD.name.to_owned(),
            format!("{name}={}", value.trim()),
        )
    } else {
        (name.to_owned(), value.to_owned())
    }
}

/// Axes with their values. The switches of single devices become one axis, with each value of one combined with each of
/// the others.
#[must_use]
pub fn together(sets: &[(String, Vec<String>)]) -> Vec<(String, Vec<String>)> {
    let (of_devices, mut others): (Vec<_>, Vec<_>) = sets
        .iter()
        .cloned()
        .partition(|(name, _)| name == DEVICE_OFFLOAD.name);
    let product = |all: Vec<String>, (_, values): (String, Vec<String>)| {
        let with = |one: &String| -> Vec<String> {
            let both = |value: &String| match (one.as_str(), value.as_str()) {
                ("" | NONE, other) | (other, NONE) => other.to_owned(),
                (one, other) => format!("{one}{AND}{other}"),
            };
            values.iter().map(both).collect()
        };
        all.iter().flat_map(with).collect()
    };
    if !of_devices.is_empty() {
        let values = of_devices.into_iter().fold(vec![String::new()], product);
        others.push((DEVICE_OFFLOAD.name.to_owned(), values));
    }
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> DeviceOffloads {
        text.parse().unwrap()
    }

    #[test]
    fn a_value_has_one_order_and_is_printed_as_it_is_read() {
        let one = read("tso@hub/up0=on + gro@br0=off");
        assert_eq!(one, read("gro@br0=off+tso@hub/up0=on"));
        assert_eq!(one.to_string(), "gro@br0=off+tso@hub/up0=on");
        assert_eq!(read("none").to_string(), "none");
        for (wrong, why) in [
            ("gro", "no switch of a device `gro`"),
            ("gro@=off", "no switch of a device"),
            ("gro@a/b/c=off", "no switch of a device"),
            ("colour@br0=off", "no offload flag `colour`"),
            ("gro@br0=red", "no switch `red`"),
            ("gro@br0=off+gro@br0=on", "each flag of a device once"),
        ] {
            let error = wrong.parse::<DeviceOffloads>().unwrap_err().to_string();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    #[test]
    fn switches_of_several_devices_are_one_axis() {
        let set = |name: &str, values: &[&str]| {
            let value = |value: &&str| as_axis(name, value);
            let all: Vec<_> = values.iter().map(value).collect();
            (all[0].0.clone(), all.into_iter().map(|(_, v)| v).collect())
        };
        let sets = [
            set("gro@br0", &["on", "off"]),
            set("flows", &["1"]),
            set("tso@a/eth0", &["off"]),
            set("device_offload", &["none", "gso@br0=off"]),
        ];
        let all = together(&sets);
        assert_eq!(all[0], set("flows", &["1"]));
        let values = [
            "gro@br0=on+tso@a/eth0=off",
            "gro@br0=on+tso@a/eth0=off+gso@br0=off",
            "gro@br0=off+tso@a/eth0=off",
            "gro@br0=off+tso@a/eth0=off+gso@br0=off",
        ];
        assert_eq!(all[1], set("device_offload", &values));
    }

    #[test]
    fn one_of_several_switches_is_put_back() {
        let all = read("gro@br0=off+tso@eth0=off");
        let put_back = |to: &str| all.at(&read(to)).map(|at| at.to_string());
        assert_eq!(
            put_back("gro@br0=on").as_deref(),
            Some("gro@br0=on+tso@eth0=off")
        );
        assert_eq!(put_back("gro@eth0=on"), None);
        assert_eq!(put_back("none"), None);
    }
}
