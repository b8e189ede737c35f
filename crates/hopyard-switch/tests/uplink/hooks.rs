//! Programs as classifiers of `clsact`: what they leave, and what is out of reach from another namespace.

use hopyard_net::{Handle, Side};
use hopyard_switch::{Error, NewPort, Switch};

use crate::site::{Site, port};

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
    let site = Site::with_classifiers("torn", 1);
    site.connect(false, |_, _| {});
    site.hub.remove_clsact(&port(0)).unwrap();
    let warnings = site.show().warnings;
    assert!(
        warnings.len() == 1 && warnings[0].contains("does not run at `p0` any more"),
        "{warnings:?}"
    );
}

#[test]
fn from_elsewhere_classifiers_are_out_of_reach_and_say_so() {
    let site = Site::with_classifiers("far", 1);
    site.connect(false, |_, _| {});
    // This thread is in the host's namespace.
    let error = Switch::open(site.name()).unwrap().upgrade().unwrap_err();
    assert!(matches!(error, Error::OtherNamespace { .. }), "{error}");
    assert_eq!(site.show().warnings, [""; 0]);
    // The directory goes; the program stays with its device, harmless, and goes with that.
    Switch::remove(site.name()).unwrap();
    assert_eq!(at(&site.hub, &port(0)).0, ["hopyard_port_in"]);
}
