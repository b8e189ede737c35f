//! The settings of a port: one entry for each, with all that reading, comparing, writing and changing it takes.

use std::fmt::Display;
use std::net::IpAddr;
use std::str::FromStr;

use super::PortSpec;
use crate::change::PortChange;
use crate::limit::Broadcasts;
use crate::rate::Rate;

/// A value as a file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A whole number.
    Number(i64),
    /// True or false.
    Flag(bool),
    /// Texts.
    List(Vec<String>),
}

/// A setting of a port.
#[derive(Debug)]
#[non_exhaustive]
pub struct Setting {
    /// Its name in files.
    pub key: &'static str,
    /// Takes a value over, or says what would be right.
    pub read: fn(&mut PortSpec, &Value) -> Result<(), String>,
    /// The value as TOML has it. Ports whose texts are the same do not differ.
    pub text: fn(&PortSpec) -> String,
    /// Has the value in a change of a port that stands; `None`: the port has to be removed and added again.
    pub change: Option<fn(&PortSpec, &mut PortChange<'_>)>,
}

/// All settings, in the order in which files have them. A new one is an entry here, and a field of [`PortSpec`].
pub const SETTINGS: &[Setting] = &[
    Setting {
        key: "mac",
        read: |port, value| texts(value).map(|macs| port.macs = macs),
        text: |port| list(&port.macs),
        change: None,
    },
    Setting {
        key: "ip",
        read: |port, value| {
            let ips: Vec<IpAddr> = texts(value)?;
            port.ips = ips.iter().map(IpAddr::to_canonical).collect();
            Ok(())
        },
        text: |port| list(&port.ips),
        change: None,
    },
    Setting {
        key: "ip_prefix",
        read: |port, value| texts(value).map(|prefixes| port.prefixes = prefixes),
        text: |port| list(&port.prefixes),
        change: None,
    },
    Setting {
        key: "vlan",
        read: |port, value| {
            number(value, 0..=4094).map(|vlan| port.vlan = Some(vlan).filter(|v| *v != 0))
        },
        text: |port| port.vlan.unwrap_or(0).to_string(),
        change: None,
    },
    Setting {
        key: "isolated",
        read: |port, value| flag(value).map(|on| port.isolated = on),
        text: |port| port.isolated.to_string(),
        change: Some(|port, change| change.isolated = Some(port.isolated)),
    },
    Setting {
        key: "allow_spoof",
        read: |port, value| flag(value).map(|on| port.allow_spoof = on),
        text: |port| port.allow_spoof.to_string(),
        change: Some(|port, change| change.allow_spoof = Some(port.allow_spoof)),
    },
    Setting {
        key: "queued",
        read: |port, value| flag(value).map(|on| port.queued = on),
        text: |port| port.queued.to_string(),
        change: None,
    },
    Setting {
        key: "router",
        read: |port, value| flag(value).map(|on| port.router = on),
        text: |port| port.router.to_string(),
        change: Some(|port, change| change.router = Some(port.router)),
    },
    Setting {
        key: "dhcp_server",
        read: |port, value| flag(value).map(|on| port.dhcp_server = on),
        text: |port| port.dhcp_server.to_string(),
        change: Some(|port, change| change.dhcp_server = Some(port.dhcp_server)),
    },
    Setting {
        key: "broadcasts",
        read: |port, value| limit(value).map(|limit| port.broadcasts = limit),
        text: |port| match port.broadcasts {
            Broadcasts::Unlimited => quoted(&port.broadcasts),
            Broadcasts::PerSecond(frames) => frames.to_string(),
        },
        change: Some(|port, change| change.broadcasts = Some(port.broadcasts)),
    },
    Setting {
        key: "rate_in",
        read: |port, value| rate(value).map(|rate| port.rate_in = rate),
        text: |port| quoted(&port.rate_in),
        change: Some(|port, change| change.rate_in = Some(port.rate_in)),
    },
    Setting {
        key: "rate_out",
        read: |port, value| rate(value).map(|rate| port.rate_out = rate),
        text: |port| quoted(&port.rate_out),
        change: Some(|port, change| change.rate_out = Some(port.rate_out)),
    },
];

impl Setting {
    /// The setting of a name.
    #[must_use]
    pub fn of(key: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.key == key)
    }
}

fn quoted(item: &impl Display) -> String {
    format!("\"{item}\"")
}

fn list<T: Display>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(quoted).collect();
    format!("[{}]", items.join(", "))
}

fn flag(value: &Value) -> Result<bool, String> {
    match value {
        Value::Flag(on) => Ok(*on),
        _ => Err("takes true or false".to_owned()),
    }
}

fn number<T: TryFrom<i64>>(
    value: &Value,
    bounds: std::ops::RangeInclusive<i64>,
) -> Result<T, String> {
    let wrong = || format!("takes a number, {} to {}", bounds.start(), bounds.end());
    match value {
        Value::Number(number) if bounds.contains(number) => {
            T::try_from(*number).map_err(|_| wrong())
        }
        _ => Err(wrong()),
    }
}

/// One text, or a list of them.
fn texts<T: FromStr>(value: &Value) -> Result<Vec<T>, String>
where
    T::Err: Display,
{
    let texts = match value {
        Value::Text(text) => std::slice::from_ref(text),
        Value::List(texts) => texts,
        _ => return Err("takes a text in quotes, or a list of them".to_owned()),
    };
    let read = |text: &String| text.parse().map_err(|why: T::Err| named(text, &why));
    texts.iter().map(read).collect()
}

/// What is wrong with a text; not all errors name it.
fn named(text: &str, why: &impl Display) -> String {
    let why = why.to_string();
    if why.contains(text) {
        why
    } else {
        format!("`{text}`: {why}")
    }
}

fn limit(value: &Value) -> Result<Broadcasts, String> {
    let text = match value {
        Value::Text(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Err("takes a number, or \"unlimited\"".to_owned()),
    };
    text.parse()
        .map_err(|why: crate::limit::NotALimit| why.to_string())
}

fn rate(value: &Value) -> Result<Rate, String> {
    match value {
        Value::Text(text) => text.parse().map_err(|why: crate::NotARate| why.to_string()),
        _ => Err("takes a rate in quotes, as \"100mbit\", or \"unlimited\"".to_owned()),
    }
}
