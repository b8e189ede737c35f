//! Bringing the worker to where there is none: over the pipe that it will be spoken to through.

use std::process::Child;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use hopyard_net::pipe;

use super::{Error, Interrupt, PROMPT, Remote};
use crate::protocol::Reply;

/// How long the program may take to arrive.
const ARRIVE: Duration = Duration::from_secs(60);

impl Remote {
    /// Has a shell at the endpoint take a program and become it: it is told `script`, a line, answers `send`, takes the
    /// program and greets as the worker that this is.
    ///
    /// # Errors
    /// There is no such shell, it says why it cannot, or what it became does not greet.
    pub fn carry(
        endpoint: &str,
        shell: std::io::Result<Child>,
        script: &str,
        program: Vec<u8>,
        patience: Duration,
        interrupt: Interrupt<'_>,
    ) -> Result<Self, Error> {
        let mut remote = Self::begin(endpoint, shell)?;
        let line = format!("{script}\n");
        remote.write(PROMPT, |stdin| {
            pipe::write_within(stdin, line.as_bytes(), PROMPT)
        })?;
        match remote.hear("start a shell", patience, interrupt)? {
            Reply::Send => {}
            other => return Err(remote.out_of_turn(&other)),
        }
        // A far side that takes nothing more must not keep the controller.
        let stdin = Arc::clone(&remote.stdin);
        thread::Builder::new()
            .name("carry".to_owned())
            .spawn(move || {
                let mut stdin = stdin.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(stdin) = &mut *stdin {
                    // What ends it is heard from the other side.
                    let _ = pipe::write_within(stdin, &program, ARRIVE);
                }
            })
            .map_err(|source| Error::Start {
                endpoint: endpoint.to_owned(),
                source,
            })?;
        remote.greet(ARRIVE, interrupt)?;
        Ok(remote)
    }
}
