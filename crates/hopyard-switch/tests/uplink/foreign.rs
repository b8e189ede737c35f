//! Programs of somebody else at the hooks of a switch's devices.

use std::time::{Duration, Instant};

use aya::programs::tc::{NlOptions, TcAttachOptions};
use aya::programs::{LinkOrder, SchedClassifier, TcAttachType, Xdp, XdpMode};
use aya::{Ebpf, include_bytes_aligned};
use hopyard_net::Handle;
use hopyard_switch::apply::{Change, PortSpec, SwitchSpec, Why};
use hopyard_switch::{NewPort, NewSwitch, NewUplink, Switch, Warning};

use crate::frames::{EXPERIMENT, frame};
use crate::listen::{Ear, who};
use crate::site::{FAR_MAC, Site, guest_mac, port};

static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/foreign.bpf.o"));

/// A program at a hook, detached when this goes.
pub(crate) struct Foreign {
    _object: Ebpf,
}

impl Foreign {
    pub(crate) fn tcx(
        handle: &Handle,
        (device, hook): (&str, TcAttachType),
        program: &str,
        order: LinkOrder,
    ) -> Self {
        let attach = || {
            let mut object = Ebpf::load(OBJECT).unwrap();
            let program: &mut SchedClassifier =
                object.program_mut(program).unwrap().try_into().unwrap();
            program.load().unwrap();
            let order = TcAttachOptions::TcxOrder(order);
            program.attach_with_options(device, hook, order).unwrap();
            Self { _object: object }
        };
        handle.ns().run(attach).unwrap()
    }

    /// A classifier of the device's `clsact`, which stays.
    pub(crate) fn classifier(handle: &Handle, (device, hook): (&str, TcAttachType), program: &str) {
        handle.add_clsact(device).unwrap();
        let attach = || {
            let mut object = Ebpf::load(OBJECT).unwrap();
            let program: &mut SchedClassifier =
                object.program_mut(program).unwrap().try_into().unwrap();
            program.load().unwrap();
            let options = TcAttachOptions::Netlink(NlOptions::default());
            let id = program.attach_with_options(device, hook, options).unwrap();
            // A value of this kind detaches its program when it ends.
            std::mem::forget(program.take_link(id).unwrap());
        };
        handle.ns().run(attach).unwrap();
    }

    /// An XDP program that drops everything, in the driver or in the stack.
    pub(crate) fn xdp(handle: &Handle, device: &str, mode: XdpMode) -> Self {
        let attach = || {
            let mut object = Ebpf::load(OBJECT).unwrap();
            let program: &mut Xdp = object
                .program_mut("foreign_xdp")
                .unwrap()
                .try_into()
                .unwrap();
            program.load().unwrap();
            program.attach(device, mode).unwrap();
            Self { _object: object }
        };
        handle.ns().run(attach).unwrap()
    }
}

/// The hooks of the switch's programs.
pub(crate) fn hooks() -> [(&'static str, TcAttachType); 3] {
    [
        ("p0", TcAttachType::Ingress),
        ("up0", TcAttachType::Ingress),
        ("up0", TcAttachType::Egress),
    ]
}

/// Who hears what of a guest, the wire and the host, each to another; and whether the host's stack hears what the
/// guest may not say.
fn heard(site: &Site) -> Vec<Vec<&'static str>> {
    let guest = Ear::open(&site.guests[0], "eth0", EXPERIMENT);
    let far = Ear::open(&site.far, "far0", EXPERIMENT);
    let host = Ear::open(&site.hub, "up0", EXPERIMENT);
    // Hears what the switch let through to the host's stack at the port itself.
    let stack = Ear::open(&site.hub, &port(0), EXPERIMENT);
    let all = [
        ("guest", &guest),
        ("far", &far),
        ("host", &host),
        ("stack", &stack),
    ];
    let (own, other) = (guest_mac(0), guest_mac(7));
    [
        (&guest, FAR_MAC, own),
        (&far, own, FAR_MAC),
        (&host, own, site.host_mac()),
        (&guest, site.host_mac(), other),
    ]
    .map(|(from, to, source)| {
        from.send(&frame(to, source, EXPERIMENT, b"hello"));
        who(&all)
    })
    .to_vec()
}

#[test]
fn a_program_that_was_there_first_keeps_no_frame_from_the_switch() {
    let site = Site::silent("first", 1);
    let _there =
        hooks().map(|hook| Foreign::tcx(&site.hub, hook, "foreign_pass", LinkOrder::last()));
    site.connect(false, |_, _| {});
    assert_eq!(
        heard(&site),
        [vec!["far"], vec!["guest"], vec!["guest"], vec![]]
    );
    assert_eq!(site.drops("p0"), [("mac", 1)]);
}

#[test]
fn show_names_who_came_before_the_switch() {
    let site = Site::silent("named", 1);
    site.connect(false, |_, _| {});
    assert_eq!(site.show().warnings, [""; 0]);
    let foreign =
        hooks().map(|hook| Foreign::tcx(&site.hub, hook, "foreign_pass", LinkOrder::first()));
    let warnings = site.show().warnings;
    assert_eq!(warnings.len(), 3, "{warnings:#?}");
    for place in ["ingress of `p0`", "ingress of `up0`", "egress of `up0`"] {
        let named = |w: &&Warning| w.contains(place) && w.contains("foreign_pass");
        assert_eq!(
            warnings.iter().filter(named).count(),
            1,
            "{place}: {warnings:#?}"
        );
    }
    drop(foreign);
    let _xdp = Foreign::xdp(&site.hub, "up0", XdpMode::Skb);
    let warnings = site.show().warnings;
    assert!(
        warnings.len() == 1 && warnings[0].contains("XDP program") && warnings[0].contains("`up0`"),
        "{warnings:#?}"
    );
}

/// Who comes first is put behind again by one command.
#[test]
fn the_uplink_is_had_first_again_by_one_command() {
    let site = Site::silent("again", 1);
    site.connect(false, |_, _| {});
    let ingress = ("up0", TcAttachType::Ingress);
    let _foreign = Foreign::tcx(&site.hub, ingress, "foreign_pass", LinkOrder::first());
    assert_eq!(
        heard(&site)[1],
        ["host"],
        "the wire's frame is not the guest's"
    );
    let uplink = NewUplink {
        device: "up0",
        ..NewUplink::default()
    };
    site.switch(|switch| switch.set_uplink(&uplink)).unwrap();
    assert_eq!(heard(&site)[1], ["guest"]);
    // The link that was replaced is detached soon after.
    let end = Instant::now() + Duration::from_secs(30);
    while site
        .show()
        .warnings
        .iter()
        .any(|w| w.contains("instead of"))
    {
        assert!(Instant::now() < end, "{:#?}", site.show().warnings);
        std::thread::sleep(Duration::from_millis(1));
    }
    let warnings = site.show().warnings;
    assert!(
        warnings.len() == 1 && warnings[0].contains("BYPASS"),
        "{warnings:#?}"
    );
}

#[test]
fn others_come_first_where_that_is_asked_for_and_show_still_says_so() {
    let site = Site::silent("asked", 1);
    let _there =
        hooks().map(|hook| Foreign::tcx(&site.hub, hook, "foreign_pass", LinkOrder::last()));
    let new = NewSwitch {
        name: site.name(),
        uplink: Some("up0"),
        behind_others: true,
        ..NewSwitch::default()
    };
    site.in_hub(|| Switch::create(&new)).unwrap();
    site.add(0, |_| {});
    assert_eq!(heard(&site)[0], ["stack"], "the first program takes it");
    let warnings = site.show().warnings;
    let before = |w: &&Warning| w.contains("before the switch's") && w.contains("foreign_pass");
    assert_eq!(warnings.iter().filter(before).count(), 3, "{warnings:#?}");
    // It is no fault that something has to mend.
    assert!(
        warnings.iter().all(|w| w.way_out().is_none()),
        "{warnings:#?}"
    );
}

#[test]
fn a_description_that_lets_others_come_first_is_carried_out_once() {
    let site = Site::silent("carried", 1);
    let _there =
        hooks().map(|hook| Foreign::tcx(&site.hub, hook, "foreign_pass", LinkOrder::last()));
    let wanted = SwitchSpec {
        name: site.name().to_owned(),
        uplink: Some("up0".to_owned()),
        behind_others: true,
        ports: vec![PortSpec {
            device: port(0),
            ..PortSpec::default()
        }],
        ..SwitchSpec::default()
    };
    let compare = || site.in_hub(|| wanted.compare(false)).unwrap();
    let plan = compare();
    assert_eq!(plan.changes.len(), 2);
    site.in_hub(|| plan.carry_out(|_| {})).unwrap();
    let plan = compare();
    assert_eq!((plan.changes, plan.problems), (vec![], vec![]));
}

/// What a guest sends has to come to the switch first.
#[test]
fn a_description_has_its_ports_first_again() {
    let site = Site::silent("ports", 1);
    let wanted = SwitchSpec {
        name: site.name().to_owned(),
        uplink: Some("up0".to_owned()),
        ports: vec![PortSpec {
            device: port(0),
            ..PortSpec::default()
        }],
        ..SwitchSpec::default()
    };
    let compare = || site.in_hub(|| wanted.compare(false)).unwrap();
    site.in_hub(|| compare().carry_out(|_| {})).unwrap();
    let ingress = ("p0", TcAttachType::Ingress);
    let _foreign = Foreign::tcx(&site.hub, ingress, "foreign_pass", LinkOrder::first());
    assert_eq!(heard(&site)[0], ["stack"], "the first program takes it");
    let plan = compare();
    let [Change::Remove { why, .. }, Change::Add(_)] = &plan.changes[..] else {
        panic!("{plan:?}");
    };
    let names_it = matches!(why, Why::NotFirst(other) if other.contains("foreign_pass"));
    assert!(names_it, "{why:?}");
    site.in_hub(|| plan.carry_out(|_| {})).unwrap();
    assert_eq!(heard(&site)[0], ["far"]);
    let plan = compare();
    assert_eq!((plan.changes, plan.problems), (vec![], vec![]));
}

/// Classifiers come behind every tcx program.
#[test]
fn a_switch_of_classifiers_is_refused_where_another_program_comes_first() {
    let site = Site::with_classifiers("refused", 1);
    let foreign =
        hooks().map(|hook| Foreign::tcx(&site.hub, hook, "foreign_pass", LinkOrder::last()));
    let new = NewSwitch {
        name: site.name(),
        uplink: Some("up0"),
        hooks: site.hooks,
        ..NewSwitch::default()
    };
    let refused = |error: hopyard_switch::Error| {
        let text = error.to_string();
        assert!(error.is_usage(), "{error:?}");
        assert!(
            text.contains("foreign_pass")
                && matches!(error, hopyard_switch::Error::NotFirst { .. }),
            "{text}"
        );
    };
    refused(site.in_hub(|| Switch::create(&new)).unwrap_err());
    assert!(
        !site
            .in_hub(Switch::list)
            .unwrap()
            .contains(&site.name().to_owned())
    );
    site.create(None, false);
    let port = NewPort {
        device: "p0",
        ..NewPort::default()
    };
    refused(site.switch(|switch| switch.add_port(&port)).unwrap_err());
    assert_eq!(site.show().ports, []);
    drop(foreign);
    site.add(0, |_| {});
}
