//! `hopyard kernel fetch`, where others would have root unpack or run what is theirs.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use nix::sys::signal::Signal;

use crate::support::cli::{PROGRAM, Running, Said};
use crate::support::kernels::no_kernel;
use crate::support::plan::write_program;
use crate::support::{beside, until};

/// A mirror with kernels as Debian and Ubuntu pack them, and an apt that fetches from it as an attacker may have it.
struct Mirror(tempfile::TempDir);

/// Each package with a kernel of this release, the directories for modules and the other files in it.
const PACKAGES: [(&str, Option<&str>, &[&str]); 9] = [
    (
        "linux-image-6.1.0-99-cloud-amd64",
        Some("boot/vmlinuz-6.1.0-99-cloud-amd64"),
        &["lib/modules/6.1.0-99-cloud-amd64/kernel"],
    ),
    ("evil", Some("boot/vmlinuz-evil"), &[]),
    // Of Ubuntu, whose modules are a package of their own.
    (
        "linux-image-6.8.0-99-generic",
        Some("boot/vmlinuz-6.8.0-99-generic"),
        &[],
    ),
    (
        "linux-modules-6.8.0-99-generic",
        None,
        &["lib/modules/6.8.0-99-generic/kernel"],
    ),
    // It points at the newest.
    ("linux-image-generic", None, &[]),
    // Of Debian from 7.0 on: the image needs the others.
    ("linux-image-7.2.9+deb13-cloud-amd64", None, &[]),
    (
        "linux-binary-7.2.9+deb13-cloud-amd64",
        Some("usr/lib/modules/7.2.9+deb13-cloud-amd64/vmlinuz"),
        &[],
    ),
    (
        "linux-modules-7.2.9+deb13-cloud-amd64",
        None,
        &["usr/lib/modules/7.2.9+deb13-cloud-amd64/kernel"],
    ),
    (
        "linux-base-7.2.9+deb13-cloud-amd64",
        None,
        &["usr/lib/modules/7.2.9+deb13-cloud-amd64/of-base"],
    ),
];

impl Mirror {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        for (package, image, directories) in PACKAGES {
            let root = at("root");
            for directory in directories.iter().chain(&["DEBIAN"]) {
                fs::create_dir_all(root.join(directory)).unwrap();
            }
            let control = format!(
                "Package: {package}\nVersion: 1\nArchitecture: all\nMaintainer: none\nDescription: x\n"
            );
            fs::write(root.join("DEBIAN/control"), control).unwrap();
            if let Some(image) = image {
                let release = package.splitn(3, '-').nth(2).unwrap_or("6.1.0-evil");
                fs::create_dir_all(root.join(image).parent().unwrap()).unwrap();
                fs::write(root.join(image), no_kernel(release)).unwrap();
            }
            let mut pack = Command::new("dpkg-deb");
            pack.arg("-b").arg(&root).arg(at(&format!("{package}.deb")));
            Running::start(pack).wait().exits(0);
            fs::remove_dir_all(root).unwrap();
        }
        fs::create_dir(at("bin")).unwrap();
        let begin = "#!/bin/sh\necho \"$0 $*; in $(pwd) of $(stat -c %U .)\" >>$MIRROR/log\nfor last; do :; done\n";
        let get = format!(
            "{begin}sleep ${{SLOW:-0}}\ncase \"$*\" in *download*) cp $MIRROR/${{SENT:-$last}}.deb ${{last}}_1_all.deb;; esac\n"
        );
        let cache = format!(
            "{begin}cd $MIRROR\ncase \"$*\" in\n*show*) echo SHA256: $(sha256sum $last.deb | cut -d ' ' -f 1);;\n\
             *search*) ls linux-*.deb | sed 's/.deb$//' | grep -E \"$last\" | sed 's/$/ - x/';;\n\
             *depends*-generic) [ $last != linux-image-generic ] || echo '  Depends: linux-image-6.8.0-99-generic'\n\
             [ $last = linux-image-generic ] || echo ' |Depends: linux-modules-6.8.0-99-generic';;\n\
             *depends*) echo $last; for part in linux-*-${{last#linux-image-}}.deb; do\n\
             [ $part = $last.deb ] || echo \"  Depends: ${{part%.deb}}\"; done;;\nesac\n"
        );
        for (name, text) in [("apt-get", get), ("apt-cache", cache)] {
            let program = at("bin").join(name);
            write_program(program, text);
        }
        Self(home)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `hopyard kernel fetch` of a series into a directory, after what a shell does under the same process id. Whatever is asked for,
    /// the mirror sends the package `sent`, if that names one.
    fn fetch(&self, series: &str, into: &Path, before: &str, sent: &str) -> Said {
        let path = format!(
            "{}:{}",
            self.at("bin").display(),
            std::env::var("PATH").unwrap()
        );
        let script = format!("{before}\nexec {PROGRAM} kernel fetch {series} --into \"$INTO\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).env("PATH", path);
        command.env("INTO", into).env("SENT", sent);
        command.env("MIRROR", self.0.path());
        Running::start(command).wait()
    }
}

fn allow(directory: &Path, mode: u32) {
    fs::set_permissions(directory, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_kernel_is_fetched_where_nobody_else_can_replace_it() {
    let _beside = beside();
    let mirror = Mirror::new();
    let shared = mirror.at("shared");
    fs::create_dir_all(shared.join("below")).unwrap();
    // Somebody who may write there knows what the process id will be.
    let trap = "mkdir $INTO/.fetching-$$ && cp $MIRROR/evil.deb $INTO/.fetching-$$/aaa.deb";
    // By everybody, or by the members of a group, which root's group has too.
    for mode in [0o777, 0o775] {
        allow(&shared, mode);
        for into in [&shared, &shared.join("below")] {
            let said = mirror.fetch("6.1", into, trap, "");
            assert!(!said.stdout.contains("evil"), "{said}");
            let told = format!("has mode {mode:o}, which lets others write to it");
            said.exits(2).says(&[&told, "--into"]);
        }
    }
    // As /tmp is: others could make a directory with the name of the kernel first.
    allow(&shared, 0o1777);
    let said = mirror.fetch("6.1", &shared, trap, "");
    said.exits(2).says(&["has mode 1777", "--into"]);
    // A directory of root's in it they cannot replace.
    let own = shared.join("own/kernels");
    let said = mirror.fetch("6.1", &own, "true", "");
    said.exits(0)
        .prints(&["/6.1.0-99-cloud-amd64/boot/vmlinuz-6.1.0-99-cloud-amd64"]);
    // Once more, in the place of what is there.
    mirror.fetch("6.1", &own, "true", "").exits(0);
    let left: Vec<_> = fs::read_dir(&own)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left, ["6.1.0-99-cloud-amd64"]);
    // What is not what the index says is not unpacked.
    let said = mirror.fetch("6.1", &own, "true", "evil");
    said.exits(2)
        .says(&["does not have the SHA-256 that apt's index states"]);
    let log = fs::read_to_string(mirror.at("log")).unwrap();
    assert!(!log.contains("Sandbox"), "apt's own sandbox is off: {log}");
    assert!(
        log.contains("of _apt"),
        "the fetching user may write nowhere: {log}"
    );
}

#[test]
fn a_fetch_that_fails_leaves_no_directory_behind() {
    let _beside = beside();
    let mirror = Mirror::new();
    let into = mirror.at("new/kernels");
    for (series, sent, told) in [
        ("9.9", "", "apt-cache search linux-image"),
        (
            "6.1",
            "evil",
            "does not have the SHA-256 that apt's index states",
        ),
    ] {
        mirror
            .fetch(series, &into, "true", sent)
            .exits(2)
            .says(&[told]);
        assert!(!mirror.at("new").exists(), "of a fetch of {series}");
    }
    let around = into.join("../more");
    let said = mirror.fetch("9.9", &around, "true", "");
    said.exits(2);
    assert!(!said.stderr.contains("cannot remove"), "{said}");
    assert!(!mirror.at("new").exists());
    // What others made, and what was fetched before, stays.
    fs::create_dir(mirror.at("new")).unwrap();
    mirror.fetch("9.9", &into, "true", "").exits(2);
    assert!(mirror.at("new").exists() && !into.exists());
    mirror.fetch("6.1", &into, "true", "").exits(0);
    mirror.fetch("9.9", &into, "true", "").exits(2);
    assert!(into.join("6.1.0-99-cloud-amd64/boot").exists());
}

/// A fetch into `own/kernels` whose apt takes this many seconds for each of its steps, and fetches now.
fn slow_fetch(mirror: &Mirror, seconds: &str) -> Running {
    for directory in ["own", "tmp"] {
        fs::create_dir_all(mirror.at(directory)).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["kernel", "fetch", "6.1", "--into"]);
    command.arg(mirror.at("own/kernels")).env("SLOW", seconds);
    command.env("PATH", format!("{}:{path}", mirror.at("bin").display()));
    command
        .env("TMPDIR", mirror.at("tmp"))
        .env("MIRROR", mirror.0.path());
    let running = Running::start(command);
    until("apt fetches", Duration::from_secs(20), || {
        mirror.at("log").exists()
    });
    running
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_fetch_that_is_interrupted_leaves_nothing_and_does_not_wait_for_apt() {
    let _beside = beside();
    for (signal, to_all) in [(Signal::SIGINT, true), (Signal::SIGTERM, false)] {
        let mirror = Mirror::new();
        let running = slow_fetch(&mirror, "300");
        if to_all {
            running.signal_group(signal);
        } else {
            running.signal(signal);
        }
        let said = running.wait_for_nothing_left(&BTreeSet::new());
        said.exits(130);
        assert!(said.took < Duration::from_secs(60), "{said}");
        for directory in ["own", "tmp"] {
            assert!(entries(&mirror.at(directory)).is_empty(), "{directory}");
        }
    }
}

#[test]
fn what_a_killed_fetch_left_goes_with_the_next_one() {
    let _beside = beside();
    let mirror = Mirror::new();
    let own = mirror.at("own/kernels");
    let left = |directory: &Path| -> Vec<PathBuf> {
        let mut all = entries(directory);
        all.retain(|path| path.to_string_lossy().contains("/.hopyard-fetch-"));
        all
    };
    let running = slow_fetch(&mirror, "1");
    running.signal(Signal::SIGKILL);
    running.wait_for_no_process(&BTreeSet::new());
    let killed = [left(&own), left(&mirror.at("tmp"))].concat();
    assert_eq!(killed.len(), 2, "{killed:?}");
    fs::remove_file(mirror.at("log")).unwrap();
    // One that goes on, for as long as it has to.
    let living = slow_fetch(&mirror, "300");
    let all = [left(&own), left(&mirror.at("tmp"))].concat();
    assert_eq!(all.len(), 4, "a fetch may just have begun: {all:?}");
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    for directory in &all {
        let opened = fs::File::open(directory).unwrap();
        opened.set_modified(hour_ago).unwrap();
    }
    let foreign = mirror.at("tmp/.hopyard-other");
    fs::create_dir(&foreign).unwrap();
    fs::remove_file(mirror.at("log")).unwrap();
    let next = slow_fetch(&mirror, "0");
    next.wait().exits(0);
    for directory in &all {
        let is_of_the_killed = killed.contains(directory);
        assert_eq!(directory.exists(), !is_of_the_killed, "{directory:?}");
    }
    assert!(foreign.exists());
    living.signal(Signal::SIGTERM);
    living.wait().exits(130);
    // `hopyard clean` does it too, for the user's cache.
    let cache = mirror.at("cache");
    let abandoned = cache.join("hopyard/kernels/.hopyard-fetch-aaaaaa");
    fs::create_dir_all(&abandoned).unwrap();
    fs::File::open(&abandoned)
        .unwrap()
        .set_modified(hour_ago)
        .unwrap();
    // What other tests killed is hidden from there.
    let mut clean = Command::new("unshare");
    clean.args(["--pid", "--fork", "--mount-proc", "--kill-child"]);
    clean.args([PROGRAM, "clean"]).env("XDG_CACHE_HOME", &cache);
    clean.env("TMPDIR", mirror.at("tmp"));
    Running::start(clean)
        .wait()
        .prints(&["removed directories that fetches of kernels left: 1"]);
    assert!(!abandoned.exists());
}

#[test]
fn a_kernel_in_several_packages_is_fetched_whole() {
    let _beside = beside();
    let mirror = Mirror::new();
    let into = mirror.at("kernels");
    let debian = "7.2.9+deb13-cloud-amd64";
    for (series, release, below) in [
        ("6.8", "6.8.0-99-generic", "lib/modules"),
        (
            "linux-image-6.8.0-99-generic",
            "6.8.0-99-generic",
            "lib/modules",
        ),
        ("linux-image-generic", "6.8.0-99-generic", "lib/modules"),
        // The newest.
        ("", debian, "usr/lib/modules"),
        ("7.2", debian, "usr/lib/modules"),
    ] {
        let said = mirror.fetch(series, &into, "true", "");
        said.exits(0)
            .prints(&[&format!("/{release}/boot/vmlinuz-{release}")]);
        let modules = into.join(release).join(below).join(release);
        assert!(modules.join("kernel").is_dir(), "{series}: no modules");
        let of_base = modules.join("of-base").is_dir();
        assert_eq!(of_base, release == debian, "{series}");
        fs::remove_dir_all(&into).unwrap();
    }
    // Each part is held against the index.
    mirror.fetch("7.2", &into, "true", "evil").exits(2);
    assert!(!into.exists());
}

#[test]
fn a_kernel_is_fetched_through_a_link_of_ones_own() {
    let _beside = beside();
    let mirror = Mirror::new();
    fs::create_dir(mirror.at("real")).unwrap();
    std::os::unix::fs::symlink(mirror.at("real"), mirror.at("link")).unwrap();
    let into = mirror.at("link/kernels");
    mirror
        .fetch("6.1", &into, "true", "")
        .exits(0)
        .prints(&["/real/kernels/6.1.0-99-cloud-amd64/boot/"]);
}
