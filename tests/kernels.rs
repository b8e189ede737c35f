//! `hopyard run --kernel`: the whole lab inside a guest with a kernel of Debian's, and what becomes of it
//! when something is wrong.

mod conformance;
mod direct;
mod flow_table;
mod one_guest;
mod redirects;
mod side_by_side;
mod tunnels;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hopyard::guest::Kernel;
use hopyard::lab::Lab;
use hopyard::model::{LoadKind, Peer};
use nix::sys::signal::{Signal, kill};
use serde_json::Value;

use crate::support::cli::{PROGRAM, Running, Said, hopyard, pid, run};
use crate::support::host::unharmed;
use crate::support::kernels::{guests_boot_one, kernel};
use crate::support::plan::write_program;
use crate::support::walk::has_module;
use crate::support::{beside, cell, skip_part, tell, until, waiting};

/// Enough for a guest whose CPU is emulated on a machine that others use as well.
const PATIENCE: Duration = Duration::from_secs(400);
/// One cell, soon done.
const SHORT: [&str; 8] = [
    "--paths", "veth", "--loads", "tcp_rr", "--blocks", "1", "--accel", "tcg",
];

fn in_guest(kernel: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = hopyard(&["run", "--kernel"]);
    command.arg(kernel).arg("--out").arg(out).args(more);
    command
}

/// Every cell is proved. A host that takes an emulated CPU away for the whole of a window fails its sample, so those are measured
/// once more: `again` gets the options that choose them, and perhaps others with them. A path that does not work fails again.
fn proved(cells: &[Value], again: impl FnOnce(&[&str]) -> Vec<Value>) {
    assert!(!cells.is_empty(), "no cells");
    let is_proved = |cell: &&Value| cell["status"] == "ok" && cell["way"]["proved"] == true;
    let failed: Vec<&Value> = cells.iter().filter(|cell| !is_proved(cell)).collect();
    if failed.is_empty() {
        return;
    }
    for cell in &failed {
        tell(&format!("{} failed: {}", cell["path"], cell["cause"]));
    }
    let all = |key: &str| {
        let values: BTreeSet<&str> = failed.iter().map(|c| c[key].as_str().unwrap()).collect();
        values.into_iter().collect::<Vec<_>>().join(",")
    };
    let [paths, peers, loads] = ["path", "peer", "load"].map(all);
    let again = again(&[
        "--paths", &paths, "--peer", &peers, "--loads", &loads, "--window", "1s",
    ]);
    for cell in failed {
        let is_it = |other: &&Value| {
            let keys = ["path", "peer", "load", "axes"];
            keys.iter().all(|key| other[key] == cell[key])
        };
        let other = again.iter().find(is_it);
        assert!(other.is_some_and(|other| is_proved(&other)), "{again:#?}");
    }
}

fn ends(kernel: &Path, more: &[&str]) -> Said {
    let home = tempfile::tempdir().unwrap();
    let running = Running::start(in_guest(
        kernel,
        &home.path().join("run"),
        &[&SHORT, more].concat(),
    ));
    let said = running.wait_for_nothing_left(&[].into());
    assert!(!home.path().join("run").exists(), "a run was begun: {said}");
    said
}

#[test]
fn every_path_that_the_kernel_has_is_proved_inside_a_guest() {
    let _beside = beside();
    let kernel = kernel();
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("run");
    let short = ["--loads", "tcp_rr", "--window", "300ms"];
    // An emulated guest beside other tests may take longer than the plan's two minutes.
    let plan = [
        "--blocks",
        "1",
        "--turns",
        "off",
        "--time-limit",
        "20m",
        "--json",
    ];
    let mut said = None;
    unharmed(|| {
        let running = Running::start(in_guest(&kernel, &out, &[&short[..], &plan[..]].concat()));
        said = Some(running.wait_for(PATIENCE));
    });
    let said = said.unwrap();
    let document = said.json();
    let environment = &document["run"]["environment"];
    let release = Kernel::open(&kernel, None).unwrap().release;
    assert_eq!(environment["kernel_release"], release.as_str());
    assert_ne!(
        environment["hostname"],
        fs::read_to_string("/proc/sys/kernel/hostname")
            .unwrap()
            .trim()
    );
    let cells = document["cells"].as_array().unwrap();
    proved(cells, |one| {
        let more = [one, &plan[..]].concat();
        let again = in_guest(&kernel, &home.path().join("again"), &more);
        let document = Running::start(again).wait_for(PATIENCE).json();
        document["cells"].as_array().unwrap().clone()
    });
    let cell = |path: &str| cells.iter().find(|c| c["path"] == path);
    for path in [
        "veth",
        "bridge-nf",
        "macvlan",
        "ipvlan",
        "ipvlan-l3s",
        "vxlan",
        "macsec",
        "vrf",
    ] {
        assert!(cell(path).is_some(), "{path} is missing: {said}");
    }
    for path in ["ovs-veth", "ovs-internal"] {
        assert_eq!(cell(path).unwrap()["datapath"]["kind"], "kernel", "{said}");
    }
    let emulated = environment["cpu_model"].as_str().unwrap().contains("TCG");
    let warnings = document["warnings"].as_array().unwrap();
    let warned = warnings.iter().any(|w| w["code"] == "emulated");
    assert_eq!(warned, emulated, "{said}");
    run(&["report", out.to_str().unwrap(), "--format", "json"]).exits(0);
    tell(&format!(
        "{} cells on Linux {release} in {:?}",
        cells.len(),
        said.took
    ));
}

#[test]
fn what_cannot_be_booted_is_named_and_nothing_stays() {
    let _beside = beside();
    let kernel = kernel();
    ends(Path::new("/etc/passwd"), &[]).exits(2).says(&[
        "/etc/passwd is not a kernel that can be booted",
        "hopyard kernel fetch",
    ]);
    ends(Path::new("/nowhere/bzImage"), &[])
        .exits(2)
        .says(&["cannot read /nowhere/bzImage"]);
    ends(&kernel, &["--modules", "/etc"])
        .exits(2)
        .says(&["/etc has no modules of kernel 6.1"]);
    ends(&kernel, &["--append", "rdinit=/nothing"])
        .exits(2)
        .says(&["ended while hopyard waited for it to boot", "Kernel panic"]);
    ends(&kernel, &["--paths", "netkit"])
        .exits(2)
        .says(&["in the guest: path `netkit` cannot be built here"]);
    ends(&kernel, &["--peer", "local,far"])
        .exits(2)
        .says(&["no path of these has peer `far`"]);
    ends(
        &kernel,
        &["--paths", "bridge,sockmap", "--peer", "far,host"],
    )
    .exits(2)
    .says(&["path `sockmap` has none of the peers", "(local)"]);
}

fn claims_in_guest(kernel: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = hopyard(&["claims", "NM8", "ND9", "--quick", "--accel", "tcg"]);
    command.arg("--kernel").arg(kernel).arg("--out").arg(out);
    command.args(more);
    command
}

#[test]
fn claims_are_judged_on_the_kernel_of_a_guest() {
    let _beside = beside();
    let kernel = kernel();
    let home = tempfile::tempdir().unwrap();
    // A few of the eight blocks have this time; two are enough for a ratio with an interval.
    let mut json = Value::Null;
    for limit in ["60s", "200s"] {
        let out = home.path().join(limit);
        let more = ["--format", "json", "--time-limit", limit];
        let said = Running::start(claims_in_guest(&kernel, &out, &more)).wait_for(PATIENCE);
        json = said.exits(0).json();
        if !said.stdout.contains("one block has it") {
            break;
        }
        tell(&format!("one block in {limit}"));
    }
    let machine = json["machine"].as_str().unwrap();
    let release = Kernel::open(&kernel, None).unwrap().release;
    assert!(machine.contains(&release), "{machine}");
    assert!(machine.ends_with("emulated: shape only"), "{machine}");
    let reports = json["reports"].as_array().unwrap().iter();
    let claims: Vec<&Value> = reports
        .flat_map(|report| report["claims"].as_array().unwrap())
        .collect();
    let [macvlan, broadcast] = claims[..] else {
        panic!("{claims:?}");
    };
    // It was measured; how much of what it shows is the emulator nobody knows.
    assert_eq!(macvlan["verdict"], "untestable", "{macvlan}");
    let figure = "whose figures have a shape and no size: goodput, macvlan / native ";
    let sentence = macvlan["sentence"].as_str().unwrap();
    assert!(sentence.contains(figure), "{macvlan}");
    assert_eq!(broadcast["verdict"], "untestable", "{broadcast}");
    let why = broadcast["sentence"].as_str().unwrap();
    assert!(why.contains("only plans are run in a guest"), "{why}");
}

/// A guest that does not boot has answered nothing.
#[test]
fn claims_are_not_judged_by_a_guest_that_does_not_boot() {
    let _beside = beside();
    let kernel = kernel();
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    let panics = ["--append", "rdinit=/nothing"];
    Running::start(claims_in_guest(&kernel, &out, &panics))
        .wait_for_nothing_left(&[].into())
        .exits(2)
        .says(&["ended while hopyard waited for it to boot", "Kernel panic"]);
    assert!(!out.exists(), "something was kept");
}

#[test]
fn a_guest_without_a_port_says_so() {
    // It waits for ten seconds for the port.
    let _waiting = waiting();
    let kernel = Kernel::open(&kernel(), None).unwrap();
    let home = tempfile::tempdir().unwrap();
    let modules = home.path().join(&kernel.release);
    fs::create_dir_all(modules.join("kernel")).unwrap();
    let modules = modules.to_str().unwrap();
    ends(&kernel.image, &["--modules", modules])
        .exits(2)
        .says(&["there is no virtio port", "CONFIG_VIRTIO_CONSOLE"]);
    // Where it is known before: not even tried.
    fs::write(Path::new(modules).join("modules.builtin"), "").unwrap();
    ends(&kernel.image, &["--modules", modules])
        .exits(2)
        .says(&["has no `virtio_pci`"]);
}

/// A QEMU under whose KVM a kernel says its name and dies, as a `PATH`.
fn kvm_that_stops(home: &Path) -> String {
    let script = format!(
        r#"#!/bin/sh
case "$*" in *'-accel kvm'*) ;; *) exec /usr/bin/qemu-system-x86_64 "$@";; esac
for word; do
    case $word in file,id=console,path=*) echo 'Linux version 6.1' >"${{word##*path=}}";; esac
done
echo tried >>{}/tried
exit 1
"#,
        home.display()
    );
    let program = home.join("qemu-system-x86_64");
    write_program(program, script);
    format!("{}:{}", home.display(), std::env::var("PATH").unwrap())
}

/// Who has no KVM is emulated at once.
#[test]
fn a_kvm_that_gets_half_way_is_not_used() {
    let _beside = beside();
    let kernel = kernel();
    let home = tempfile::tempdir().unwrap();
    let (cell, _accelerator) = SHORT.split_at(SHORT.len() - 2);
    let cell = [cell, &["--window", "500ms", "--turns", "off"]].concat();
    let mut command = in_guest(&kernel, &home.path().join("run"), &cell);
    command.env("PATH", kvm_that_stops(home.path()));
    let said = Running::start(command).wait_for_nothing_left(&[].into());
    said.exits(0)
        .says(&["emulated", "since KVM does not run them"]);
    let tried = fs::read_to_string(home.path().join("tried")).unwrap_or_default();
    let has_kvm = Path::new("/dev/kvm").exists();
    if !has_kvm {
        skip_part("KVM that could get half-way", false, "there is no /dev/kvm");
    }
    assert_eq!(tried.lines().count(), usize::from(has_kvm), "{said}");
}

#[test]
fn without_qemu_the_package_is_named() {
    let _beside = beside();
    let kernel = kernel();
    let home = tempfile::tempdir().unwrap();
    let mut command = in_guest(&kernel, &home.path().join("run"), &SHORT);
    command.env("PATH", "/nowhere");
    Running::start(command)
        .wait()
        .exits(2)
        .says(&["qemu-system-x86_64", "install package `qemu-system-x86`"]);
}

/// Starts a long run in a guest and waits for its first samples, of so many blocks.
fn under_way(out: &Path, measured: usize) -> (Running, u32) {
    let more = [
        "--paths", "veth", "--loads", "tcp_rr", "--blocks", "100", "--window", "50ms", "--turns",
        "off", "--accel", "tcg",
    ];
    let running = Running::start(in_guest(&kernel(), out, &more));
    until("the first blocks came", PATIENCE, || {
        blocks(out) >= measured
    });
    let qemu = running.qemu().expect("QEMU runs");
    (running, qemu)
}

fn blocks(out: &Path) -> usize {
    let text = fs::read_to_string(out.join("samples.jsonl")).unwrap_or_default();
    let samples = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let blocks: BTreeSet<u64> = samples.filter_map(|s| s["block"].as_u64()).collect();
    blocks.len()
}

fn printed(out: &Path) -> Value {
    run(&["report", out.to_str().unwrap(), "--format", "json"]).json()
}

#[test]
fn what_was_measured_stays_when_the_guest_dies() {
    let _beside = beside();
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("run");
    let (running, qemu) = under_way(&out, 2);
    kill(pid(qemu), Signal::SIGKILL).unwrap();
    let said = running.wait_for_nothing_left(&[].into());
    said.exits(1).says(&[
        "the guest ended while hopyard waited for it to measure",
        "SIGKILL",
    ]);
    assert!(
        printed(&out)["run"]["blocks"].as_u64().unwrap() >= 2,
        "{said}"
    );
}

#[test]
fn an_interrupt_ends_the_guest_and_keeps_what_it_had() {
    let _beside = beside();
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("run");
    let (running, _) = under_way(&out, 2);
    running.signal_group(Signal::SIGINT);
    running.wait_for_nothing_left(&[].into()).exits(130);
    assert!(out.join("end.json").exists());
    assert!(printed(&out)["run"]["blocks"].as_u64().unwrap() >= 2);
}

#[test]
fn a_killed_hopyard_leaves_no_guest() {
    let _beside = beside();
    let home = tempfile::tempdir().unwrap();
    let (running, _) = under_way(&home.path().join("run"), 1);
    running.signal(Signal::SIGKILL);
    running.wait_for_no_process(&[].into());
}

/// A guest as an endpoint: killed in mid-window, the sample fails with its cause, and nothing stays.
#[test]
fn a_guest_of_a_path_that_is_killed_fails_its_cell_and_leaves_a_clean_host() {
    let _beside = beside();
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("run");
    let mut command = hopyard(&[
        "run", "--paths", "vm", "--peer", "host", "--loads", "tcp_rr",
    ]);
    command.args(["--blocks", "1", "--window", "8s", "--out"]);
    command.arg(&out).arg("--guest-kernel").arg(kernel());
    unharmed(|| {
        let running = Running::start(command);
        let mut qemu = None;
        until("both ends are there", PATIENCE, || {
            qemu = running.qemu();
            qemu.is_some() && !running.lab_workers().is_empty()
        });
        // Well into the window.
        std::thread::sleep(Duration::from_secs(1));
        kill(pid(qemu.unwrap()), Signal::SIGKILL).unwrap();
        let said = running.wait_for_nothing_left(&[].into());
        said.exits(1).says(&["the worker at `a` died", "SIGKILL"]);
    });
}

/// As many as it has CPUs, or as the axis says.
#[test]
fn a_guests_card_has_as_many_queues_as_asked() {
    let _beside = beside();
    guests_boot_one();
    let path = hopyard::lab::path("vm").unwrap();
    // The kernel counts the queues of taps with many alone.
    for (asked, queues) in [(None, Some(2)), (Some(("queues", "1")), None)] {
        let both = [("guest_cpus", "2"), ("vhost", "off")];
        let set: Vec<_> = both.into_iter().chain(asked).collect();
        let cell = cell("vm", Peer::Host, LoadKind::UdpRr, &set);
        let lab = Lab::build(path, cell.peer, &cell.axes).unwrap();
        let client = &lab.topology.client;
        let _worker = lab.start_worker(client, PROGRAM.as_ref()).unwrap();
        let hub = &lab.space("hub").unwrap().handle;
        let tap = || hub.tun_link("tap-a").unwrap().unwrap();
        until("the guest has taken its queues", PATIENCE, || {
            tap().attached == queues
        });
        assert_eq!(tap().multi_queue, queues.is_some());
    }
    let with = cell("vm", Peer::Host, LoadKind::UdpRr, &[("vhost", "on")]);
    match Lab::build(path, with.peer, &with.axes) {
        Ok(_) => assert!(Path::new("/dev/vhost-net").exists()),
        Err(error) => {
            let error = hopyard::chain(&error);
            assert!(error.contains("/dev/vhost-net"), "{error}");
        }
    }
}

/// What this kernel lacks, in a guest beside: deeds get a verdict, speed does not on an emulated CPU.
#[test]
fn claims_that_this_kernel_cannot_test_are_tried_in_a_guest() {
    let _beside = beside();
    let kernel = kernel();
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    // Where kernels are looked for first.
    let known = home.path().join("cache/hopyard");
    fs::create_dir_all(&known).unwrap();
    std::os::unix::fs::symlink(kernel.ancestors().nth(3).unwrap(), known.join("kernels")).unwrap();
    let mut command = hopyard(&[
        "claims", "NS3", "NS7", "MQ12", "--guest", "6.1", "--format", "json",
    ]);
    command.env("XDG_CACHE_HOME", home.path().join("cache"));
    command.args(["--time-limit", "20s"]).arg("--out").arg(&out);
    let said = Running::start(command).wait_for(PATIENCE);
    let json = said.exits(0).json();
    let reports = json["reports"].as_array().unwrap().iter();
    let claims: Vec<&Value> = reports
        .flat_map(|report| report["claims"].as_array().unwrap())
        .collect();
    let of = |id: &str| *claims.iter().find(|claim| claim["id"] == id).unwrap();
    let sentence = |id: &str| of(id)["sentence"].as_str().unwrap();
    if !Path::new("/dev/vhost-net").exists() {
        assert_eq!(of("MQ12")["verdict"], "holds", "{}", of("MQ12"));
        assert!(
            sentence("MQ12").contains("in a guest with Linux 6.1"),
            "{}",
            of("MQ12")
        );
    }
    if hopyard::lab::ovs::in_kernel() {
        let lacks = !has_module("openvswitch");
        return skip_part(
            "kernel without Open vSwitch",
            lacks,
            "claims of it are tested here",
        );
    }
    assert_eq!(of("NS7")["verdict"], "holds", "{}", of("NS7"));
    assert!(
        sentence("NS7").contains("internal ports passed nevertheless (in a guest with Linux 6.1"),
        "{}",
        of("NS7")
    );
    assert_eq!(of("NS3")["verdict"], "untestable", "{}", of("NS3"));
    let shape = sentence("NS3");
    assert!(
        shape.contains("whose figures have a shape and no size: goodput"),
        "{shape}"
    );
    // Judged again, it says the same.
    let again = hopyard(&[
        "claims",
        "--from",
        out.to_str().unwrap(),
        "--format",
        "json",
    ]);
    let again = Running::start(again).wait_for(PATIENCE).exits(0).json();
    assert_eq!(again["reports"], json["reports"]);
}
