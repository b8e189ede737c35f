//! How a shortcut begins and ends.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use hopyard_net::own_cgroup;
use hopyard_switch::{LOSSES, NewPort, NewShortcut, SelfTest, ShortcutCounters, Switch};

use crate::bench::{
    PORT, change, connect, counters, join, listen, nothing_arrives, pair, ping, v4, world,
};
use crate::world::World;

#[test]
fn connections_go_on_by_frames_in_order_when_the_shortcut_ends() {
    let world = world("ends", 2, false);
    let (mut client, mut server) = pair(&world);
    ping(&mut client, &mut server);
    client.write_all(b"unread ").unwrap();
    change(&world, |switch| {
        assert!(switch.shortcut().unwrap().is_some());
        switch.remove_shortcut().unwrap();
        assert_eq!(switch.shortcut().unwrap(), None);
    });
    client.write_all(b"and after").unwrap();
    let mut got = [0; 16];
    server.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"unread and after");
    ping(&mut client, &mut server);
    // And a new one is for new connections.
    join(&world);
    ping(&mut client, &mut server);
    assert_eq!(counters(&world, "p0"), ShortcutCounters::default());
    drop((client, server));
    let listener = listen(&world, "g1", v4(2), PORT + 1);
    let (mut client, mut server) = connect(&world, "g0", &listener);
    ping(&mut client, &mut server);
    assert_eq!(counters(&world, "p0").joined, 1);
}

#[test]
fn a_port_that_is_removed_takes_its_connections_with_it_until_it_is_back() {
    let world = world("removed", 2, false);
    let (mut client, mut server) = pair(&world);
    ping(&mut client, &mut server);
    change(&world, |switch| switch.remove_port("p1").unwrap());
    nothing_arrives(&mut client, &mut server, b"lost");
    change(&world, |switch| {
        let port = NewPort {
            device: "p1",
            ..NewPort::default()
        };
        switch.add_port(&port).unwrap();
    });
    let mut got = [0; 4];
    server.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"lost");
    ping(&mut client, &mut server);
}

/// As with any removed switch, its frames go nowhere; by the shortcut goes nothing either.
#[test]
fn nothing_goes_by_the_shortcut_of_a_switch_that_is_removed() {
    let world = world("gone", 2, false);
    let (mut client, mut server) = pair(&world);
    ping(&mut client, &mut server);
    Switch::remove(world.name()).unwrap();
    // The kernel detaches programs a moment after their links are gone.
    thread::sleep(Duration::from_millis(200));
    nothing_arrives(&mut client, &mut server, b"?");
}

#[test]
fn an_upgrade_of_the_switch_disturbs_no_connection() {
    let world = world("upgraded", 2, false);
    let (mut client, mut server) = pair(&world);
    ping(&mut client, &mut server);
    for _ in 0..3 {
        thread::scope(|scope| {
            let upgrading = scope.spawn(|| change(&world, |switch| switch.upgrade().unwrap()));
            while !upgrading.is_finished() {
                ping(&mut client, &mut server);
            }
        });
        let before = counters(&world, "p0");
        ping(&mut client, &mut server);
        assert_eq!(counters(&world, "p0").rx_messages - before.rx_messages, 4);
    }
    let listener = listen(&world, "g1", v4(2), PORT + 1);
    let (mut client, mut server) = connect(&world, "g0", &listener);
    ping(&mut client, &mut server);
    assert_eq!(counters(&world, "p0").joined, 2);
}

#[test]
fn what_was_interrupted_is_taken_away() {
    let world = world("interrupted", 2, false);
    let directory = Path::new("/sys/fs/bpf/hopyard/switch").join(world.name());
    fs::remove_file(directory.join("link-shortcut")).unwrap();
    change(&world, |switch| {
        assert_eq!(switch.shortcut().unwrap(), None);
    });
    assert!(!directory.join("shortcut").exists() && !directory.join("shortcut_guest").exists());
    join(&world);
    change(&world, |switch| {
        assert!(switch.shortcut().unwrap().is_some());
    });
    // All its files are known to be a switch's.
    fs::remove_file(directory.join("config")).unwrap();
    assert!(
        !Switch::list()
            .unwrap()
            .iter()
            .any(|name| name == world.name())
    );
    assert!(!directory.exists());
}

#[test]
fn what_is_no_control_group_and_what_is_lost_is_refused() {
    let world = World::new("refused", 0, false);
    let set = |cgroup: &str, lost| {
        change(&world, |switch| {
            let mut test = SelfTest::default();
            test.lost = lost;
            let new = NewShortcut {
                cgroup: Path::new(cgroup),
                accept: &[],
            };
            let error = switch.set_tested_shortcut(&new, &test).unwrap_err();
            assert!(error.is_usage());
            assert_eq!(switch.shortcut().unwrap(), None);
            error.to_string()
        })
    };
    for (cgroup, why) in [
        ("/nowhere", "No such file"),
        ("/proc", "no directory of a cgroup2"),
    ] {
        let error = set(cgroup, Vec::new());
        assert!(error.contains(why), "{error}");
    }
    let own = own_cgroup().unwrap();
    let error = set(own.to_str().unwrap(), vec![LOSSES[0].0]);
    assert!(error.contains("a blocking recv may fail"), "{error}");
}
