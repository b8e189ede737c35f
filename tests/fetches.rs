//! `hopyard kernel fetch`, where others would have root unpack or run what is theirs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::beside;
use crate::support::cli::{PROGRAM, Running, Said};
use crate::support::kernels::no_kernel;

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
            "#!/bin/sh\n{log}\ncase \"$*\" in *download*) cp $MIRROR/${{SENT:-good}}.deb {PACKAGE}_1_all.deb;; esac\n"
        );
        let cache = format!(
            "#!/bin/sh\n{log}\ncase \"$*\" in\n*show*) echo SHA256: $(sha256sum $MIRROR/good.deb | cut -d ' ' -f 1);;\n\
             *) echo {PACKAGE} - x;;\nesac\n"
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

    /// `hopyard kernel fetch` into a directory, after what a shell does under the same process id.
    fn fetch(&self, into: &Path, before: &str, sent: &str) -> Said {
        let path = format!(
            "{}:{}",
            self.at("bin").display(),
            std::env::var("PATH").unwrap()
        );
        let script = format!("{before}\nexec {PROGRAM} kernel fetch 6.1 --into \"$INTO\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).env("PATH", path);
        command.env("INTO", into).env("SENT", sent);
        command.env("MIRROR", self.0.path());
        Running::start(command).wait()
    }
}

#[test]
fn a_kernel_is_fetched_where_nobody_else_can_replace_it() {
    let _beside = beside();
    let mirror = Mirror::new();
    let shared = mirror.at("shared");
    fs::create_dir_all(shared.join("below")).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    // Somebody who may write there knows what the process id will be.
    let trap = "mkdir $INTO/.fetching-$$ && cp $MIRROR/evil.deb $INTO/.fetching-$$/aaa.deb";
    for into in [&shared, &shared.join("below")] {
        let said = mirror.fetch(into, trap, "good");
        assert!(!said.stdout.contains("evil"), "{said}");
        said.exits(2)
            .says(&["others may write ", "its mode is 777", "--into"]);
    }
    // As /tmp is: others make files, and cannot replace those of others.
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let said = mirror.fetch(&shared, trap, "good");
    said.exits(0)
        .prints(&["/6.1.0-99-cloud-amd64/boot/vmlinuz-6.1.0-99-cloud-amd64"]);
    // Once more, in the place of what is there.
    mirror.fetch(&shared, "true", "good").exits(0);
    let mut left: Vec<_> = fs::read_dir(&shared)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    left.retain(|name| !name.to_string_lossy().starts_with(".fetching-"));
    left.sort();
    assert_eq!(left, ["6.1.0-99-cloud-amd64", "below"]);
    // What is not what the index says is not unpacked.
    let said = mirror.fetch(&shared, "true", "evil");
    said.exits(2).says(&["is not what its index says it is"]);
    let log = fs::read_to_string(mirror.at("log")).unwrap();
    assert!(!log.contains("Sandbox"), "apt's own sandbox is off: {log}");
    assert!(
        log.contains("of _apt"),
        "the fetching user may write nowhere: {log}"
    );
}
