//! Path `veth-xdp`: frames of any length pass, by the drivers and not by anything else.

use std::process::Command;

use hopyard::lab::{Lab, LabKey};
use hopyard::model::{LoadKind, Peer};
use hopyard_net::{BridgeSettings, LinkKind, NewLink};

use crate::axes::build;
use crate::support::cli::run;
use crate::support::{beside, cell, proved, sampler, tell};

/// What iproute2 prints, run in a namespace of a lab.
fn ip(lab: &Lab, role: &str, words: &[&str]) -> String {
    let ns = lab.space(role).unwrap().handle.ns();
    let output = ns.run(|| Command::new("ip").args(words).output());
    let output = output.unwrap().expect("ip (iproute2) runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn frames_of_any_length_and_both_ip_versions_pass_in_the_drivers() {
    let _beside = beside();
    let settings: [&[(&str, &str)]; 5] = [
        &[("family", "6")],
        &[("mtu", "9000")],
        &[("mtu", "1280")],
        &[("offload", "on"), ("flows", "4")],
        &[("offload", "off"), ("queues", "2"), ("xps", "on")],
    ];
    for peer in [Peer::Local, Peer::Far] {
        for set in settings {
            let cells = [LoadKind::TcpStream, LoadKind::TcpRr, LoadKind::UdpStream]
                .map(|load| cell("veth-xdp", peer, load, set));
            let lab = build(&cells[0]).unwrap();
            for cell in &cells {
                assert_eq!(LabKey::of(cell), LabKey::of(&cells[0]), "another lab");
                let measured = proved(&lab, cell, 100).unwrap();
                assert!(measured.received.bytes > 0, "{cell}");
                let up = if peer == Peer::Far { "up0" } else { "veth-b" };
                for (role, device) in [
                    ("hub", "veth-a"),
                    ("hub", up),
                    (lab.topology.client.role, "eth0"),
                    (lab.topology.server.role, &*lab.topology.server.device),
                ] {
                    let shown = ip(&lab, role, &["-details", "link", "show", "dev", device]);
                    // In the driver; `xdpgeneric` would be in the stack.
                    assert!(
                        shown.contains(" xdp ") || shown.contains("prog/xdp "),
                        "{shown}"
                    );
                    assert!(!shown.contains("xdpgeneric"), "{shown}");
                }
            }
        }
    }
}

/// A bridge in place of the programs carries everything as well, past what would count it.
#[test]
fn what_goes_by_the_stack_is_found_out() {
    let _beside = beside();
    for load in [LoadKind::TcpStream, LoadKind::UdpRr] {
        let cell = cell("veth-xdp", Peer::Local, load, &[]);
        let lab = build(&cell).unwrap();
        let hub = &lab.space("hub").unwrap().handle;
        let bridge = BridgeSettings::default().stp(false).forward_delay(0);
        hub.add_link(&NewLink {
            up: true,
            ..NewLink::new("round", LinkKind::Bridge(bridge))
        })
        .unwrap();
        for device in ["veth-a", "veth-b"] {
            ip(&lab, "hub", &["link", "set", "dev", device, "xdp", "off"]);
            hub.set_master(device, "round").unwrap();
        }
        let measured = sampler(100, 30).measure_in(&lab, &cell, 0.0).unwrap();
        let problems = measured.way.problems.join("\n");
        assert!(
            measured.received.bytes > 0 && !measured.way.proved,
            "{load}"
        );
        assert!(
            problems.contains("hub/redirected received 0 "),
            "{load}: {problems}"
        );
        tell(&problems);
    }
}

/// What shapes the wire is passed by, so nothing would be shaped.
#[test]
fn a_rate_that_xdp_does_not_keep_is_refused() {
    let _beside = beside();
    for path in ["veth-xdp", "af-xdp"] {
        let words = [
            "run",
            "--paths",
            path,
            "--peer",
            "far",
            "--set",
            "rate=100mbit",
        ];
        run(&words)
            .exits(2)
            .says(&["hub/up0", "rate=100mbit", "past the queue"]);
    }
}

#[test]
fn an_offload_that_would_spoil_checksums_is_refused() {
    let _beside = beside();
    let words = [
        "run",
        "--paths",
        "veth-xdp",
        "--loads",
        "tcp_rr",
        "--set",
        "tx_checksum=on",
    ];
    run(&words)
        .exits(2)
        .says(&["has tx_checksum off [fixed]", "leave `tx_checksum` out"]);
}
