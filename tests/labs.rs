//! Labs beside and after one another, and how long one takes.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use hopyard::lab::{Lab, PATHS, Path};
use hopyard::model::{LoadKind, Peer};

use crate::support::host::unharmed;
use crate::support::icmp::ping;
use crate::support::traces::Traces;
use crate::support::{alone, apart, beside, cell, skip_part, tell};

fn build(path: &str, peer: Peer) -> Lab {
    let axes = cell(path, peer, LoadKind::TcpRr, &[]).axes;
    Lab::build(hopyard::lab::path(path).unwrap(), peer, &axes).unwrap()
}

/// The client of a lab reaches its server.
#[track_caller]
fn talks(lab: &Lab) {
    let ns = lab.space(lab.topology.client.role).unwrap().handle.ns();
    ping(ns, lab.topology.server.addresses.v4.into()).unwrap();
}

/// Every path that can be built here, with each of its peers.
/// But for paths whose client is no namespace of this kernel's.
fn combinations() -> Vec<(&'static Path, Peer)> {
    let all: Vec<_> = PATHS
        .iter()
        .filter(|path| path.available().is_ok() && !path.by_name_only)
        .flat_map(|path| path.peers.iter().map(|peer| (*path, *peer)))
        .collect();
    assert!(!all.is_empty(), "no path can be built here");
    all
}

#[test]
fn two_labs_stand_side_by_side() {
    const ECHOES: u64 = 50;
    let _beside = beside();
    for (path, peer) in combinations() {
        let (one, other) = (build(path.name, peer), build(path.name, peer));
        assert_ne!(one.id(), other.id());
        let packets = |lab: &Lab| -> u64 {
            let spaces = lab.spaces().iter();
            spaces
                .flat_map(|s| s.handle.device_stats().unwrap())
                .map(|d| d.rx_packets)
                .sum()
        };
        let (busy, quiet) = (packets(&one), packets(&other));
        for _ in 0..ECHOES {
            talks(&one);
        }
        assert!(packets(&one) - busy >= ECHOES, "{}", path.name);
        // Neighbours that are looked for once more, at most.
        assert!(packets(&other) - quiet < 20, "{}", path.name);
        drop(one);
        talks(&other);
    }
}

#[test]
fn fifty_labs_leave_the_machine_as_it_was() {
    /// Other people's that may come meanwhile.
    const FOREIGN: u64 = 2;
    let _alone = alone();
    unharmed(|| {
        let combinations = combinations();
        drop(build("veth", Peer::Local));
        let before = Traces::now();
        let kernel_before = namespaces_of_the_kernel();
        for (path, peer) in combinations.iter().cycle().take(50) {
            drop(build(path.name, *peer));
        }
        before.unchanged().unwrap();
        if kernel_before.is_none() {
            let present = std::path::Path::new("/sys/kernel/slab/net_namespace/shrink").exists();
            skip_part("count of namespaces", present, "the kernel does not tell");
        }
        // They go in the background, one after another.
        let deadline = Instant::now() + Duration::from_secs(60);
        while let (Some(before), Some(now)) = (kernel_before, namespaces_of_the_kernel())
            && now > before + FOREIGN
        {
            assert!(
                Instant::now() < deadline,
                "{before} namespaces before, {now} after"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    });
}

/// `struct net` in use, as the allocator counts them. It takes those that it keeps for a CPU to be in use until it is told to
/// give them back (`Documentation/ABI/testing/sysfs-kernel-slab`). None where it does not say.
fn namespaces_of_the_kernel() -> Option<u64> {
    std::fs::write("/sys/kernel/slab/net_namespace/shrink", "1").ok()?;
    let text = std::fs::read_to_string("/proc/slabinfo").ok()?;
    let line = text.lines().find(|l| l.starts_with("net_namespace "))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[test]
fn a_lab_of_two_endpoints_comes_and_goes_within_100_ms() {
    let _beside = beside();
    for path in ["veth", "bridge"] {
        let mut spans: Vec<Duration> = (0..20)
            .map(|_| {
                let began = Instant::now();
                drop(build(path, Peer::Local));
                began.elapsed()
            })
            .collect();
        spans.sort();
        let median = spans[spans.len() / 2];
        tell(&format!(
            "a lab of path {path} comes and goes in {median:.1?} (median of {}, {:.1?} to {:.1?})",
            spans.len(),
            spans[0],
            spans[spans.len() - 1]
        ));
        // The namespaces of one go while the next is built, and the machine may be disturbed. With one of five late, fewer
        // than 8 of 20 are in time with 1.5e-5; with four of five late, 8 of 20 are in time with 0.03.
        assert!(spans[7] < Duration::from_millis(100), "{path}: {spans:?}");
    }
}

#[test]
fn a_lab_that_fails_half_way_leaves_nothing() {
    apart(|| {
        let before = Traces::now();
        let mut failed = BTreeSet::new();
        for (path, peer) in combinations() {
            // The last thing a lab does is setting offloads; veth and its kin cannot have LRO.
            let axes = cell(path.name, peer, LoadKind::TcpRr, &[("lro", "on")]).axes;
            if let Err(error) = Lab::build(path, peer, &axes) {
                assert!(error.is_unsupported(), "{error}");
                failed.insert(path.name);
            }
        }
        before.unchanged().unwrap();
        for path in ["veth", "bridge", "macvlan"] {
            assert!(failed.contains(path), "only {failed:?} failed");
        }
    });
}

#[test]
fn a_panic_takes_the_lab_along() {
    apart(|| {
        let before = Traces::now();
        let outcome = std::thread::spawn(|| {
            let lab = build("bridge", Peer::Far);
            std::panic::resume_unwind(Box::new(lab.id().to_string()));
        })
        .join();
        assert!(outcome.is_err());
        before.unchanged().unwrap();
    });
}

#[test]
fn labs_are_built_from_several_threads_at_once() {
    let _beside = beside();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for (path, peer) in combinations() {
                    let lab = build(path.name, peer);
                    talks(&lab);
                }
            });
        }
    });
}
