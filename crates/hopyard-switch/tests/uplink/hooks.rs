//! Programs as classifiers of `clsact`: what they leave, and what is out of reach from another namespace.

use std::time::{Duration, Instant};

use hopyard_net::{Handle, Side};
use hopyard_switch::{Error, Hooks, NewPort, NewSwitch, NewUplink, Switch, Warning};

use crate::frames::{BROADCAST, EXPERIMENT, frame};
use crate::listen::Ear;
use crate::site::{FAR, FAR_MAC, Site, guest, guest_mac, port, v4};
use crate::sockets::exchange;

/// The programs that run as classifiers at both sides of a device, and whether it has a `clsact` at all.
fn at(handle: &Handle, device: &str) -> (Vec<String>, bool) {
    let names = [Side::Ingress, Side::Egress].map(|side| {
        let found = handle.classifiers(device, side).unwrap();
        let programs = found.into_iter().filter(|one| one.program.is_some());
        programs.map(|one| one.name)
    });
    let names = names.into_iter().flatten().collect();
    (names, clsacts(handle).contains(&device.to_owned()))
}

/// The devices that have a `clsact`.
fn clsacts(handle: &Handle) -> Vec<String> {
    let list = || {
        std::process::Command::new("tc")
            .args(["qdisc", "show"])
            .output()
    };
    let out = handle.ns().run(list).unwrap().unwrap();
    assert!(out.status.success(), "{out:?}");
    let text = String::from_utf8(out.stdout).unwrap();
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("qdisc clsact "));
    lines
        .filter_map(|line| {
            line.split_whitespace()
                .skip_while(|word| *word != "dev")
                .nth(1)
        })
        .map(str::to_owned)
        .collect()
}

#[test]
fn classifiers_come_and_go_with_ports_and_switch_and_nothing_of_them_stays() {
    let site = Site::with_classifiers("gone", 2);
    let (up, p0, p1) = ("up0", port(0), port(1));
    site.connect(false, |_, _| {});
    assert_eq!(site.show().warnings, [""; 0]);
    assert_eq!(
        at(&site.hub, up),
        (vec!["hopyard_up_in".into(), "hopyard_up_out".into()], true)
    );
    assert_eq!(at(&site.hub, &p0), (vec!["hopyard_port_in".into()], true));
    site.remove(0);
    assert_eq!(at(&site.hub, &p0), (Vec::new(), false));
    assert_eq!(at(&site.hub, &p1).0, ["hopyard_port_in"]);
    site.in_hub(|| Switch::remove(site.name())).unwrap();
    assert_eq!(clsacts(&site.hub), [""; 0]);
}

#[test]
fn a_port_may_have_a_classifier_where_the_uplink_has_links() {
    let site = Site::new("mixed", 2);
    site.connect(false, |n, port| port.classifier = n == 1);
    let at_ports = || [port(0), port(1)].map(|device| at(&site.hub, &device));
    let none = (Vec::new(), false);
    let classifier = (vec!["hopyard_port_in".to_owned()], true);
    assert_eq!(at_ports(), [none.clone(), classifier.clone()]);
    assert_eq!(clsacts(&site.hub), [port(1)]);
    let passes = || {
        let guests = [&site.guests[0], &site.guests[1]];
        exchange(guests[0], guests[1], v4(guest(1)), 1000);
        exchange(guests[1], guests[0], v4(guest(0)), 1000);
        exchange(guests[1], &site.far, v4(FAR), 1000);
        assert_eq!(site.show().warnings, [""; 0]);
    };
    passes();
    site.switch(Switch::upgrade).unwrap();
    passes();
    assert_eq!(at_ports(), [none.clone(), classifier.clone()]);
    // This thread is in the host's namespace, where the classifier cannot be replaced.
    let error = Switch::open(site.name()).unwrap().upgrade().unwrap_err();
    assert!(matches!(error, Error::OtherNamespace { .. }), "{error}");
    passes();
    site.remove(1);
    assert_eq!(at_ports(), [none.clone(), none.clone()]);
    site.add(1, |port| port.classifier = true);
    passes();
    site.in_hub(|| Switch::remove(site.name())).unwrap();
    assert_eq!(at_ports()[1], none);
}

#[test]
fn a_port_whose_device_leaves_lets_nothing_through_any_more() {
    let site = Site::new("leaves", 2);
    site.connect(false, |_, port| port.classifier = true);
    let (p0, p1) = (port(0), port(1));
    let sender = Ear::open(&site.guests[0], "eth0", EXPERIMENT);
    let far = Ear::open(&site.far, "far0", EXPERIMENT);
    let out = || {
        sender.send(&frame(FAR_MAC, guest_mac(0), EXPERIMENT, b"out"));
        far.heard().len()
    };
    assert_eq!(out(), 1);
    let release = |devices: &[&str]| site.in_hub(|| Switch::release_ports(site.name(), devices));
    release(&["gone", &p0, "up0"]).unwrap();
    release(&[&p0]).unwrap();
    Switch::release_ports("there-is-none", &[&p0]).unwrap();
    let parties = site.switch(|switch| switch.stats().unwrap());
    let parties: Vec<&str> = parties.iter().map(|stats| stats.party.as_str()).collect();
    assert_eq!(parties, ["wire", "host", &p1]);
    // The program is there until the device goes, and drops what it sends.
    assert_eq!(at(&site.hub, &p0).0, ["hopyard_port_in"]);
    assert_eq!(out(), 0);
    site.hub.delete_link(&p0).unwrap();
    exchange(&site.guests[1], &site.far, v4(FAR), 1000);
    assert_eq!(site.show().warnings, [""; 0]);
    // From elsewhere it is refused.
    let error = Switch::release_ports(site.name(), &[&p1]).unwrap_err();
    assert!(matches!(error, Error::OtherNamespace { .. }), "{error}");
}

#[test]
fn somebody_elses_clsact_stays_as_long_as_it_is_used() {
    let site = Site::with_classifiers("shared", 1);
    site.connect(false, |_, _| {});
    let tc = |args: &[&str]| {
        let run = || std::process::Command::new("tc").args(args).status();
        assert!(site.in_hub(run).unwrap().success(), "{args:?}");
    };
    let p0 = port(0);
    let filter = format!("filter add dev {p0} egress u32 match u32 0 0 flowid 1:1");
    tc(&filter.split(' ').collect::<Vec<_>>());
    site.remove(0);
    assert_eq!(at(&site.hub, &p0), (Vec::new(), true));
}

#[test]
fn a_device_is_in_one_switch_whatever_its_hooks() {
    let site = Site::with_classifiers("once", 1);
    site.connect(false, |_, _| {});
    let p0 = port(0);
    let twice = NewPort {
        device: &p0,
        ..NewPort::default()
    };
    let error = site.switch(|switch| switch.add_port(&twice)).unwrap_err();
    assert!(error.to_string().contains("is a port of switch"), "{error}");
    assert_eq!(at(&site.hub, &p0).0, ["hopyard_port_in"]);
    assert_eq!(site.show().warnings, [""; 0]);
}

#[test]
fn somebody_who_detaches_a_classifier_is_told_on() {
    for site in [Site::with_classifiers("torn", 2), Site::new("torn2", 2)] {
        site.connect(false, |_, port| port.classifier = true);
        site.hub.remove_clsact(&port(0)).unwrap();
        let is_told = || {
            let warnings = site.show().warnings;
            let words = "does not run at `p0` any more";
            assert!(
                warnings.len() == 1 && warnings[0].contains(words),
                "{warnings:?}"
            );
        };
        is_told();
        // An upgrade puts nothing in its place, and passes it by.
        let upgraded = site.hub.ns().run(|| Switch::open(site.name())?.upgrade());
        upgraded.unwrap().unwrap();
        is_told();
        assert_eq!(at(&site.hub, &port(1)).0, ["hopyard_port_in"]);
        // It is that switch's all the same.
        let elsewhere = site.hub.ns().run(|| {
            let name = format!("{}-other", site.name());
            let mut other = Switch::create(&NewSwitch {
                name: &name,
                ..NewSwitch::default()
            })
            .unwrap();
            let device = port(0);
            let refused = other.add_port(&NewPort {
                device: &device,
                ..NewPort::default()
            });
            other.delete().unwrap();
            refused.unwrap_err().to_string()
        });
        let elsewhere = elsewhere.unwrap();
        let words = format!("`p0` is a port of switch `{}`", site.name());
        assert!(elsewhere.contains(&words), "{elsewhere}");
        let removed = site
            .hub
            .ns()
            .run(|| Switch::open(site.name())?.remove_port(&port(0)));
        removed.unwrap().unwrap();
        assert_eq!(site.show().warnings, [""; 0]);
    }
}

/// Another switch with this device as its uplink, or why there can be none.
fn another(site: &Site, uplink: &str) -> Result<Switch, Error> {
    let name = format!("{}-other", site.name());
    let new = NewSwitch {
        name: &name,
        uplink: Some(uplink),
        ..NewSwitch::default()
    };
    site.in_hub(|| Switch::create(&new))
}

/// Takes the programs off the uplink of a switch at tcx hooks, and waits until the kernel has done it.
fn take_off_uplink(site: &Site) {
    for side in ["in", "out"] {
        let home = "/sys/fs/bpf/hopyard/switch";
        std::fs::remove_file(format!("{home}/{}/link-uplink-{side}", site.name())).unwrap();
    }
    let end = Instant::now() + Duration::from_secs(30);
    let is_off = |w: &Warning| w.contains("does not run at `up0` any more");
    while site.show().warnings.iter().filter(|w| is_off(w)).count() < 2 {
        assert!(Instant::now() < end, "{:?}", site.show().warnings);
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn an_uplink_whose_programs_somebody_took_off_is_no_other_switchs() {
    for site in [Site::with_classifiers("off", 1), Site::silent("off-tcx", 1)] {
        site.connect(false, |_, _| {});
        match site.hooks {
            Hooks::Clsact => site.hub.remove_clsact("up0").unwrap(),
            _ => take_off_uplink(&site),
        }
        let error = another(&site, "up0").unwrap_err().to_string();
        let words = format!("`up0` is the uplink of switch `{}`", site.name());
        assert!(error.contains(&words), "{error}");
        if site.hooks == Hooks::Tcx {
            let uplink = NewUplink {
                device: "up0",
                ..NewUplink::default()
            };
            site.switch(|switch| switch.set_uplink(&uplink)).unwrap();
            assert_eq!(site.show().warnings, [""; 0]);
        }
    }
}

/// With another Ethernet address the device is not known again, so another switch may have it by then.
#[test]
fn an_uplink_that_another_switch_has_by_now_is_refused_at_once() {
    let site = Site::silent("taken", 1);
    site.connect(false, |_, _| {});
    take_off_uplink(&site);
    site.hub.set_mac("up0", [2, 0, 0, 0, 1, 77]).unwrap();
    let other = another(&site, "up0").unwrap();
    let uplink = NewUplink {
        device: "up0",
        ..NewUplink::default()
    };
    let began = Instant::now();
    let refused = site.switch(|switch| switch.set_uplink(&uplink));
    assert!(began.elapsed() < Duration::from_secs(10));
    let error = refused.unwrap_err().to_string();
    let words = format!("`up0` is the uplink of switch `{}`", other.name());
    assert!(error.contains(&words), "{error}");
    site.in_hub(|| other.delete()).unwrap();
}

#[test]
fn from_elsewhere_classifiers_are_out_of_reach_and_say_so() {
    // All programs, and that of the port alone.
    for site in [Site::with_classifiers("far", 2), Site::new("apart", 2)] {
        site.connect(false, |_, port| port.classifier = true);
        // This thread is in the host's namespace.
        let error = Switch::open(site.name()).unwrap().upgrade().unwrap_err();
        assert!(matches!(error, Error::OtherNamespace { .. }), "{error}");
        assert_eq!(site.show().warnings, [""; 0]);
        let guests = [0, 1].map(|n| Ear::open(&site.guests[n], "eth0", EXPERIMENT));
        let far = Ear::open(&site.far, "far0", EXPERIMENT);
        let heard = || {
            let own = guest_mac(0);
            guests[0].send(&frame(FAR_MAC, own, EXPERIMENT, b"to the wire"));
            guests[0].send(&frame(guest_mac(1), own, EXPERIMENT, b"to a port"));
            guests[0].send(&frame(BROADCAST, own, EXPERIMENT, b"to all"));
            far.send(&frame(own, FAR_MAC, EXPERIMENT, b"from the wire"));
            far.send(&frame(BROADCAST, FAR_MAC, EXPERIMENT, b"from the wire"));
            [&guests[0], &guests[1], &far].map(|ear| ear.heard().len())
        };
        assert_eq!(heard(), [2, 3, 2]);
        // The directory goes; the program stays with its device, forwards nothing, and goes with that.
        Switch::remove(site.name()).unwrap();
        assert_eq!(at(&site.hub, &port(0)).0, ["hopyard_port_in"]);
        assert_eq!(heard(), [0; 3]);
    }
}
