//! Open vSwitch of a lab's own: its daemons in the hub, with a database, sockets and logs that nobody
//! else uses, beside whatever the host runs.

mod bridge;
mod control;
mod programs;

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use hopyard_net::clock::monotonic_ns;

pub use super::error::ovs::Error;
pub(crate) use bridge::BRIDGE;
pub use bridge::Port;
use programs::Programs;

use super::Result;
use super::daemon::{self, Home, Program, Ready, Service};
use super::need::Need;
use super::part::Part;
use crate::guest::Carried;
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
/// Open vSwitch counts the CPUs for its handlers of packets anew when its last count is older, on a clock that begins with the boot
/// (`count_cpu_cores` of 2.17 and later): started sooner it counts none, and loses every packet that its datapath asks about.
const AGE_OF_COUNT: Duration = Duration::from_secs(10);
const REMEDY: &str = "repair package `openvswitch-switch`";
/// Where its directories are.
pub(super) static HOME: Home = Home {
    key: "ovs",
    database: Some(database),
    shown_by: Some(|name| format!("ovs-vsctl --db={} show", database(name))),
    ..Home::new(
        "Open vSwitch",
        "/run/hopyard-ovs",
        &[SERVER.name, SWITCH.name],
    )
};

/// Does Open vSwitch forward in the kernel here? Not where nobody can tell.
#[must_use]
pub fn in_kernel() -> bool {
    programs::datapath().is_ok_and(|kind| kind == DatapathKind::Kernel)
}

/// What forwards, for results.
fn datapath(programs: &Programs, kind: DatapathKind) -> Datapath {
    Datapath {
        switch: OPEN_VSWITCH.to_owned(),
        version: programs.version.clone(),
        kind,
        hook: None,
    }
}

/// Starts database server and switch.
fn start(service: &mut Service, programs: &Programs) -> Result<()> {
    let home = service.directory();
    let database = home.join("conf.db");
    let mut create = command(&programs.ovsdb_tool, &home);
    create.args(["-vsyslog:off", "create"]).arg(&database);
    control::run("create a database for Open vSwitch", create, &|| None)?;

    let mut server = started(&SERVER, &programs.ovsdb_server, &home);
    let socket = home.join("db.sock");
    server
        .arg(format!("--remote=punix:{}", socket.display()))
        .arg(&database);
    service.start(&SERVER, server, Some(Ready::Socket(socket.clone())))?;

    let mut switch = started(&SWITCH, &programs.vswitchd, &home);
    switch.arg(format!("unix:{}", socket.display()));
    // A guest may have booted just now.
    thread::sleep(AGE_OF_COUNT.saturating_sub(Duration::from_nanos(monotonic_ns())));
    // The first command waits for it.
    service.start(&SWITCH, switch, None)
}

/// Runs `ovs-vsctl` on its database; waits until the switch has done what was asked.
fn command_switch(
    service: &Service,
    programs: &Programs,
    what: &str,
    words: &[String],
) -> Result<()> {
    let mut vsctl = command(&programs.vsctl, &service.directory());
    vsctl
        .arg(format!("--db={}", database(&service.name)))
        .arg(format!("--timeout={}", daemon::PATIENCE.as_secs()))
        .arg("-vsyslog:off")
        .args(words);
    control::run(what, vsctl, &|| service.death().map(Error::from))?;
    Ok(())
}

/// Where the database of a directory answers.
fn database(name: &str) -> String {
    format!("unix:{}", HOME.directory(name).join("db.sock").display())
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
