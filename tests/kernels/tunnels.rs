//! Tunnels, most of which this machine's own kernel may lack.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{PATIENCE, in_guest, proved};
use crate::support::cli::Running;
use crate::support::kernels::kernel;
use crate::support::{beside, tell};

/// The tunnels and MACsec, what each puts around an IP packet, bytes, and how many of those its own device counts: WireGuard's
/// counts what it has encrypted, with its header and tag.
const TUNNELS: [(&str, f64, f64); 6] = [
    ("vxlan", 50.0, 0.0),
    ("geneve", 50.0, 0.0),
    ("gre", 24.0, 0.0),
    ("ipip", 20.0, 0.0),
    ("wireguard", 60.0, 32.0),
    // Its device counts frames, before they get a tag.
    ("macsec", 32.0, ETHERNET),
];

/// Bytes of the header of a frame, as devices count it.
const ETHERNET: f64 = 14.0;

fn tunnels() -> String {
    TUNNELS.map(|(name, ..)| name).join(",")
}

fn measured(out: &Path, more: &[&str]) -> Vec<Value> {
    let plan = [
        "--blocks", "1", "--turns", "off", "--accel", "tcg", "--json",
    ];
    let more = [&plan[..], more].concat();
    let said = Running::start(in_guest(&kernel(), out, &more)).wait_for(PATIENCE);
    let document = said.json();
    tell(&format!("tunnels in {:?}", said.took));
    document["cells"].as_array().unwrap().clone()
}

/// The path and the devices of each.
type Samples = Vec<(String, Vec<Value>)>;

/// The cells that are chosen with these options, each proved, and their samples. Those of one that was measured again come first.
fn all_proved(which: &[&str], plan: &[&str]) -> (Vec<Value>, Samples) {
    let home = tempfile::tempdir().unwrap();
    let [out, again] = ["run", "again"].map(|name| home.path().join(name));
    let cells = measured(&out, &[which, plan].concat());
    proved(&cells, |one| measured(&again, &[one, plan].concat()));
    let runs = [again, out].into_iter().filter(|run| run.exists());
    (cells, runs.flat_map(|run| samples(&run)).collect())
}

/// The samples of a run that did not fail.
fn samples(out: &Path) -> Samples {
    let header = fs::read(out.join("run.json")).unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    let samples = fs::read_to_string(out.join("samples.jsonl")).unwrap();
    let sample = |line: &str| {
        let sample: Value = serde_json::from_str(line).unwrap();
        let cell = usize::try_from(sample["cell"].as_u64().unwrap()).unwrap();
        let path = &header["cells"][cell]["cell"]["path"];
        let devices = &sample["outcome"]["measured"]["devices"];
        Some((path.as_str()?.to_owned(), devices.as_array()?.clone()))
    };
    samples.lines().filter_map(sample).collect()
}

/// Every device on the way moves with the traffic: the tunnel's at both ends, and those below it. With IPv4, `conformance` has them.
#[test]
fn tunnels_carry_ipv6_to_both_peers_inside_a_guest() {
    let _beside = beside();
    // It is a tunnel of IPv4 alone.
    let paths = tunnels().replace(",ipip,", ",");
    let which = [
        "--paths",
        &paths,
        "--loads",
        "tcp_rr",
        "--peer",
        "local,far",
    ];
    let (cells, _) = all_proved(&which, &["--set", "family=6", "--window", "400ms"]);
    assert_eq!(cells.len(), (TUNNELS.len() - 1) * 2, "{cells:#?}");
    for (tunnel, ..) in TUNNELS {
        let own = cells.iter().filter(|c| c["path"] == tunnel).count();
        assert_eq!(own, if tunnel == "ipip" { 0 } else { 2 }, "{tunnel}");
    }
}

/// Full segments fill the tunnel's MTU, which is smaller by the headers that the device below sends besides.
#[test]
fn packets_are_smaller_by_the_headers_of_the_tunnel() {
    let _beside = beside();
    let paths = tunnels();
    let plan = [
        "--set",
        "mtu=1500",
        "--set",
        "offload=off",
        "--set",
        "message_size=256K",
        "--window",
        "500ms",
    ];
    let which = ["--paths", &paths, "--loads", "tcp_stream"];
    let (_, samples) = all_proved(&which, &plan);
    for (tunnel, headers, counted) in TUNNELS {
        let sample = samples.iter().find(|(path, _)| path == tunnel);
        let (_, devices) = sample.unwrap_or_else(|| panic!("{tunnel}: {samples:?}"));
        let sent_by = |device: &dyn Fn(&str) -> bool| {
            // Modules of tunnels put devices of their own into every namespace, which carry nothing.
            let is_it = |d: &&Value| {
                let name = d["name"].as_str().unwrap();
                d["namespace"] == "a" && d["tx_packets"] != 0 && device(name)
            };
            let device = devices.iter().find(is_it).unwrap();
            ["tx_packets", "tx_bytes"].map(|what| device[what].as_f64().unwrap())
        };
        let [inside, inside_bytes] = sent_by(&|name| name != "eth0" && name != "lo");
        let [below, below_bytes] = sent_by(&|name| name == "eth0");
        let (size, full) = (inside_bytes / inside, 1500.0 - headers + counted);
        tell(&format!(
            "{tunnel}: {inside} of {size:.1} bytes of {full}, {below} of {:.1} below",
            below_bytes / below
        ));
        assert!(
            inside > 500.0,
            "{tunnel}: too few packets to tell headers of 20 bytes"
        );
        assert!(size > 0.98 * full && size <= full, "{tunnel}: {size}");
        // Below there may be a question for a neighbour, and packets of both edges.
        assert!((below - inside).abs() <= 6.0, "{tunnel}");
        let grown = inside_bytes + (headers - counted + ETHERNET) * inside;
        assert!((below_bytes - grown).abs() <= 6.0 * 1514.0, "{tunnel}");
    }
}

/// There is no device that would show it: what stands for one is what the states of IPsec count.
#[test]
fn ipsec_encrypts_every_packet_of_both_ip_versions_inside_a_guest() {
    let _beside = beside();
    let which = ["--paths", "ipsec,ipsec-tunnel", "--loads", "tcp_rr"];
    let plan = ["--set", "family=4,6", "--window", "400ms"];
    let (cells, samples) = all_proved(&which, &plan);
    assert_eq!(cells.len(), 4);
    assert!(samples.len() >= 4, "{}", samples.len());
    for (path, devices) in samples {
        for namespace in ["a", "b"] {
            let count = |name: &str| {
                let is_it = |d: &&Value| d["namespace"] == namespace && d["name"] == name;
                let device = devices.iter().find(is_it).unwrap();
                let number = |what: &str| device[what].as_f64().unwrap();
                (number("tx_packets"), number("tx_bytes"))
            };
            let ((encrypted, inner), (sent, outer)) = (count("esp"), count("eth0"));
            tell(&format!(
                "{path}: {encrypted} of {sent} packets of {namespace}, of {:.1} and {:.1} bytes",
                inner / encrypted,
                outer / sent
            ));
            // The two are read one after the other, and neighbours ask for each other in the clear.
            let apart = (sent - encrypted).abs();
            assert!(encrypted > 0.0 && apart <= 4.0 + 0.1 * sent, "{path}");
        }
    }
}
