//! Tunnels, most of which this machine's own kernel may lack.

use serde_json::Value;

use super::one_guest::{Measured, TUNNELS as RUN};
use crate::support::tell;

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

fn is_tunnel(path: &str) -> bool {
    TUNNELS.iter().any(|(name, ..)| *name == path)
}

/// The path and the devices of each.
type Samples = Vec<(String, Vec<Value>)>;

/// The cells of these paths and loads, each proved, and their samples.
fn all_proved(is_own: impl Fn(&str, &str) -> bool, set: &[&str]) -> (Vec<Value>, Samples) {
    let measured = RUN.proved(is_own, set);
    let samples = samples(&measured);
    (measured.cells, samples)
}

/// The samples that did not fail.
fn samples(measured: &Measured) -> Samples {
    let sample = |(cell, sample): &(Value, Value)| {
        let devices = &sample["outcome"]["measured"]["devices"];
        Some((
            cell["path"].as_str()?.to_owned(),
            devices.as_array()?.clone(),
        ))
    };
    measured.samples.iter().filter_map(sample).collect()
}

/// Every device on the way moves with the traffic: the tunnel's at both ends, and those below it. With IPv4, `conformance` has them.
#[test]
fn tunnels_carry_ipv6_to_both_peers_inside_a_guest() {
    let is_own = |path: &str, load: &str| is_tunnel(path) && load == "tcp_rr";
    let (cells, _) = all_proved(is_own, &["family=6"]);
    assert_eq!(cells.len(), (TUNNELS.len() - 1) * 2, "{cells:#?}");
    for (tunnel, ..) in TUNNELS {
        let own = cells.iter().filter(|c| c["path"] == tunnel).count();
        assert_eq!(own, if tunnel == "ipip" { 0 } else { 2 }, "{tunnel}");
    }
}

/// Full segments fill the tunnel's MTU, which is smaller by the headers that the device below sends besides.
#[test]
fn packets_are_smaller_by_the_headers_of_the_tunnel() {
    let is_own = |path: &str, load: &str| is_tunnel(path) && load == "tcp_stream";
    let set = ["mtu=1500", "offload=off", "message_size=256K"];
    let (_, samples) = all_proved(is_own, &set);
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
        assert!(size > 0.98 * full && size <= full, "{tunnel}: {size}");
        // Below there may be a question for a neighbour, and packets of both edges.
        let apart = (below - inside).abs();
        assert!(apart <= 6.0, "{tunnel}");
        let bytes_apart = (apart + 1.0) * 1514.0;
        assert!(
            inside * 20.0 > bytes_apart,
            "{tunnel}: too few packets to tell headers of 20 bytes"
        );
        let grown = inside_bytes + (headers - counted + ETHERNET) * inside;
        assert!((below_bytes - grown).abs() <= bytes_apart, "{tunnel}");
    }
}

/// There is no device that would show it: what stands for one is what the states of IPsec count.
#[test]
fn ipsec_encrypts_every_packet_of_both_ip_versions_inside_a_guest() {
    let (cells, samples) = all_proved(|path, _| path.starts_with("ipsec"), &["family=4,6"]);
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
