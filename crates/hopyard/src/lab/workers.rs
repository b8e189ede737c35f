//! Workers at a lab's endpoints.

use std::path::Path;
use std::process::Command;

use super::{Endpoint, Lab, Result};
use crate::load::remote::Remote;

impl Lab {
    /// Starts `hopyard worker` in an endpoint's namespace, or in the guest that it is, and in the lab's
    /// control group.
    ///
    /// # Errors
    /// It does not start, or does not greet.
    pub fn start_worker(&self, endpoint: &Endpoint, program: &Path) -> Result<Remote> {
        if let Some(guest) = self.guest(endpoint.role) {
            return self.boot(guest, program);
        }
        let mut command = Command::new(program);
        command.arg("worker");
        self.start(endpoint, command)
    }

    /// Starts any command that becomes a worker there.
    ///
    /// # Errors
    /// It does not start, or does not greet.
    pub fn start(&self, endpoint: &Endpoint, mut command: Command) -> Result<Remote> {
        use std::os::unix::process::CommandExt;
        // A group of its own: Ctrl-C at the terminal is for the controller, which ends its workers.
        command.process_group(0);
        if let Some(cgroup) = self.cgroup() {
            cgroup.adopt(&mut command)?;
        }
        let space = self.space(endpoint.role)?;
        Ok(space
            .handle
            .ns()
            .run(|| Remote::start(endpoint.role, command))??)
    }
}
