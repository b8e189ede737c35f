//! Helper programs that read their input first.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

/// Runs a program to its end with this input and these variables, in the namespace of the calling thread.
pub(crate) fn fed(
    program: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
    input: &str,
) -> io::Result<Output> {
    let mut child = Command::new(program)
        .args(arguments)
        .envs(variables.iter().copied())
        // A terminal's Ctrl-C is for whoever asked: what was begun here is finished, or undone.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // These programs read all of their input before they write more than a line, so this cannot deadlock. A broken pipe
    // means that it ended early; its status and diagnostics say why.
    if let Some(mut stdin) = child.stdin.take() {
        match stdin.write_all(input.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                child.kill().ok();
                child.wait().ok();
                return Err(error);
            }
            _ => {}
        }
    }
    child.wait_with_output()
}
