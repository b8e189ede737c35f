//! Machines that a real ssh leads to, each with an sshd of its own.

use std::path::Path;
use std::process::{Child, Stdio};

use super::*;
use crate::support::{skip, ssh};

/// The daemons of a test; they end with the value.
struct Daemons(Vec<Child>);

impl Drop for Daemons {
    fn drop(&mut self) {
        for daemon in &mut self.0 {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// An sshd in each machine, with an empty `/run` of its own.
fn daemons(site: &Site) -> Daemons {
    let directory = Path::new(PROGRAM).parent().unwrap().display();
    let start = |number: usize| {
        let config = site.room.file(
            &format!("sshd-{number}"),
            format!(
                "Port 2222\nListenAddress 192.0.2.{number}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
                 PasswordAuthentication no\nPermitRootLogin yes\nPidFile none\nSetEnv PATH={directory}:/usr/bin:/bin\n",
                site.room.name("host"),
                site.room.name("authorized"),
            ),
        );
        let script = format!(
            "mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec /usr/sbin/sshd -D -e -f {config}"
        );
        let log = std::fs::File::create(site.room.at(&format!("sshd-{number}.log"))).unwrap();
        let daemon = Command::new("nsenter")
            .arg(format!("--net={}", file(&site.machines[number - 1])))
            .args(["unshare", "--mount", "sh", "-c", &script])
            .stdin(Stdio::null())
            .stderr(log)
            .spawn();
        daemon.unwrap()
    };
    Daemons((1..=site.machines.len()).map(start).collect())
}

/// All 28 pairs of eight machines would take a minute and show the same.
const MACHINES: usize = 4;

#[test]
fn machines_behind_ssh_are_measured_and_one_whose_sshd_dies_is_lost() {
    let _beside = beside();
    if !Path::new("/usr/sbin/sshd").exists() {
        skip(
            "sshd",
            false,
            "there is no /usr/sbin/sshd: install openssh-server",
        );
        return;
    }
    unharmed(|| {
        // The last is where we log in from.
        let site = Site::new(MACHINES + 1);
        ssh::make_keys(&site.room);
        let mut daemons = daemons(&site);
        let here = &site.machines[MACHINES];
        for number in 1..=MACHINES {
            let listens = || {
                let address = (format!("192.0.2.{number}"), 2222);
                let address = (&address.0[..], address.1);
                here.run(|| std::net::TcpStream::connect(address).is_ok())
                    .unwrap()
            };
            until("sshd listens", Duration::from_secs(20), listens);
        }
        let login = |number: usize| {
            format!(
                "{} ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o \
                 LogLevel=ERROR -i {} -p 2222 root@192.0.2.{number}",
                site.prefix(MACHINES + 1),
                site.room.name("own"),
            )
        };
        let lines: String = (1..=MACHINES)
            .map(|n| format!("n{n} {}\n", login(n)))
            .collect();
        let file = site.room.file("by-ssh", lines);
        let words = ["run", &file, "-o", "out", "--json"];
        let said = site.run(&[&words[..], &SHORT].concat());
        let document = said.exits(0).json();
        assert_eq!(document["counts"]["measured"], 6);
        tell(&format!("6 pairs by ssh, two at once, in {:?}", said.took));
        // ssh has exit status 255 for this, as for much else.
        daemons.0[1].kill().unwrap();
        daemons.0[1].wait().unwrap();
        let three: String = (1..=3).map(|n| format!("n{n} {}\n", login(n))).collect();
        let three = site.room.file("three", three);
        let said = site.run(&[&["run", &three, "-o", "again"], &SHORT[..]].concat());
        said.exits(1).prints(&[
            "1 of 3 pairs measured",
            "\n  n2: no answer after 2 failed pairs",
        ]);
        tell(&said.stdout);
        let failed = pairs(&site.document("again"))
            .into_iter()
            .filter(|(_, p)| p["state"] == "failed");
        let failed: Vec<Value> = failed.map(|(_, pair)| pair).collect();
        assert_eq!(failed.len(), 2);
        for pair in failed {
            let cause = pair["cause"].as_str().unwrap();
            assert!(
                cause.contains("n2 does not answer (ssh: connect to host"),
                "{cause}"
            );
        }
    });
}
