//! Tunnels, most of which this machine's own kernel may lack.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{PATIENCE, in_guest};
use crate::support::cli::Running;
use crate::support::kernels::kernel;
use crate::support::{beside, tell};

/// The tunnels, what each puts around an IP packet, bytes, and how many of those its own device counts: WireGuard's
/// counts what it has encrypted, with its header and tag.
const TUNNELS: [(&str, f64, f64); 5] = [
    ("vxlan", 50.0, 0.0),
    ("geneve", 50.0, 0.0),
    ("gre", 24.0, 0.0),
    ("ipip", 20.0, 0.0),
    ("wireguard", 60.0, 32.0),
];

/// Bytes of the header of a frame, as devices count it.
const ETHERNET: f64 = 14.0;

fn measured(out: &Path, more: &[&str]) -> Vec<Value> {
    let paths = TUNNELS.map(|(name, ..)| name).join(",");
    let plan = [
        "--paths", &paths, "--blocks", "1", "--turns", "off", "--accel", "tcg", "--json",
    ];
    let more = [&plan[..], more].concat();
    let said = Running::start(in_guest(&kernel(), out, &more)).wait_for(PATIENCE);
    let document = said.json();
    tell(&format!("tunnels in {:?}", said.took));
    document["cells"].as_array().unwrap().clone()
}

/// Every device on the way moves with the traffic: the tunnel's at both ends, and those below it.
#[test]
fn tunnels_carry_both_ip_versions_to_both_peers_inside_a_guest() {
    let _beside = beside();
    let home = tempfile::tempdir().unwrap();
    let plan = [
        "--loads",
        "tcp_rr",
        "--peer",
        "local,far",
        "--set",
        "family=4,6",
        "--window",
        "400ms",
    ];
    let cells = measured(&home.path().join("run"), &plan);
    for (tunnel, ..) in TUNNELS {
        let own: Vec<_> = cells.iter().filter(|c| c["path"] == tunnel).collect();
        // An IPv4 tunnel has no cell with IPv6.
        let expected = if tunnel == "ipip" { 2 } else { 4 };
        assert_eq!(own.len(), expected, "{tunnel}");
        for cell in own {
            assert_eq!(cell["status"], "ok", "{cell}");
            assert_eq!(cell["way"]["proved"], true, "{cell}");
        }
    }
}

/// Full segments fill the tunnel's MTU, which is smaller by the headers that the device below sends besides.
#[test]
fn packets_are_smaller_by_the_headers_of_the_tunnel() {
    let _beside = beside();
    let home = tempfile::tempdir().unwrap();
    let plan = [
        "--loads",
        "tcp_stream",
        "--set",
        "mtu=1500",
        "--set",
        "offload=off",
        "--set",
        "message_size=256K",
        "--window",
        "500ms",
    ];
    let out = home.path().join("run");
    measured(&out, &plan);
    let header = fs::read(out.join("run.json")).unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    let samples = fs::read_to_string(out.join("samples.jsonl")).unwrap();
    let samples = samples.lines().map(|l| serde_json::from_str(l).unwrap());
    let samples: Vec<Value> = samples.collect();
    for (tunnel, headers, counted) in TUNNELS {
        let of_tunnel = |s: &&Value| {
            let cell = usize::try_from(s["cell"].as_u64().unwrap()).unwrap();
            header["cells"][cell]["cell"]["path"] == tunnel
        };
        let sample = samples.iter().find(of_tunnel);
        let devices = &sample.unwrap()["outcome"]["measured"]["devices"];
        let size_of = |device: &dyn Fn(&str) -> bool| {
            // Modules of tunnels put devices of their own into every namespace, which carry nothing.
            let is_it = |d: &&Value| {
                let name = d["name"].as_str().unwrap();
                d["namespace"] == "a" && d["tx_packets"] != 0 && device(name)
            };
            let device = devices.as_array().unwrap().iter().find(is_it).unwrap();
            let sent = |what: &str| device[what].as_f64().unwrap();
            sent("tx_bytes") / sent("tx_packets")
        };
        let inside = size_of(&|name| name != "eth0" && name != "lo");
        let below = size_of(&|name| name == "eth0");
        let full = 1500.0 - headers + counted;
        tell(&format!(
            "{tunnel}: {inside:.1} of {full} bytes, {below:.1} below"
        ));
        assert!(inside > 0.99 * full && inside <= full, "{tunnel}: {inside}");
        let more = below - ETHERNET - inside - (headers - counted);
        assert!(more.abs() < 0.5, "{tunnel}: {more}");
    }
}
