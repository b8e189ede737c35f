//! `hopyard-worker`: an endpoint of a load and nothing else, for machines and containers that have no hopyard.
//!
//! It is started as `hopyard worker` is, and speaks the same protocol on its stdin and stdout. With `--once` it first removes itself, and
//! its directory with it: a copy that was made for one run.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match (arguments.next(), arguments.next()) {
        (None, _) => {}
        (Some(once), None) if once == "--once" => {
            if let Err(error) = remove_itself() {
                return end(3, &format!("cannot remove itself: {error}"));
            }
        }
        _ => return end(2, "it takes no arguments; requests come on its stdin"),
    }
    match hopyard_load::worker::main() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => end(3, &error.to_string()),
    }
}

/// It runs on without a name, and goes with its process, however that ends.
fn remove_itself() -> std::io::Result<()> {
    let file = std::env::current_exe()?;
    std::fs::remove_file(&file)?;
    // Only an empty one can be removed.
    file.parent().map_or(Ok(()), std::fs::remove_dir)
}

/// Says why on stderr, as hopyard does.
fn end(status: u8, why: &str) -> ExitCode {
    use std::io::Write;
    // Nobody may read it; that is no reason to panic.
    let _ = writeln!(
        std::io::stderr(),
        "hopyard-worker: {}",
        hopyard_model::plain::message(why)
    );
    ExitCode::from(status)
}
