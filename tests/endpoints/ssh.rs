//! Path `as-is` by a real ssh, to a namespace with an sshd of its own.

use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hopyard_net::NetNs;

use super::{Site, only_cell};
use crate::support::cli::PROGRAM;
use crate::support::host::unharmed;
use crate::support::{beside, skip, ssh, until};

/// An sshd in the server's namespace, with an empty `/run` of its own; it ends with the value.
struct Sshd {
    child: Child,
    /// The command that logs in.
    login: String,
}

impl Sshd {
    fn start(site: &Site, settings: &str) -> Self {
        let room = &site.room;
        ssh::make_keys(room);
        let config = room.file(
            "sshd_config",
            format!(
                "Port 2222\nListenAddress 192.0.2.2\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
                 PasswordAuthentication no\nPermitRootLogin yes\nPidFile none\n{settings}\n",
                room.name("host"),
                room.name("authorized"),
            ),
        );
        let start = format!(
            "mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec /usr/sbin/sshd -D -e -f {config}"
        );
        let (pid, number) = (std::process::id(), site.server.as_fd().as_raw_fd());
        let child = Command::new("nsenter")
            .arg(format!("--net=/proc/{pid}/fd/{number}"))
            .args(["unshare", "--mount", "sh", "-c", &start])
            .stdin(Stdio::null())
            .stderr(std::fs::File::create(room.at("sshd.log")).unwrap())
            .spawn()
            .unwrap();
        let login = format!(
            "{} ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o \
             LogLevel=ERROR -i {} -p 2222 root@192.0.2.2",
            super::enter(&site.client),
            room.name("own"),
        );
        let sshd = Self { child, login };
        until("sshd listens", Duration::from_secs(10), || {
            listens(&site.client)
        });
        sshd
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listens(client: &NetNs) -> bool {
    let connect = || std::net::TcpStream::connect(("192.0.2.2", 2222)).is_ok();
    client.run(connect).unwrap()
}

fn has_sshd() -> bool {
    let there = Path::new("/usr/sbin/sshd").exists();
    if !there {
        skip(
            "sshd",
            false,
            "there is no /usr/sbin/sshd: install openssh-server",
        );
    }
    there
}

#[test]
fn through_ssh_a_cell_is_what_it_is_without() {
    let _beside = beside();
    if !has_sshd() {
        return;
    }
    unharmed(|| {
        let site = Site::new();
        let directory = Path::new(PROGRAM).parent().unwrap().display();
        let sshd = Sshd::start(&site, &format!("SetEnv PATH={directory}:/usr/bin:/bin"));
        let how = ["--loads", "tcp_stream,tcp_rr", "--blocks", "2..2"];
        let said = site.run(&sshd.login, &how);
        let report = said.exits(0).json();
        for cell in report["cells"].as_array().unwrap() {
            assert_eq!(cell["status"], "ok", "{cell:#}");
            assert_eq!(cell["way"]["proved"], true, "{cell:#}");
            assert_eq!(cell["endpoints"]["server"]["is_on_this_kernel"], true);
        }
        super::cpu_is_read(&said);
    });
}

#[test]
fn where_there_is_no_hopyard_the_worker_is_taken_there_and_leaves_nothing() {
    let _beside = beside();
    let worker = Path::new(PROGRAM).with_file_name("hopyard-worker");
    if !has_sshd() {
        return;
    }
    if !worker.exists() {
        skip(
            "hopyard-worker",
            false,
            "it is not built: cargo build -p hopyard-load",
        );
        return;
    }
    unharmed(|| {
        let site = Site::new();
        let place = site.room.name("tmp");
        std::fs::create_dir(&place).unwrap();
        let left = || std::fs::read_dir(&place).unwrap().count();
        let sshd = Sshd::start(&site, &format!("SetEnv PATH=/usr/bin:/bin TMPDIR={place}"));
        let cell = only_cell(site.run(&sshd.login, &["--loads", "tcp_rr"]).exits(0));
        assert_eq!(cell["status"], "ok", "{cell:#}");
        assert_eq!(cell["way"]["proved"], true, "{cell:#}");
        assert_eq!(left(), 0);
        // The next one listens at the same port.
        drop(sshd);
        // Nothing to become the worker with.
        let bare = Sshd::start(&site, &format!("SetEnv PATH=/nonexistent TMPDIR={place}"));
        let said = site.run(&bare.login, &["--loads", "tcp_rr"]);
        said.exits(2).says(&[
            "hopyard-worker cannot be copied there",
            "sh: command not found",
        ]);
        assert_eq!(left(), 0);
    });
}

/// A copy that is cut in the middle is removed by the shell that takes it.
#[test]
fn a_copy_that_does_not_arrive_whole_is_removed() {
    let _beside = beside();
    let worker = Path::new(PROGRAM).with_file_name("hopyard-worker");
    if !worker.exists() {
        skip(
            "hopyard-worker",
            false,
            "it is not built: cargo build -p hopyard-load",
        );
        return;
    }
    unharmed(|| {
        let site = Site::new();
        let place = site.room.name("tmp");
        std::fs::create_dir(&place).unwrap();
        let changed = |change: &str| {
            format!(
                "export TMPDIR={place}; [ \"$1\" = sh ] || exit 127\n\
                 perl -e 'while (sysread(STDIN, $_, 4096)) {{ $n += length; {change}; syswrite(STDOUT, $_) }}' | \
                 $ENTER \"$@\""
            )
        };
        // The first part alone, and some bits that are others.
        for change in ["last if $n > 30000", "$_ = reverse $_ if $n > 30000"] {
            let script = changed(change);
            let words = "the worker did not arrive whole";
            let said = site.run(&site.script(&script), &["--loads", "tcp_rr"]);
            said.exits(2).says(&[words]);
            assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0, "{said}");
        }
    });
}
