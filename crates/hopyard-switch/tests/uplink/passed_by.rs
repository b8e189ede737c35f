//! What frames that the switch redirects pass by: programs, filters and captures at the devices, and messages of the IP
//! layer.

use std::time::{Duration, Instant};

use aya::programs::{LinkOrder, SchedClassifier, TcAttachType, XdpMode};
use hopyard_net::Handle;
use hopyard_switch::{NewUplink, Warning};

use crate::foreign::Foreign;
use crate::frames::{EXPERIMENT, IPV4, frame};
use crate::listen::Ear;
use crate::site::{FAR_MAC, Site, guest_mac, port, space};

/// `ETH_P_ALL`: what leaves by a device is seen by captures of everything alone.
const EVERYTHING: u16 = 3;

/// The one warning there is.
#[track_caller]
fn warning(site: &Site) -> Warning {
    let mut warnings = site.show().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    warnings.remove(0)
}

/// Sends a frame from the far end to the first guest; does it come?
fn reaches_guest(site: &Site) -> bool {
    let guest = Ear::open(&site.guests[0], "eth0", EXPERIMENT);
    let far = Ear::open(&site.far, "far0", EXPERIMENT);
    far.send(&frame(guest_mac(0), FAR_MAC, EXPERIMENT, b"in"));
    !guest.heard().is_empty()
}

#[test]
fn programs_behind_the_switch_do_not_see_what_it_redirects_and_show_says_so() {
    let site = Site::silent("behind", 1);
    site.connect(false, |_, _| {});
    let ingress = ("up0", TcAttachType::Ingress);
    let _drop = Foreign::tcx(&site.hub, ingress, "foreign_drop", LinkOrder::last());
    assert!(reaches_guest(&site));
    let warning = warning(&site);
    assert!(
        warning.contains("BYPASS") && warning.contains("foreign_drop (ingress of up0)"),
        "{warning}"
    );
}

#[test]
fn filters_of_the_devices_do_not_see_what_it_redirects_and_show_says_so() {
    let site = Site::silent("filters", 1);
    site.connect(false, |_, _| {});
    Foreign::classifier(&site.hub, ("up0", TcAttachType::Ingress), "foreign_drop");
    assert!(reaches_guest(&site));
    // Nothing leaves by the host's end where frames go straight into the guest's namespace.
    Foreign::classifier(&site.hub, ("p0", TcAttachType::Egress), "foreign_drop");
    assert!(reaches_guest(&site));
    tc(&site.hub, "qdisc add dev p0 root pfifo limit 0");
    assert!(reaches_guest(&site));
    let warning = warning(&site);
    for what in [
        "foreign_drop (ingress of up0)",
        "foreign_drop (egress of p0)",
        "qdisc pfifo (egress of p0)",
    ] {
        assert!(
            warning.contains("BYPASS") && warning.contains(what),
            "{what}: {warning}"
        );
    }
    // Those of the host's end are met by way of the queue.
    site.remove(0);
    site.add(0, |port| port.queued = true);
    assert!(!reaches_guest(&site));
    let warning = self::warning(&site);
    assert!(!warning.contains("of p0"), "{warning}");
}

fn tc(handle: &Handle, words: &str) {
    let run = || {
        std::process::Command::new("tc")
            .args(words.split(' '))
            .output()
            .unwrap()
    };
    let done = handle.ns().run(run).unwrap();
    assert!(done.status.success(), "tc {words}: {done:?}");
}

#[test]
fn xdp_of_the_guest_is_passed_by_until_the_port_is_added_again_and_show_says_so() {
    let site = Site::silent("xdp", 1);
    site.connect(false, |_, _| {});
    let _xdp = Foreign::xdp(&site.guests[0], "eth0", XdpMode::Driver);
    assert!(reaches_guest(&site), "no longer passed by");
    let warning = warning(&site);
    assert!(
        warning.contains("XDP") && warning.contains("`p0`"),
        "{warning}"
    );
    site.remove(0);
    site.add(0, |_| {});
    assert!(!reaches_guest(&site), "its program drops everything");
    let shown = site.show();
    assert_eq!(shown.warnings, [""; 0]);
    assert!(!shown.ports[0].direct);
}

#[test]
fn xdp_of_the_guest_in_the_stack_sees_every_frame() {
    let site = Site::silent("skb", 1);
    site.connect(false, |_, _| {});
    let _xdp = Foreign::xdp(&site.guests[0], "eth0", XdpMode::Skb);
    assert!(!reaches_guest(&site));
    assert_eq!(site.show().warnings, [""; 0]);
}

#[test]
fn a_frame_too_long_is_answered_by_icmp_and_show_says_so() {
    let site = Site::with_mtus("icmp", &[9000, 1500]);
    site.connect(false, |_, _| {});
    let ear = Ear::open(&site.guests[0], "eth0", IPV4);
    let socket = site.guests[0]
        .ns()
        .run(|| std::net::UdpSocket::bind("10.0.0.10:0").unwrap())
        .unwrap();
    site.guests[0]
        .add_neighbour("eth0", crate::site::v4(11), guest_mac(1))
        .unwrap();
    socket.send_to(&[0; 5000], "10.0.0.11:9").unwrap();
    let heard = ear.heard();
    // ICMP, fragmentation needed, 1500.
    let [message] = &heard[..] else {
        panic!("{heard:?}");
    };
    assert_eq!((message[23], &message[34..36]), (1, &[3, 4][..]));
    assert_eq!(message[38..42], 1500_u32.to_be_bytes());
    assert_eq!(site.drops("p0"), [("mtu", 1)]);
    let warnings = site.show().warnings;
    assert!(
        warnings
            .iter()
            .any(|w| w.contains("longer frames between them are dropped")),
        "{warnings:#?}"
    );
}

#[test]
fn a_host_end_that_moved_away_is_no_port_any_more_and_show_says_so() {
    let site = Site::silent("moved", 2);
    site.connect(false, |_, _| {});
    let elsewhere = space();
    site.hub.move_to(&port(0), elsewhere.ns()).unwrap();
    let shown = site.show();
    assert_eq!(shown.ports.len(), 1);
    assert!(
        shown.warnings.len() == 1
            && shown.warnings[0].contains("gone or in another network namespace"),
        "{:#?}",
        shown.warnings
    );
    assert_eq!(
        site.show().warnings,
        [""; 0],
        "said once: it is no port now"
    );
    gone_from(&elsewhere, "p0", TcAttachType::Ingress);
}

/// An uplink in another namespace would take frames to devices that have the numbers of ports there.
#[test]
fn an_uplink_that_moved_away_runs_no_program_any_more() {
    let site = Site::silent("away", 1);
    site.connect(false, |_, _| {});
    let elsewhere = space();
    site.hub.move_to("up0", elsewhere.ns()).unwrap();
    assert!(warning(&site).contains("in another network namespace"));
    for hook in [TcAttachType::Ingress, TcAttachType::Egress] {
        gone_from(&elsewhere, "up0", hook);
    }
    // It may come back.
    elsewhere.move_to("up0", site.hub.ns()).unwrap();
    site.hub.set_up("up0").unwrap();
    assert!(site.hub.settle("up0").unwrap());
    let uplink = NewUplink {
        device: "up0",
        ..NewUplink::default()
    };
    site.switch(|switch| switch.set_uplink(&uplink)).unwrap();
    assert_eq!(site.show().warnings, [""; 0]);
    assert!(reaches_guest(&site));
}

/// Waits until nothing runs at a hook: the kernel detaches what was removed soon after.
fn gone_from(handle: &Handle, device: &str, hook: TcAttachType) {
    let end = Instant::now() + Duration::from_secs(30);
    let count = || SchedClassifier::query_tcx(device, hook).unwrap().1.len();
    while handle.ns().run(count).unwrap() > 0 {
        assert!(Instant::now() < end, "a program still runs at `{device}`");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_capture_at_the_hosts_end_sees_what_goes_to_the_guest_by_way_of_the_queue() {
    let site = Site::silent("capture", 1);
    site.connect(false, |_, _| {});
    let capture = Ear::open(&site.hub, &port(0), EVERYTHING);
    assert!(reaches_guest(&site));
    assert_eq!(
        capture.heard().len(),
        0,
        "straight into the guest's namespace"
    );
    site.remove(0);
    site.add(0, |port| port.queued = true);
    assert!(reaches_guest(&site));
    assert_eq!(capture.heard().len(), 1);
    let shown = site.show();
    assert!(!shown.ports[0].direct);
    assert_eq!(shown.warnings, [""; 0]);
}
