//! Offloads of single devices: what each device has, what traffic makes of it, and what is refused.

use hopyard::lab::Lab;
use hopyard::model::{LoadKind, OffloadFlag, Peer};

use crate::axes::{build, measured};
use crate::support::cli::run;
use crate::support::plan::Room;
use crate::support::{beside, cell, tell};

/// The state of a flag on a device, as it was read back.
fn state<'a>(lab: &'a Lab, device: &str, flag: OffloadFlag) -> &'a str {
    let mut all = lab.offloads.iter();
    let is_it = |s: &&hopyard::model::OffloadState| {
        format!("{}/{}", s.namespace, s.device) == device && s.flag == flag
    };
    &all.find(is_it).unwrap().state
}

#[test]
fn one_device_is_switched_and_no_other() {
    let _beside = beside();
    let set = [
        ("offload", "on"),
        ("device_offload", "gro@hub/veth-a=off+gso@eth0=off"),
    ];
    let bridge = cell("bridge", Peer::Local, LoadKind::TcpStream, &set);
    let lab = build(&bridge).unwrap();
    for (device, flag, wanted) in [
        ("hub/veth-a", OffloadFlag::Gro, "off"),
        ("hub/veth-b", OffloadFlag::Gro, "on"),
        ("hub/veth-a", OffloadFlag::Gso, "on"),
        ("a/eth0", OffloadFlag::Gro, "on"),
        ("a/eth0", OffloadFlag::Gso, "off"),
        ("b/eth0", OffloadFlag::Gso, "off"),
    ] {
        assert_eq!(
            state(&lab, device, flag),
            wanted,
            "{device} {}",
            flag.name()
        );
    }
}

/// Who sends decides how long segments are, so only its device's switch matters.
#[test]
fn traffic_feels_the_switch_of_the_device_it_leaves_by() {
    let _beside = beside();
    let bytes_per_skb = |switches: &str| {
        let set = [("offload", "on"), ("device_offload", switches)];
        let veth = cell("veth", Peer::Local, LoadKind::TcpStream, &set);
        let arrived = measured(&veth, 200, 50).unwrap().arrived.unwrap();
        arrived.bytes / arrived.skbs.max(1)
    };
    let no_gro = "gro@b/eth0=off";
    let sender = bytes_per_skb(&format!("offload@a/eth0=off+{no_gro}"));
    let receiver = bytes_per_skb(&format!("tso@b/eth0=off+gso@b/eth0=off+{no_gro}"));
    tell(&format!(
        "bytes per skb: {sender} with the sender's device off, {receiver} with the receiver's"
    ));
    assert!(sender <= 1514, "{sender}");
    assert!(receiver > 2 * 1514, "{receiver}");
}

#[test]
fn a_run_tells_devices_apart_and_refuses_those_that_are_not_there() {
    let _beside = beside();
    let room = Room::new();
    let out = room.name("run");
    let what = [
        "run", "--paths", "bridge", "--loads", "tcp_rr", "--out", &out,
    ];
    let how = ["--blocks", "1", "--window", "50ms"];
    let refused = |set: &str, words: &[&str]| {
        let all = [&what[..], &how, &["--set", set]].concat();
        run(&all).exits(2).says(words);
        assert!(!room.at("run").exists());
    };
    refused(
        "gro@br9=off",
        &[
            "path `bridge` with peer local has no device `br9`",
            "`gro@br9=off`",
            "hub/br0",
        ],
    );
    refused("lro@a/eth0=on", &["a/eth0", "lro"]);
    refused("gro@=off", &["FLAG@DEVICE=on|off"]);
    let swept = [
        "--set",
        "offload=on",
        "--set",
        "gro@hub/br0=on,off",
        "--base",
        "gro@hub/br0=on",
        "--json",
    ];
    let report = run(&[&what[..], &how, &swept].concat()).exits(0).json();
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    for (cell, value) in cells.iter().zip(["on", "off"]) {
        assert_eq!(cell["status"], "ok");
        assert_eq!(
            cell["axes"]["device_offload"],
            format!("gro@hub/br0={value}")
        );
        let devices = cell["offloads_by_device"].as_array().unwrap();
        let bridge = devices.iter().find(|d| d["name"] == "br0").unwrap();
        assert_eq!(bridge["flags"]["gro"], value, "{cell:#}");
    }
    let told = run(&["report", &out]);
    told.exits(0).prints(&[
        "Offloads, device by device",
        "bridge · local · gro@hub/br0=off: ",
    ]);

    // The same from a plan, and for a lab that is kept.
    let plan = crate::support::plan::plan(&[("paths", "[\"bridge\"]")]);
    let plan = format!("{plan}[set]\n\"gro@br0\" = [\"on\", \"off\"]\n\"tso@a/eth0\" = \"off\"\n");
    let plan = room.file("mine.toml", plan);
    let json = run(&["run", &plan, "--out", &room.name("of-plan"), "--json"])
        .exits(0)
        .json();
    let values: Vec<_> = json["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell["axes"]["device_offload"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        values,
        ["tso@a/eth0=off+gro@br0=on", "tso@a/eth0=off+gro@br0=off"]
    );
    run(&[
        "lab",
        "up",
        "veth",
        "--name",
        "device-offloads",
        "--set",
        "gro@br0=off",
    ])
    .exits(2)
    .says(&["path `veth` with peer local has no device `br0`"]);
}
