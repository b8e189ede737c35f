//! Path `af-xdp`: the forwarder passes everything on, its CPU time is the path's, and it goes with its lab.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hopyard::lab::LabKey;
use hopyard::model::{LoadKind, Peer};
use hopyard_net::{BridgeSettings, LinkKind, NewLink};
use nix::sys::signal::{Signal, kill};

use crate::axes::build;
use crate::support::cli::{Running, hopyard, pid, run};
use crate::support::plan::Room;
use crate::support::traces::Traces;
use crate::support::{alone, apart, beside, cell, proved, sampler, tell, until};

#[test]
fn frames_up_to_a_page_and_both_ip_versions_pass() {
    let _beside = beside();
    let settings: [&[(&str, &str)]; 4] = [
        &[("family", "6")],
        &[("mtu", "3490")],
        &[("mtu", "1280"), ("flows", "4")],
        &[("offload", "on")],
    ];
    for peer in [Peer::Local, Peer::Far] {
        for set in settings {
            let cells = [LoadKind::TcpStream, LoadKind::TcpRr, LoadKind::UdpStream]
                .map(|load| cell("af-xdp", peer, load, set));
            let lab = build(&cells[0]).unwrap();
            for cell in &cells {
                assert_eq!(LabKey::of(cell), LabKey::of(&cells[0]), "another lab");
                let measured = proved(&lab, cell, 100).unwrap();
                assert!(measured.received.bytes > 0, "{cell}");
            }
        }
    }
    let words = ["run", "--paths", "af-xdp", "--set", "mtu=9000"];
    run(&words)
        .exits(2)
        .says(&["frames of more than a page", "set `mtu` to 3490 or less"]);
}

/// It is no process of somebody else's, and of the load's it is told apart.
#[test]
fn its_cpu_time_is_part_of_the_path() {
    let _alone = alone();
    let cell = cell("af-xdp", Peer::Local, LoadKind::TcpStream, &[]);
    let lab = build(&cell).unwrap();
    let forwarder = lab.daemons();
    let [forwarder] = forwarder[..] else {
        panic!("{forwarder:?}")
    };
    if let Some(group) = lab.cgroup() {
        let groups = fs::read_to_string(format!("/proc/{forwarder}/cgroup")).unwrap();
        let own = group.path().file_name().unwrap().to_str().unwrap();
        assert!(groups.contains(&format!("/{own}")), "{groups}");
    }
    let spent = || {
        let stat = fs::read_to_string(format!("/proc/{forwarder}/schedstat")).unwrap();
        stat.split_whitespace()
            .next()
            .unwrap()
            .parse::<f64>()
            .unwrap()
    };
    let before = spent();
    let measured = sampler(300, 100).measure_in(&lab, &cell, 0.0).unwrap();
    let own_ns = spent() - before;
    let share = own_ns / measured.cpu.elapsed_ns;
    tell(&format!("the forwarder had {share:.2} CPUs"));
    assert!(share > 0.1, "{share}");
    assert!(measured.cpu.foreign_ns < 0.5 * own_ns, "{:?}", measured.cpu);
    assert!(measured.way.proved, "{:?}", measured.way);
}

/// A bridge in its place carries everything as well, past what would count it.
#[test]
fn what_goes_by_the_stack_is_found_out() {
    let _beside = beside();
    let cell = cell("af-xdp", Peer::Local, LoadKind::UdpRr, &[]);
    let lab = build(&cell).unwrap();
    let hub = &lab.space("hub").unwrap().handle;
    let bridge = BridgeSettings::default().stp(false).forward_delay(0);
    hub.add_link(&NewLink {
        up: true,
        ..NewLink::new("round", LinkKind::Bridge(bridge))
    })
    .unwrap();
    for device in ["veth-a", "veth-b"] {
        let words = ["link", "set", "dev", device, "xdp", "off"];
        let output = hub.ns().run(|| Command::new("ip").args(words).output());
        assert!(output.unwrap().unwrap().status.success());
        hub.set_master(device, "round").unwrap();
    }
    let measured = sampler(100, 30).measure_in(&lab, &cell, 0.0).unwrap();
    let problems = measured.way.problems.join("\n");
    assert!(measured.received.bytes > 0 && !measured.way.proved);
    assert!(problems.contains("hub/forwarded received 0 "), "{problems}");
}

#[test]
fn a_forwarder_that_dies_is_named() {
    let _beside = beside();
    let cell = cell("af-xdp", Peer::Local, LoadKind::TcpRr, &[]);
    let lab = build(&cell).unwrap();
    kill(pid(lab.daemons()[0]), Signal::SIGKILL).unwrap();
    until("it is gone", Duration::from_secs(5), || {
        lab.death().is_some()
    });
    let error = sampler(100, 30).measure_in(&lab, &cell, 0.0).unwrap_err();
    let error = hopyard::chain(&error);
    assert!(error.contains("the AF_XDP forwarder"), "{error}");
}

#[test]
fn it_goes_with_its_lab_however_that_ends() {
    apart(|| {
        let before = Traces::now();
        let room = Room::new();
        let out = room.name("run");
        let words = [
            "run", "--paths", "af-xdp", "--loads", "tcp_rr", "--blocks", "100", "--out", &out,
        ];
        let running = Running::start(hopyard(&words));
        until("a lab is in use", Duration::from_secs(20), || {
            running.lab_workers().len() == 2
        });
        running.signal(Signal::SIGKILL);
        assert!(!running.gone().success());
        run(&["clean"])
            .exits(0)
            .prints(&["AF_XDP forwarder of lab"]);
        assert!(!Path::new("/run/hopyard-afxdp").exists());
        run(&["lab", "up", "af-xdp", "--name", "test-afxdp"]).exits(0);
        let ping = [
            "lab",
            "exec",
            "test-afxdp",
            "a",
            "--",
            "ip",
            "route",
            "get",
            "198.18.0.2",
        ];
        run(&ping).exits(0);
        run(&["lab", "down", "test-afxdp"]).exits(0);
        drop(room);
        before.unchanged().unwrap();
    });
}

#[test]
fn by_itself_it_says_what_is_wrong() {
    let _beside = beside();
    let room = tempfile::tempdir().unwrap();
    let socket = room.path().join("ctl");
    let socket = socket.to_str().unwrap();
    run(&["xdp-forward", socket, "nope", "lo"]).exits(2).says(&[
        "open AF_XDP sockets on `nope` and `lo`",
        "there is no device `nope`",
    ]);
    assert!(!Path::new(socket).exists());
    // A socket that somebody has is not taken.
    let _listener = UnixListener::bind(socket).unwrap();
    let words = [
        "--net",
        "sh",
        "-c",
        "ip link add x0 type veth peer name x1 && ip link set x0 up && ip link set x1 up && \
                  exec \"$0\" xdp-forward \"$1\" x0 x1",
        crate::support::cli::PROGRAM,
        socket,
    ];
    let mut command = Command::new("unshare");
    command.args(words);
    let said = Running::start(command).wait();
    said.exits(2).says(&["listen on"]);
}
