//! Namespaces, counters, sysctls, control groups and rules, with real kernel objects. Needs root.
//!
//! Some count descriptors, some measure time, and all run in the same process: they take turns.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::io::Read;
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::{pipe2, read};

use hopyard_net::clock::{monotonic_ns, process_cpu_ns};
use hopyard_net::{
    BridgeSettings, Cgroup, Error, Handle, LinkKind, NetNs, NewClassifier, NewLink, Side,
    apply_ruleset, nft_counters, unbind,
};

fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn namespace() -> Handle {
    let handle = Handle::new(&NetNs::create().expect("these tests need root")).unwrap();
    handle.quiet_ipv6().unwrap();
    handle
}

fn cable(a: &Handle, one: &str, b: &Handle, other: &str) {
    let kind = LinkKind::veth(other, Some(b.ns()));
    a.add_link(&NewLink {
        up: true,
        ..NewLink::new(one, kind)
    })
    .unwrap();
    b.set_up(other).unwrap();
    for (handle, device) in [(a, one), (b, other)] {
        handle.settle(device).unwrap();
    }
}

fn address(handle: &Handle, device: &str, text: &str) {
    let address: IpAddr = text.parse().unwrap();
    handle
        .add_address(device, address, if address.is_ipv4() { 24 } else { 64 })
        .unwrap();
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn a_command_is_born_in_a_namespace_and_ends_with_the_thread_that_starts_it() {
    let _alone = alone();
    let ns = namespace();
    let start = |ends: bool| {
        let mut command = Command::new("sleep");
        command.arg("100");
        ns.ns().adopt(&mut command).unwrap();
        if ends {
            hopyard_net::end_with_starter(&mut command);
        }
        thread::scope(|scope| scope.spawn(|| command.spawn().unwrap()).join().unwrap())
    };
    let mut stays = start(false);
    let link = fs::read_link(format!("/proc/{}/ns/net", stays.id())).unwrap();
    let inode = ns.ns().inode().unwrap();
    assert_eq!(link.to_str().unwrap(), format!("net:[{inode}]"));
    let how = start(true).wait().unwrap();
    assert_eq!(how.to_string(), "signal: 9 (SIGKILL)");
    assert!(stays.try_wait().unwrap().is_none());
    stays.kill().unwrap();
    stays.wait().unwrap();
}

#[test]
fn a_namespace_is_entered_by_threads_and_their_children() {
    let _alone = alone();
    let host = NetNs::current().unwrap().inode().unwrap();
    let ns = NetNs::create().unwrap();
    let inside = ns
        .run(|| NetNs::current().unwrap().inode().unwrap())
        .unwrap();
    assert_eq!(inside, ns.inode().unwrap());
    assert_ne!(inside, host);
    let link = ns
        .run(|| Command::new("readlink").arg("/proc/self/ns/net").output())
        .unwrap()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&link.stdout).trim(),
        format!("net:[{inside}]")
    );
    assert_eq!(
        NetNs::current().unwrap().inode().unwrap(),
        host,
        "the caller stays where it is"
    );
    let caught = std::panic::catch_unwind(|| ns.run(|| panic!("inside")));
    assert!(caught.is_err(), "panics go on in the caller");
}

#[test]
fn names_can_be_given_and_taken_back() {
    let _alone = alone();
    let directory = tempdir();
    let path = directory.join("names/lab-x");
    let ns = NetNs::create().unwrap();
    let bound = ns.bind(&path).unwrap();
    assert_eq!(
        NetNs::open(&path).unwrap().inode().unwrap(),
        ns.inode().unwrap()
    );
    let taken = ns.bind(&path).unwrap_err();
    assert!(taken.to_string().contains("the name is taken"), "{taken}");
    bound.unbind().unwrap();
    assert!(!path.exists());
    assert!(matches!(unbind(&path), Err(Error::Missing { .. })));
    assert!(matches!(NetNs::open(&path), Err(Error::Missing { .. })));
    let file = directory.join("plain");
    fs::write(&file, "").unwrap();
    let error = NetNs::open(&file).unwrap_err();
    assert!(error.to_string().contains("is not a namespace"), "{error}");
    unbind(&file).unwrap();
    fs::remove_dir_all(&directory).unwrap();
}

fn tempdir() -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!(
        "hopyard-net-{}-{}",
        std::process::id(),
        monotonic_ns()
    ));
    fs::create_dir(&path).unwrap();
    path
}

#[test]
fn sysctls_stay_in_their_namespace() {
    let _alone = alone();
    let key = "net/ipv4/ip_forward";
    let ns = namespace();
    let host = fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap();
    let other = if ns.sysctl(key).unwrap() == "1" {
        "0"
    } else {
        "1"
    };
    ns.set_sysctl(key, other).unwrap();
    assert_eq!(ns.sysctl(key).unwrap(), other);
    assert_eq!(
        fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap(),
        host
    );
    assert!(
        ns.has_sysctl(key)
            && !ns.has_sysctl("net/ipv4/no_such")
            && !ns.has_sysctl("kernel/hostname")
    );
    let missing = ns.set_sysctl("net/ipv4/no_such", "1").unwrap_err();
    assert_eq!(
        missing.to_string(),
        "cannot set sysctl `net/ipv4/no_such` to `1`: there is no sysctl `net/ipv4/no_such` in this namespace"
    );
    let refused = ns.set_sysctl(key, "many").unwrap_err();
    assert_eq!(refused.errno(), Some(libc::EINVAL));
    assert!(matches!(
        ns.set_sysctl("kernel/hostname", "x"),
        Err(Error::Invalid { .. })
    ));
}

/// Builds four namespaces, a bridge and three cables with addresses; deletes the cables.
fn lab() -> (Duration, Duration) {
    let start = Instant::now();
    let (hub, a, b, far) = (namespace(), namespace(), namespace(), namespace());
    hub.add_link(&NewLink {
        up: true,
        ..NewLink::new("br0", LinkKind::Bridge(BridgeSettings::default()))
    })
    .unwrap();
    for (port, handle, host) in [("p0", &a, 1), ("p1", &b, 2), ("p2", &far, 3)] {
        cable(&hub, port, handle, "eth0");
        hub.set_master(port, "br0").unwrap();
        address(handle, "eth0", &format!("10.0.0.{host}"));
        address(handle, "eth0", &format!("fd00::{host}"));
    }
    let built = start.elapsed();
    let start = Instant::now();
    hub.delete_links(&["p0", "p1", "gone", "p2", "br0"])
        .unwrap();
    assert_eq!(hub.links().unwrap().len(), 1, "only loopback is left");
    assert_eq!(a.links().unwrap().len(), 1);
    hub.delete_links(&["p0"]).unwrap();
    // One that cannot be deleted keeps the others, and none of them goes with the next ones.
    for pair in ["q", "r"] {
        let other = LinkKind::veth(format!("{pair}1"), None);
        hub.add_link(&NewLink::new(format!("{pair}0"), other))
            .unwrap();
    }
    hub.delete_links(&["q0", "lo"]).unwrap_err();
    hub.delete_links(&["r0"]).unwrap();
    assert!(hub.link("q0").is_ok() && hub.link("r0").is_err());
    drop((hub, a, b, far));
    (built, start.elapsed())
}

#[test]
fn a_device_is_gone_though_the_kernel_has_not_freed_it() {
    let _alone = alone();
    let (a, b) = (namespace(), namespace());
    let before = descriptors();
    for _ in 0..20 {
        cable(&a, "p0", &b, "eth0");
        let (heard, held) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).unwrap();
        a.delete_link_unawaited("p0").unwrap();
        for handle in [&a, &b] {
            assert_eq!(handle.links().unwrap().len(), 1, "only loopback is left");
        }
        // Whoever waits for the end of a pipe of ours does not wait for the kernel: nobody else holds it.
        drop(held);
        assert_eq!(read(&heard, &mut [0; 1]), Ok(0));
    }
    assert!(matches!(
        a.delete_link_unawaited("p0"),
        Err(Error::Missing { .. })
    ));
    let refused = a.delete_link_unawaited("lo").unwrap_err();
    assert_eq!(refused.errno(), Some(Errno::EOPNOTSUPP as i32), "{refused}");
    assert_eq!(descriptors(), before);
}

#[test]
fn fifty_labs_leak_nothing_and_are_quick() {
    let _alone = alone();
    lab();
    let before = descriptors();
    let mut times: Vec<_> = (0..50).map(|_| lab()).collect();
    assert_eq!(descriptors(), before);
    times.sort_by_key(|(built, torn)| *built + *torn);
    println!(
        "of 50 labs, built and torn down: quickest {:?}, median {:?}, slowest {:?}",
        times[0], times[25], times[49]
    );
    // What others take of the machine makes none quicker.
    let (built, torn) = times[0];
    assert!(
        built + torn < Duration::from_millis(100),
        "{built:?} + {torn:?}"
    );
}

#[test]
fn a_rate_is_kept() {
    let _alone = alone();
    const RATE_BPS: u64 = 200_000_000;
    let (a, b) = (namespace(), namespace());
    cable(&a, "a0", &b, "b0");
    address(&a, "a0", "10.0.0.1");
    address(&b, "b0", "10.0.0.2");
    assert_eq!(a.root_qdiscs().unwrap(), []);
    println!("{:?}", a.shape("a0", 1_000_000_000).unwrap());
    let shape = a.shape("a0", RATE_BPS).unwrap();
    println!("{shape:?}");

    let listener = b
        .ns()
        .run(|| TcpListener::bind("10.0.0.2:7001"))
        .unwrap()
        .unwrap();
    let reader = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut buffer = vec![0; 1 << 16];
        while stream.read(&mut buffer).unwrap_or(0) > 0 {}
    });
    let stream = a
        .ns()
        .run(|| TcpStream::connect("10.0.0.2:7001"))
        .unwrap()
        .unwrap();
    let stop = stream.try_clone().unwrap();
    let writer = thread::spawn(move || {
        let mut stream = stream;
        let block = vec![0; 1 << 16];
        while std::io::Write::write_all(&mut stream, &block).is_ok() {}
    });
    thread::sleep(Duration::from_millis(100));
    let sent = || {
        a.device_stats()
            .unwrap()
            .iter()
            .find(|stats| stats.name == "a0")
            .unwrap()
            .tx_bytes
    };
    // The clock is read around the counter, so that no pause makes a rate greater than it was.
    let window = || {
        let (start, from) = (Instant::now(), sent());
        thread::sleep(Duration::from_millis(100));
        ((sent() - from) as f64, start.elapsed().as_secs_f64())
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    let rate = loop {
        let (bytes, seconds) = window();
        // A bucket on top; the kernel rounds the time of each packet down by less than a nanosecond.
        let most = RATE_BPS as f64 / 8.0 * seconds * 1.001 + f64::from(shape.burst_bytes);
        assert!(bytes <= most, "{bytes} bytes in {seconds} s");
        let rate = bytes * 8.0 / seconds;
        if rate >= 0.75 * RATE_BPS as f64 {
            break rate;
        }
        assert!(Instant::now() < deadline, "{rate}");
    };
    stop.shutdown(std::net::Shutdown::Both).unwrap();
    writer.join().unwrap();
    reader.join().unwrap();
    println!("asked for {RATE_BPS} bit/s, the device sent {rate:.0} bit/s of GSO frames");
    let index = a.link("a0").unwrap().index;
    assert_eq!(a.root_qdiscs().unwrap(), [(index, "tbf".to_owned())]);
    a.unshape("a0").unwrap();
    assert_eq!(a.root_qdiscs().unwrap(), []);
    assert!(matches!(a.shape("a0", 1), Err(Error::Invalid { .. })));
    assert!(matches!(
        a.shape("zz", RATE_BPS),
        Err(Error::Missing { .. })
    ));
}

#[test]
fn a_control_group_counts_and_ends_its_processes() {
    let _alone = alone();
    let name = format!("test-{}-{}/endpoint", std::process::id(), monotonic_ns());
    let group = Cgroup::create(&name).unwrap();
    let lab = name.split('/').next().unwrap();
    assert!(Cgroup::list().unwrap().iter().any(|other| other == lab));
    let mut child = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn()
        .unwrap();
    group.add(child.id()).unwrap();
    assert_eq!(group.procs().unwrap(), [child.id()]);
    let deadline = Instant::now() + Duration::from_secs(60);
    while group.usage().unwrap() < Duration::from_millis(20) {
        assert!(Instant::now() < deadline, "the child's time is counted");
        thread::sleep(Duration::from_millis(5));
    }
    assert!(process_cpu_ns(child.id().cast_signed()).unwrap() >= 15_000_000);
    Cgroup::open(lab).unwrap().kill().unwrap();
    assert!(!child.wait().unwrap().success());
    Cgroup::open(lab).unwrap().remove().unwrap();
    assert!(!group.path().exists());
    assert!(!Cgroup::list().unwrap().iter().any(|other| other == lab));
    assert!(matches!(Cgroup::open(&name), Err(Error::Missing { .. })));
    assert!(matches!(
        Cgroup::create(lab).unwrap().add(u32::MAX >> 4),
        Err(Error::Missing { .. })
    ));
    Cgroup::open(lab).unwrap().remove().unwrap();
}

/// `hopyard/` goes with the last group in it, whoever else is about to make one there.
#[test]
fn control_groups_come_and_go_side_by_side() {
    let _alone = alone();
    let rounds = |which: &str| {
        for round in 0..100 {
            let name = format!("test-{}-{which}-{round}/endpoint", std::process::id());
            Cgroup::create(&name).unwrap();
            let lab = name.split('/').next().unwrap();
            Cgroup::open(lab).unwrap().remove().unwrap();
        }
    };
    thread::scope(|scope| {
        for which in ["one", "other"] {
            scope.spawn(move || rounds(which));
        }
    });
}

#[test]
fn rules_count_packets_or_the_missing_program_is_named() {
    let _alone = alone();
    let (a, b) = (namespace(), namespace());
    cable(&a, "a0", &b, "b0");
    address(&a, "a0", "10.0.0.1");
    address(&b, "b0", "10.0.0.2");
    let rules = "\
table inet lab {
    counter seen { }
    chain in {
        type filter hook input priority 0;
        udp dport 7002 counter name seen
    }
}
";
    match apply_ruleset(b.ns(), rules) {
        Err(error) => {
            assert!(
                Command::new("nft").arg("--version").output().is_err(),
                "nft is there, yet: {error}"
            );
            assert_eq!(
                error.to_string(),
                "cannot load nftables rules: this host has no nft support; install nftables"
            );
        }
        Ok(()) => {
            let socket = |handle: &Handle, at: &str| {
                let bind = || UdpSocket::bind(at).unwrap();
                handle.ns().run(bind).unwrap()
            };
            let (sender, receiver) = (socket(&a, "10.0.0.1:0"), socket(&b, "10.0.0.2:7002"));
            let patience = Some(Duration::from_secs(30));
            receiver.set_read_timeout(patience).unwrap();
            sender.send_to(b"x", "10.0.0.2:7002").unwrap();
            assert_eq!(receiver.recv(&mut [0; 2]).unwrap(), 1, "it has passed");
            let counters = nft_counters(b.ns()).unwrap();
            assert_eq!(counters.len(), 1, "{counters:?}");
            assert_eq!(
                (
                    counters[0].name.as_str(),
                    counters[0].packets,
                    counters[0].bytes
                ),
                ("seen", 1, 29)
            );
            assert_eq!(nft_counters(a.ns()).unwrap(), []);
            let error = apply_ruleset(b.ns(), "table inet {").unwrap_err();
            assert!(matches!(error, Error::Program { .. }), "{error}");
        }
    }
}

#[test]
fn exec_sees_the_devices_of_its_namespace() {
    let _alone = alone();
    let ns = namespace();
    ns.add_link(&NewLink::new(
        "only-here",
        LinkKind::Bridge(BridgeSettings::default()),
    ))
    .unwrap();
    // A thread of its own mount namespace stands in for the process that is about to exec.
    let fd = ns.ns().try_clone().unwrap();
    let (devices, mounts) = thread::spawn(move || {
        let unshared = nix::sched::unshare(nix::sched::CloneFlags::CLONE_FS);
        unshared.unwrap();
        hopyard_net::enter_for_exec(&fd).unwrap();
        (
            Path::new("/sys/class/net/only-here").exists(),
            NetNs::current().unwrap().inode().unwrap(),
        )
    })
    .join()
    .unwrap();
    assert!(devices);
    assert_eq!(mounts, ns.ns().inode().unwrap());
    assert!(
        !Path::new("/sys/class/net/only-here").exists(),
        "the host's /sys is untouched"
    );
}

#[test]
fn a_clsact_comes_once_and_goes_with_its_classifiers() {
    let _alone = alone();
    let handle = Handle::new(&NetNs::create().unwrap()).unwrap();
    let sides = [Side::Ingress, Side::Egress];
    let listed = || sides.map(|side| handle.classifiers("lo", side).unwrap().len());
    assert_eq!(listed(), [0, 0]);
    handle.add_clsact("lo").unwrap();
    handle.add_clsact("lo").unwrap();
    assert_eq!(listed(), [0, 0]);
    let filter = [
        "filter",
        "add",
        "dev",
        "lo",
        "egress",
        "bpf",
        "bytecode",
        "1,6 0 0 0",
    ];
    let tc = || Command::new("tc").args(filter).status();
    assert!(handle.ns().run(tc).unwrap().unwrap().success());
    assert_eq!(listed(), [0, 1]);
    assert_eq!(
        handle.classifiers("lo", Side::Egress).unwrap()[0].kind,
        "bpf"
    );
    let file = std::fs::File::open("/dev/null").unwrap();
    let no_program = NewClassifier {
        program: file.as_fd(),
        name: "nothing",
        priority: 7,
        handle: 1,
    };
    let put = [Handle::add_classifier, Handle::replace_classifier];
    let refused = put.map(|put| put(&handle, "lo", Side::Ingress, &no_program).unwrap_err());
    for (error, what) in refused.iter().zip(["attach", "replace"]) {
        let text = error.to_string();
        assert!(
            text.contains(&format!("{what} program `nothing`")),
            "{text}"
        );
    }
    // The file is no program, and there is no classifier that could be replaced.
    let errnos = refused.map(|error| error.errno().map(Errno::from_raw));
    assert_eq!(errnos, [Some(Errno::EINVAL), Some(Errno::ENOENT)]);
    assert_eq!(listed(), [0, 1]);
    handle.remove_clsact("lo").unwrap();
    assert_eq!(listed(), [0, 0]);
    let error = handle.remove_clsact("lo").unwrap_err().to_string();
    assert!(error.contains("remove the clsact of `lo`"), "{error}");
    let error = handle.add_clsact("gone").unwrap_err();
    assert!(matches!(error, Error::Missing { .. }), "{error}");
}
