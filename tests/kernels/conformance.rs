//! The test of `conformance` itself, inside a guest, with the paths that this machine's own kernel lacks; and those of control
//! groups with shares of the CPU, which a host may withhold, and of routing domains.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use hopyard::guest::{Accelerator, Carried, Contents, Guest, Initramfs, Job, Kernel, Machine};
use hopyard::lab;
use hopyard::model::Axes;
use serde_json::Value;

use crate::support::cli::PROGRAM;
use crate::support::kernels::backported_kernel;
use crate::support::walk::{ASKED, has_programs, is_asked_for};
use crate::support::{SLOWER, beside_first, skip, tell};

/// Every path that this machine may lack takes an emulated CPU four minutes, and three times as long on a slow and busy machine.
const PATIENCE: Duration = Duration::from_secs(1500);
/// Enough to hold this program, its libraries and modules twice, as while the kernel unpacks them.
const MEMORY_MIB: u32 = 4096;
/// What the tests and the script below start. Tests that want a program which this machine lacks say so.
const PROGRAMS: [&str; 16] = [
    "/bin/sh",
    "mount",
    "insmod",
    "sleep",
    "sed",
    "grep",
    "sort",
    "printf",
    "cut",
    "head",
    "ip",
    "bridge",
    "tc",
    "nft",
    "conntrack",
    "unshare",
];
/// Its guest cannot run inside another one.
const NOT_IN_A_GUEST: [&str; 1] = ["vm"];

/// The first process of the guest. It does what `hopyard init` does, but nothing is mounted on /tmp, which may hold the test program.
/// Then it runs tests in place of a runner. Each line to the host is a JSON value, and the last one is the exit status.
const SCRIPT: &str = r#"
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
for mounted in proc:/proc sysfs:/sys devtmpfs:/dev cgroup2:/sys/fs/cgroup bpf:/sys/fs/bpf; do
    mount -t "${mounted%:*}" none "${mounted#*:}"
done
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
for module in /modules/*; do insmod "$module"; done
ip link set lo up
until [ -e /dev/vport*p1 ]; do sleep 0.1; done
set -- /dev/vport*p1
exec 3>"$1"
echo '"up"' >&3
TESTS --exact --test-threads=2 --nocapture \
    conformance::every_path_connects_carries_and_goes_without_a_trace >/tmp/said 2>&1
status=$?
for more in a_group_has_its_share_whatever_runs_in_it a_routing_domain_has_the_routes_to_its_containers; do
    TESTS --exact --test-threads=2 --nocapture "containers::$more" >>/tmp/said 2>&1 || status=$?
done
cut -c -2000 /tmp/said | sed 's/[\\"]/\\&/g; s/[[:cntrl:]]/ /g; s/.*/"&"/' >&3
echo "$status" >&3
sleep 1000
"#;

#[test]
fn paths_that_this_kernel_lacks_conform_inside_a_guest() {
    let _beside = beside_first();
    let lacking: Vec<&lab::Path> = lab::PATHS
        .iter()
        .copied()
        .filter(|path| path.is_built && path.available().is_err() && has_programs(path))
        .filter(|path| !NOT_IN_A_GUEST.contains(&path.name) && is_asked_for(path.name))
        .collect();
    if lacking.is_empty() {
        return skip("path that this kernel lacks", false, "it has every path");
    }
    let (status, said) = tests_in_guest(&lacking);
    // Not as lines that scripts/unit would count.
    assert_eq!(status, 0, "| {}", said.join("\n| "));
    let walked: Vec<&String> = said
        .iter()
        .filter(|line| line.contains("combinations"))
        .collect();
    assert_eq!(walked.len(), 1, "{said:?}");
    let shared: Vec<&String> = said
        .iter()
        .filter(|line| line.contains("times as much CPU time with shares"))
        .collect();
    assert!(!shared.is_empty(), "{said:?}");
    let has_domains = lacking.iter().any(|path| path.name == "vrf");
    let routed = said
        .iter()
        .any(|line| line.contains("routes in the domain"));
    assert!(!has_domains || routed, "{said:?}");
    tell(&format!(
        "inside a guest: {}, {walked:?}, {shared:?}",
        names(&lacking)
    ));
}

fn names(paths: &[&lab::Path]) -> String {
    let names: Vec<_> = paths.iter().map(|path| path.name).collect();
    names.join(",")
}

/// The exit status of the test with these paths, and what it said.
fn tests_in_guest(paths: &[&lab::Path]) -> (i64, Vec<String>) {
    let own = std::env::current_exe().unwrap();
    let home = tempfile::tempdir().unwrap();
    let script = home.path().join("script");
    fs::write(&script, script_of(&own, &names(paths))).unwrap();
    let kernel = Kernel::open(&backported_kernel(), None).unwrap();
    // The test begins with the path that every kernel has.
    let veth = lab::path("veth").unwrap();
    let built = paths.iter().copied().chain([veth]);
    let axes = Axes::default();
    let mut carried: BTreeSet<Carried> = built.flat_map(|path| path.carried(&axes)).collect();
    carried.insert(Carried {
        modules: &[],
        programs: leaked([PROGRAM, own.to_str().unwrap()].into_iter().chain(PROGRAMS)),
        files: leaked([script.to_str().unwrap()].into_iter()),
    });
    let initramfs = Initramfs::build(&kernel, PROGRAM.as_ref(), Contents::Paths(carried)).unwrap();
    let guest = Guest {
        kernel: &kernel,
        initramfs: &initramfs,
        cpus: 2,
        memory_mib: MEMORY_MIB,
        append: &format!("quiet rdinit=/bin/sh -- {}", script.display()),
        job: vec![Job::Runner.word().to_owned()],
        devices: Vec::new(),
    };
    let (mut machine, up) = Machine::<Value>::boot(&guest, Some(Accelerator::Tcg)).unwrap();
    assert_eq!(up, "up");
    let began = std::time::Instant::now();
    let mut said = Vec::new();
    loop {
        match machine.hear_until("run tests", began, PATIENCE).unwrap() {
            Value::String(line) => said.push(line),
            status => return (status.as_i64().unwrap(), said),
        }
    }
}

fn script_of(tests: &Path, paths: &str) -> String {
    let environment = format!("export {ASKED}={paths} {SLOWER}=4\n");
    environment + &SCRIPT.replace("TESTS", &tests.display().to_string())
}

/// [`Carried`] has static names.
fn leaked<'a>(names: impl Iterator<Item = &'a str>) -> &'static [&'static str] {
    let names = names.map(|name| &*name.to_owned().leak());
    names.collect::<Vec<_>>().leak()
}
