//! Axis `napi`: threads poll devices, and only those that were asked for.

use std::fs;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hopyard::lab::Lab;
use hopyard::model::{LoadKind, Peer};
use hopyard_net::NetNs;

use crate::axes::{build, devices};
use crate::support::cli::run;
use crate::support::walk::{Visit, those_here, walk};
use crate::support::{beside, cell, sampler, tell, until};

/// Does the kernel say that threads poll a device?
fn is_threaded(ns: &NetNs, device: &str) -> bool {
    let script = format!("mount -t sysfs sysfs /sys && cat /sys/class/net/{device}/threaded");
    let words = ["--mount", "sh", "-c", &script];
    let output = ns.run(|| Command::new("unshare").args(words).output());
    let text = String::from_utf8(output.unwrap().unwrap().stdout).unwrap();
    text.trim() == "1"
}

/// Kernel threads that poll devices: their names, and the CPU time of all of them, ns.
fn pollers() -> (Vec<String>, u64) {
    let each = each_poller();
    let spent = each.iter().map(|(_, spent)| spent).sum();
    (each.into_iter().map(|(name, _)| name).collect(), spent)
}

/// Kernel threads that poll devices, each with its CPU time, ns.
pub(crate) fn each_poller() -> Vec<(String, u64)> {
    let mut each = Vec::new();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let read = |file: &str| fs::read_to_string(process.path().join(file)).unwrap_or_default();
        let name = read("comm");
        if name.starts_with("napi/") {
            let time = read("schedstat");
            let time = time.split_whitespace().next().unwrap_or("0");
            each.push((name.trim().to_owned(), time.parse().unwrap()));
        }
    }
    each
}

fn threaded_devices(lab: &Lab) -> Vec<String> {
    let all = devices(lab).into_iter();
    let threaded =
        all.filter(|(role, name)| is_threaded(lab.space(role).unwrap().handle.ns(), name));
    threaded
        .map(|(role, name)| format!("{role}/{name}"))
        .collect()
}

/// The kernel's threads that poll are of the whole machine, and tests beside each other would see each other's.
static POLLERS: Mutex<()> = Mutex::new(());

/// Only who has this makes such threads. Those of the labs before go in the background.
pub(crate) fn sole_poller() -> MutexGuard<'static, ()> {
    let sole = POLLERS.lock().unwrap_or_else(PoisonError::into_inner);
    until("no thread polls any more", Duration::from_secs(10), || {
        pollers().0.is_empty()
    });
    sole
}

#[test]
fn threads_poll_what_has_napi_and_the_rest_is_said() {
    let _sole = sole_poller();
    let _beside = beside();
    assert_eq!(pollers().0, Vec::<String>::new(), "of somebody else");
    let checked = walk("napi", |path, peer| {
        let set = [("gro", "on"), ("tso", "off"), ("napi", "threaded")];
        match build(&cell(path.name, peer, LoadKind::TcpRr, &set)) {
            Ok(lab) => {
                let found = threaded_devices(&lab);
                tell(&format!("{}, {peer}: {}", path.name, found.join(" ")));
                let threads = pollers().0.len();
                drop(lab);
                until("no thread polls any more", Duration::from_secs(10), || {
                    pollers().0.is_empty()
                });
                match (found.len(), threads) {
                    (1.., 1..) => Ok(Visit::Checked),
                    (devices, threads) => Err(format!("{devices} devices, {threads} threads")),
                }
            }
            Err(error) => {
                let error = hopyard::chain(&error);
                tell(&format!("{}, {peer}: {error}", path.name));
                let is_told = error.contains("napi=threaded") || error.contains("[fixed]");
                if is_told {
                    Ok(Visit::PassedOver)
                } else {
                    Err(error)
                }
            }
        }
    });
    checked.has(&["veth"]);
}

#[test]
fn the_threads_do_the_receiving() {
    let _sole = sole_poller();
    let _beside = beside();
    let of = |value| {
        let set = [
            ("gro", "on"),
            ("tso", "off"),
            ("napi", value),
            ("placement", "split"),
        ];
        let cell = cell("veth", Peer::Local, LoadKind::UdpStream, &set);
        let lab = build(&cell).unwrap();
        let before = pollers().1;
        let measured = sampler(200, 50).measure_in(&lab, &cell, 0.0).unwrap();
        assert!(measured.received.messages > 0);
        (pollers().0.len(), pollers().1 - before)
    };
    assert_eq!(of("softirq"), (0, 0));
    let (threads, spent_ns) = of("threaded");
    tell(&format!("{threads} threads, {spent_ns} ns"));
    assert_eq!(threads, 2);
    // A fifth of a second of datagrams as fast as they go.
    assert!(spent_ns > 5_000_000, "{spent_ns} ns");
}

#[test]
fn without_anything_to_poll_it_is_refused_with_advice() {
    let _sole = sole_poller();
    let _beside = beside();
    let refused = |more: &[&str], advice: &[&str]| {
        let words = [
            "run",
            "--paths",
            "veth",
            "--loads",
            "tcp_rr",
            "--set",
            "napi=threaded",
        ];
        run(&[&words, more].concat()).exits(2).says(advice);
    };
    refused(
        &[],
        &["no device of this lab has NAPI: set `gro=on` and `tso=off`"],
    );
    let idle = "only what comes from a device without TSO: set `tso=off`";
    refused(&["--set", "gro=on"], &[idle]);
    // The peer's TSO counts, not the device's own.
    let own = ["--set", "gro@a/eth0=on", "--set", "tso@a/eth0=off"];
    refused(&[&["--paths", "veth-route"], &own[..]].concat(), &[idle]);
}

/// An XDP program gives its device NAPI and switches off TSO of the peer.
#[test]
fn threads_poll_devices_with_xdp_programs() {
    let _sole = sole_poller();
    let _beside = beside();
    if those_here(&["af-xdp"]).is_empty() {
        return;
    }
    let cell = cell(
        "af-xdp",
        Peer::Local,
        LoadKind::UdpRr,
        &[("napi", "threaded")],
    );
    let lab = build(&cell).unwrap();
    let before = pollers().1;
    let measured = sampler(200, 50).measure_in(&lab, &cell, 0.0).unwrap();
    assert!(measured.received.transactions > 0);
    assert!(pollers().1 > before, "{:?}", each_poller());
}
