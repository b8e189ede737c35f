//! What a run recommends, and what is asked of a path for it.

use std::os::unix::process::CommandExt;
use std::process::Command;

use hopyard::lab::PATHS;
use hopyard::model::{Axes, Feature, Peer};

use crate::support::cli::run;
use crate::support::plan::Room;
use crate::support::{beside, schema};

#[test]
fn a_run_ends_with_one_that_can_be_asked_again() {
    let _beside = beside();
    let room = Room::new();
    let out = room.name("run");
    let measure = [
        "run",
        "--paths",
        "native,veth,bridge,bridge-nf",
        "--loads",
        "tcp_rr",
        "--blocks",
        "8",
    ];
    let said = run(&[
        &measure[..],
        &["--turns", "off", "--window", "100ms", "--warm-up", "20ms"],
        &["--need", "filter", "--out", &out],
    ]
    .concat());
    said.exits(0).prints(&[
        "Recommendation where filter is needed",
        "tcp_rr · local: bridge-nf ",
    ]);
    let document = run(&["report", &out, "--format", "json", "--need", "filter,vlan"])
        .exits(0)
        .json();
    schema::check(&run(&["schema"]).exits(0).json(), &document);
    let choice = &document["recommendation"]["choices"][0];
    assert_eq!(choice["best"][0]["path"], "bridge-nf", "{choice:#}");
    assert_eq!(choice["left_out"][0]["path"], "native");
    // Nothing that was measured is seen by a filter and built without privilege.
    let nobody = run(&["report", &out, "--need", "filter,unprivileged"]);
    nobody
        .exits(0)
        .prints(&["none of the measured paths can be recommended"]);
    // What the run was asked for is kept with it, and `none` asks for nothing.
    run(&["report", &out])
        .exits(0)
        .prints(&["Recommendation where filter is needed"]);
    let page = run(&["report", &out, "--format", "html"]);
    page.exits(0).prints(&["where filter is needed"]);
    let kept = run(&["report", &out, "--format", "json"]).exits(0).json();
    assert_eq!(
        kept["recommendation"]["needs"],
        serde_json::json!(["filter"])
    );
    run(&["report", &out, "--need", "none,filter"])
        .exits(2)
        .says(&["--need none cannot be combined with other needs"]);
    let free = run(&["report", &out, "--format", "json", "--need", "none"]);
    let free = free.exits(0).json();
    let best = free["recommendation"]["choices"][0]["best"]
        .as_array()
        .unwrap();
    assert!(
        !best.is_empty() && best.iter().all(|one| one["path"] != "native"),
        "{best:#?}"
    );
}

#[test]
fn an_unknown_need_names_those_there_are() {
    let _beside = beside();
    for command in [&["run"][..], &["report", "nowhere"]] {
        run(&[command, &["--need", "speed"]].concat())
            .exits(2)
            .says(&[
                "there is no need `speed`",
                "filter, vlan, host-access, unprivileged, learning",
            ]);
    }
}

/// What paths say of themselves: those that anybody can build consist of devices that anybody can make.
#[test]
fn who_needs_no_privilege_finds_it_so() {
    let _beside = beside();
    let mut tried = 0;
    for path in PATHS.iter().filter(|path| path.available().is_ok()) {
        if !path
            .offers(Peer::Local, &Axes::default())
            .contains(&Feature::Unprivileged)
        {
            continue;
        }
        for need in path.needs {
            assert!(
                need.is_device,
                "{path:?} needs {need:?}, which is more than a device"
            );
            let kind = need.name;
            let device = match kind.split(' ').next().unwrap() {
                "macvlan" | "ipvlan" => format!("ip link add link d0 name t0 type {kind}"),
                "vxlan" => "ip link add t0 type vxlan id 1 dstport 4789".to_owned(),
                "geneve" => "ip link add t0 type geneve id 1 remote 192.0.2.2".to_owned(),
                "gre" | "ipip" => {
                    format!("ip link add t0 type {kind} local 192.0.2.1 remote 192.0.2.2")
                }
                _ => format!("ip link add t0 type {kind}"),
            };
            let script = format!("ip link add d0 type veth peer name d1 && {device}");
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user", "--net", "sh", "-c", &script]);
            let output = command.uid(65534).gid(65534).output().unwrap();
            assert!(output.status.success(), "{path:?}: {script}: {output:?}");
            tried += 1;
        }
    }
    assert!(tried > 0);
    for name in ["direct", "bridge-nf"] {
        let path = hopyard::lab::path(name).unwrap();
        assert!(
            !path
                .offers(Peer::Local, &Axes::default())
                .contains(&Feature::Unprivileged),
            "{name}"
        );
    }
}
