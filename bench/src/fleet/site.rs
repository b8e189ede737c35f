//! Machines: namespaces on one bridge, each with an sshd.

use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hopyard_net::NetNs;

use crate::Failure;

pub(crate) struct Site {
    home: tempfile::TempDir,
    hub: NetNs,
    machines: Vec<NetNs>,
    daemons: Vec<Child>,
}

fn file_of(ns: &NetNs) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), ns.as_fd().as_raw_fd())
}

fn run(command: &mut Command) -> Result<(), Failure> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
}

fn within(ns: &NetNs, script: &str) -> Result<(), Failure> {
    run(Command::new("nsenter").args([&format!("--net={}", file_of(ns)), "sh", "-ec", script]))
}

impl Site {
    pub(crate) fn new(count: usize, hopyard: &Path) -> Result<Self, Failure> {
        let mut site = Self {
            home: tempfile::tempdir()?,
            hub: NetNs::create()?,
            machines: Vec::new(),
            daemons: Vec::new(),
        };
        within(
            &site.hub,
            "ip link add br0 type bridge; ip link set br0 up; ip addr add 198.18.0.254/24 dev br0; ip link set lo up",
        )?;
        for number in 1..=count {
            let machine = NetNs::create()?;
            let there = file_of(&machine);
            within(
                &site.hub,
                &format!(
                    "ip link add p{number} type veth peer name eth0 netns {there}; ip link set p{number} master br0 up"
                ),
            )?;
            within(
                &machine,
                &format!(
                    "ip link set lo up; ip link set eth0 up; ip addr add 198.18.0.{number}/24 dev eth0"
                ),
            )?;
            site.machines.push(machine);
        }
        for name in ["host", "own"] {
            run(Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(site.path(name)))?;
        }
        let programs = hopyard
            .parent()
            .unwrap_or(Path::new("/"))
            .display()
            .to_string();
        for number in 1..=count {
            let config = site.file(
                &format!("sshd-{number}"),
                &format!(
                    "Port 2222\nListenAddress 198.18.0.{number}\nHostKey {0}/host\nAuthorizedKeysFile {0}/own.pub\nStrictModes no\nUsePAM no\n\
                     PasswordAuthentication no\nPermitRootLogin yes\nPidFile none\nSetEnv PATH={programs}:/usr/bin:/bin\n",
                    site.home.path().display()
                ),
            )?;
            let script = format!(
                "mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec /usr/sbin/sshd -D -e -f {config}"
            );
            let daemon = Command::new("nsenter")
                .arg(format!("--net={}", file_of(&site.machines[number - 1])))
                .args(["unshare", "--mount", "sh", "-c", &script])
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?;
            site.daemons.push(daemon);
        }
        for number in 1..=count {
            let deadline = Instant::now() + Duration::from_secs(20);
            let listens = || {
                site.hub.run(|| {
                    std::net::TcpStream::connect((format!("198.18.0.{number}"), 2222)).is_ok()
                })
            };
            while !listens()? {
                if Instant::now() > deadline {
                    return Err(format!("the sshd of machine {number} does not listen").into());
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(site)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> Result<String, Failure> {
        std::fs::write(self.path(name), text)?;
        Ok(self.path(name).display().to_string())
    }

    /// The command that enters a machine.
    pub(crate) fn enter(&self, number: usize) -> String {
        format!("nsenter --net={}", file_of(&self.machines[number - 1]))
    }

    /// The command that logs in to it, from the hub.
    pub(crate) fn login(&self, number: usize) -> String {
        format!(
            "nsenter --net={} ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR \
             -i {} -p 2222 root@198.18.0.{number}",
            file_of(&self.hub),
            self.path("own").display()
        )
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}
