//! `hopyard switch apply`: a switch as a file describes it.

use std::fs::{self, File};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hopyard_net::{Cgroup, Handle, NetNs, own_cgroup};
use hopyard_switch::{LOSSES, Loss, test_shortcut};
use nix::fcntl::{Flock, FlockArg};
use nix::sys::socket::{setsockopt, sockopt::RcvBufForce};
use serde_json::Value;

use crate::support::cli::{PROGRAM, Said};
use crate::support::icmp::ping;
use crate::support::site::{NAME, Site, nothing_stands, with_own_mounts};
use crate::support::{apart, beside, tell};

mod guests;

/// Files of switches, in a directory of their own.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Writes the file of the switch.
    fn write(&self, text: &str) -> PathBuf {
        let file = self.0.path().join(format!("{NAME}.toml"));
        fs::write(&file, text).unwrap();
        file
    }
}

fn apply(site: &Site, file: &Path, words: &[&str]) -> Said {
    let mut all = vec!["apply", file.to_str().unwrap()];
    all.extend(words);
    site.switch(&all)
}

/// The ports of the one switch, by their devices.
fn ports(site: &Site) -> Vec<(String, Value)> {
    let shown = site.shown();
    let ports = shown[0]["ports"].as_array().unwrap().clone();
    let named = |port: Value| (port["device"].as_str().unwrap().to_owned(), port);
    ports.into_iter().map(named).collect()
}

/// Where switches are.
const HOME: &str = "/sys/fs/bpf/hopyard/switch";

const TWO: &str = r#"
uplink = "up0"

[[ports]]
device = "p0"
ip = "192.0.2.1"

[[ports]]
device = "p1"
ip = "192.0.2.2"
"#;

#[test]
fn apply_takes_the_steps_that_are_needed_and_no_others() {
    apart(|| {
        let site = Site::new();
        let files = Files::new();
        let file = files.write(TWO);
        let steps = [
            "lan: would create the switch: uplink `up0`",
            "lan: would add port `p0`: mac = [\"",
            "\"], ip = [\"192.0.2.1\"]",
            "lan: 3 steps to take",
        ];
        apply(&site, &file, &["--dry-run"]).exits(1).prints(&steps);
        nothing_stands();
        apply(&site, &file, &[])
            .exits(0)
            .prints(&["lan: 3 steps taken"]);
        site.talks();
        for words in [&["--dry-run"] as &[&str], &[]] {
            apply(&site, &file, words)
                .exits(0)
                .prints(&["lan: nothing to do"]);
        }
        // A change in place: the port's counters go on.
        let received = || {
            let stats = site.switch(&["stats", NAME, "--json"]).exits(0).json();
            let parties = stats["parties"].as_array().unwrap().clone();
            let p0 = parties
                .into_iter()
                .find(|one| one["party"] == "p0")
                .unwrap();
            p0["rx_packets"].as_u64().unwrap()
        };
        let before = received();
        assert!(before > 0);
        let text = TWO.replace(
            "\"192.0.2.1\"",
            "\"192.0.2.1\"\nbroadcasts = 50\nrouter = true\nrate_in = \"8mbit,burst=1000000\"",
        );
        apply(&site, &files.write(&text), &[]).exits(0).prints(&[
            "change port `p0`: router = true (was false), broadcasts = 50 (was 100), rate_in = \"8mbit,burst=1000000\" (was \"unlimited\")",
            "1 step taken",
        ]);
        assert!(received() >= before);
        // Somebody else's port stays, also when it is described no longer what was before.
        site.switch(&["port", "add", NAME, "p2"]).exits(0);
        let one = TWO.split("[[ports]]\ndevice = \"p1\"").next().unwrap();
        apply(&site, &files.write(one), &[]).exits(0).prints(&[
            "remove port `p1`: the file has it no longer",
            "ports left alone, which are not in the file: p2",
        ]);
        let names: Vec<String> = ports(&site).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["p0", "p2"]);
        apply(&site, &files.write(one), &["--prune"])
            .exits(0)
            .prints(&["remove port `p2`: the file does not have it (--prune)"]);
        // What somebody else made is the file's from the moment that it has it.
        site.switch(&["port", "add", NAME, "p1", "--ip", "192.0.2.2"])
            .exits(0);
        apply(&site, &files.write(TWO), &[])
            .exits(0)
            .prints(&["change port `p1`: it was not made from a file, and is from now on"]);
        assert!(
            ports(&site)
                .iter()
                .all(|(_, port)| port["declared"] == true)
        );
        site.talks();
        // Without the uplink, and with it again.
        let without = TWO.replace("uplink = \"up0\"", "answer = true");
        apply(&site, &files.write(&without), &[]).exits(0).prints(&[
            "answer ARP",
            "take uplink `up0` away",
            "2 steps taken",
        ]);
        assert_eq!(site.shown()[0]["uplink"], Value::Null);
        site.talks();
        apply(&site, &files.write(TWO), &[])
            .exits(0)
            .prints(&["set uplink `up0`", "2 steps taken"]);
        site.switch(&["delete", NAME]).exits(0);
        nothing_stands();
    });
}

#[test]
fn what_cannot_be_is_said_before_anything_changes() {
    apart(|| {
        let site = Site::new();
        let files = Files::new();
        apply(&site, &files.write(TWO), &[]).exits(0);
        let before = (site.shown(), site.programs());
        let own = Handle::new(&site.hub)
            .unwrap()
            .link("up0")
            .unwrap()
            .mac
            .unwrap();
        let own = hopyard_switch::Mac(own).to_string();
        for (line, instead, says) in [
            (
                "device = \"p0\"",
                "device = \"p9\"",
                "lan.toml:5: device: there is no device `p9`",
            ),
            (
                "device = \"p0\"",
                "device = \"up0\"",
                "lan.toml:5: device: `up0` is the uplink as well",
            ),
            (
                "device = \"p1\"",
                "device = \"p0\"",
                "lan.toml:9: device: `p0` is described twice",
            ),
            (
                "\"192.0.2.2\"",
                "\"192.0.2.1\"",
                "lan.toml:10: ip: 192.0.2.1 is taken by port `p0`",
            ),
            (
                "uplink = \"up0\"",
                "uplink = \"up7\"",
                "lan.toml:2: uplink: there is no device `up7`",
            ),
            (
                "uplink = \"up0\"",
                "uplink = \"up0\"\nbehind_others = true",
                "lan.toml:3: behind_others: it is false and cannot change",
            ),
            (
                "ip = \"192.0.2.2\"",
                &format!("mac = \"{own}\""),
                &format!("lan.toml:10: mac: {own} is the host's own address"),
            ),
            (
                "ip = \"192.0.2.2\"",
                "mtu = 1400",
                "lan.toml:10: mtu: the guest's end is in another namespace",
            ),
            (
                "device = \"p1\"",
                "netns = \"nosuch\"\ndevice = \"eth0\"",
                "there is no file `/run/netns/nosuch`",
            ),
            (
                "ip = \"192.0.2.2\"",
                "ips = \"192.0.2.2\"",
                "lan.toml:10: ips: unknown key; known are device,",
            ),
        ] {
            let file = files.write(&TWO.replace(line, instead));
            // What else is wrong is said as well.
            for words in [&["--dry-run"] as &[&str], &[]] {
                apply(&site, &file, words).exits(2).says(&[says]);
            }
        }
        let both = TWO.replace("p0", "p8").replace("p1", "p9");
        apply(&site, &files.write(&both), &[])
            .exits(2)
            .says(&["`p8`", "`p9`"]);
        let optional = TWO.replace("device = \"p1\"", "device = \"p9\"\noptional = true");
        let said = apply(&site, &files.write(&optional), &["--dry-run"]);
        said.exits(1).prints(&[
            "optional port left out: there is no device `p9`",
            "would remove port `p1`",
        ]);
        assert_eq!(before, (site.shown(), site.programs()));
        site.switch(&["delete", NAME]).exits(0);
    });
}

/// The second guest's name for its device is not that of the file any more, which may be its own doing: its port stays.
#[test]
fn a_guest_that_renames_its_device_keeps_its_port() {
    apart(|| {
        let site = Site::new();
        let files = Files::new();
        let guest = site.guests[1].proc_path();
        let described = TWO.replace(
            "device = \"p1\"",
            &format!(
                "netns = \"{}\"\ndevice = \"eth0\"\noptional = true",
                guest.display()
            ),
        );
        let file = files.write(&described);
        apply(&site, &file, &[]).exits(0);
        let before = site.programs();
        let inside = Handle::new(&site.guests[1]).unwrap();
        inside.set_down("eth0").unwrap();
        inside.rename("eth0", "mine").unwrap();
        let said = apply(&site, &file, &[]);
        said.exits(0)
            .prints(&["optional port left out: there is no device `eth0`", "p1"]);
        assert_eq!(before, site.programs());
        site.switch(&["delete", NAME]).exits(0);
    });
}

/// As after a boot: the file is applied before the host and its gateway have their addresses, and again afterwards.
#[test]
fn applying_again_takes_over_addresses_of_the_host_and_its_gateway() {
    apart(|| {
        let site = Site::new();
        let files = Files::new();
        let file = files.write(TWO);
        apply(&site, &file, &[]).exits(0);
        let hub = Handle::new(&site.hub).unwrap();
        let [own, gateway] = [7, 1].map(|last| Ipv4Addr::new(198, 51, 100, last).into());
        hub.add_address("up0", own, 24).unwrap();
        hub.add_route(None, Some(gateway), Some("up0")).unwrap();
        let unknown = || {
            let all = site.switch(&["show", NAME, "--json"]).exits(0).json();
            let warnings = all["switches"][0]["warnings"].to_string();
            ["198.51.100.7 ", "198.51.100.1 "].map(|ip| warnings.contains(ip))
        };
        assert_eq!(unknown(), [true, true]);
        apply(&site, &file, &["--dry-run"]).exits(0);
        assert_eq!(unknown(), [true, true]);
        apply(&site, &file, &[]).exits(0).prints(&["nothing to do"]);
        assert_eq!(unknown(), [false, false]);
        site.switch(&["delete", NAME]).exits(0);
    });
}

#[test]
fn what_export_prints_makes_the_same_switch() {
    apart(|| {
        let site = Site::new();
        let files = Files::new();
        site.switch(&[
            "create",
            NAME,
            "--uplink",
            "up0",
            "--answer",
            "--host-mac",
            "00:00:5e:00:01:07",
        ])
        .exits(0);
        site.switch(&[
            "port",
            "add",
            NAME,
            "p0",
            "--ip",
            "192.0.2.1",
            "--ip-prefix",
            "2001:db8::/64",
            "--vlan",
            "7",
            "--isolated",
            "--allow-spoof",
            "--queued",
            "--router",
            "--dhcp-server",
            "--broadcasts",
            "unlimited",
        ])
        .exits(0);
        site.switch(&["port", "add", NAME, "p1"]).exits(0);
        let same = || {
            let mut shown = site.shown();
            for port in shown[0]["ports"].as_array_mut().unwrap() {
                port["declared"].take();
            }
            shown
        };
        let before = same();
        let exported = site.switch(&["export", NAME]);
        exported.exits(0).prints(&[
            "# not made from a file",
            "vlan = 7",
            "broadcasts = \"unlimited\"",
        ]);
        let file = files.write(&exported.stdout);
        apply(&site, &file, &[]).exits(0).prints(&["2 steps taken"]);
        apply(&site, &file, &[]).exits(0).prints(&["nothing to do"]);
        assert_eq!(before, same());
        site.switch(&["delete", NAME]).exits(0);
        apply(&site, &file, &[]).exits(0).prints(&["3 steps taken"]);
        assert_eq!(before, same());
        site.switch(&["delete", NAME]).exits(0);
    });
}

/// The host may have an address that a port of the file had, and not that of a port which is somebody else's.
#[test]
fn an_address_may_move_from_a_port_to_the_host() {
    const MOVED: &str = "02:00:00:00:00:77";
    apart(|| {
        let site = Site::new();
        let files = Files::new();
        let inside = Handle::new(&site.guests[1]).unwrap();
        let own = hopyard_switch::Mac(inside.link("eth0").unwrap().mac.unwrap());
        let at_port = format!("device = \"p1\"\nmac = [\"{own}\", \"{MOVED}\"]");
        let at_port = TWO.replace("device = \"p1\"", &at_port);
        let at_host = format!("uplink = \"up0\"\nhost_mac = \"{MOVED}\"");
        let at_host = TWO.replace("uplink = \"up0\"", &at_host);
        apply(&site, &files.write(&at_port), &[]).exits(0);
        for text in [&at_host, &at_port, &at_host] {
            let file = files.write(text);
            apply(&site, &file, &[]).exits(0).prints(&[
                "remove port `p1`, to add it again",
                "set uplink `up0`",
                "3 steps taken",
            ]);
            apply(&site, &file, &[]).exits(0).prints(&["nothing to do"]);
        }
        // A port of somebody else keeps its own.
        apply(&site, &files.write(TWO), &[]).exits(0);
        site.switch(&["port", "add", NAME, "p2", "--mac", MOVED])
            .exits(0);
        let before = (site.shown(), site.programs());
        let file = files.write(&at_host);
        let says = format!(
            "lan.toml:3: host_mac: the host's address {MOVED} is taken by port `p2`, which is not in the description: remove it first"
        );
        apply(&site, &file, &[]).exits(2).says(&[&says]);
        assert_eq!(before, (site.shown(), site.programs()));
        apply(&site, &file, &["--prune"])
            .exits(0)
            .prints(&["2 steps taken"]);
        site.switch(&["delete", NAME]).exits(0);
    });
}

/// A port by its guest's end; and what both ends take.
#[test]
fn a_port_may_be_named_by_its_guests_end() {
    apart(|| {
        let site = Site::new();
        let files = Files::new();
        fs::create_dir("/run/netns").unwrap();
        let place = site.guests[1].bind(Path::new("/run/netns/web")).unwrap();
        let text = TWO.replace(
            "device = \"p1\"",
            "netns = \"web\"\ndevice = \"eth0\"\nmtu = 1400",
        );
        let file = files.write(&text);
        apply(&site, &file, &[]).exits(0).prints(&[
            "set the MTU of `p1` to 1400 (was 1500, the guest's end 1500)",
            "add port `p1`",
            "4 steps taken",
        ]);
        site.talks();
        let mtu = |ns: &NetNs, name| Handle::new(ns).unwrap().link(name).unwrap().mtu;
        assert_eq!(
            (mtu(&site.hub, "p1"), mtu(&site.guests[1], "eth0")),
            (1400, 1400)
        );
        // Less of a port that stands: the switch has to know.
        let file = files.write(&text.replace("1400", "1300"));
        apply(&site, &file, &[]).exits(0).prints(&[
            "set the MTU of `p1` to 1300",
            "take over its smaller MTU",
            "2 steps taken",
        ]);
        let shown = site.switch(&["show", NAME, "--json"]).exits(0).json();
        let warnings = shown["switches"][0]["warnings"].to_string();
        assert!(!warnings.contains("had one of"), "{warnings}");
        apply(&site, &file, &[]).exits(0).prints(&["nothing to do"]);
        site.switch(&["delete", NAME]).exits(0);
        place.unbind().unwrap();
    });
}

/// The shortcut of a file: made, kept, changed in place, and ended.
#[test]
fn a_shortcut_may_be_described() {
    apart(|| {
        let lost: Vec<String> = test_shortcut().unwrap().lost.iter().map(named).collect();
        let site = Site::new();
        let files = Files::new();
        let own = own_cgroup().unwrap();
        let with = |cgroup: &Path, accept: &[String]| {
            let accept = accept.join(", ");
            let cgroup = cgroup.display();
            format!("{TWO}\n[shortcut]\ncgroup = \"{cgroup}\"\naccept = [{accept}]\n")
        };
        // Before anything is made.
        let nowhere = own.join("hopyard-nowhere");
        apply(&site, &files.write(&with(&nowhere, &lost)), &[])
            .exits(2)
            .says(&["lan.toml:13: shortcut.cgroup: there is no control group `"]);
        apply(&site, &files.write(&with(Path::new("/proc"), &lost)), &[])
            .exits(2)
            .says(&["lan.toml:13: shortcut.cgroup: `/proc` is no directory of a cgroup2 mount"]);
        if let Some((_, others)) = lost.split_first() {
            apply(&site, &files.write(&with(&own, others)), &[])
                .exits(2)
                .says(&["lan.toml:14: shortcut.accept: on this kernel joined sockets lack"]);
        }
        nothing_stands();
        let file = files.write(&with(&own, &lost));
        apply(&site, &file, &[])
            .exits(0)
            .prints(&["make a shortcut for sockets of", "4 steps taken"]);
        apply(&site, &file, &[]).exits(0).prints(&["nothing to do"]);
        site.talks();
        // More is accepted: connections stay joined, so nothing is made again.
        let link = || {
            fs::metadata(format!("{HOME}/{NAME}/link-shortcut"))
                .unwrap()
                .ino()
        };
        let before = link();
        let all: Vec<String> = LOSSES.iter().map(|(loss, ..)| named(loss)).collect();
        apply(&site, &files.write(&with(&own, &all)), &[])
            .exits(0)
            .prints(&["(was ", ", accepting ", "1 step taken"]);
        assert_eq!(before, link());
        // What export prints is the same.
        let exported = site.switch(&["export", NAME]);
        exported.exits(0).prints(&["[shortcut]", &all.join(", ")]);
        apply(&site, &files.write(&exported.stdout), &[])
            .exits(0)
            .prints(&["nothing to do"]);
        // Another control group, which goes.
        let group = Cgroup::create(&format!("apply-{}", std::process::id())).unwrap();
        let file = files.write(&with(group.path(), &all));
        apply(&site, &file, &[])
            .exits(0)
            .prints(&["(was ", "1 step taken"]);
        assert_ne!(before, link());
        let path = group.path().to_owned();
        group.remove().unwrap();
        apply(&site, &file, &["--wait", "100ms"])
            .exits(2)
            .says(&["there is no control group"]);
        let group = Cgroup::create(path.file_name().unwrap().to_str().unwrap()).unwrap();
        apply(&site, &file, &[]).exits(0).prints(&[
            "since the control group",
            "is gone",
            "1 step taken",
        ]);
        apply(&site, &files.write(TWO), &[])
            .exits(0)
            .prints(&["end the shortcut for sockets of", "1 step taken"]);
        group.remove().unwrap();
        site.talks();
        site.switch(&["delete", NAME]).exits(0);
    });
}

fn named(loss: &Loss) -> String {
    format!("\"{loss}\"")
}

/// Devices come while `apply` waits for them, and others have their turn.
#[test]
fn apply_waits_for_devices() {
    apart(|| {
        let site = Site::new();
        let files = Files::new();
        let hub = Handle::new(&site.hub).unwrap();
        hub.set_down("p1").unwrap();
        hub.rename("p1", "late").unwrap();
        let file = files.write(TWO);
        apply(&site, &file, &["--wait", "200ms"])
            .exits(2)
            .says(&["there is no device `p1`"]);
        nothing_stands();
        let other = files.0.path().join("other.toml");
        fs::write(&other, "[[ports]]\ndevice = \"p2\"\n").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(500));
                apply(&site, &other, &[]).exits(0);
                site.switch(&["delete", "other"]).exits(0);
                hub.rename("late", "p1").unwrap();
                hub.set_up("p1").unwrap();
            });
            apply(&site, &file, &["--wait", "30s"])
                .exits(0)
                .prints(&["3 steps taken"]);
        });
        site.switch(&["delete", NAME]).exits(0);
    });
}

/// A lock on what everybody can open.
#[test]
fn nobody_but_root_holds_it_up() {
    apart(|| {
        let site = Site::new();
        let files = Files::new();
        let file = files.write(TWO);
        let lock = || {
            let ns = File::open("/proc/thread-self/ns/net").unwrap();
            Flock::lock(ns, FlockArg::LockExclusive).unwrap()
        };
        let _held = site.hub.run(lock).unwrap();
        apply(&site, &file, &[]).exits(0);
        assert!(!Path::new("/run/hopyard-switch-apply.lock").exists());
        site.switch(&["delete", NAME]).exits(0);
    });
}

/// What the unit file of the package starts, for a directory in the place of `/etc/hopyard/switch`.
fn unit_command(directory: &Path) -> Command {
    let unit = include_str!("../contrib/systemd/hopyard-switch@.service");
    let line = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    let line = line.unwrap().replace("%i", NAME);
    let line = line.replace("/etc/hopyard/switch", directory.to_str().unwrap());
    let mut words = line.split(' ');
    assert_eq!(words.next(), Some("/usr/bin/hopyard"));
    let mut command = Command::new(PROGRAM);
    command.args(words);
    command
}

/// As a boot finds a host: devices with the addresses that they have on every day, and nothing of a switch.
fn booted() -> Site {
    let site = Site::new();
    let hub = Handle::new(&site.hub).unwrap();
    hub.set_mac("up0", [2, 0, 0, 0, 1, 0]).unwrap();
    for (n, guest) in site.guests.iter().enumerate() {
        let mac = [2, 0, 0, 0, 0, n as u8 + 1];
        Handle::new(guest).unwrap().set_mac("eth0", mac).unwrap();
    }
    site
}

#[test]
fn a_reboot_gives_the_same_switch() {
    let _beside = beside();
    let files = Files::new();
    files.write(&format!(
        "answer = true\n{TWO}\n[[ports]]\ndevice = \"p2\"\nvlan = 7\nisolated = true\nbroadcasts = \"unlimited\"\n"
    ));
    let boot = || {
        with_own_mounts(|| {
            let site = booted();
            site.run(unit_command(files.0.path())).exits(0);
            site.talks();
            let mut shown = site.shown();
            // Numbers of namespaces differ.
            shown[0]["netns"].take();
            // Everything goes with the power: the mounts and namespaces of this place.
            shown
        })
    };
    let first = boot();
    assert_eq!(first[0]["ports"].as_array().unwrap().len(), 3, "{first:#}");
    assert_eq!(first, boot());
}

/// What became of numbered datagrams.
#[derive(Debug)]
struct Arrived {
    sent: u32,
    lost: u32,
    doubled: u32,
}

/// Sends numbered datagrams, some 4,000 a second, from the first guest to the second while `f` runs.
fn under_traffic(site: &Site, f: impl FnOnce()) -> Arrived {
    let stop = AtomicBool::new(false);
    let inside = |n: usize, host: u8, port: u16| {
        let bind = || UdpSocket::bind((Ipv4Addr::new(192, 0, 2, host), port)).unwrap();
        site.guests[n].run(bind).unwrap()
    };
    let (sender, receiver) = (inside(0, 1, 0), inside(1, 2, 9000));
    // Of a machine that is busy with other tests: nothing may be lost at the receiver.
    setsockopt(&receiver, RcvBufForce, &(64 << 20)).unwrap();
    receiver
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    sender.connect("192.0.2.2:9000").unwrap();
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let mut number = 0_u32;
            while !stop.load(Relaxed) {
                sender.send(&number.to_be_bytes()).unwrap();
                number += 1;
                std::thread::sleep(Duration::from_micros(250));
            }
            number
        });
        let receiving = scope.spawn(|| {
            let mut times: Vec<u8> = Vec::new();
            let mut datagram = [0; 4];
            loop {
                match receiver.recv(&mut datagram) {
                    Ok(_) => {
                        let n = u32::from_be_bytes(datagram) as usize;
                        times.resize(times.len().max(n + 1), 0);
                        times[n] += 1;
                    }
                    Err(_) if stop.load(Relaxed) => return times,
                    Err(_) => {}
                }
            }
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
        stop.store(true, Relaxed);
        let sent = sending.join().unwrap();
        let mut times = receiving.join().unwrap();
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        times.resize(times.len().max(sent as usize), 0);
        let count = |so: fn(&u8) -> bool| times.iter().filter(|n| so(n)).count() as u32;
        Arrived {
            sent,
            lost: count(|times| *times == 0),
            doubled: count(|times| *times > 1),
        }
    })
}

#[track_caller]
fn nothing_is_lost(what: &str, arrived: &Arrived) {
    tell(&format!("{what}: {arrived:?}"));
    assert!(arrived.sent > 100, "{arrived:?}");
    assert_eq!((arrived.lost, arrived.doubled), (0, 0), "{arrived:?}");
}

/// Ports come, change and go, and the uplink with them: frames between others do not notice.
#[test]
fn apply_loses_no_frame_of_others() {
    apart(|| {
        let site = Site::new();
        let _far = site.second_uplink();
        let files = Files::new();
        apply(&site, &files.write(TWO), &[]).exits(0);
        site.talks();
        let third = |more: &str| format!("{TWO}\n[[ports]]\ndevice = \"p2\"\n{more}\n");
        let arrived = under_traffic(&site, || {
            for _ in 0..3 {
                for text in [
                    third("ip = \"192.0.2.3\""),
                    third("ip = \"192.0.2.4\"\nisolated = true"),
                    // Of the two themselves, what changes in place.
                    third("").replace(
                        "\"192.0.2.1\"",
                        "\"192.0.2.1\"\nbroadcasts = 7\nallow_spoof = true",
                    ),
                    third("vlan = 9")
                        .replace("uplink = \"up0\"", "uplink = \"up1\"\nanswer = true"),
                    TWO.replace("uplink = \"up0\"", ""),
                    TWO.to_owned(),
                ] {
                    apply(&site, &files.write(&text), &[])
                        .exits(0)
                        .prints(&["taken"]);
                }
            }
        });
        nothing_is_lost("18 files applied", &arrived);
        site.switch(&["delete", NAME]).exits(0);
    });
}

fn upgrades(span: Duration, count: u32) {
    let site = Site::new();
    site.furnish(2);
    site.talks();
    let arrived = under_traffic(&site, || {
        let began = Instant::now();
        for n in 0..count {
            let due = began + span * n / count;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            site.switch(&["upgrade"]).exits(0);
        }
        let end = began + span;
        std::thread::sleep(end.saturating_duration_since(Instant::now()));
    });
    nothing_is_lost(&format!("{count} upgrades in {span:?}"), &arrived);
    site.switch(&["delete", NAME]).exits(0);
}

#[test]
fn upgrades_lose_no_frame() {
    apart(|| upgrades(Duration::from_secs(6), 20));
}

#[test]
#[ignore = "takes a minute: `cargo test -p hopyard --test lab -- --ignored upgrades_for_a_minute`"]
fn upgrades_for_a_minute_lose_no_frame() {
    apart(|| upgrades(Duration::from_secs(60), 20));
}

/// Two at once: one after the other, and both find what they want.
#[test]
fn two_at_once_take_turns() {
    apart(|| {
        let site = Site::new();
        let files = Files::new();
        let file = files.write(TWO);
        site.hub
            .run(|| {
                let start = || {
                    let mut command = Command::new(PROGRAM);
                    command.args(["switch", "apply"]).arg(&file);
                    command.stdout(std::process::Stdio::piped());
                    command.spawn().unwrap()
                };
                let all: Vec<_> = (0..4).map(|_| start()).collect();
                let told: Vec<String> = all
                    .into_iter()
                    .map(|one| one.wait_with_output().unwrap())
                    .map(|output| {
                        assert!(output.status.success(), "{output:?}");
                        String::from_utf8(output.stdout).unwrap()
                    })
                    .collect();
                let nothing = told.iter().filter(|text| text.contains("nothing to do"));
                assert_eq!(nothing.count(), 3, "{told:?}");
            })
            .unwrap();
        ping(&site.guests[0], [192, 0, 2, 2].into()).unwrap();
        site.switch(&["delete", NAME]).exits(0);
    });
}
