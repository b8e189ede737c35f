//! Made-up switches: those that are wanted, and those that are found.

use std::collections::BTreeMap;
use std::net::IpAddr;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::super::devices::{Ends, Place};
use super::super::*;
use super::shortcut_of;
use crate::limit::Broadcasts;
use crate::mac::Mac;
use crate::shortcut::{Loss, Shortcut};

fn some_shortcut(random: &mut ChaCha8Rng) -> Option<ShortcutSpec> {
    let cgroup = ["/a", "/b"][random.random_range(0..2)].into();
    let accept = [vec![Loss::Splice], vec![Loss::Splice, Loss::Urgent]];
    let accept = accept[random.random_range(0..2)].clone();
    random
        .random_bool(0.4)
        .then_some(ShortcutSpec { cgroup, accept })
}

const DEVICES: u8 = 6;

pub(super) fn mac(n: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, n])
}

fn some_port(random: &mut ChaCha8Rng, device: u8) -> PortSpec {
    let mut port = PortSpec {
        device: format!("p{device}"),
        macs: vec![mac(random.random_range(1..9))],
        vlan: random.random_bool(0.3).then_some(7),
        mtu: random.random_bool(0.3).then_some(1400),
        isolated: random.random(),
        allow_spoof: random.random(),
        queued: random.random_bool(0.2),
        router: random.random_bool(0.2),
        dhcp_server: random.random_bool(0.2),
        ..PortSpec::default()
    };
    for n in 0..random.random_range(0..3) {
        port.macs.push(mac(10 + n + 3 * random.random_range(0..3)));
    }
    for _ in 0..random.random_range(0..3) {
        let ip = IpAddr::from([192, 0, 2, random.random_range(1..9)]);
        if !port.ips.contains(&ip) {
            port.ips.push(ip);
        }
    }
    if random.random_bool(0.2) {
        port.broadcasts = Broadcasts::Unlimited;
    }
    for rate in [&mut port.rate_in, &mut port.rate_out] {
        if random.random_bool(0.2) {
            *rate = "8mbit,burst=1000000".parse().unwrap();
        }
    }
    port.sort();
    port
}

fn some_ports(random: &mut ChaCha8Rng) -> Vec<PortSpec> {
    let mut ports = Vec::new();
    for device in 0..DEVICES {
        if random.random_bool(0.6) {
            ports.push(some_port(random, device));
        }
    }
    ports
}

pub(super) fn some_switch(random: &mut ChaCha8Rng, behind_others: bool) -> SwitchSpec {
    // One of the ports' devices now and then.
    let uplink = match random.random_range(0..5) {
        0 => None,
        1 => Some("p0".to_owned()),
        2 => Some("up1".to_owned()),
        _ => Some("up0".to_owned()),
    };
    let ports = some_ports(random).into_iter();
    let ports = ports.filter(|port| Some(&port.device) != uplink.as_ref());
    SwitchSpec {
        name: "lan".to_owned(),
        host_macs: match uplink {
            // A port's address now and then.
            Some(_) if random.random_bool(0.3) => vec![mac([8, 99][random.random_range(0..2)])],
            _ => Vec::new(),
        },
        answers: random.random(),
        behind_others,
        shortcut: some_shortcut(random),
        ports: ports.collect(),
        uplink,
    }
}

/// A switch as it may be found: some ports are of a description, some of others; some are not in order.
pub(super) fn some_present(random: &mut ChaCha8Rng, of: SwitchSpec) -> Present {
    let ports = of.ports.into_iter().map(|spec| PresentPort {
        spec: PortSpec { mtu: None, ..spec },
        declared: random.random(),
        shrunk: random.random_bool(0.1),
        detached: random.random_bool(0.1),
        preceded_by: random.random_bool(0.1).then(String::new),
    });
    Present {
        ports: ports.collect(),
        uplink_wrong: (of.uplink.is_some() && random.random_bool(0.2)).then(String::new),
        uplink: of.uplink,
        host_macs: of.host_macs,
        answers: of.answers,
        behind_others: of.behind_others,
        shortcut: of.shortcut.as_ref().map(|spec| Shortcut {
            has_cgroup: random.random_bool(0.8),
            ..shortcut_of(spec)
        }),
    }
}

pub(super) fn some_ends(random: &mut ChaCha8Rng) -> BTreeMap<String, Ends> {
    let one = |device| {
        let ends = Ends {
            host: if random.random() { 1500 } else { 1400 },
            guest: [None, Some(1400), Some(1500)][random.random_range(0..3)],
            place: Some(Place {
                netns: None,
                device: String::new(),
            }),
        };
        (format!("p{device}"), ends)
    };
    (0..DEVICES).map(one).collect()
}
