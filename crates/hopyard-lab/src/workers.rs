//! Workers at a lab's endpoints.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use hopyard_net::{Cgroup, start_first};

use super::{Endpoint, Lab, Result, role};
use crate::load::protocol::{Reply, Request};
use crate::load::remote::{PROMPT, Remote};
use crate::model::Scheduler;
use crate::signals;

impl Lab {
    /// Starts `hopyard worker` in an endpoint's namespace, or in the guest that it is, and in the lab's
    /// control group.
    ///
    /// # Errors
    /// It does not start, or does not greet.
    pub fn start_worker(&self, endpoint: &Endpoint, program: &Path) -> Result<Remote> {
        if let Some(guest) = self.builder.guest_at(endpoint.role) {
            return self.builder.boot(guest, program);
        }
        if let Some(reached) = self.reached() {
            return reached.worker(endpoint.role);
        }
        self.start(endpoint, worker(program))
    }

    /// Starts any command that becomes a worker there.
    ///
    /// # Errors
    /// It does not start, or does not greet.
    pub fn start(&self, endpoint: &Endpoint, command: Command) -> Result<Remote> {
        let mut command = to_speak_with(command);
        let own = self.own_group(self.has_shares(), endpoint.role)?;
        if let Some(cgroup) = own.as_ref().or(self.cgroup()) {
            cgroup.adopt(&mut command)?;
        }
        let net = self.space(endpoint.role)?.handle.ns();
        let child = net.run(|| command.spawn())?;
        let mut remote = Remote::begin(endpoint.role, child)?;
        remote.greet(PROMPT, &signals::interrupted)?;
        Ok(remote)
    }

    /// Starts the workers of the client: one, or one for each flow. All of them start before the first is heard.
    ///
    /// # Errors
    /// One does not start, or does not greet; the others are ended.
    pub fn start_clients(&self, program: &Path) -> Result<Vec<Remote>> {
        let axes = self.axes();
        if axes.containers.is_none() {
            return Ok(vec![self.start_worker(&self.topology.client, program)?]);
        }
        if let (true, Some(cgroup)) = (self.has_shares(), self.cgroup()) {
            cgroup.share_cpu()?;
        }
        let endpoints: Vec<_> = self.topology.clients().collect();
        let numbered = (1..=axes.client_processes()).zip(endpoints.into_iter().cycle());
        let mut remotes = Vec::new();
        for (number, endpoint) in numbered {
            let contained = role::is_container(endpoint.role);
            let own = self.own_group(contained || self.has_shares(), &number.to_string())?;
            let mut remote = self.begin(endpoint, program)?;
            // It does nothing before it is asked to.
            if let Some(cgroup) = own.as_ref().or(self.cgroup()) {
                cgroup.add(remote.pid())?;
            }
            if contained {
                remote.tell(&Request::SetApart, SET_APART)?;
            }
            remotes.push(remote);
        }
        // Each waits for those before it on a machine that is busy with all of them.
        let patience = PROMPT + PROMPT / 100 * axes.client_processes();
        for remote in &mut remotes {
            remote.greet(patience, &signals::interrupted)?;
            if role::is_container(remote.endpoint()) {
                match remote.hear(SET_APART, patience, &signals::interrupted)? {
                    Reply::Apart => {}
                    other => return Err(remote.out_of_turn(&other).into()),
                }
            }
        }
        Ok(remotes)
    }

    /// Has each process of the client a share of the CPU?
    fn has_shares(&self) -> bool {
        self.axes().scheduler == Some(Scheduler::Groups)
    }

    /// A group below the lab's, for a process that is to have one. Where groups have shares every process is: the group
    /// that hands them out must hold none itself (Documentation/admin-guide/cgroup-v2.rst, "No Internal Process Constraint").
    fn own_group(&self, wanted: bool, name: &str) -> Result<Option<Cgroup>> {
        let lab = self.cgroup().filter(|_| wanted);
        let own = lab.map(|_| Cgroup::create(&format!("{}/{name}", self.id())));
        Ok(own.transpose()?)
    }

    /// Starts one of many workers, in a PID namespace of its own where it is a container.
    fn begin(&self, endpoint: &Endpoint, program: &Path) -> Result<Remote> {
        let mut command = to_speak_with(worker(program));
        let net = self.space(endpoint.role)?.handle.ns();
        let child = if role::is_container(endpoint.role) {
            Ok(start_first(net, &mut command)?)
        } else {
            net.run(|| command.spawn())?
        };
        Ok(Remote::begin(endpoint.role, child)?)
    }
}

/// What a container's worker is asked first.
const SET_APART: &str = "set itself apart";

fn worker(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("worker");
    command
}

fn to_speak_with(mut command: Command) -> Command {
    // A group of its own: Ctrl-C at the terminal is for the controller, which ends its workers.
    command.process_group(0);
    Remote::piped(&mut command);
    command
}
