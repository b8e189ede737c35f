//! An uplink that is deleted and made again, renamed, taken down, or given another Ethernet address.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use aya::maps::{HashMap, Map, MapData};
use hopyard_net::{LinkKind, MacvlanMode, NewLink};
use hopyard_switch::apply::{Plan, PortSpec, SwitchSpec};
use hopyard_switch::{Error, Mac, NewSwitch, NewUplink, Switch, Warning};

use crate::flow::{Flow, acquaint, during};
use crate::frames::{EXPERIMENT, frame};
use crate::listen::{Ear, who};
use crate::site::{FAR, FAR_MAC, HOST, Site, cable, guest_mac, port, space, v4};

/// The one warning there is.
#[track_caller]
fn warning(site: &Site) -> Warning {
    let mut warnings = site.show().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    warnings.remove(0)
}

#[test]
fn show_says_what_happened_to_the_uplink() {
    let site = Site::silent("what", 1);
    site.connect(false, |_, _| {});
    site.hub.set_down("up0").unwrap();
    assert!(warning(&site).contains("`up0` is down"));
    site.hub.rename("up0", "wan0").unwrap();
    site.hub.set_up("wan0").unwrap();
    let said = warning(&site);
    assert!(
        said.contains("`up0`") && said.contains("named `wan0` now"),
        "{said}"
    );
    site.hub.delete_link("wan0").unwrap();
    let said = warning(&site);
    assert!(said.contains("the uplink `up0` is gone"), "{said}");
    cable(&site.hub, "up0", &site.far, "far0", FAR_MAC, 1500);
    let said = warning(&site);
    assert!(said.contains("`up0` was deleted and made again"), "{said}");
    assert!(said.contains("`Switch::set_uplink` with `up0`"), "{said}");
    let before = site.show().ports;
    // What the host has there is nobody else's from then on.
    site.hub.add_address("up0", v4(HOST), 24).unwrap();
    set_uplink(&site, "up0", None).unwrap();
    let shown = site.show();
    assert_eq!((shown.warnings, shown.ports), (Vec::new(), before));
    all_reach(&site, "up0", "far0");
}

fn set_uplink(site: &Site, device: &str, host_macs: Option<&[Mac]>) -> Result<(), Error> {
    site.switch(|switch| switch.set_uplink(&NewUplink { device, host_macs }))
}

/// Guest and wire, guest and host reach each other by this uplink, and everybody everybody.
#[track_caller]
fn all_reach(site: &Site, uplink: &str, far: &str) {
    let host_mac = site.hub.link(uplink).unwrap().mac.unwrap();
    let far_mac = site.far.link(far).unwrap().mac.unwrap();
    let guest = Ear::open(&site.guests[0], "eth0", EXPERIMENT);
    let far = Ear::open(&site.far, far, EXPERIMENT);
    let host = Ear::open(&site.hub, uplink, EXPERIMENT);
    let all = [("guest", &guest), ("far", &far), ("host", &host)];
    let own = guest_mac(0);
    for (from, source, to, heard) in [
        (&guest, own, far_mac, &["far"][..]),
        (&guest, own, host_mac, &["host"]),
        (&far, far_mac, own, &["guest"]),
        (&host, host_mac, own, &["guest"]),
        (&guest, own, [0xff; 6], &["far", "host"]),
        (&far, far_mac, [0xff; 6], &["guest", "host"]),
        (&host, host_mac, [0xff; 6], &["guest", "far"]),
    ] {
        from.send(&frame(to, source, EXPERIMENT, b"hello"));
        assert_eq!(who(&all), heard, "{source:?} to {to:?}");
    }
}

#[test]
fn a_renamed_uplink_works_on_and_keeps_its_name_by_one_command() {
    let site = Site::silent("renamed", 1);
    site.connect(false, |_, _| {});
    site.hub.set_down("up0").unwrap();
    site.hub.rename("up0", "wan0").unwrap();
    site.hub.set_up("wan0").unwrap();
    assert!(site.hub.settle("wan0").unwrap());
    all_reach(&site, "wan0", "far0");
    set_uplink(&site, "wan0", None).unwrap();
    let shown = site.show();
    assert_eq!(shown.warnings, [""; 0]);
    assert_eq!(shown.uplink.unwrap().device, "wan0");
}

#[test]
fn an_uplink_with_another_address_is_found_again_and_loses_nothing_of_the_hosts() {
    let site = Site::new("address", 1);
    site.connect(false, |_, _| {});
    let other = [2, 0, 0, 0, 1, 77];
    site.hub.set_mac("up0", other).unwrap();
    let said = warning(&site);
    assert!(
        said.contains("another Ethernet address")
            && said.contains("`Switch::set_uplink` with `up0`"),
        "{said}"
    );
    acquaint((&site.hub, "up0", HOST), (&site.far, "far0", FAR));
    let flows = [
        Flow::new(&site.hub, &site.far, v4(FAR)),
        Flow::new(&site.far, &site.hub, v4(HOST)),
    ];
    let ((), accounts) = during(&flows, || {
        let end = Instant::now() + Duration::from_millis(300);
        while Instant::now() < end {
            set_uplink(&site, "up0", None).unwrap();
        }
    });
    for account in accounts {
        account.assert_whole("the host's own");
    }
    let shown = site.show();
    assert_eq!(shown.warnings, [""; 0]);
    assert_eq!(shown.uplink.unwrap().mac, Mac(other));
    all_reach(&site, "up0", "far0");
}

#[test]
fn another_device_becomes_the_uplink_and_the_old_one_is_free() {
    let site = Site::silent("other", 2);
    site.connect(false, |_, _| {});
    cable(
        &site.hub,
        "up1",
        &site.far,
        "far1",
        [2, 0, 0, 0, 1, 3],
        1500,
    );
    set_uplink(&site, "up1", None).unwrap();
    let shown = site.show();
    assert_eq!(shown.warnings, [""; 0]);
    assert_eq!(
        (shown.uplink.unwrap().device.as_str(), shown.ports.len()),
        ("up1", 2)
    );
    site.remove(1);
    all_reach(&site, "up1", "far1");
    // Nothing of the switch is left there: another one may have it.
    let name = format!("{}-b", site.name());
    let new = NewSwitch {
        name: &name,
        uplink: Some("up0"),
        ..NewSwitch::default()
    };
    site.in_hub(|| Switch::create(&new).unwrap().delete())
        .unwrap();
}

#[test]
fn a_switch_without_an_uplink_gets_one() {
    let site = Site::silent("first", 1);
    site.create(None, false);
    site.add(0, |_| {});
    set_uplink(&site, "up0", None).unwrap();
    assert_eq!(site.show().warnings, [""; 0]);
    all_reach(&site, "up0", "far0");
}

#[test]
fn what_cannot_be_the_uplink_is_refused_and_nothing_changes() {
    let site = Site::silent("refused", 2);
    site.create(Some("up0"), false);
    site.add(0, |_| {});
    let other = format!("{}-b", site.name());
    let beyond = space();
    cable(&site.hub, "up1", &beyond, "far1", [2, 0, 0, 0, 1, 3], 1500);
    cable(&site.hub, "up2", &beyond, "far2", [2, 0, 0, 0, 1, 4], 1500);
    site.hub.set_mac("up2", guest_mac(0)).unwrap();
    let lower = "up0".to_owned();
    let mode = MacvlanMode::Bridge;
    let macvlan = NewLink::new("mv0", LinkKind::Macvlan { lower, mode });
    let has_macvlan = site.hub.add_link(&macvlan).is_ok();
    let new = NewSwitch {
        name: &other,
        uplink: Some("up1"),
        ..NewSwitch::default()
    };
    site.in_hub(|| Switch::create(&new)).unwrap();
    let before = site.show();
    let own = [Mac(guest_mac(0))];
    let group = [Mac([0xff; 6])];
    for (device, macs, why) in [
        ("nosuch", None, "there is no device"),
        ("lo", None, "leads nowhere"),
        ("p0", None, "is a port of switch"),
        ("up1", None, "is the uplink of switch"),
        ("up2", None, "is taken by port `p0`"),
        ("up0", Some(&own[..]), "is taken by port `p0`"),
        ("up0", Some(&group[..]), "no address of a station"),
        (
            "mv0",
            None,
            if has_macvlan {
                "is a macvlan"
            } else {
                "there is no device"
            },
        ),
    ] {
        let error = set_uplink(&site, device, macs).unwrap_err();
        assert!(error.is_usage(), "{device}: {error:?}");
        assert!(error.to_string().contains(why), "{device}: {error}");
        assert_eq!(site.show(), before, "{device}");
    }
    all_reach(&site, "up0", "far0");
    Switch::remove(&other).unwrap();
}

/// A macvlan, a bridge or VRRP of the host has an address of its own behind the uplink.
#[test]
fn other_addresses_of_the_host_are_the_hosts() {
    const VIRTUAL: Mac = Mac([0, 0, 0x5e, 0, 1, 7]);
    let site = Site::silent("hosts", 2);
    let new = NewSwitch {
        name: site.name(),
        uplink: Some("up0"),
        host_macs: vec![VIRTUAL],
        ..NewSwitch::default()
    };
    site.in_hub(|| Switch::create(&new)).unwrap();
    site.add(0, |port| port.allow_spoof = true);
    assert_eq!(site.show().uplink.unwrap().host_macs, [VIRTUAL]);
    let guest = Ear::open(&site.guests[0], "eth0", EXPERIMENT);
    let far = Ear::open(&site.far, "far0", EXPERIMENT);
    let host = Ear::open(&site.hub, "up0", EXPERIMENT);
    let all = [("guest", &guest), ("far", &far), ("host", &host)];
    let hear = |ear: &Ear, to: [u8; 6], from: [u8; 6]| {
        ear.send(&frame(to, from, EXPERIMENT, b"hello"));
        who(&all)
    };
    let own = guest_mac(0);
    assert_eq!(hear(&guest, VIRTUAL.0, own), ["host"]);
    assert_eq!(hear(&host, own, VIRTUAL.0), ["guest"]);
    assert_eq!(hear(&guest, FAR_MAC, VIRTUAL.0), [""; 0], "a lie");
    assert_eq!(site.drops("p0"), [("mac", 1)]);
    assert_eq!(hear(&far, own, VIRTUAL.0), [""; 0], "a lie from the wire");
    assert_eq!(site.drops("wire"), [("mac", 1)]);
    let taken = port(1);
    let taken = hopyard_switch::NewPort {
        device: &taken,
        macs: vec![VIRTUAL],
        ..hopyard_switch::NewPort::default()
    };
    let error = site.switch(|switch| switch.add_port(&taken)).unwrap_err();
    assert!(
        error.to_string().contains("the host's own address"),
        "{error}"
    );
    // They stay unless others are given; the device's own address alone is none.
    set_uplink(&site, "up0", None).unwrap();
    assert_eq!(site.show().uplink.unwrap().host_macs, [VIRTUAL]);
    set_uplink(&site, "up0", Some(&[Mac(site.host_mac())])).unwrap();
    assert_eq!(site.show().uplink.unwrap().host_macs, []);
    assert_eq!(hear(&guest, VIRTUAL.0, own), ["far"]);
    // A command that ended after it had listed an address, and before it had the programs look.
    let hosts = Path::new("/sys/fs/bpf/hopyard/switch").join(site.name());
    let hosts = hosts.join("hosts");
    let hosts = Map::from_map_data(MapData::from_pin(hosts).unwrap()).unwrap();
    let mut hosts: HashMap<MapData, u64, u32> = hosts.try_into().unwrap();
    let [a, b, c, d, e, f] = VIRTUAL.0;
    let key = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
    hosts.insert(key, 1, 0).unwrap();
    assert_eq!(hear(&guest, VIRTUAL.0, own), ["far"]);
    assert_eq!(site.show().uplink.unwrap().host_macs, [VIRTUAL]);
    assert_eq!(hear(&guest, VIRTUAL.0, own), ["host"]);
}

/// An alternative name, and the uplink's own address among those of the host.
#[test]
fn a_description_that_says_the_uplink_in_other_words_is_carried_out_once() {
    const OTHER: Mac = Mac([2, 0, 0, 0, 1, 77]);
    let site = Site::silent("words", 1);
    let other_name = "enp9s9";
    let words = format!("link property add dev up0 altname {other_name}");
    let named = site.in_hub(|| Command::new("ip").args(words.split(' ')).status());
    assert!(named.unwrap().success());
    let mut wanted = SwitchSpec {
        name: site.name().to_owned(),
        uplink: Some(other_name.to_owned()),
        ..SwitchSpec::default()
    };
    for host_macs in [
        vec![Mac(site.host_mac())],
        vec![OTHER, Mac(site.host_mac())],
    ] {
        wanted.host_macs = host_macs;
        let plan = site.in_hub(|| wanted.compare(false)).unwrap();
        assert_eq!(plan.changes.len(), 1, "{plan:?}");
        site.in_hub(|| plan.carry_out(|_| {})).unwrap();
        let plan = site.in_hub(|| wanted.compare(false)).unwrap();
        assert_eq!((plan.changes, plan.problems), (vec![], vec![]));
    }
    let shown = site.show();
    assert_eq!(shown.uplink.unwrap().host_macs, [OTHER]);
    assert_eq!(shown.warnings, [""; 0]);
    // As `switch create` is told it.
    site.in_hub(|| Switch::remove(site.name())).unwrap();
    site.create(Some(other_name), false);
    let shown = site.show();
    assert_eq!(shown.uplink.unwrap().device, "up0");
    assert_eq!(shown.warnings, [""; 0]);
}

#[test]
fn a_port_that_goes_before_its_step_is_removed() {
    let site = Site::silent("step", 2);
    let described = |ports: &[usize]| SwitchSpec {
        name: site.name().to_owned(),
        ports: ports
            .iter()
            .map(|n| PortSpec {
                device: port(*n),
                ..PortSpec::default()
            })
            .collect(),
        ..SwitchSpec::default()
    };
    let compare = |spec: SwitchSpec| site.in_hub(|| spec.compare(false)).unwrap();
    let carry_out = |plan: &Plan| site.in_hub(|| plan.carry_out(|_| {}));
    carry_out(&compare(described(&[0, 1]))).unwrap();
    let plan = compare(described(&[0]));
    assert_eq!(plan.changes.len(), 1, "{plan:?}");
    site.hub.delete_link(&port(1)).unwrap();
    carry_out(&plan).unwrap();
    assert_eq!(compare(described(&[0])).changes, []);
}
