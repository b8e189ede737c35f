//! What is wrong with the uplink, and what happened to it.

use std::collections::BTreeMap;

use hopyard_net::{Handle, Link, Offload, OffloadState, is_wireless_client};

use super::hook::{Findings, xdp_before};
use super::{Warning, WayOut, shrunk};
use crate::attached::UPLINK;
use crate::layout::Config;
use crate::mac::Mac;
use crate::switch::Switch;

impl Switch {
    pub(super) fn check_uplink(
        &self,
        handle: &Handle,
        config: &Config,
        links: &BTreeMap<u32, Link>,
        found: &mut Findings,
    ) {
        let was = self.state.uplink_name().unwrap_or_default();
        let Some(link) = links.get(&config.uplink) else {
            let same = links.values().find(|link| link.name == was);
            return found.warnings.push(lost(&was, same));
        };
        let again = set_uplink(&link.name);
        found.warnings.extend(changed(config, &was, link, &again));
        found
            .warnings
            .extend(shrunk(link, config.uplink_len, again));
        // A kernel without wireless devices has no answer, and no need of one.
        let is_client = is_wireless_client(link.index).unwrap_or(false);
        found
            .warnings
            .extend(filters(link, is_client).map(Warning::from));
        if let Ok(offloads) = handle.offloads(&link.name) {
            found
                .warnings
                .extend(joins(&link.name, offloads.get(Offload::Lro)).map(Warning::from));
        }
        found.warnings.extend(xdp_before(link).map(Warning::from));
        for hook in UPLINK {
            self.check_hook(handle, &link.name, hook, found);
        }
    }
}

/// What to say where the uplink is not there, but perhaps another device of its name.
fn lost(was: &str, same: Option<&Link>) -> Warning {
    let (wrong, mend) = match same {
        Some(_) => (
            format!(
                "the uplink `{was}` was deleted and made again, or another device has its name now: nothing goes to the \
                 wire and to the host; "
            ),
            set_uplink(was),
        ),
        None => (
            format!(
                "the uplink `{was}` is gone, or in another network namespace: nothing goes to the wire and to the host; \
                 when it is back, or with another device: "
            ),
            WayOut::SetUplink { device: None },
        ),
    };
    Warning::new(wrong, mend, "")
}

fn set_uplink(device: &str) -> WayOut {
    WayOut::SetUplink {
        device: Some(device.to_owned()),
    }
}

/// What happened to an uplink that is still the same device.
fn changed(config: &Config, was: &str, link: &Link, again: &WayOut) -> Vec<Warning> {
    let name = &link.name;
    let mut warnings = Vec::new();
    if name != was {
        let wrong =
            format!("the uplink was named `{was}` and is named `{name}` now, and works on; ");
        warnings.push(Warning::new(wrong, again.clone(), " keeps the name"));
    }
    if !link.up {
        let wrong = format!(
            "the uplink `{name}` is down: nothing goes to the wire and to the host; `ip link set {name} up`"
        );
        warnings.push(wrong.into());
    } else if !link.carrier {
        let wrong = format!("the uplink `{name}` has no carrier: nothing goes to the wire");
        warnings.push(wrong.into());
    }
    let mac = Mac::from_number(config.host_mac);
    if link.mac != Some(mac.0) {
        let wrong = format!(
            "`{name}` has another Ethernet address now than {mac}: guests do not reach the host; "
        );
        warnings.push(Warning::new(wrong, again.clone(), ""));
    }
    warnings
}

/// What is wrong where an adapter keeps guests' frames off: it takes only what is for the host. So does a bridge: it does not
/// learn addresses from frames that its own device sends. Other software devices filter nothing.
fn filters(link: &Link, is_client: bool) -> Option<String> {
    let name = &link.name;
    if is_client {
        return Some(format!(
            "`{name}` is a client of a wireless access point, which sends it frames to its own address alone: guests \
             get no answers from the wire; use a wired uplink"
        ));
    }
    let what = match link.kind.as_deref() {
        _ if link.promiscuous => return None,
        None => "an adapter that may take".to_owned(),
        // Each hands on to the devices below that it is to be promiscuous.
        Some(kind @ ("bond" | "team" | "vlan" | "macsec")) => {
            format!("a {kind}, whose adapters may take")
        }
        Some("bridge") => "a bridge, which gives the switch".to_owned(),
        Some(_) => return None,
    };
    Some(format!(
        "`{name}` is {what} no frames from the wire but those to the host: `ip link set {name} promisc on` (it stays up)"
    ))
}

/// What is wrong where an adapter joins packets: what is joined cannot be sent on as it was.
fn joins(name: &str, lro: OffloadState) -> Option<String> {
    (lro.is_on() != Some(false)).then(|| {
        format!(
            "`{name}` joins packets that it receives (LRO), which must not be forwarded so: `ethtool -K {name} lro off`"
        )
    })
}

/// Does the host forward packets that it gets from this device?
pub(super) fn forwards(handle: &Handle, device: &str) -> bool {
    ["ipv4", "ipv6"].iter().any(|family| {
        let forwarding = handle.sysctl(&format!("net/{family}/conf/{device}/forwarding"));
        forwarding.is_ok_and(|value| value == "1")
    })
}

/// Isolation is of frames; a host that forwards passes the packets in them on.
pub(super) fn leads_back(device: &str) -> String {
    format!(
        "the host forwards packets from `{device}`, so isolated ports may reach other ports through it, unless a rule forbids that: \
         `nft add rule inet TABLE CHAIN iif {device} oif {device} drop`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapter(kind: Option<&str>) -> Link {
        let mut link = Link::default();
        link.name = "eth0".to_owned();
        link.kind = kind.map(str::to_owned);
        link
    }

    #[test]
    fn an_adapter_that_is_not_promiscuous_is_warned_of() {
        for (kind, word) in [
            (None, "an adapter that"),
            (Some("bond"), "a bond, whose"),
            (Some("macsec"), "a macsec, whose"),
            (Some("bridge"), "a bridge, which gives the switch no frames"),
            (Some("team"), "a team, whose"),
            (Some("vlan"), "a vlan, whose"),
        ] {
            let text = filters(&adapter(kind), false).unwrap();
            assert!(text.contains(word), "{text}");
            assert!(text.contains("ip link set eth0 promisc on"), "{text}");
            let mut promiscuous = adapter(kind);
            promiscuous.promiscuous = true;
            assert_eq!(filters(&promiscuous, false), None);
        }
        assert_eq!(filters(&adapter(Some("veth")), false), None);
    }

    #[test]
    fn a_wireless_client_is_warned_of_though_it_is_promiscuous() {
        let mut promiscuous = adapter(None);
        promiscuous.promiscuous = true;
        let text = filters(&promiscuous, true).unwrap();
        assert!(
            text.contains("wireless") && !text.contains("promisc on"),
            "{text}"
        );
    }

    #[test]
    fn packets_that_are_joined_are_warned_of() {
        for (lro, warned) in [
            (OffloadState::On, true),
            (OffloadState::Fixed(true), true),
            (OffloadState::Mixed, true),
            (OffloadState::Off, false),
            (OffloadState::Fixed(false), false),
        ] {
            let text = joins("eth0", lro);
            assert_eq!(text.is_some(), warned, "{lro:?}");
            assert!(text.is_none_or(|text| text.contains("ethtool -K eth0 lro off")));
        }
    }
}
