//! `hopyard kernel fetch`, where others would have root unpack or run what is theirs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::cli::{PROGRAM, Running, Said};
use crate::support::kernels::no_kernel;
use crate::support::{beside, until};

/// A mirror of Debian's with one package, and an apt that fetches from it as an attacker may have it.
struct Mirror(tempfile::TempDir);

const PACKAGE: &str = "linux-image-6.1.0-99-cloud-amd64";

impl Mirror {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        for (name, file) in [
            ("good", "vmlinuz-6.1.0-99-cloud-amd64"),
            ("evil", "vmlinuz-evil"),
        ] {
            for directory in ["DEBIAN", "boot", "lib/modules/6.1.0-99-cloud-amd64/kernel"] {
                fs::create_dir_all(at(name).join(directory)).unwrap();
            }
            let control = format!(
                "Package: {PACKAGE}\nVersion: 1\nArchitecture: all\nMaintainer: none\nDescription: x\n"
            );
            fs::write(at(name).join("DEBIAN/control"), control).unwrap();
            let image = no_kernel("6.1.0-99-cloud-amd64");
            fs::write(at(name).join("boot").join(file), image).unwrap();
            let mut pack = Command::new("dpkg-deb");
            pack.args(["-b"])
                .arg(at(name))
                .arg(at(&format!("{name}.deb")));
            Running::start(pack).wait().exits(0);
        }
        fs::create_dir(at("bin")).unwrap();
        let log = "echo \"$0 $*; in $(pwd) of $(stat -c %U .)\" >>$MIRROR/log";
        let get = format!(
            "#!/bin/sh\n{log}\nsleep ${{SLOW:-0}}\ncase \"$*\" in *download*) cp $MIRROR/${{SENT:-good}}.deb {PACKAGE}_1_all.deb;; esac\n"
        );
        let cache = format!(
            "#!/bin/sh\n{log}\ncase \"$*\" in\n*show*) echo SHA256: $(sha256sum $MIRROR/good.deb | cut -d ' ' -f 1);;\n\
             *search*) for last; do :; done; echo {PACKAGE} | grep -E \"$last\" | sed 's/$/ - x/';;\nesac\n"
        );
        for (name, text) in [("apt-get", get), ("apt-cache", cache)] {
            let program = at("bin").join(name);
            fs::write(&program, text).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self(home)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `hopyard kernel fetch` of a series into a directory, after what a shell does under the same process id.
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
            let said = mirror.fetch("6.1", into, trap, "good");
            assert!(!said.stdout.contains("evil"), "{said}");
            let told = format!("has mode {mode:o}, which lets others write to it");
            said.exits(2).says(&[&told, "--into"]);
        }
    }
    // As /tmp is: others could make a directory with the name of the kernel first.
    allow(&shared, 0o1777);
    let said = mirror.fetch("6.1", &shared, trap, "good");
    said.exits(2).says(&["has mode 1777", "--into"]);
    // A directory of root's in it they cannot replace.
    let own = shared.join("own/kernels");
    let said = mirror.fetch("6.1", &own, "true", "good");
    said.exits(0)
        .prints(&["/6.1.0-99-cloud-amd64/boot/vmlinuz-6.1.0-99-cloud-amd64"]);
    // Once more, in the place of what is there.
    mirror.fetch("6.1", &own, "true", "good").exits(0);
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
        ("9.9", "good", "apt-cache search linux-image"),
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
    let said = mirror.fetch("9.9", &around, "true", "good");
    said.exits(2);
    assert!(!said.stderr.contains("cannot remove"), "{said}");
    assert!(!mirror.at("new").exists());
    // What others made, and what was fetched before, stays.
    fs::create_dir(mirror.at("new")).unwrap();
    mirror.fetch("9.9", &into, "true", "good").exits(2);
    assert!(mirror.at("new").exists() && !into.exists());
    mirror.fetch("6.1", &into, "true", "good").exits(0);
    mirror.fetch("9.9", &into, "true", "good").exits(2);
    assert!(into.join("6.1.0-99-cloud-amd64/boot").exists());
}

#[test]
fn a_fetch_that_is_interrupted_leaves_nothing() {
    let _beside = beside();
    let mirror = Mirror::new();
    for directory in ["own", "tmp"] {
        fs::create_dir(mirror.at(directory)).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["kernel", "fetch", "6.1", "--into"]);
    command.arg(mirror.at("own/kernels")).env("SLOW", "3");
    command.env("PATH", format!("{}:{path}", mirror.at("bin").display()));
    command
        .env("TMPDIR", mirror.at("tmp"))
        .env("MIRROR", mirror.0.path());
    let running = Running::start(command);
    until("apt fetches", Duration::from_secs(20), || {
        mirror.at("log").exists()
    });
    running.signal_group(Signal::SIGINT);
    running.wait().exits(130);
    for directory in ["own", "tmp"] {
        let left = fs::read_dir(mirror.at(directory)).unwrap().count();
        assert_eq!(left, 0, "{directory}");
    }
}

#[test]
fn a_kernel_is_fetched_through_a_link_of_ones_own() {
    let _beside = beside();
    let mirror = Mirror::new();
    fs::create_dir(mirror.at("real")).unwrap();
    std::os::unix::fs::symlink(mirror.at("real"), mirror.at("link")).unwrap();
    let into = mirror.at("link/kernels");
    mirror
        .fetch("6.1", &into, "true", "good")
        .exits(0)
        .prints(&["/real/kernels/6.1.0-99-cloud-amd64/boot/"]);
}
