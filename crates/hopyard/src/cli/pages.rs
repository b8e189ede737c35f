//! `hopyard completions` and `hopyard man`, from the definition of the command line.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use super::command::Args;
use super::{Done, Failure, deliver};

pub(super) fn completions(shell: Shell) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "hopyard", &mut script);
    deliver(&script, None)
}

/// Prints the manual page of the program, or writes it and one for each command: `hopyard.1`, `hopyard-run.1`, …
pub(super) fn manual(directory: Option<&Path>) -> Done {
    let Some(directory) = directory else {
        return deliver(&page().map_err(|e| Failure::internal(&e))?, None);
    };
    std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Args::command(), directory))
        .map(|()| ExitCode::SUCCESS)
        .map_err(|e| Failure::request(format!("cannot write to {}: {e}", directory.display())))
}

fn page() -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Args::command()).render(&mut page)?;
    Ok(page)
}
