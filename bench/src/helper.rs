//! Programs beside a measurement that print a line once they are ready.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A running program. Dropping it ends it.
#[derive(Debug)]
pub struct Helper {
    child: Child,
}

impl Helper {
    /// Starts it and waits for its line; `None` if it ended without one.
    ///
    /// # Errors
    /// It cannot be started or heard.
    pub fn start(command: &mut Command) -> std::io::Result<Option<Self>> {
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C at the terminal is for the controller, which ends it.
            .process_group(0)
            .spawn()?;
        let mut started = Self { child };
        let mut line = String::new();
        if let Some(stdout) = started.child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        Ok((!line.is_empty()).then_some(started))
    }

    /// Whether it has ended by itself.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn has_ended(&mut self) -> std::io::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // Fails only if it ended meanwhile; it is reaped in either case.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
