//! The network configuration.

use hopyard_switch::Mac;
use serde_json::Value;

use crate::bandwidth::Bandwidth;
use crate::call::{Call, check_args};
use crate::error::{Error, Result, code};
use crate::ipam::Kind;
use crate::names::SwitchName;
use crate::refused::{check_capabilities, check_keys};
use crate::values::{flag, invalid, text, text_of};

/// Highest VLAN identifier (IEEE 802.1Q reserves 4095).
const MAX_VLAN: u64 = 4094;

/// What a container's attachment is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conf {
    pub(crate) switch: SwitchName,
    /// The device to the wire.
    pub(crate) master: Option<String>,
    pub(crate) mtu: Option<u32>,
    pub(crate) device: Device,
    /// The container's Ethernet address; `None`: a random one.
    pub(crate) mac: Option<Mac>,
    pub(crate) vlan: Option<u16>,
    /// May the container send from addresses that are not its own?
    pub(crate) may_spoof: bool,
    pub(crate) isolated: bool,
    /// How fast may the container get and send?
    pub(crate) bandwidth: Bandwidth,
    /// The IPAM plugin; `None`: no IP addresses.
    pub(crate) ipam: Option<Kind>,
}

/// What the container's device is an end of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Device {
    #[default]
    Veth,
    /// The switch's program runs where the container sends.
    Netkit,
}

impl Device {
    const ALL: [Self; 2] = [Self::Veth, Self::Netkit];

    fn of(conf: &Value) -> Result<Self> {
        let Some(name) = text(conf, "device")? else {
            return Ok(Self::default());
        };
        let named = Self::ALL.into_iter().find(|device| device.kind() == name);
        named.ok_or_else(|| invalid("device", &conf["device"], "is neither `veth` nor `netkit`"))
    }

    /// As the kernel calls it.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Veth => "veth",
            Self::Netkit => "netkit",
        }
    }
}

impl Conf {
    /// Reads and checks all that a call says.
    pub(crate) fn of(call: &Call) -> Result<Self> {
        let conf = &call.conf;
        check_keys(conf)?;
        check_capabilities(conf)?;
        check_args(call)?;
        let mode = text(conf, "mode")?.unwrap_or_default();
        if !matches!(mode.as_str(), "" | "bridge") {
            let why = "is not supported: the direct switch forwards between its ports (`bridge`); `portIsolation` keeps \
                       containers apart";
            let error = invalid("mode", &conf["mode"], why);
            return Err(Error {
                code: code::UNSUPPORTED_FIELD,
                ..error
            });
        }
        let mtu = match number(conf, "mtu", u32::MAX.into())? {
            Some(mtu) if mtu < 68 => {
                return Err(invalid(
                    "mtu",
                    &conf["mtu"],
                    "is less than the 68 that IP takes",
                ));
            }
            mtu => mtu.and_then(|mtu| u32::try_from(mtu).ok()),
        };
        let vlan = number(conf, "vlan", MAX_VLAN)?;
        Ok(Self {
            switch: SwitchName::of(conf, &call.network)?,
            master: text(conf, "master")?,
            mtu,
            device: Device::of(conf)?,
            mac: mac(call)?,
            vlan: vlan.and_then(|vlan| u16::try_from(vlan).ok()),
            may_spoof: !flag(conf, "macspoofchk", true)?,
            isolated: flag(conf, "portIsolation", false)?,
            bandwidth: Bandwidth::of(conf)?,
            ipam: call.ipam_kind()?,
        })
    }
}

/// The address that somebody asks for: the runtime before the configuration.
fn mac(call: &Call) -> Result<Option<Mac>> {
    let conf = &call.conf;
    let named = |key: &'static str, value: &Value| -> Result<_> { Ok((key, text_of(key, value)?)) };
    let asked = [
        named("runtimeConfig.mac", &conf["runtimeConfig"]["mac"])?,
        named("args.cni.mac", &conf["args"]["cni"]["mac"])?,
        ("MAC in CNI_ARGS", call.arg("MAC").map(str::to_owned)),
        named("mac", &conf["mac"])?,
    ];
    let mut asked = asked.into_iter();
    let Some((key, asked)) = asked.find_map(|(key, asked)| Some((key, asked?))) else {
        return Ok(None);
    };
    let not = |why: String| Error::new(code::BAD_CONFIG, format!("`{key}`: {why}"));
    let mac: Mac = asked.parse().map_err(|error| not(format!("{error}")))?;
    if !mac.is_station() {
        return Err(not(format!("{mac} is no address of a station")));
    }
    Ok(Some(mac))
}

/// A number up to `most`; 0 is none.
fn number(conf: &Value, key: &str, most: u64) -> Result<Option<u64>> {
    match &conf[key] {
        Value::Null => Ok(None),
        value => match value.as_u64() {
            Some(0) => Ok(None),
            Some(number) if number <= most => Ok(Some(number)),
            _ => Err(invalid(
                key,
                value,
                &format!("is no number from 0 to {most}"),
            )),
        },
    }
}

#[cfg(test)]
mod tests;
