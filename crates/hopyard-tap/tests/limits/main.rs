//! Limits of a process. They are lowered here, so the test has a process of its own. Needs root.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use hopyard_net::{Handle, NetNs};
use hopyard_tap::switch::{NewPort, NewSwitch, QueueCount, Switch};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

const QUEUES: usize = 2;

fn ports(handles: &[Handle]) -> Vec<NewPort> {
    let port = |handle: &Handle| NewPort::new("tap0", handle.ns().try_clone().unwrap());
    handles.iter().map(port).collect()
}

/// The limit of open files that allows this many more.
fn limit(free: u64) -> u64 {
    let files = fs::read_dir("/proc/self/fd").unwrap();
    let numbers = files.map(|file| file.unwrap().file_name().to_string_lossy().parse());
    let mut open: BTreeSet<u64> = numbers.map(Result::unwrap).collect();
    // The directory itself has the lowest free number.
    let own = (0..).find(|number| !Path::new(&format!("/proc/self/fd/{number}")).exists());
    open.remove(&own.unwrap());
    let mut unused = (0..).filter(|number| !open.contains(number));
    unused.nth(free.try_into().unwrap()).unwrap()
}

/// Runs `act` with this many file numbers left.
fn with_files<T>(free: u64, act: impl FnOnce() -> T) -> T {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, limit(free), hard).unwrap();
    let answer = act();
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
    answer
}

fn workers() -> usize {
    let threads = fs::read_dir("/proc/self/task").unwrap();
    let names = threads.map(|thread| fs::read_to_string(thread.unwrap().path().join("comm")));
    names
        .filter(|name| name.as_ref().is_ok_and(|n| n.starts_with("tap queue")))
        .count()
}

/// Waits until there are this many workers; returns the number.
fn workers_become(count: usize) -> usize {
    let deadline = Instant::now() + Duration::from_secs(5);
    while workers() != count && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    workers()
}

#[test]
fn a_switch_has_all_its_workers_or_does_not_start_nor_grow() {
    let make = || Handle::new(&NetNs::create().expect("these tests need root")).unwrap();
    let handles = [make(), make()];
    let start = |queues, free| {
        let new = NewSwitch {
            ports: ports(&handles),
            queues: QueueCount::Fixed(queues),
            ..NewSwitch::default()
        };
        with_files(free, || new.start())
    };
    let way_out = |error: &hopyard_tap::Error| {
        let text = error.to_string();
        assert!(error.is_usage() && text.contains("ulimit -n"), "{text}");
    };
    let mut refused = 0;
    let switch: Switch = (0..100)
        .find_map(|free| {
            let started = start(QUEUES, free);
            let wanted = if started.is_ok() { QUEUES } else { 0 };
            assert_eq!(workers_become(wanted), wanted, "{free} free: {started:?}");
            let error = started.as_ref().err();
            if let Some(error) = error {
                way_out(error);
                let links = handles.iter().map(|handle| handle.links().unwrap().len());
                assert_eq!(links.sum::<usize>(), 2, "nothing is left");
                refused += 1;
            }
            started.ok()
        })
        .unwrap();
    assert!(refused > 5, "{refused}");
    drop(switch);

    let switch = start(1, 100).unwrap();
    let grown = (0..100).find(|free| {
        let grown = with_files(*free, || switch.set_queues(2));
        let now = if grown.is_ok() { 2 } else { 1 };
        assert_eq!(workers_become(now), now, "{free} free: {grown:?}");
        assert_eq!(switch.state().queues, now, "{free} free: {grown:?}");
        grown.as_ref().map_err(way_out).is_ok()
    });
    assert!(grown.is_some_and(|free| free > 2), "{grown:?}");
}
