mod made_up;

use std::collections::BTreeMap;
use std::net::IpAddr;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::check::conflicts;
use super::claim::{Claim, Host, claims};
use super::devices::Ends;
use super::plan::steps;
use super::*;
use crate::shortcut::Shortcut;
use made_up::{mac, some_ends, some_present, some_switch};

/// What an operation of the switch does, and refuses, in the model.
fn take(
    state: Option<Present>,
    described: &[PortSpec],
    ends: &mut BTreeMap<String, Ends>,
    change: &Change,
) -> Option<Present> {
    if let Change::Create(spec) = change {
        assert!(state.is_none(), "there is a switch");
        assert!(spec.ports.is_empty() && spec.shortcut.is_none());
        return Some(Present {
            uplink: spec.uplink.clone(),
            host_macs: spec.host_macs.clone(),
            answers: spec.answers,
            behind_others: spec.behind_others,
            ..Present::default()
        });
    }
    let mut now = state.expect("a switch");
    let place = |now: &Present, device: &str| {
        let is_it = |port: &PresentPort| port.spec.device == device;
        now.ports.iter().position(is_it)
    };
    match change {
        Change::Create(_) => unreachable!(),
        Change::Answers(answers) => now.answers = *answers,
        Change::Uplink {
            device, host_macs, ..
        } => {
            assert_eq!(place(&now, device), None, "{device} is a port");
            let mut taken = now.ports.iter().flat_map(|port| &port.spec.macs);
            assert!(!taken.any(|mac| host_macs.contains(mac)), "{host_macs:?}");
            now.uplink = Some(device.clone());
            now.host_macs.clone_from(host_macs);
            now.uplink_wrong = None;
        }
        Change::NoUplink { .. } => {
            now.uplink = None;
            now.uplink_wrong = None;
            now.host_macs.clear();
        }
        Change::Mtu { device, mtu, .. } => {
            let ends = ends.get_mut(device).unwrap();
            ends.guest = ends.guest.map(|_| *mtu);
            let lower = *mtu < ends.host;
            ends.host = *mtu;
            if let Some(n) = place(&now, device) {
                now.ports[n].shrunk |= lower;
            }
        }
        Change::Shortcut { wanted, .. } => {
            let there = |port: &PortSpec| place(&now, &port.device).is_some();
            assert!(described.iter().all(there), "ports come before");
            now.shortcut = Some(shortcut_of(wanted));
        }
        Change::NoShortcut { was } => {
            assert_eq!(now.shortcut.take().as_ref(), Some(was));
        }
        Change::Remove { device, .. } => {
            let n = place(&now, device).expect("a port");
            now.ports.remove(n);
        }
        Change::Set { port, .. } => {
            let n = place(&now, &port.device).expect("a port");
            let old = &mut now.ports[n];
            // What `set_port` can change, and nothing else.
            old.spec.isolated = port.isolated;
            old.spec.allow_spoof = port.allow_spoof;
            old.spec.router = port.router;
            old.spec.dhcp_server = port.dhcp_server;
            old.spec.broadcasts = port.broadcasts;
            old.spec.rate_in = port.rate_in;
            old.spec.rate_out = port.rate_out;
            old.declared = true;
            old.shrunk = false;
        }
        Change::Add(port) => {
            assert_eq!(place(&now, &port.device), None, "a port already");
            assert_ne!(now.uplink.as_ref(), Some(&port.device), "it is the uplink");
            let mut macs = port.macs.iter();
            assert!(!macs.any(|mac| now.host_macs.contains(mac)), "{port:?}");
            let taken: Vec<Claim> = now.ports.iter().flat_map(|p| claims(&p.spec)).collect();
            for claim in claims(port) {
                assert!(!taken.contains(&claim), "{claim:?} is taken");
            }
            now.ports.push(PresentPort {
                spec: PortSpec {
                    mtu: None,
                    ..port.clone()
                },
                declared: true,
                ..PresentPort::default()
            });
        }
    }
    Some(now)
}

fn shortcut_of(spec: &ShortcutSpec) -> Shortcut {
    Shortcut {
        cgroup: spec.cgroup.clone(),
        has_cgroup: true,
        accepted: spec.accept.clone(),
    }
}

/// The state is what was wanted: nothing more, nothing less, but for ports of others that may stay.
fn check_reached(wanted: &SwitchSpec, before: Option<&Present>, after: &Present, prune: bool) {
    assert_eq!(after.uplink, wanted.uplink);
    assert_eq!(after.host_macs, wanted.host_macs);
    assert_eq!(after.answers, wanted.answers);
    let shortcut = wanted.shortcut.as_ref().map(shortcut_of);
    assert_eq!(after.shortcut, shortcut);
    for port in &wanted.ports {
        let found = after.ports.iter().find(|p| p.spec.device == port.device);
        let found = found.expect("a port that is wanted");
        let without_mtu = PortSpec {
            mtu: None,
            ..port.clone()
        };
        assert_eq!(found.spec, without_mtu);
        assert!(found.declared && !found.shrunk && !found.detached);
        assert_eq!(found.preceded_by, None);
    }
    for port in &after.ports {
        let is_wanted = wanted.ports.iter().any(|p| p.device == port.spec.device);
        let others = before.into_iter().flat_map(|before| &before.ports);
        let was_there = others.clone().any(|p| p == port) && !port.declared && !prune;
        assert!(is_wanted || was_there, "{port:?}");
    }
}

/// From any switch, an interruption after any step included, the steps lead to the one that is wanted, and no further.
#[test]
fn steps_lead_to_what_is_wanted_from_wherever_one_is() {
    let mut carried_out = 0;
    let mut steps_taken = 0;
    for seed in 0..4000 {
        let random = &mut ChaCha8Rng::seed_from_u64(seed);
        let behind = random.random();
        let found = some_switch(random, behind);
        let wanted = some_switch(random, behind);
        let host = Host::default();
        let before = random
            .random_bool(0.8)
            .then(|| some_present(random, found.clone()));
        let mut ends = some_ends(random);
        let prune = random.random_bool(0.3);
        // What could not stand by itself was not found.
        let could_be = conflicts(&found, None, &host, undeclared(false)).is_empty();
        if !could_be || !conflicts(&wanted, before.as_ref(), &host, undeclared(prune)).is_empty() {
            continue;
        }
        let uplink_is_kept = before.as_ref().is_some_and(|before| {
            let kept = |port: &&PresentPort| {
                !port.declared && !prune && Some(&port.spec.device) == wanted.uplink.as_ref()
            };
            before.ports.iter().any(|port| kept(&port))
        });
        assert!(!uplink_is_kept, "conflicts() has to see it");
        let (all, _) = steps(&wanted, before.as_ref(), &host, &ends, prune);
        let mut state = before.clone();
        let mut untouched = before.clone();
        if let Some(untouched) = &mut untouched {
            let named: Vec<String> = all.iter().filter_map(device_of).collect();
            untouched
                .ports
                .retain(|port| !named.contains(&port.spec.device));
        }
        // Up to a power cut.
        let cut = random.random_range(0..=all.len());
        for change in &all[..cut] {
            state = take(state, &wanted.ports, &mut ends, change);
            steps_taken += 1;
        }
        // And again, to the end.
        let (rest, _) = steps(&wanted, state.as_ref(), &host, &ends, prune);
        for change in &rest {
            state = take(state, &wanted.ports, &mut ends, change);
            steps_taken += 1;
        }
        let after = state.expect("a switch");
        check_reached(&wanted, before.as_ref(), &after, prune);
        let (more, _) = steps(&wanted, Some(&after), &host, &ends, prune);
        assert_eq!(more, [], "seed {seed}: from {before:?} to {wanted:?}");
        for port in untouched.iter().flat_map(|present| &present.ports) {
            assert!(after.ports.contains(port), "seed {seed}: {port:?}");
        }
        carried_out += 1;
    }
    assert!(
        carried_out > 200 && steps_taken > 1000,
        "{carried_out} {steps_taken}"
    );
}

fn device_of(change: &Change) -> Option<String> {
    match change {
        Change::Remove { device, .. } | Change::Mtu { device, .. } => Some(device.clone()),
        Change::Set { port, .. } | Change::Add(port) => Some(port.device.clone()),
        _ => None,
    }
}

/// Two ports that exchange their addresses: both go before either comes.
#[test]
fn ports_may_exchange_addresses() {
    let port = |device: &str, n: u8, ip: u8| PortSpec {
        device: device.to_owned(),
        macs: vec![mac(n)],
        ips: vec![IpAddr::from([192, 0, 2, ip])],
        ..PortSpec::default()
    };
    let wanted = SwitchSpec {
        name: "lan".to_owned(),
        ports: vec![port("a", 1, 2), port("b", 2, 1), port("c", 3, 4)],
        ..SwitchSpec::default()
    };
    let present = |spec| PresentPort {
        spec,
        declared: true,
        ..PresentPort::default()
    };
    let before = Present {
        ports: [port("a", 1, 1), port("b", 2, 2), port("c", 3, 3)]
            .map(present)
            .into(),
        ..Present::default()
    };
    let told = told(&wanted, &before, &Host::default());
    assert_eq!(told, ["-a", "-b", "+a", "+b", "-c", "+c"]);
}

/// The steps, in short.
fn told(wanted: &SwitchSpec, before: &Present, host: &Host) -> Vec<String> {
    let (steps, _) = steps(wanted, Some(before), host, &BTreeMap::new(), false);
    let short = |step: &Change| match step {
        Change::Remove { device, .. } => format!("-{device}"),
        Change::Add(port) => format!("+{}", port.device),
        Change::Uplink { device, .. } => format!("^{device}"),
        other => panic!("{other:?}"),
    };
    steps.iter().map(short).collect()
}

/// An address that a port gives up for the host goes before the host gets it. One that a port keeps is a problem.
#[test]
fn a_port_may_give_its_address_to_the_host() {
    let port = |device: &str, n: u8| PortSpec {
        device: device.to_owned(),
        macs: vec![mac(n)],
        ..PortSpec::default()
    };
    let present = |spec, declared| PresentPort {
        spec,
        declared,
        ..PresentPort::default()
    };
    let with = |ports: [PresentPort; 2]| Present {
        uplink: Some("up0".to_owned()),
        ports: ports.into(),
        ..Present::default()
    };
    let wanted = SwitchSpec {
        name: "lan".to_owned(),
        uplink: Some("up0".to_owned()),
        host_macs: vec![mac(1)],
        ports: vec![port("a", 3), port("b", 4)],
        ..SwitchSpec::default()
    };
    // The second is the uplink's own now.
    let host = Host {
        mac: Some(mac(2)),
        ..Host::default()
    };
    let gives = with([present(port("a", 1), true), present(port("b", 2), true)]);
    assert_eq!(
        conflicts(&wanted, Some(&gives), &host, undeclared(false)),
        []
    );
    assert_eq!(
        told(&wanted, &gives, &host),
        ["-a", "-b", "^up0", "+a", "+b"]
    );
    let keeps = with([present(port("c", 1), false), present(port("d", 2), false)]);
    let problems = conflicts(&wanted, Some(&keeps), &host, undeclared(false));
    let said: Vec<_> = problems.iter().map(|p| (p.key, p.why.as_str())).collect();
    let of = |n: u8, port: &str| {
        format!(
            "the host's address 02:00:00:00:00:0{n} is taken by port `{port}`, which is not in the description: remove it first"
        )
    };
    assert_eq!(said, [("host_mac", &*of(1, "c")), ("uplink", &*of(2, "d"))]);
    assert_eq!(
        conflicts(&wanted, Some(&keeps), &host, undeclared(true)),
        []
    );
    // A port that was described stays where its guest may have renamed its device.
    let renamed = with([present(port("e", 3), true), present(port("b", 2), true)]);
    assert_eq!(
        conflicts(&wanted, Some(&renamed), &host, undeclared(false)),
        []
    );
    let problems = conflicts(&wanted, Some(&renamed), &host, |_| true);
    let said: Vec<_> = problems.iter().map(|p| (p.port, p.why.as_str())).collect();
    let why = "02:00:00:00:00:03 is taken by port `e`, which is not in the description";
    assert_eq!(said, [(Some(0), why)]);
}

/// Ports stay that were not made from a description, unless they are pruned.
fn undeclared(prune: bool) -> impl Fn(&PresentPort) -> bool {
    move |port| !prune && !port.declared
}

#[test]
fn every_setting_reads_what_it_writes_and_has_a_name_of_its_own() {
    let mut port = PortSpec::default();
    for (key, value) in [
        ("mac", Value::Text("02:00:00:00:00:01".to_owned())),
        (
            "ip",
            Value::List(vec!["192.0.2.1".to_owned(), "2001:db8::1".to_owned()]),
        ),
        ("ip_prefix", Value::Text("2001:db8:1::/64".to_owned())),
        ("vlan", Value::Number(7)),
        ("isolated", Value::Flag(true)),
        ("allow_spoof", Value::Flag(true)),
        ("queued", Value::Flag(true)),
        ("router", Value::Flag(true)),
        ("dhcp_server", Value::Flag(true)),
        ("broadcasts", Value::Text("unlimited".to_owned())),
        ("rate_in", Value::Text("100mbit".to_owned())),
        ("rate_out", Value::Text("8mbit,burst=1000000".to_owned())),
    ] {
        let setting = Setting::of(key).unwrap();
        let before = (setting.text)(&port);
        (setting.read)(&mut port, &value).unwrap();
        assert_ne!(before, (setting.text)(&port), "{key}");
        assert!(
            (setting.read)(&mut port, &Value::Text("?".to_owned())).is_err(),
            "{key}"
        );
    }
    for setting in SETTINGS {
        let default = (setting.text)(&PortSpec::default());
        assert_ne!(
            default,
            (setting.text)(&port),
            "{} is not tried",
            setting.key
        );
        let same = SETTINGS.iter().filter(|other| other.key == setting.key);
        assert_eq!(same.count(), 1, "{}", setting.key);
    }
}
