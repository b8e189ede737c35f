//! Path `direct-shortcut`: what proves that messages went by the shortcut, and what refutes it.

use hopyard::lab::{Lab, role};
use hopyard::model::{LoadKind, Peer};
use hopyard_net::Cgroup;
use hopyard_switch::{NewShortcut, SelfTest, Switch};

use crate::support::cli::run;
use crate::support::traces::Traces;
use crate::support::walk::machine_has;
use crate::support::{apart, beside, cell, proved, sampler, skip, tell, unless_disturbed};

const PATH: &str = "direct-shortcut";

fn build(load: LoadKind, set: &[(&str, &str)]) -> (Lab, hopyard::model::Cell) {
    let cell = cell(PATH, Peer::Local, load, set);
    let path = hopyard::lab::path(PATH).unwrap();
    let lab = Lab::build(path, Peer::Local, &cell.axes).unwrap();
    (lab, cell)
}

fn is_missing() -> bool {
    let path = hopyard::lab::path(PATH).unwrap();
    let Err(error) = path.available() else {
        return false;
    };
    let present = path.needs.iter().all(|need| machine_has(*need));
    skip("sockmap shortcut", present, &hopyard::chain(&error));
    true
}

#[test]
fn requests_go_by_the_shortcut_and_not_by_devices() {
    let _beside = beside();
    if is_missing() {
        return;
    }
    let (lab, cell) = build(LoadKind::TcpRr, &[]);
    let measured = unless_disturbed(|| proved(&lab, &cell, 100)).unwrap();
    let count = |name: &str| {
        let found = measured.devices.iter();
        let mut found = found.filter(|device| device.name == name && device.namespace == role::HUB);
        found.next().unwrap()
    };
    let transactions = measured.received.transactions;
    assert!(transactions > 100, "{measured:?}");
    for port in ["joined:veth-a", "joined:veth-b"] {
        let joined = count(port);
        assert!(joined.rx_packets >= transactions / 2, "{joined:?}");
        assert!(joined.tx_packets >= transactions / 2, "{joined:?}");
    }
    // A timer of TCP may send one.
    let veth = count("veth-b");
    assert!(veth.rx_packets + veth.tx_packets < 10, "{veth:?}");
    tell(&format!("{transactions} transactions, {veth:?}"));
}

/// The same lab without the shortcut: requests take another way than the path says.
#[test]
fn requests_that_go_by_frames_refute_the_way() {
    let _beside = beside();
    if is_missing() {
        return;
    }
    let (lab, cell) = build(LoadKind::TcpRr, &[]);
    let name = lab.switch().unwrap().to_owned();
    let hub = &lab.space(role::HUB).unwrap().handle;
    // Its programs go on counting, and join nothing: no socket of the lab is in that control group.
    let nobodys = Cgroup::create(&format!("nobody-{}", std::process::id())).unwrap();
    let new = NewShortcut {
        cgroup: nobodys.path(),
        accept: &[],
    };
    hub.ns()
        .run(|| {
            let mut switch = Switch::open(&name).unwrap();
            switch
                .set_tested_shortcut(&new, &SelfTest::default())
                .unwrap();
        })
        .unwrap();
    nobodys.remove().unwrap();
    let measure = || sampler(60, 20).measure_in(&lab, &cell, 0.0);
    let measured = unless_disturbed(|| measure().map_err(|e| hopyard::chain(&e))).unwrap();
    assert!(!measured.way.proved);
    let problems = measured.way.problems.join("\n");
    assert!(problems.contains("hub/joined:veth-b sent 0 "), "{problems}");
    assert!(!problems.contains("hub/port:veth-b"), "{problems}");
}

/// The same without a switch: frames pass the pair until both ends were found, and messages then pass it by.
#[test]
fn sockets_at_both_ends_of_a_pair_are_joined_without_a_switch() {
    let _beside = beside();
    if is_missing() {
        return;
    }
    let cell = cell("sockmap", Peer::Local, LoadKind::TcpRr, &[]);
    let path = hopyard::lab::path("sockmap").unwrap();
    let lab = Lab::build(path, Peer::Local, &cell.axes).unwrap();
    let measured = unless_disturbed(|| proved(&lab, &cell, 100)).unwrap();
    let transactions = measured.received.transactions;
    for role in [role::A, role::B] {
        let count = |name: &str| {
            let mut found = measured.devices.iter();
            let found = found.find(|device| device.name == name && device.namespace == role);
            found.unwrap_or_else(|| panic!("{role}/{name}: {:?}", measured.devices))
        };
        let joined = count("joined:eth0");
        assert!(joined.rx_packets >= transactions / 2, "{joined:?}");
        assert!(joined.tx_packets >= transactions / 2, "{joined:?}");
        // A timer of TCP may send one.
        let device = count("eth0");
        assert!(device.rx_packets + device.tx_packets < 10, "{device:?}");
    }
    tell(&format!("{transactions} transactions"));
}

/// What joins sockets ends with the process or its control group, so it cannot be kept.
#[test]
fn a_lab_with_joined_sockets_is_not_kept() {
    apart(|| {
        if is_missing() {
            return;
        }
        let before = Traces::now();
        for path in ["sockmap", "direct-shortcut"] {
            run(&["lab", "up", path, "--name", "test-joined"])
                .exits(2)
                .says(&["sockets", "choose path `direct`"]);
        }
        before.unchanged().unwrap();
    });
}
