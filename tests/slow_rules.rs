//! Slow rules: the profile says where the time goes, and a queue of received packets that is full because of them is named.

use std::fmt::Write;

use serde_json::Value;

use crate::support::cli::run;
use crate::support::plan::Room;
use crate::support::walk::those_here;
use crate::support::{beside, mostly, tell};

/// So many rules that match nothing, one after the other, ahead of the path's own.
fn rules(chain: &str, each: impl Fn(usize) -> String, count: usize) -> String {
    let mut text = format!("table ip slow {{\n\tchain planted {{\n\t\t{chain}\n");
    for number in 0..count {
        let _ = writeln!(text, "\t\t{}", each(number));
    }
    text + "\t}\n}\n"
}

/// Of a run with and without the rules: shares of netfilter, what differs most, and the costliest functions of netfilter with them.
fn profiled(
    room: &Room,
    name: &str,
    load: &str,
) -> Result<(f64, f64, String, Vec<String>), String> {
    let file = room.name(&format!("{name}.nft"));
    let out = room.name(&format!("{name}-run"));
    let _ = std::fs::remove_dir_all(&out);
    let report = run(&[
        "run",
        "--paths",
        "bridge-nat",
        "--loads",
        load,
        "--ruleset",
        &format!("none,{file}"),
        "--base",
        "ruleset=none",
        "--profile",
        "--blocks",
        "5",
        "--turns",
        "off",
        "--window",
        "100ms",
        "--set",
        "placement=same",
        "--out",
        &out,
        "--json",
    ])
    .exits(0)
    .json();
    let cells = report["cells"].as_array().unwrap();
    let of = |with: bool| {
        cells
            .iter()
            .find(|cell| (cell["axes"]["ruleset"] != "none") == with)
            .unwrap()
    };
    let netfilter = |cell: &Value| -> Option<Value> {
        let all = cell["profile"]["subsystems"].as_array().unwrap();
        all.iter().find(|one| one["name"] == "netfilter").cloned()
    };
    let share =
        |cell: &Value| netfilter(cell).map_or(0.0, |one| one["share_ratio"].as_f64().unwrap());
    let (with, without) = (of(true), of(false));
    // Samples that others disturb have no CPU figures; of too few there is no difference.
    let largest = with["profile"]["difference"]["subsystems"][0]["name"].as_str();
    let largest = largest.ok_or("the profiles have no difference")?.to_owned();
    let functions = netfilter(with)
        .map(|one| one["functions"].clone())
        .unwrap_or_default();
    let functions = functions.as_array().into_iter().flatten();
    let functions = functions
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .collect();
    let text = run(&["report", &out]);
    text.exits(0)
        .prints(&["Where the CPU time goes", "netfilter +"]);
    Ok((share(without), share(with), largest, functions))
}

#[test]
fn a_slow_rule_is_named_by_the_profile() {
    let _beside = beside();
    if those_here(&["bridge-nat"]).is_empty() {
        return;
    }
    let room = Room::new();
    // A chain of type nat sees the first packet of a connection alone, so it is for a load that connects.
    let nat = rules(
        "type nat hook prerouting priority dstnat - 1; policy accept;",
        |number| format!("tcp dport {} dnat to 192.0.2.1", number % 1000 + 1),
        2000,
    );
    room.file("nat.nft", nat);
    let tracking = rules(
        "type filter hook prerouting priority -190; policy accept;",
        |number| format!("ct mark {} counter", number + 1),
        400,
    );
    room.file("conntrack.nft", tracking);
    for (name, load, function) in [
        ("nat", "tcp_crr", "nft_do_chain"),
        ("conntrack", "tcp_rr", "nft_"),
    ] {
        mostly(|| {
            let (without, with, largest, functions) = profiled(&room, name, load)?;
            let told = format!(
                "{name}, {load}: netfilter {:.0} % with the rules, {:.0} % without; most is added by {largest}: {functions:?}",
                with * 100.0,
                without * 100.0
            );
            tell(&told);
            let named = functions.iter().any(|one| one.starts_with(function));
            (with > without + 0.15 && largest == "netfilter" && named)
                .then_some(())
                .ok_or(told)
        })
        .unwrap();
    }
}

/// Where another CPU receives (`rps`) and is slow at it, its queue overflows: the report names that as the cause.
///
/// A hash of the flow chooses the CPU that receives it. That may be the sender's own CPU, whose queue cannot overflow because the
/// sender does not run meanwhile. The send buffer limits a flow to some 250 packets in flight, so a queue of 1000 overflows only
/// if at least four of the eight flows hash to the other CPU: in one block of three. Each block has new ports. A run without such a
/// block has nothing to name.
#[test]
fn a_full_queue_of_received_packets_is_named() {
    let _beside = beside();
    let room = Room::new();
    let slow = rules(
        "type filter hook prerouting priority raw; policy accept;",
        |number| format!("udp dport {} counter", number % 1000 + 1),
        1000,
    );
    let file = room.file("queue.nft", slow);
    let out = room.name("run");
    let mut seen = String::new();
    let is_named = (0..3).any(|_| {
        let _ = std::fs::remove_dir_all(&out);
        let said = run(&[
            "run",
            "--paths",
            "veth-route",
            "--loads",
            "udp_stream",
            "--set",
            "message_size=64",
            "--set",
            "flows=8",
            "--set",
            "rps=on",
            "--ruleset",
            &file,
            "--blocks",
            "10",
            "--window",
            "100ms",
            "--out",
            &out,
        ]);
        said.exits(0);
        let report = run(&["report", &out, "--format", "json"]).exits(0).json();
        let warnings = report["warnings"].as_array().unwrap();
        let named = warnings.iter().find(|one| one["code"] == "backlog");
        let text = named.map(|one| one["message"].as_str().unwrap().to_owned());
        tell(&format!(
            "{text:?}, lost {}",
            report["cells"][0]["estimates"]["lost_ratio"]["value"]
        ));
        seen = format!("{report:#}");
        text.is_some_and(|text| {
            text.contains("veth-route/local/udp_stream")
                && text.contains("net.core.netdev_max_backlog")
        })
    });
    assert!(is_named, "{seen}");
}
