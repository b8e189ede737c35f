//! Tests that look at everything there is, where everything is theirs.

use std::any::type_name;
use std::process::{Command, Stdio};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use super::{beside, need_root, waiting};

const BPFFS: &str = "/sys/fs/bpf";
/// In the environment of a test that is apart.
const MARK: &str = "HOPYARD_TEST_APART";
/// The first process of a PID namespace is the parent of all orphans and has to wait for them, which a shell does.
const INIT: &str = "\"$0\" \"$@\"; exit $?";

/// Runs a test's body in a process of its own, with a PID namespace of its own, an empty `/run`, and no BPF file system
/// until somebody mounts one: what it finds of processes, descriptors, mounts, labs, switches and leftovers is its own,
/// whatever runs beside it. The network namespace, the CPUs and the mount of control groups are everybody's.
///
/// For all that is here the test is started once more, alone in its process.
pub(crate) fn apart<F: FnOnce()>(body: F) {
    apart_with(beside, body);
}

/// The same of a test that waits for most of its time.
pub(crate) fn apart_waiting<F: FnOnce()>(body: F) {
    apart_with(waiting, body);
}

fn apart_with<T, F: FnOnce()>(take_turn: impl FnOnce() -> T, body: F) {
    let name = test_of::<F>();
    if is_apart() {
        need_root();
        empty_places();
        return body();
    }
    let _turn = take_turn();
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    unshare.args(["sh", "-c", INIT]);
    unshare.arg(std::env::current_exe().unwrap());
    // With one thread, the runner would not call its thread by the test's name.
    unshare.args([name, "--exact", "--include-ignored", "--test-threads=2"]);
    // What tests tell goes on to whoever reads this process's.
    unshare.env(MARK, "1").stderr(Stdio::inherit());
    let ended = unshare.output().expect("unshare (util-linux) runs");
    let said = String::from_utf8_lossy(&ended.stdout);
    if !ended.status.success() {
        #[expect(
            clippy::print_stdout,
            reason = "the runner shows it where it shows why a test failed"
        )]
        {
            print!("{}", why(&said));
        }
        std::panic::resume_unwind(Box::new("a test that is apart failed"));
    }
    assert!(
        said.contains("1 passed"),
        "no test is called {name}: {said}"
    );
}

/// Is this the process of a test that is apart?
pub(crate) fn is_apart() -> bool {
    std::env::var_os(MARK).is_some()
}

/// The name of the test that a closure is in: `lab::kept::a_test::{{closure}}` without the crate and the closure.
fn test_of<F>() -> &'static str {
    let whole = type_name::<F>();
    let (_crate, inside) = whole.split_once("::").unwrap_or(("", whole));
    inside.split("::{{").next().unwrap_or(inside)
}

/// What the runner prints of a test that failed, without the lines that are for the runner's reader.
fn why(said: &str) -> String {
    let own = said.split_once(" stdout ----\n").map(|(_, own)| own);
    match own.and_then(|own| own.split_once("\nfailures:\n")) {
        Some((own, _)) => own.to_owned(),
        None => said.replace("test result:", "result:"),
    }
}

/// An empty `/run`, and no BPF file system.
pub(crate) fn empty_places() {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("run"), "/run", Some("tmpfs"), flags, Some("mode=755")).unwrap();
    while is_bpffs_mounted() {
        umount2(BPFFS, MntFlags::MNT_DETACH).unwrap();
    }
}

/// Is a BPF file system to be seen?
pub(crate) fn is_bpffs_mounted() -> bool {
    statfs(BPFFS).is_ok_and(|fs| fs.filesystem_type() == BPF_FS_MAGIC)
}
