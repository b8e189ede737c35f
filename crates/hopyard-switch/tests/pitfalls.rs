//! What cut others off: programs left twice on a hook, a second mount of the BPF file system, numbers of
//! devices that come again, maps of another version. They need root.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "not all of it is needed here")]
mod world;

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use aya::maps::{Array, Map, MapData};
use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::{SchedClassifier, TcAttachType};
use hopyard_switch::{Error, Mac, NewPort, NewSwitch, Switch, Warning};
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, send, socket};
use world::{EXPERIMENT, World, frame, under_another_mount};

const BPFFS: &str = "/sys/fs/bpf";

fn directory(name: &str) -> PathBuf {
    Path::new(BPFFS).join("hopyard/switch").join(name)
}

/// The programs at a device's hooks, way in first.
fn programs(world: &World, device: &str) -> Vec<u32> {
    world.in_hub(|| {
        let at = |hook| SchedClassifier::query_tcx(device, hook).unwrap().1;
        [TcAttachType::Ingress, TcAttachType::Egress]
            .into_iter()
            .flat_map(at)
            .map(|program| program.id())
            .collect()
    })
}

fn port(device: &str) -> NewPort<'_> {
    NewPort {
        device,
        ..NewPort::default()
    }
}

fn talks(world: &World) -> bool {
    let frame = frame(world.mac("g1"), world.mac("g0"), EXPERIMENT, b"hello");
    world.send("g0", &frame);
    world.heard() == [("g1".to_owned(), 1)]
}

#[test]
fn what_another_mount_knows_of_is_refused_and_left_alone() {
    let world = World::new("mounts", 2, true);
    let before = ["up0", "p0", "p1"].map(|device| programs(&world, device));
    assert_eq!(before.each_ref().map(Vec::len), [2, 1, 1]);
    let other = format!("{}-other", world.name());
    under_another_mount(|| {
        assert_eq!(Switch::list().unwrap(), [""; 0]);
        let new = |uplink| NewSwitch {
            name: &other,
            uplink,
            ..NewSwitch::default()
        };
        let error = world.in_hub(|| Switch::create(&new(Some("up0"))).unwrap_err());
        assert!(error.is_usage(), "{error:?}");
        assert!(error.to_string().contains("another mount"), "{error}");
        assert_eq!(Switch::names().unwrap(), [""; 0]);
        let error = world.in_hub(|| {
            let mut switch = Switch::create(&new(None)).unwrap();
            let error = switch.add_port(&port("p0")).unwrap_err();
            assert!(switch.show().unwrap().ports.is_empty());
            switch.delete().unwrap();
            error
        });
        assert!(error.is_usage(), "{error:?}");
        assert!(error.to_string().contains("another mount"), "{error}");
        assert_eq!(Switch::names().unwrap(), [""; 0]);
    });
    let after = ["up0", "p0", "p1"].map(|device| programs(&world, device));
    assert_eq!(before, after);
    assert!(talks(&world));
}

/// The identity of a link, and of the program it runs.
fn link(world: &World, file: &str) -> (u32, u32) {
    let link = PinnedLink::from_pin(directory(world.name()).join(file)).unwrap();
    let info = FdLink::from(link).info().unwrap();
    (info.id(), info.program_id())
}

#[test]
fn an_upgrade_replaces_each_program_in_its_place() {
    let world = World::new("place", 2, true);
    let files = [
        "link-uplink-in",
        "link-uplink-out",
        "link-port-2",
        "link-port-3",
    ];
    let mut before = files.map(|file| link(&world, file));
    for _ in 0..2 {
        world.in_hub(|| Switch::open(world.name()).unwrap().upgrade().unwrap());
        let after = files.map(|file| link(&world, file));
        for ((link, program), (same, other)) in before.into_iter().zip(after) {
            assert_eq!(link, same);
            assert_ne!(program, other);
        }
        let at_hooks: Vec<u32> = ["up0", "p0", "p1"]
            .iter()
            .flat_map(|device| programs(&world, device))
            .collect();
        assert_eq!(at_hooks, after.map(|(_, program)| program));
        assert!(talks(&world));
        before = after;
    }
}

#[test]
fn an_upgrade_goes_on_where_a_device_is_gone() {
    let world = World::new("upgone", 3, true);
    world.end_guest(2);
    world.in_hub(|| {
        let delete = Command::new("ip").args(["link", "delete", "up0"]).status();
        assert!(delete.unwrap().success());
    });
    // From another namespace, too: nothing in it has to do with devices.
    Switch::open(world.name()).unwrap().upgrade().unwrap();
    assert!(talks(&world));
    let shown = world.in_hub(|| Switch::open(world.name()).unwrap().show().unwrap());
    assert_eq!(shown.ports.len(), 2);
    let odd: Vec<&Warning> = shown
        .warnings
        .iter()
        .filter(|w| w.contains("programs"))
        .collect();
    assert!(odd.is_empty(), "{odd:?}");
}

#[test]
fn another_device_of_the_same_number_is_not_the_port() {
    let ip = "192.0.2.12".parse().unwrap();
    let world = World::with("number", 3, true, |n, port| {
        if n == 2 {
            port.ips = vec![ip];
        }
    });
    let index = world.in_hub(|| if_nametoindex("p2").unwrap());
    world.end_guest(2);
    world.in_hub(|| {
        let number = index.to_string();
        let words = [
            "link", "add", "p2", "up", "index", &number, "type", "veth", "peer", "q2",
        ];
        assert!(Command::new("ip").args(words).status().unwrap().success());
        assert_eq!(if_nametoindex("p2").unwrap(), index);
        let shown = Switch::open(world.name()).unwrap().show().unwrap();
        let ports: Vec<&str> = shown
            .ports
            .iter()
            .map(|port| port.device.as_str())
            .collect();
        assert_eq!(ports, ["p0", "p1"]);
    });
    assert!(programs(&world, "p2").is_empty());
    // What the old one had is free, and the new one can be a port like any.
    let again = NewPort {
        macs: vec![Mac(world.mac("g2"))],
        ips: vec![ip],
        ..port("p2")
    };
    world.in_hub(|| {
        Switch::open(world.name())
            .unwrap()
            .add_port(&again)
            .unwrap();
    });
    assert_eq!(programs(&world, "p2").len(), 1);
    assert!(talks(&world));
}

#[test]
fn a_program_that_the_kernel_is_late_to_detach_is_waited_for() {
    const LATE: Duration = Duration::from_secs(2);
    let world = World::new("late", 2, true);
    let link = PinnedLink::from_pin(directory(world.name()).join("link-port-2")).unwrap();
    // As long as this is open the program runs, as it does until the kernel comes to detach it.
    let held = FdLink::from(link);
    let remove = || Switch::open(world.name()).unwrap().remove_port("p0");
    world.in_hub(remove).unwrap();
    assert_eq!(programs(&world, "p0").len(), 1, "the old one runs yet");
    let took = world.in_hub(|| {
        thread::scope(|scope| {
            let began = Instant::now();
            scope.spawn(move || {
                thread::sleep(LATE);
                drop(held);
            });
            let mut switch = Switch::open(world.name()).unwrap();
            switch.add_port(&port("p0")).unwrap();
            began.elapsed()
        })
    });
    assert!(took >= LATE, "not waited for: {took:?}");
    assert_eq!(programs(&world, "p0").len(), 1);
    assert!(talks(&world));
}

#[test]
fn of_two_who_want_an_uplink_at_once_one_gets_it() {
    let world = World::new("race", 0, false);
    world.spare("spare");
    for round in 0..8 {
        let names = ["a", "b"].map(|side| format!("{}-{round}-{side}", world.name()));
        let create = |name: &str| {
            world.in_hub(|| {
                Switch::create(&NewSwitch {
                    name,
                    uplink: Some("spare"),
                    ..NewSwitch::default()
                })
            })
        };
        let made = thread::scope(|scope| {
            let threads = names.each_ref().map(|name| scope.spawn(|| create(name)));
            threads.map(|thread| thread.join().unwrap())
        });
        let at_hooks = programs(&world, "spare");
        assert_eq!(at_hooks.len(), 2, "{at_hooks:?}");
        let [one, other] = made;
        let (winner, loser) = match (one, other) {
            (Ok(switch), Err(error)) | (Err(error), Ok(switch)) => (switch, error.to_string()),
            both => panic!("{both:?}"),
        };
        assert!(loser.contains("is the uplink of switch"), "{loser}");
        winner.delete().unwrap();
    }
}

/// Writes the settings' map of a switch as another version might leave it.
fn pretend(name: &str, layout: u32) {
    let path = directory(name).join("config");
    let map = Map::from_map_data(MapData::from_pin(&path).unwrap()).unwrap();
    let mut config: Array<MapData, [u32; 12]> = map.try_into().unwrap();
    let mut words = config.get(&0, 0).unwrap();
    words[0] = layout;
    config.set(0, words, 0).unwrap();
}

/// As [`pretend`], with more settings than this version has.
fn pretend_larger(name: &str) {
    let new = directory(name).join("config-larger");
    let mut config: Array<MapData, [u32; 14]> = Array::create(1, 0).unwrap();
    config
        .set(0, [9, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0)
        .unwrap();
    config.pin(&new).unwrap();
    // Without settings even for a moment it would be unfinished, for another test's command to remove.
    std::fs::rename(&new, directory(name).join("config")).unwrap();
}

#[test]
fn another_versions_switch_is_left_alone_but_can_be_deleted() {
    for (what, change) in [
        ("layout 99", (|name| pretend(name, 99)) as fn(&str)),
        ("an unknown layout", pretend_larger),
    ] {
        let name = format!("test-{}-version", std::process::id());
        let new = NewSwitch {
            name: &name,
            ..NewSwitch::default()
        };
        let mut ours = Switch::create(&new).unwrap();
        change(&name);
        // Whoever comes by must not take it for the remains of an interrupted command.
        assert!(Switch::list().unwrap().contains(&name));
        let error = Switch::open(&name).unwrap_err();
        assert!(error.is_usage(), "{error:?}");
        assert!(error.to_string().contains(what), "{error}");
        let error = Switch::create(&new).unwrap_err().to_string();
        assert!(error.contains("there is one of that name"), "{error}");
        assert!(directory(&name).join("program-hopyard_port_in").exists());
        Switch::remove(&name).unwrap();
        assert!(!directory(&name).exists());
        let error = Switch::remove(&name).unwrap_err().to_string();
        assert!(error.starts_with("there is no switch"), "{error}");
        // A value that outlived its switch changes nothing, not even in one that was made in its place.
        assert!(ours.upgrade().is_err());
        let other = Switch::create(&new).unwrap();
        let error = ours.set_answers(true).unwrap_err();
        assert!(error.is_usage(), "{error:?}");
        assert!(matches!(error, Error::MadeAnew { .. }), "{error:?}");
        assert!(error.to_string().contains("made it anew"), "{error}");
        assert!(ours.delete().is_err());
        assert!(directory(&name).exists());
        other.delete().unwrap();
    }
}

/// Hosts that had many containers hand out indices beyond any table: their ports work like others, and let
/// nothing behind.
#[test]
fn a_device_of_a_high_index_is_a_port_like_any_other() {
    const MAC: [u8; 6] = [2, 0, 0, 0, 9, 9];
    let world = World::new("high", 2, true);
    let index = 70_000.to_string();
    world.in_hub(|| {
        let words = format!(
            "link add p9 up index {index} type veth peer name q9 address 02:00:00:00:09:09"
        );
        for words in [words.as_str(), "link set q9 up"] {
            let status = Command::new("ip").args(words.split(' ')).status();
            assert!(status.unwrap().success());
        }
        let mut switch = Switch::open(world.name()).unwrap();
        let port = NewPort {
            device: "p9",
            macs: vec![Mac(MAC)],
            ..NewPort::default()
        };
        switch.add_port(&port).unwrap();
        send_from("q9", &frame(world.mac("g1"), MAC, EXPERIMENT, b"up"));
    });
    assert_eq!(world.heard(), [("g1".to_owned(), 1)]);
    world.in_hub(|| {
        let mut switch = Switch::open(world.name()).unwrap();
        switch.remove_port("p9").unwrap();
        assert_eq!(switch.show().unwrap().ports.len(), 2);
    });
}

fn send_from(device: &str, frame: &[u8]) {
    let fd = socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        None::<SockProtocol>,
    )
    .unwrap();
    world::bind_packet(&fd, device, EXPERIMENT);
    assert_eq!(
        send(fd.as_raw_fd(), frame, MsgFlags::empty()),
        Ok(frame.len())
    );
}
