//! Open vSwitch of a lab's own: its daemons in the hub, with a database, sockets and logs that nobody
//! else uses, beside whatever the host runs.

mod bridge;
mod control;
mod error;
mod programs;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(in crate::lab) use bridge::BRIDGE;
pub use bridge::Port;
pub use error::Error;
use hopyard_net::{Cgroup, NetNs};
use programs::Programs;

use super::daemon::home::OVS;
use super::daemon::{self, Daemon, Household, Program, Starter};
use super::paths::{Carried, Need};
use super::{LabId, Result};
use crate::model::{Datapath, DatapathKind, OPEN_VSWITCH};

/// Where the programs look for their files instead of the host's directories (ovs-vswitchd(8)).
const DIRECTORIES: [&str; 4] = ["OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR"];
/// To the log of its own, and never to the host's syslog.
const LOGGING: [&str; 2] = ["-vconsole:warn", "-vsyslog:off"];
/// The programs that a lab runs.
const PROGRAMS: &[&str] = &["ovsdb-tool", SERVER.name, SWITCH.name, "ovs-vsctl"];
/// What they read: the schema of the database.
const FILES: &[&str] = &["/usr/share/openvswitch/vswitch.ovsschema"];
/// The programs of Open vSwitch, and a datapath for them.
pub const NEED: Need = Need {
    carried: Carried {
        modules: &["openvswitch", "tun"],
        programs: PROGRAMS,
        files: FILES,
    },
    ..Need::new("Open vSwitch", |_| programs::probe())
};
const SERVER: Program = Program {
    name: "ovsdb-server",
    called: "Open vSwitch's ovsdb-server",
    remedy: REMEDY,
};
const SWITCH: Program = Program {
    name: "ovs-vswitchd",
    called: "Open vSwitch's ovs-vswitchd",
    remedy: REMEDY,
};
const REMEDY: &str = "repair package `openvswitch-switch`";

/// Does Open vSwitch forward in the kernel here? Not where nobody can tell.
#[must_use]
pub fn in_kernel() -> bool {
    programs::datapath().is_ok_and(|kind| kind == DatapathKind::Kernel)
}

/// A running Open vSwitch. Dropping it ends it, unless it is kept.
#[derive(Debug)]
pub(super) struct Ovs {
    /// Name of its directory: the lab's id.
    name: String,
    home: PathBuf,
    programs: Programs,
    kind: DatapathKind,
    /// The switch first: it is ended first.
    daemons: Vec<Daemon>,
    /// Outlives the daemons, which end with it.
    starter: Option<Starter>,
    keep: bool,
}

impl Ovs {
    /// Starts database server and switch in the hub.
    pub(super) fn start(
        id: LabId,
        hub: &NetNs,
        cgroup: Option<&Cgroup>,
        keep: bool,
    ) -> Result<Self> {
        let programs = Programs::find()?;
        let kind = programs::datapath()?;
        let name = id.to_string();
        let mut ovs = Self {
            home: OVS.make(&name)?,
            name,
            programs,
            kind,
            daemons: Vec::new(),
            starter: None,
            keep: false,
        };
        let household = Household {
            hub,
            // A kept lab has nothing to count, and nobody who would remove the group.
            cgroup: cgroup.filter(|_| !keep),
            keep,
        };
        // Whatever fails here, dropping `ovs` undoes it.
        ovs.start_daemons(&household)?;
        Ok(ovs)
    }

    /// Lets it run when this value goes.
    pub(super) fn leave_running(&mut self) {
        self.keep = true;
    }

    fn start_daemons(&mut self, household: &Household<'_>) -> Result<()> {
        let starter = Starter::new().map_err(|source| daemon::Error::Home {
            what: "start a thread for Open vSwitch's daemons".to_owned(),
            source,
        })?;
        let starter = self.starter.insert(starter);
        let (home, programs) = (&self.home, &self.programs);
        let database = home.join("conf.db");
        let mut create = command(&programs.ovsdb_tool, home);
        create.args(["-vsyslog:off", "create"]).arg(&database);
        control::run("create a database for Open vSwitch", create, &|| None)?;

        let mut server = started(&SERVER, &programs.ovsdb_server, home);
        let socket = home.join("db.sock");
        server
            .arg(format!("--remote=punix:{}", socket.display()))
            .arg(&database);
        let server = Daemon::start(&SERVER, server, home, starter, household)?;
        self.daemons.push(server);
        let [server] = &self.daemons[..] else {
            return Ok(());
        };
        server.listens("start Open vSwitch", &socket)?;

        let mut switch = started(&SWITCH, &programs.vswitchd, home);
        switch.arg(format!("unix:{}", socket.display()));
        let switch = Daemon::start(&SWITCH, switch, home, starter, household)?;
        self.daemons.insert(0, switch);
        Ok(())
    }

    /// Runs `ovs-vsctl` on its database; waits until the switch has done what was asked.
    pub(super) fn control(&self, what: &str, words: &[String]) -> Result<String> {
        let mut vsctl = command(&self.programs.vsctl, &self.home);
        vsctl
            .arg(format!("--db={}", self.database()))
            .arg(format!("--timeout={}", daemon::PATIENCE.as_secs()))
            .arg("-vsyslog:off")
            .args(words);
        Ok(control::run(what, vsctl, &|| {
            self.death().map(Error::from)
        })?)
    }

    /// Where its database answers.
    fn database(&self) -> String {
        format!("unix:{}", self.home.join("db.sock").display())
    }

    /// The first of its daemons that is gone, and how it ended.
    pub(super) fn death(&self) -> Option<daemon::Error> {
        self.daemons.iter().find_map(Daemon::death)
    }

    /// Its processes.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.daemons.iter().map(Daemon::pid).collect()
    }

    /// Name of its directory.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What forwards, for results.
    pub(super) fn datapath(&self) -> Datapath {
        Datapath {
            switch: OPEN_VSWITCH.to_owned(),
            version: self.programs.version.clone(),
            kind: self.kind,
            hook: None,
        }
    }

    fn remove(&self) -> std::result::Result<(), daemon::Error> {
        for daemon in &self.daemons {
            daemon.end();
        }
        OVS.remove_files(&self.name)
    }
}

/// Where the database of a directory answers, for people.
pub fn database(name: &str) -> String {
    format!("unix:{}", OVS.directory(name).join("db.sock").display())
}

impl Drop for Ovs {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        if let Err(error) = self.remove() {
            crate::note(format_args!(
                "could not remove Open vSwitch of a lab: {}",
                crate::chain(&error)
            ));
        }
    }
}

/// A program of Open vSwitch with directories of the lab's own.
fn command(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    for variable in DIRECTORIES {
        command.env(variable, home);
    }
    command
}

/// A daemon in the foreground, told apart from everybody else's by its control socket.
fn started(which: &Program, program: &Path, home: &Path) -> Command {
    let mut command = command(program, home);
    let socket = home.join(format!("{}.ctl", which.name));
    command
        .stdin(Stdio::null())
        .arg(format!("--unixctl={}", socket.display()))
        .args(LOGGING);
    command
}
