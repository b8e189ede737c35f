//! The axes: everything that can be swept, as one registry.
//!
//! A new axis is one field of [`Axes`] and one entry of [`AXES`]; the command line, plans, `list axes`
//! and the report walk the registry.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LoadKind, Peer, UnknownName};
use crate::units::{self, NotAQuantity};

/// Where the two ends run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// Both ends on one CPU.
    Same,
    /// The ends on different CPUs; refused where there is one CPU only.
    Split,
    /// Wherever the scheduler puts them.
    Free,
}

/// The IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Family {
    /// IPv4.
    #[serde(rename = "4")]
    V4,
    /// IPv6.
    #[serde(rename = "6")]
    V6,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// Switched on.
    On,
    /// Switched off.
    Off,
}

/// The rate of the wire in bit/s of Ethernet frames (without FCS); `None` leaves it unshaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Rate(pub Option<u64>);

/// One offload flag as the axes name them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OffloadFlag {
    /// TCP segmentation by the device.
    Tso,
    /// Segmentation just before the device.
    Gso,
    /// Merging on receipt.
    Gro,
    /// Merging by the device.
    Lro,
    /// Checksums by the device.
    TxChecksum,
}

impl OffloadFlag {
    /// Every flag, checksums first: segmentation depends on them.
    pub const ALL: [Self; 5] = [Self::TxChecksum, Self::Tso, Self::Gso, Self::Gro, Self::Lro];

    /// The axis' name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tso => "tso",
            Self::Gso => "gso",
            Self::Gro => "gro",
            Self::Lro => "lro",
            Self::TxChecksum => "tx_checksum",
        }
    }
}

/// The value of every axis that matters for a cell. What does not apply is absent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Axes {
    /// Connections or datagram flows side by side, a thread each.
    pub flows: u32,
    /// Bytes handed to the kernel per call (streams).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_size_bytes: Option<u32>,
    /// Bytes of a request (request/response).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_size_bytes: Option<u32>,
    /// Bytes of a response (request/response).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_size_bytes: Option<u32>,
    /// `SO_SNDBUF` and `SO_RCVBUF` asked for; absent leaves the kernel's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_buffer_bytes: Option<u32>,
    /// TCP congestion control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// Where the two ends run.
    pub placement: Placement,
    /// IP version.
    pub family: Family,
    /// MTU of every device of the path, bytes.
    pub mtu_bytes: u32,
    /// Rate of the wire (peer `far`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<Rate>,
    /// All offload flags that can be changed at once; absent leaves the kernel's defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offload: Option<Switch>,
    /// TCP segmentation offload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tso: Option<Switch>,
    /// Generic segmentation offload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gso: Option<Switch>,
    /// Generic receive offload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gro: Option<Switch>,
    /// Large receive offload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lro: Option<Switch>,
    /// Transmit checksum offload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_checksum: Option<Switch>,
}

impl Default for Axes {
    /// The default of every axis, as `hopyard list axes` shows them.
    fn default() -> Self {
        Self {
            flows: 1,
            message_size_bytes: None,
            request_size_bytes: Some(1),
            response_size_bytes: Some(1),
            socket_buffer_bytes: None,
            congestion: Some("cubic".to_owned()),
            placement: Placement::Split,
            family: Family::V4,
            mtu_bytes: 1500,
            rate_bps: Some(Rate(None)),
            offload: None,
            tso: None,
            gso: None,
            gro: None,
            lro: None,
            tx_checksum: None,
        }
    }
}

impl Axes {
    /// These values with what does not apply to the load and peer left out, and what the load
    /// chooses by itself filled in.
    #[must_use]
    pub fn for_cell(&self, load: LoadKind, peer: Peer) -> Self {
        let mut own = self.clone();
        if load.is_stream() && own.message_size_bytes.is_none() {
            own.message_size_bytes = Some(default_message_size(load));
        }
        for axis in AXES.iter().filter(|axis| !(axis.applies)(load, peer)) {
            (axis.clear)(&mut own);
        }
        own
    }

    /// What one offload flag shall be on every device: the flag's own axis, else `offload`.
    #[must_use]
    pub fn offload_wanted(&self, flag: OffloadFlag) -> Option<Switch> {
        self.offload_named(flag).or(self.offload)
    }

    /// The flag's own axis alone.
    #[must_use]
    pub fn offload_named(&self, flag: OffloadFlag) -> Option<Switch> {
        match flag {
            OffloadFlag::Tso => self.tso,
            OffloadFlag::Gso => self.gso,
            OffloadFlag::Gro => self.gro,
            OffloadFlag::Lro => self.lro,
            OffloadFlag::TxChecksum => self.tx_checksum,
        }
    }
}

/// netperf sends 16 KiB by default over TCP; datagrams stay under every MTU in use, as in the 2007 report.
fn default_message_size(load: LoadKind) -> u32 {
    if load == LoadKind::UdpStream {
        1400
    } else {
        16 * 1024
    }
}

/// Why a value is not one of an axis.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AxisError {
    /// Not a number, size or rate.
    #[error(transparent)]
    NotAQuantity(#[from] NotAQuantity),
    /// Not one of the names.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// Out of bounds.
    #[error("`{text}` is out of bounds: {axis} goes from {low} to {high}")]
    Bounds {
        /// The axis.
        axis: &'static str,
        /// What was asked.
        text: String,
        /// Least value.
        low: u32,
        /// Greatest value.
        high: u32,
    },
}

/// One axis: how it is named, read, shown and where it applies.
pub struct Axis {
    /// Name on the command line and in plans.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// The values it takes, for people.
    pub values: &'static str,
    /// Sets it from text.
    pub set: fn(&mut Axes, &str) -> Result<(), AxisError>,
    /// Its value as text; `None` where it is left to the kernel or does not apply.
    pub show: fn(&Axes) -> Option<String>,
    /// Takes it out of a cell to which it does not apply.
    pub clear: fn(&mut Axes),
    /// Does it mean anything for this load and peer?
    pub applies: fn(LoadKind, Peer) -> bool,
}

/// The axis of that name.
///
/// # Errors
/// There is none; the error lists them all.
pub fn axis(name: &str) -> Result<&'static Axis, UnknownName> {
    AXES.iter()
        .find(|axis| axis.name == name)
        .ok_or_else(|| UnknownName {
            kind: "axis",
            name: name.to_owned(),
            choices: AXES
                .iter()
                .map(|axis| axis.name)
                .collect::<Vec<_>>()
                .join(", "),
        })
}

fn bounded(axis: &'static str, text: &str, low: u32, high: u32) -> Result<u32, AxisError> {
    let value = units::parse_bytes(text)?;
    if (low..=high).contains(&value) {
        Ok(value)
    } else {
        Err(AxisError::Bounds {
            axis,
            text: text.to_owned(),
            low,
            high,
        })
    }
}

fn choice<T: Copy>(
    kind: &'static str,
    text: &str,
    values: &[(&'static str, T)],
) -> Result<T, UnknownName> {
    values
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, value)| *value)
        .ok_or_else(|| UnknownName {
            kind,
            name: text.to_owned(),
            choices: values
                .iter()
                .map(|(name, _)| *name)
                .collect::<Vec<_>>()
                .join(", "),
        })
}

const PLACEMENTS: [(&str, Placement); 3] = [
    ("same", Placement::Same),
    ("split", Placement::Split),
    ("free", Placement::Free),
];
const FAMILIES: [(&str, Family); 2] = [("4", Family::V4), ("6", Family::V6)];
const SWITCHES: [(&str, Switch); 2] = [("on", Switch::On), ("off", Switch::Off)];

fn shown<T: PartialEq>(value: &T, values: &[(&'static str, T)]) -> String {
    values
        .iter()
        .find(|(_, v)| v == value)
        .map_or_else(String::new, |(name, _)| (*name).into())
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&shown(self, &PLACEMENTS))
    }
}

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&shown(self, &SWITCHES))
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&shown(self, &FAMILIES))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.map_or_else(|| "none".to_owned(), units::show_rate))
    }
}

impl FromStr for Rate {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        if text == "none" {
            Ok(Self(None))
        } else {
            units::parse_rate(text).map(|r| Self(Some(r)))
        }
    }
}

macro_rules! offload_axis {
    ($field:ident, $name:literal, $summary:literal) => {
        Axis {
            name: $name,
            summary: $summary,
            values: "on, off (default: as the kernel makes the device)",
            set: |axes, text| {
                axes.$field = Some(choice($name, text, &SWITCHES)?);
                Ok(())
            },
            show: |axes| axes.$field.map(|value| value.to_string()),
            clear: |axes| axes.$field = None,
            applies: |_, _| true,
        }
    };
}

macro_rules! size_axis {
    ($field:ident, $name:literal, $summary:literal, $values:literal, $low:literal..=$high:expr, $applies:expr) => {
        Axis {
            name: $name,
            summary: $summary,
            values: $values,
            set: |axes, text| {
                axes.$field = Some(bounded($name, text, $low, $high)?);
                Ok(())
            },
            show: |axes| axes.$field.map(units::show_bytes),
            clear: |axes| axes.$field = None,
            applies: $applies,
        }
    };
}

/// Every axis.
pub static AXES: &[Axis] = &[
    Axis {
        name: "flows",
        summary: "connections or datagram flows side by side, a thread each",
        values: "1 to 256 (default 1)",
        set: |axes, text| {
            axes.flows = bounded("flows", text, 1, 256)?;
            Ok(())
        },
        show: |axes| Some(axes.flows.to_string()),
        clear: |_| {},
        applies: |_, _| true,
    },
    size_axis!(
        message_size_bytes,
        "message_size",
        "bytes per send call of a stream",
        "1 B to 1 MiB; 65507 at most over UDP (default 16 KiB TCP, 1400 B UDP)",
        1..=1024 * 1024,
        |load, _| load.is_stream()
    ),
    size_axis!(
        request_size_bytes,
        "request_size",
        "bytes per request",
        "1 B to 64 KiB; 65507 at most over UDP (default 1)",
        1..=64 * 1024,
        |load, _| !load.is_stream()
    ),
    size_axis!(
        response_size_bytes,
        "response_size",
        "bytes per response",
        "1 B to 64 KiB; 65507 at most over UDP (default 1)",
        1..=64 * 1024,
        |load, _| !load.is_stream()
    ),
    size_axis!(
        socket_buffer_bytes,
        "socket_buffer",
        "send and receive buffer asked for on every data socket",
        "4 KiB to 64 MiB (default: the kernel's own sizing)",
        4096..=64 * 1024 * 1024,
        |_, _| true
    ),
    Axis {
        name: "congestion",
        summary: "TCP congestion control",
        values: "what net.ipv4.tcp_available_congestion_control lists (default cubic)",
        set: |axes, text| {
            axes.congestion = Some(text.to_owned());
            Ok(())
        },
        show: |axes| axes.congestion.clone(),
        clear: |axes| axes.congestion = None,
        applies: |load, _| load.is_tcp(),
    },
    Axis {
        name: "placement",
        summary: "CPUs of the two ends",
        values: "same, split, free (default split)",
        set: |axes, text| {
            axes.placement = choice("placement", text, &PLACEMENTS)?;
            Ok(())
        },
        show: |axes| Some(axes.placement.to_string()),
        clear: |_| {},
        applies: |_, _| true,
    },
    Axis {
        name: "family",
        summary: "IP version",
        values: "4, 6 (default 4)",
        set: |axes, text| {
            axes.family = choice("family", text, &FAMILIES)?;
            Ok(())
        },
        show: |axes| Some(axes.family.to_string()),
        clear: |_| {},
        applies: |_, _| true,
    },
    Axis {
        name: "mtu",
        summary: "MTU of every device of the path",
        values: "1280 to 65535 (default 1500)",
        set: |axes, text| {
            axes.mtu_bytes = bounded("mtu", text, 1280, 65535)?;
            Ok(())
        },
        show: |axes| Some(axes.mtu_bytes.to_string()),
        clear: |_| {},
        applies: |_, _| true,
    },
    Axis {
        name: "rate",
        summary: "rate of the wire, both ways (peer far)",
        values: "100mbit, 1gbit, 10gbit, …, none (default none)",
        set: |axes, text| {
            axes.rate_bps = Some(text.parse()?);
            Ok(())
        },
        show: |axes| axes.rate_bps.map(|rate| rate.to_string()),
        clear: |axes| axes.rate_bps = None,
        applies: |_, peer| peer == Peer::Far,
    },
    offload_axis!(
        offload,
        "offload",
        "all offload flags below that a device lets one change"
    ),
    offload_axis!(tso, "tso", "TCP segmentation offload on every device"),
    offload_axis!(gso, "gso", "generic segmentation offload on every device"),
    offload_axis!(gro, "gro", "generic receive offload on every device"),
    offload_axis!(lro, "lro", "large receive offload on every device"),
    offload_axis!(
        tx_checksum,
        "tx_checksum",
        "transmit checksum offload on every device"
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_axis_takes_its_own_shown_value_back() {
        let mut axes = Axes::default();
        for (name, value) in [
            ("flows", "8"),
            ("message_size", "128KiB"),
            ("request_size", "100"),
            ("response_size", "1KiB"),
            ("socket_buffer", "1MiB"),
            ("congestion", "reno"),
            ("placement", "same"),
            ("family", "6"),
            ("mtu", "9000"),
            ("rate", "1gbit"),
            ("offload", "off"),
            ("tso", "on"),
            ("gso", "off"),
            ("gro", "on"),
            ("lro", "off"),
            ("tx_checksum", "on"),
        ] {
            (axis(name).unwrap().set)(&mut axes, value).unwrap();
        }
        let mut again = Axes::default();
        for axis in AXES {
            let text = (axis.show)(&axes).unwrap_or_else(|| panic!("{} was not set", axis.name));
            (axis.set)(&mut again, &text).unwrap();
        }
        assert_eq!(
            axes, again,
            "a test value is missing for a new axis, or it does not read back"
        );
    }

    #[test]
    fn what_does_not_apply_is_left_out() {
        let cell = Axes::default().for_cell(LoadKind::UdpRr, Peer::Local);
        assert_eq!(cell.message_size_bytes, None);
        assert_eq!(cell.congestion, None);
        assert_eq!(cell.rate_bps, None);
        assert_eq!(cell.request_size_bytes, Some(1));
        let cell = Axes::default().for_cell(LoadKind::TcpStream, Peer::Far);
        assert_eq!(cell.message_size_bytes, Some(16384));
        assert_eq!(cell.rate_bps, Some(Rate(None)));
    }

    #[test]
    fn a_wrong_value_says_what_is_right() {
        let mut axes = Axes::default();
        let say = |name: &str, value: &str, axes: &mut Axes| {
            (axis(name).unwrap().set)(axes, value)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            say("mtu", "100", &mut axes),
            "`100` is out of bounds: mtu goes from 1280 to 65535"
        );
        assert_eq!(
            say("placement", "here", &mut axes),
            "there is no placement `here`: choose same, split, free"
        );
        assert!(
            axis("colour")
                .err()
                .unwrap()
                .to_string()
                .starts_with("there is no axis `colour`")
        );
    }
}
