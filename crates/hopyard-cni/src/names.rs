//! Names of what the plugin makes: the same for the same attachment, so that they are found again without a record.

use serde_json::Value;

use crate::error::Result;
use crate::values::{invalid, text};

/// Switches that the plugin makes, and removes after their last port, begin with this.
const OWN: &str = "cni-";
/// Before the names of podman's networks, which come by netavark. No network of CNI has such a name.
pub(crate) const NETAVARK: &str = "netavark:";
/// The longest name of a switch.
const LONGEST: usize = 32;

/// The switch of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SwitchName {
    pub(crate) name: String,
    /// Does the plugin make and remove it?
    pub(crate) is_own: bool,
}

impl SwitchName {
    /// The one that the configuration names, else one for its `master`, which all networks on that device share, else one
    /// for the network.
    pub(crate) fn of(conf: &Value, network: &str) -> Result<Self> {
        if let Some(name) = text(conf, "switch")? {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            if name.len() > LONGEST || !name.chars().all(plain) {
                let why = "is no name for a switch: 1 to 32 letters, digits, `-` and `_`";
                return Err(invalid("switch", &conf["switch"], why));
            }
            if Self::is_of_the_plugin(&name) {
                let why =
                    "begins as the switches that the plugin makes itself: choose another name";
                return Err(invalid("switch", &conf["switch"], why));
            }
            return Ok(Self {
                name,
                is_own: false,
            });
        }
        Ok(Self::own(text(conf, "master")?.as_deref(), network))
    }

    /// Has the plugin made the switch of this name?
    pub(crate) fn is_of_the_plugin(name: &str) -> bool {
        name.starts_with(OWN)
    }

    fn own(master: Option<&str>, network: &str) -> Self {
        let (kind, of) = match (master, network.strip_prefix(NETAVARK)) {
            (Some(master), _) => ("dev", master),
            (None, Some(network)) => ("pod", network),
            (None, None) => ("net", network),
        };
        Self {
            name: fitting(&format!("{OWN}{kind}-{of}")),
            is_own: true,
        }
    }
}

/// The name itself where a switch may have it, else its beginning and a number made of all of it.
fn fitting(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.len() <= LONGEST && name.chars().all(plain) {
        return name.to_owned();
    }
    let begin: String = name.chars().filter(|c| plain(*c)).take(19).collect();
    format!("{begin}-{:012x}", hash(&[name]) >> 16)
}

/// The host's end of a container's device.
pub(crate) fn device(network: &str, container: &str, ifname: &str) -> String {
    format!("hc{:013x}", hash(&[network, container, ifname]) >> 12)
}

/// FNV-1a, 64 bits. It has to be the same in every version of the plugin.
fn hash(parts: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for byte in part.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_fit_and_stay_what_they_are() {
        let of = |conf: Value| SwitchName::of(&conf, "front").unwrap();
        let guests = of(json!({ "switch": "guests", "master": "eth0" }));
        assert!(guests.name == "guests" && !guests.is_own);
        let own = of(json!({ "master": "eth0" }));
        assert!(own.name == "cni-dev-eth0" && own.is_own);
        assert_eq!(of(json!({})).name, "cni-net-front");
        let podman = |conf: Value| SwitchName::of(&conf, "netavark:front").unwrap().name;
        assert_eq!(podman(json!({ "master": "eth0" })), "cni-dev-eth0");
        assert_eq!(podman(json!({})), "cni-pod-front");
        let dotted = of(json!({ "master": "eth0.100" })).name;
        assert!(dotted.starts_with("cni-dev-eth0100-"), "{dotted}");
        assert_ne!(dotted, of(json!({ "master": "eth01.00" })).name);
        let long = SwitchName::of(&json!({}), &"n".repeat(200)).unwrap().name;
        assert_eq!(long.len(), 32);
        for wrong in ["a.b", "cni-x", &"n".repeat(33)] {
            let error = SwitchName::of(&json!({ "switch": wrong }), "front").unwrap_err();
            assert!(error.msg.contains("`switch`"), "{error}");
        }
        // Attachments of an earlier version must be found: this must not change.
        assert_eq!(device("front", "c1", "eth0"), "hce306745c0b064");
        assert_eq!(device("front", "c1", "eth0").len(), 15);
        assert_ne!(device("front", "c1", "eth1"), device("front", "c1e", "th1"));
    }
}
