//! `scripts/need`: installs packages and starts no services, and leaves those of others alone.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::beside;
use crate::support::cli::Running;
use crate::support::plan::{Room, write_program};

/// A package's script as debhelper makes it. It waits in the middle until the test lets it go on.
const POSTINST: &str = r#"#!/bin/sh
set -e
echo reached >/room/reached
while [ ! -e /room/go ]; do sleep 0.02; done
update-rc.d test-service defaults >/dev/null
invoke-rc.d --skip-systemd-native test-service start || exit 1
deb-systemd-helper unmask test-service.service >/dev/null || true
if deb-systemd-helper --quiet was-enabled test-service.service; then
	deb-systemd-helper enable test-service.service >/dev/null || true
else
	deb-systemd-helper update-state test-service.service >/dev/null || true
fi
"#;
const UNIT: &str = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n";
/// What a host looks like to a package that is installed in it: its own files, changed in memory alone.
const INSIDE: &str = r##"
set -e
mount -t tmpfs none /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay none -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
mkdir /mnt/root/room
mount --bind "$ROOM" /mnt/root/room
mount -t proc none /mnt/root/proc
mount --rbind /dev /mnt/root/dev
mount -t tmpfs none /mnt/root/run
exec chroot /mnt/root /bin/bash -c '
    set -e
    rm -rf /etc/apt/sources.list.d/* /var/lib/apt/lists/* /usr/sbin/policy-rc.d
    echo "deb [trusted=yes] file:/room/repo ./" >/etc/apt/sources.list
    cp /room/other /etc/init.d/other
    # Nothing has booted here.
    rm -f /sbin/runlevel
    printf "#!/bin/sh\\necho N 2\\n" >/sbin/runlevel
    chmod 755 /sbin/runlevel
    update-rc.d other defaults
    cp /room/inside.sh /tmp/inside.sh
    exec bash /tmp/inside.sh'
"##;

/// A service's script that notes what it was told.
fn service(name: &str) -> String {
    format!(
        "#!/bin/sh\n### BEGIN INIT INFO\n# Provides: {name}\n# Required-Start:\n# Required-Stop:\n\
         # Default-Start: 2 3 4 5\n# Default-Stop: 0 1 6\n### END INIT INFO\necho \"$1\" >>/room/{name}-was-told\n"
    )
}

/// A repository with one package, `test-service`.
fn repository(room: &Room) {
    let package = room.at("package");
    for directory in ["DEBIAN", "etc/init.d", "lib/systemd/system"] {
        fs::create_dir_all(package.join(directory)).unwrap();
    }
    let control = "Package: test-service\nVersion: 1\nArchitecture: all\nMaintainer: none\nDescription: a test\n";
    fs::write(package.join("DEBIAN/control"), control).unwrap();
    write_program(package.join("DEBIAN/postinst"), POSTINST);
    write_program(
        package.join("etc/init.d/test-service"),
        service("test-service"),
    );
    fs::write(
        package.join("lib/systemd/system/test-service.service"),
        UNIT,
    )
    .unwrap();
    write_program(room.at("other"), service("other"));
    let script = "cd \"$ROOM\" && mkdir repo && dpkg-deb -b package repo/test-service.deb && cd repo && \
                  { dpkg-deb -f test-service.deb; echo Filename: ./test-service.deb; \
                  echo Size: $(stat -c %s test-service.deb); \
                  echo SHA256: $(sha256sum test-service.deb | cut -d ' ' -f 1); } >Packages";
    let mut command = Command::new("sh");
    command.args(["-c", script]).env("ROOM", room.path());
    Running::start(command).wait().exits(0);
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts");
    let mut copy = Command::new("cp");
    copy.arg("-a").arg(scripts).arg(room.at("scripts"));
    Running::start(copy).wait().exits(0);
}

/// Runs a script on such a host.
fn inside(room: &Room, script: &str) -> Running {
    room.file("inside.sh", script);
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "bash",
        "-c",
        INSIDE,
    ]);
    command.env("ROOM", room.path());
    Running::start(command)
}

fn there(room: &Room, name: &str) -> bool {
    room.at(name).exists()
}

#[test]
fn need_starts_no_service_and_leaves_those_of_others_alone() {
    let _beside = beside();
    let room = Room::new();
    repository(&room);
    let running = inside(
        &room,
        "/room/scripts/need test-service &
         while [ ! -e /room/reached ] && kill -0 $!; do sleep 0.02; done
         # Another program restarts its service meanwhile.
         ls /usr/sbin/policy-rc.d && echo 'a policy for everybody'
         invoke-rc.d other restart
         touch /room/go
         wait $! && dpkg-query -W -f '${Status}\\n' test-service
         ls /etc/rc?.d/S*test-service /etc/systemd/system/*/test-service.service",
    );
    let said = running.wait();
    said.prints(&[
        "installing missing packages: test-service",
        "install ok installed",
    ]);
    assert!(
        there(&room, "other-was-told"),
        "others cannot restart: {said}"
    );
    assert!(
        !there(&room, "test-service-was-told"),
        "it was started: {said}"
    );
    for not_so in ["policy", "S01test-service", "wants/test-service"] {
        assert!(!said.stdout.contains(not_so), "{not_so}: {said}");
    }
}

/// A release may lack a package of which it is said that it may; any other is an error.
#[test]
fn need_does_without_what_a_release_may_lack() {
    let _beside = beside();
    let room = Room::new();
    repository(&room);
    room.file("go", "");
    let said = inside(
        &room,
        "/room/scripts/need 'test-absent?' && echo had none; /room/scripts/need test-absent || echo refused
         /room/scripts/need 'test-absent?' 'test-service?' && dpkg-query -W -f '${Status}\\n' test-service",
    );
    said.wait().exits(0).prints(&[
        "this release has no package test-absent: tests that take it are skipped",
        "had none",
        "refused",
        "install ok installed",
    ]);
}

#[test]
fn need_that_is_killed_leaves_no_policy() {
    let _beside = beside();
    let room = Room::new();
    repository(&room);
    // apt goes on; the PID namespace ends it.
    let running = inside(
        &room,
        "/room/scripts/need test-service &
         while [ ! -e /room/reached ] && kill -0 $!; do sleep 0.02; done
         kill -9 $!
         wait $!
         ls /usr/sbin/policy-rc.d
         invoke-rc.d other restart",
    );
    let said = running.wait();
    assert!(!said.stdout.contains("policy-rc.d"), "{said}");
    assert!(
        there(&room, "other-was-told"),
        "others cannot restart: {said}"
    );
}
