//! Paths `unix` and `unix-seqpacket`: which loads they carry, what proves them, and that their files go.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use hopyard::lab::{Lab, path};
use hopyard::load::Sockets;
use hopyard::model::{LoadKind, Peer};
use hopyard_net::{LinkKind, NewLink};
use nix::sys::signal::Signal;

use crate::axes::build;
use crate::support::cli::{Running, hopyard, run};
use crate::support::plan::Room;
use crate::support::traces::Traces;
use crate::support::{apart, beside, cell, proved, sampler, tell, unless_disturbed, until};

const PATHS: [&str; 2] = ["unix", "unix-seqpacket"];

#[test]
fn every_load_with_connections_is_carried_and_its_files_go() {
    apart(|| {
        // What a process opens once is not a trace.
        is_carried(PATHS[0], LoadKind::TcpRr, "1");
        let before = Traces::now();
        for name in PATHS {
            for load in LoadKind::ALL.into_iter().filter(|load| load.is_tcp()) {
                for flows in ["1", "5"] {
                    is_carried(name, load, flows);
                }
            }
        }
        before.unchanged().unwrap();
    });
}

fn is_carried(name: &str, load: LoadKind, flows: &str) {
    let cell = cell(name, Peer::Local, load, &[("flows", flows)]);
    assert_eq!(cell.axes.congestion, None, "{cell}");
    let lab = build(&cell).unwrap();
    // Short windows are missed where others keep the CPUs.
    let measured = unless_disturbed(|| {
        let measured = proved(&lab, &cell, 100)?;
        match measured.silent_flows {
            Some(0) => Ok(measured),
            silent => Err(format!("{cell}: {silent:?} flows are silent")),
        }
    });
    let measured = measured.unwrap();
    assert!(measured.received.bytes > 0, "{cell}");
    // TCP gave no account of it, and no device counted it.
    assert!(
        measured.tcp.is_none() && measured.arrived.is_none(),
        "{cell}"
    );
    assert_eq!(files(&lab), 0, "{cell}: a socket stayed");
}

/// Files in the directory of a lab's sockets.
fn files(lab: &Lab) -> usize {
    let directory = Path::new("/run/hopyard-unix").join(lab.id().to_string());
    fs::read_dir(directory).unwrap().count()
}

/// What another program sees of the kind of the sockets.
#[test]
fn the_sockets_are_of_the_kind_that_the_path_says() {
    // Short windows are missed where others keep the CPUs.
    let _beside = beside();
    for (name, kind) in [("unix", "u_str"), ("unix-seqpacket", "u_seq")] {
        let cell = cell(name, Peer::Host, LoadKind::TcpRr, &[("flows", "3")]);
        let lab = build(&cell).unwrap();
        let directory = format!("/run/hopyard-unix/{}/", lab.id());
        let client = lab.space(lab.topology.client.role).unwrap().handle.ns();
        let over = AtomicBool::new(false);
        let seen = std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                let mut most = 0;
                while !over.load(Relaxed) {
                    let output = client.run(|| Command::new("ss").arg("-xnH").output());
                    let text = output.unwrap().expect("ss (iproute2) runs").stdout;
                    let text = String::from_utf8(text).unwrap();
                    let own = text.lines().filter(|line| line.contains(&directory));
                    let own = own.filter(|line| line.starts_with(kind) && line.contains("ESTAB"));
                    most = most.max(own.count());
                    std::thread::sleep(Duration::from_millis(20));
                }
                most
            });
            let carried = proved(&lab, &cell, 1000);
            over.store(true, Relaxed);
            carried.unwrap();
            watcher.join().unwrap()
        });
        assert_eq!(seen, 3, "{name}");
    }
}

/// The same lab with a cable between its namespaces, over which the load goes by TCP: bytes arrive as before.
#[test]
fn traffic_that_goes_by_a_device_is_found_out() {
    let _beside = beside();
    for load in [LoadKind::TcpStream, LoadKind::TcpRr] {
        let unix = cell("unix", Peer::Local, load, &[]);
        let mut lab = build(&unix).unwrap();
        let [a, b] = ["a", "b"].map(|role| &lab.space(role).unwrap().handle);
        let kind = LinkKind::veth("round", Some(b.ns()));
        a.add_link(&NewLink {
            up: true,
            ..NewLink::new("round", kind)
        })
        .unwrap();
        b.set_up("round").unwrap();
        let addresses: [[u8; 4]; 2] = [[198, 18, 0, 1], [198, 18, 0, 2]];
        for (handle, address) in [a, b].into_iter().zip(addresses) {
            handle.add_address("round", address.into(), 24).unwrap();
        }
        lab.topology.server.addresses.v4 = addresses[1].into();
        lab.path = path("veth").unwrap();
        let measured = sampler(100, 30).measure_in(&lab, &unix, 0.0).unwrap();
        let problems = measured.way.problems.join("\n");
        assert!(
            measured.received.bytes > 0 && !measured.way.proved,
            "{load}"
        );
        for problem in [
            "a/round is not on the path",
            "the kernel lists 0 connections of Unix sockets between both ends, where the traffic has 1",
        ] {
            assert!(problems.contains(problem), "{load}: {problems}");
        }
    }
}

#[test]
fn a_load_without_connections_is_refused_by_name() {
    let _beside = beside();
    for name in PATHS {
        for load in LoadKind::ALL.into_iter().filter(|load| !load.is_tcp()) {
            let words = ["run", "--paths", name, "--loads", load.name()];
            let said = run(&words);
            said.exits(2).says(&[
                &format!("path `{name}` cannot carry {load}"),
                "choose among tcp_stream, tcp_maerts, tcp_rr, tcp_crr, tcp_conns, or another path",
            ]);
        }
    }
    // What is of devices means nothing to it, ...
    let words = ["run", "--paths", "unix", "--loads", "tcp_rr", "--set"];
    run(&[&words[..], &["mtu=9000"]].concat())
        .exits(2)
        .says(&["axis `mtu` does nothing for unix"]);
    // ... and a message that would be cut is no message.
    let words = ["run", "--paths", "unix-seqpacket", "--loads", "tcp_stream"];
    run(&[&words[..], &["--set", "message_size=256KiB"]].concat())
        .exits(2)
        .says(&["message_size 262144 is too large", "at most 131072 bytes"]);
}

#[test]
fn paths_with_unix_sockets_are_known_to_whoever_recommends() {
    let own = |name: &&str| path(name).unwrap().sockets != Sockets::Internet;
    let all = hopyard::lab::PATHS.iter().map(|path| path.name);
    let found: Vec<&str> = all.filter(own).collect();
    assert_eq!(found, PATHS);
}

/// Beside the usual values of axes that it does not have.
#[test]
fn it_is_compared_with_a_cable_and_not_recommended() {
    let _beside = beside();
    let room = Room::new();
    let out = room.name("run");
    let words = [
        "run",
        "--paths",
        "veth,veth-route,unix,unix-seqpacket",
        "--loads",
        "tcp_rr",
        "--blocks",
        "8..8",
        "--window",
        "50ms",
        "--time-limit",
        "20s",
        "--json",
        "--out",
        &out,
    ];
    let document = run(&words).json();
    for cell in document["cells"].as_array().unwrap() {
        assert_eq!(cell["status"], "ok", "{cell}");
        assert_eq!(cell["way"]["proved"], true, "{cell}");
        if cell["path"].as_str().unwrap().starts_with("unix") {
            let verdict = &cell["verdicts"]["transactions_per_s"];
            assert_eq!(verdict["base"], "veth", "{cell}");
            tell(&format!(
                "{} against veth: {}",
                cell["path"], verdict["ratio"]["value"]
            ));
        }
    }
    run(&["report", &out]).exits(0).prints(&["unix", "veth"]);
    let left_out = &document["recommendation"]["choices"][0]["left_out"];
    let left_out: Vec<_> = left_out.as_array().unwrap().iter().collect();
    assert_eq!(left_out.len(), 2, "{left_out:?}");
    for (one, path) in left_out.into_iter().zip(PATHS) {
        assert_eq!(one["path"], path);
        assert!(
            one["reason"].as_str().unwrap().starts_with("is no network"),
            "{one}"
        );
    }
}

#[test]
fn what_a_killed_run_leaves_is_cleaned_up() {
    apart(|| {
        let before = Traces::now();
        let room = Room::new();
        let out = room.name("run");
        let words = [
            "run", "--paths", "unix", "--loads", "tcp_rr", "--blocks", "100", "--out", &out,
        ];
        let running = Running::start(hopyard(&words));
        until("a lab is in use", Duration::from_secs(20), || {
            running.lab_workers().len() == 2
        });
        running.signal(Signal::SIGKILL);
        assert!(!running.gone().success());
        run(&["clean"])
            .exits(0)
            .prints(&["directory of sockets of lab"]);
        assert!(!Path::new("/run/hopyard-unix").exists());
        run(&["lab", "up", "unix", "--name", "test-unix"])
            .exits(0)
            .prints(&["sockets in /run/hopyard-unix/"]);
        run(&["lab", "down", "test-unix"]).exits(0);
        assert!(!Path::new("/run/hopyard-unix").exists());
        drop(room);
        before.unchanged().unwrap();
    });
}
