//! Running a program to its end, with a deadline.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use hopyard_net::kill_group;
use nix::sys::memfd::{MFdFlags, memfd_create};

use super::Error;
use crate::daemon::{PATIENCE, shown};

const LOOK: Duration = Duration::from_micros(500);
/// More than a program has to say.
const MOST_SAID: u64 = 64 * 1024;

/// Runs a command to its end and gives back what it printed. `hopeless` ends the wait with its error.
pub(super) fn run(
    what: &str,
    mut command: Command,
    hopeless: &dyn Fn() -> Option<Error>,
) -> Result<String, Error> {
    let program = name_of(command.get_program());
    let start = |source| Error::Start {
        program: program.clone(),
        source,
    };
    // Files, not pipes: whatever the program leaves running cannot hold them open against us.
    let (mut out, mut err) = (scratch().map_err(start)?, scratch().map_err(start)?);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(out.try_clone().map_err(start)?)
        .stderr(err.try_clone().map_err(start)?)
        // Ctrl-C at the terminal is for hopyard.
        .process_group(0)
        .spawn()
        .map_err(start)?;
    let ended = wait(&mut child, hopeless);
    let how = match ended {
        Ok(Some(how)) => how,
        Ok(None) => {
            return Err(Error::Silent {
                what: what.to_owned(),
                program,
                after: PATIENCE,
            });
        }
        Err(why) => return Err(why),
    };
    let said = text(&mut err);
    // ovs-vsctl calls it a success when the database took what the switch could not do.
    if !how.success() || said.contains("Error detected while setting up") {
        return Err(Error::Failed {
            what: what.to_owned(),
            program,
            how,
            said: shown(&said),
        });
    }
    Ok(text(&mut out))
}

/// Waits for the end; `None` when there was none in time. The program and all below it are gone
/// afterwards, whatever came of it.
fn wait(
    child: &mut Child,
    hopeless: &dyn Fn() -> Option<Error>,
) -> Result<Option<ExitStatus>, Error> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Ok(Some(how)) = child.try_wait() {
            return Ok(Some(how));
        }
        let why = hopeless();
        if why.is_some() || Instant::now() > deadline {
            kill_group(child.id());
            let _ = child.wait();
            return why.map_or(Ok(None), Err);
        }
        thread::sleep(LOOK);
    }
}

fn scratch() -> io::Result<File> {
    Ok(memfd_create("hopyard-ovs", MFdFlags::MFD_CLOEXEC)?.into())
}

fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let read = file
        .seek(SeekFrom::Start(0))
        .and_then(|_| file.take(MOST_SAID).read_to_end(&mut bytes));
    match read {
        Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => format!("(cannot be read: {error})"),
    }
}

/// The program's own name.
pub(super) fn name_of(program: &OsStr) -> String {
    std::path::Path::new(program).file_name().map_or_else(
        || program.to_string_lossy().into_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Result<String, Error> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        run("try it", command, &|| None)
    }

    #[test]
    fn what_it_prints_comes_back_and_what_it_leaves_running_is_not_waited_for() {
        let began = Instant::now();
        assert_eq!(sh("echo yes; sleep 30 &").unwrap(), "yes\n");
        assert!(began.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_failure_says_what_the_program_said() {
        let error = sh("echo no room >&2; exit 3").unwrap_err().to_string();
        assert!(
            error.starts_with("cannot try it: sh failed (exit status: 3): no room;"),
            "{error}"
        );
        let error = sh("echo \"sh: Error detected while setting up 'br0'\" >&2").unwrap_err();
        assert!(error.to_string().contains("setting up 'br0'"), "{error}");
    }

    #[test]
    fn a_wait_without_hope_ends() {
        let mut command = Command::new("/bin/sleep");
        command.arg("100");
        let began = Instant::now();
        let error = run("wait", command, &|| {
            Some(Error::Silent {
                what: "hope".to_owned(),
                program: "none".to_owned(),
                after: Duration::ZERO,
            })
        });
        assert!(error.unwrap_err().to_string().starts_with("cannot hope"));
        assert!(began.elapsed() < Duration::from_secs(50));
    }
}
