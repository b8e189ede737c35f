//! `hopyard-worker`: an endpoint of a load and nothing else, for machines and containers that have no hopyard.
//!
//! It is started as `hopyard worker` is, and speaks the same protocol on its stdin and stdout.

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args_os().len() > 1 {
        return end(2, "it takes no arguments; requests come on its stdin");
    }
    match hopyard_load::worker::main() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => end(3, &error.to_string()),
    }
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
