//! Limits of what a container gets and sends (capability `bandwidth`), with real traffic.

use std::net::UdpSocket;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use hopyard_net::Handle;
use hopyard_switch::{PortChange, Switch};
use serde_json::{Value, json};

use crate::host::{Host, conf_with, on_host, with};

/// 8 Mbit/s: a thousandth of what two namespaces exchange otherwise, at most a tenth on the slowest machine.
const BYTES_PER_S: u64 = 1_000_000;
const BURST_BYTES: u64 = 200_000;
const SPAN: Duration = Duration::from_secs(2);
const DATAGRAM: usize = 1400;
/// Of its frame: Ethernet, IPv4, UDP.
const HEADERS: u64 = 14 + 20 + 8;

fn limits(way: &str) -> Value {
    json!({ format!("{way}Rate"): 8 * BYTES_PER_S, format!("{way}Burst"): 8 * BURST_BYTES })
}

fn base() -> Value {
    conf_with("1.0.0", "front", "10.1.0.5/16")
}

fn limited(bandwidth: &Value) -> Value {
    with(
        &base(),
        json!({ "capabilities": { "bandwidth": true }, "runtimeConfig": { "bandwidth": bandwidth } }),
    )
}

fn open(at: &Handle, ip: &str) -> UdpSocket {
    let socket = at.ns().run(|| UdpSocket::bind((ip, 0))).unwrap().unwrap();
    let wait = Some(Duration::from_millis(20));
    socket.set_read_timeout(wait).unwrap();
    socket
}

/// Bytes of frames that arrive while datagrams are sent as fast as can be, and how long that took.
fn flood(from: (&Handle, &str), to: (&Handle, &str)) -> (u64, Duration) {
    let (server, client) = (open(to.0, to.1), open(from.0, from.1));
    client.connect(server.local_addr().unwrap()).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let got = scope.spawn(|| {
            let mut bytes = 0;
            let mut buffer = [0; DATAGRAM];
            loop {
                match server.recv(&mut buffer) {
                    Ok(len) => bytes += len as u64 + HEADERS,
                    Err(_) if done.load(Relaxed) => return bytes,
                    Err(_) => {}
                }
            }
        });
        let began = Instant::now();
        while began.elapsed() < SPAN {
            // Refused while the neighbour is not known, and where a queue is full.
            let _ = client.send(&[0; DATAGRAM]);
        }
        done.store(true, Relaxed);
        let took = began.elapsed();
        (got.join().unwrap(), took)
    })
}

/// Passes more than half of what the limit allows, and no more than all of it?
#[track_caller]
fn is_kept((bytes, took): (u64, Duration)) {
    let most = BYTES_PER_S as f64 * took.as_secs_f64() + BURST_BYTES as f64;
    let share = bytes as f64 / most;
    assert!((0.5..1.1).contains(&share), "{share}");
}

#[track_caller]
fn is_far_beyond((bytes, took): (u64, Duration)) {
    let limit = BYTES_PER_S as f64 * took.as_secs_f64() + BURST_BYTES as f64;
    assert!(bytes as f64 > 2.0 * limit, "{bytes} of {limit}");
}

#[test]
fn a_container_gets_and_sends_no_more_than_its_rate() {
    const OWN: &str = "10.1.0.5";
    const WIRE: &str = "10.1.0.1";
    on_host(|host| {
        for (way, conf) in [
            ("ingress", limited(&limits("ingress"))),
            // As the reference plugin has them: of the configuration.
            ("egress", with(&base(), limits("egress"))),
        ] {
            let container = host.container("c1");
            let result = host.call("ADD", &conf, &container).works();
            let inside = (&container.inside, OWN);
            let wire = (&host.wire, WIRE);
            // The neighbours know each other.
            assert!(container.reaches(&host.wire, WIRE));
            let (gets, sends) = (flood(wire, inside), flood(inside, wire));
            let (within, free) = match way {
                "ingress" => (gets, sends),
                _ => (sends, gets),
            };
            is_kept(within);
            is_far_beyond(free);
            let conf = with(&conf, json!({ "prevResult": result }));
            host.call("CHECK", &conf, &container).works();
            host.call("DEL", &conf, &container).works();
            host.is_clean();
        }
    });
}

fn change(host: &Host, change: &PortChange<'_>) {
    let device = host.devices().remove(0);
    let changed = host.in_hub(|| {
        let change = PortChange {
            device: &device,
            ..change.clone()
        };
        Switch::open("cni-dev-up0").unwrap().set_port(&change)
    });
    changed.unwrap().unwrap();
}

#[test]
fn check_sees_whether_the_limits_are_as_given() {
    on_host(|host| {
        let both = json!({
            "ingressRate": 8_000_000, "ingressBurst": 1_600_000, "egressRate": 16_000_000, "egressBurst": 1_600_000,
        });
        let container = host.container("c1");
        let conf = limited(&both);
        let result = host.call("ADD", &conf, &container).works();
        let conf = with(&conf, json!({ "prevResult": result }));
        host.call("CHECK", &conf, &container).works();
        let now = |way: &str, rate: &str| {
            let rate = Some(rate.parse().unwrap());
            let changed = match way {
                "gets" => PortChange {
                    rate_in: rate,
                    ..PortChange::default()
                },
                _ => PortChange {
                    rate_out: rate,
                    ..PortChange::default()
                },
            };
            change(host, &changed);
        };
        for (way, other, own) in [
            ("gets", "unlimited", "8mbit,burst=200000"),
            ("gets", "8mbit,burst=300000", "8mbit,burst=200000"),
            ("sends", "32mbit,burst=200000", "16mbit,burst=200000"),
        ] {
            now(way, other);
            let said = host.call("CHECK", &conf, &container);
            said.fails(102, &[&format!("{way} is {other}, not {own}")]);
            now(way, own);
            host.call("CHECK", &conf, &container).works();
        }
        // The runtime asks for another limit than at ADD.
        let other = with(
            &limited(&limits("ingress")),
            json!({ "prevResult": result }),
        );
        let said = host.call("CHECK", &other, &container);
        said.fails(102, &["sends is 16mbit,burst=200000, not unlimited"]);
        host.call("DEL", &conf, &container).works();
        host.is_clean();
    });
}

#[test]
fn bad_limits_are_refused_before_anything_is_made() {
    on_host(|host| {
        let container = host.container("c1");
        for (code, key, wrong) in [
            (7, "ingressRate", json!({ "ingressRate": 8_000_000 })),
            (7, "egressBurst", json!({ "egressBurst": 8_000_000 })),
            (
                7,
                "egressRate",
                json!({ "egressRate": 1000, "egressBurst": 8_000_000 }),
            ),
            (
                7,
                "ingressRate",
                json!({ "ingressRate": "8M", "ingressBurst": 8_000_000 }),
            ),
            (7, "runtimeConfig.bandwidth", json!([8_000_000])),
            (2, "rate", json!({ "rate": 8_000_000 })),
        ] {
            let said = host.call("ADD", &limited(&wrong), &container);
            said.fails(code, &[key]);
        }
        assert!(container.inside.link("eth0").is_err());
        assert!(!Path::new("/run/ipam.log").exists(), "IPAM was asked");
        host.is_clean();
    });
}
