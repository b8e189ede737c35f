//! New ports, and their rules.

use std::collections::HashMap;

use hopyard_net::NetNs;

use super::frame::Mac;
use crate::error::{Error, Result};

/// The most addresses that may be given to the ports of a switch, all together: they share the table of addresses.
pub const MAX_GIVEN: usize = 2048;

/// A tap that becomes a port.
#[derive(Debug)]
pub struct NewPort {
    /// Its name. If there is no such device, one is made, and removed with the switch.
    pub device: String,
    /// The network namespace it is in.
    pub ns: NetNs,
    /// What it may send and receive.
    pub rules: Rules,
}

impl NewPort {
    /// With the default rules.
    #[must_use]
    pub fn new(device: impl Into<String>, ns: NetNs) -> Self {
        Self {
            device: device.into(),
            ns,
            rules: Rules::default(),
        }
    }
}

/// What a port may do. Frames against the rules are dropped and counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// The only addresses that the port may send from, and that no other port may. They are known from the start and
    /// never forgotten. Empty: any address that is not given to another port, learnt from its frames.
    pub macs: Vec<[u8; 6]>,
    /// Whether it is isolated: isolated ports get nothing from each other.
    pub isolated: bool,
    /// The most addresses that the table learns of the port at once; frames from further ones are dropped.
    pub addresses: u32,
    /// Frames per second that may be copied to several ports: broadcasts, multicasts and those for unknown addresses.
    /// The unused allowance of ten seconds may be sent at once. `None`: no limit.
    pub broadcasts: Option<u32>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            macs: Vec::new(),
            isolated: false,
            addresses: 1024,
            broadcasts: Some(100),
        }
    }
}

/// Checks the rules of all ports of a switch.
///
/// # Errors
/// [`Error::Invalid`].
pub(super) fn check(ports: &[NewPort]) -> Result<()> {
    let refuse = |why: String| Err(Error::invalid("start the tap switch", why));
    let mut given: HashMap<[u8; 6], &str> = HashMap::new();
    for port in ports {
        let device = port.device.as_str();
        for mac in &port.rules.macs {
            let text = text(*mac);
            if !Mac::of(*mac).is_station() {
                return refuse(format!(
                    "{text} of tap `{device}` is no address of a station; give one that is neither a group's nor zero"
                ));
            }
            if let Some(other) = given.insert(*mac, device) {
                return refuse(format!(
                    "address {text} is given to tap `{other}` and to tap `{device}`; give it once"
                ));
            }
        }
        if port.rules.addresses == 0 {
            return refuse(format!(
                "tap `{device}` may have 0 addresses, so nobody could send; give 1 or more"
            ));
        }
    }
    if given.len() > MAX_GIVEN {
        return refuse(format!(
            "{} addresses are given to ports; the table has room for {MAX_GIVEN} such",
            given.len()
        ));
    }
    Ok(())
}

fn text(mac: [u8; 6]) -> String {
    mac.map(|octet| format!("{octet:02x}")).join(":")
}
