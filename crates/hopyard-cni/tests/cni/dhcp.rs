//! Addresses from a real DHCP server on the wire, by the reference plugin `dhcp` and its daemon.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use hopyard_net::Handle;
use serde_json::{Value, json};

use crate::host::{Container, Host, PATIENCE, on_host, output, spawn};
use crate::skip::skip;

const DAEMON: &str = "/usr/lib/cni/dhcp";
const LEASES: &str = "/run/leases";
/// The client renews a lease after half of this.
const LEASE: Duration = Duration::from_secs(8);

/// A program that ends with the test, also where that is killed.
struct Server(Child);

impl Server {
    fn start(program: &[&str], ns: &Handle) -> Self {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).args(program);
        ns.ns().adopt(&mut command).unwrap();
        Self(spawn(&mut command).unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server that gives 10.1.7.10 to 10.1.7.20, behind the uplink.
fn dhcp_server(host: &Host) -> Server {
    let seconds = LEASE.as_secs();
    let conf = format!(
        "start 10.1.7.10\nend 10.1.7.20\ninterface far0\nlease_file {LEASES}\npidfile /run/udhcpd.pid\nauto_time 1\nmin_lease 1\n\
         opt subnet 255.255.0.0\nopt router 10.1.0.1\nopt lease {seconds}\n"
    );
    fs::write("/run/udhcpd.conf", conf).unwrap();
    fs::write(LEASES, "").unwrap();
    Server::start(&["busybox", "udhcpd", "-f", "/run/udhcpd.conf"], &host.wire)
}

/// What asks and renews for the containers.
fn dhcp_client(host: &Host) -> Server {
    let daemon = Server::start(&[DAEMON, "daemon"], &host.hub);
    let end = Instant::now() + PATIENCE;
    while !Path::new("/run/cni/dhcp.sock").exists() {
        assert!(Instant::now() < end, "the daemon does not listen");
        thread::sleep(Duration::from_millis(10));
    }
    daemon
}

/// What the server knows of the lease of an address, with the time that remains.
fn lease(address: Ipv4Addr) -> Option<String> {
    let mut leases = Command::new("busybox");
    leases.args(["dumpleases", "-r", "-f", LEASES]);
    let output = output(&mut leases).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let address = address.to_string();
    let mut lines = text.lines().map(str::to_owned);
    lines.find(|line| line.split_whitespace().any(|word| word == address))
}

/// The address of a result, without the length of its prefix.
fn address(result: &Value) -> Ipv4Addr {
    let address = result["ips"][0]["address"].as_str().unwrap();
    address.strip_suffix("/16").unwrap().parse().unwrap()
}

fn held_to(host: &Host, device: &Value) -> Vec<std::net::IpAddr> {
    let port = host.in_hub(|| {
        let switch = hopyard_switch::Switch::open("cni-dev-up0").unwrap();
        switch.port(device.as_str().unwrap()).unwrap().unwrap()
    });
    port.unwrap().ips
}

#[test]
fn leases_of_a_real_server_are_got_held_renewed_and_given_back() {
    if !Path::new(DAEMON).exists() {
        skip("dhcp", false, &format!("there is no {DAEMON}"));
        return;
    }
    on_host(|host| {
        let _server = dhcp_server(host);
        let _client = dhcp_client(host);
        let conf = json!({
            "cniVersion": "1.0.0", "name": "front", "type": "hopyard", "master": "up0", "ipam": { "type": "dhcp" },
        });
        let containers: [Container; 2] = ["c1", "c2"].map(|id| host.container(id));
        let began = Instant::now();
        let results = containers
            .each_ref()
            .map(|container| host.call("ADD", &conf, container).works());
        let own = results.each_ref().map(address);
        assert_ne!(own[0], own[1]);
        for (result, own) in results.iter().zip(own) {
            assert_eq!(own.octets()[..3], [10, 1, 7], "{result:#}");
            assert_eq!(held_to(host, &result["interfaces"][0]["name"]), [own]);
        }
        let [one, other] = &containers;
        assert!(one.reaches(&other.inside, &own[1].to_string()));
        assert!(one.reaches(&host.wire, "10.1.0.1"));
        // Another address than the one that the server gave is nobody's to use.
        one.inside
            .add_address("eth0", [10, 1, 7, 99].into(), 16)
            .unwrap();
        assert!(!one.reaches_from("10.1.7.99", &host.wire, "10.1.0.1", true));
        // The lease has run out by then, unless its renewals passed.
        thread::sleep((LEASE * 3 / 2).saturating_sub(began.elapsed()));
        for own in own {
            let lease = lease(own).unwrap();
            assert!(!lease.contains("expired"), "{lease}");
        }
        for container in &containers {
            host.call("DEL", &conf, container).works();
        }
        host.is_clean();
        let end = Instant::now() + PATIENCE;
        while let Some(lease) = lease(own[0]).filter(|lease| !lease.contains("expired")) {
            assert!(Instant::now() < end, "not given back: {lease}");
            thread::sleep(Duration::from_millis(200));
        }
    });
}
