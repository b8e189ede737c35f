//! `taps`: the least cost of moving frames between two taps, and the cheapest system calls for it.
//!
//! It compares the tap switch with two programs that only copy: no addresses, no table, no counters, two taps, one
//! buffer. No switch in user space that reads and writes taps frame by frame can carry more than these. One of them
//! waits in `read` with a thread for each direction. The other is the switch with `read` and `write` in place of
//! io_uring. All run in blocks of random order, beside the kernel's own paths.

mod copier;
mod run;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use hopyard::signals;

/// Compares the tap switch with programs that only copy (root; some minutes).
#[derive(Debug, Parser)]
struct Options {
    #[command(subcommand)]
    role: Option<Role>,
    /// Blocks: each method once in each.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=200))]
    blocks: u32,
    /// Length of a window, ms.
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u64).range(100..=10_000))]
    window: u64,
    /// Seed of the order.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Copies (a lab starts this instead of the tap switch).
    #[command(hide = true)]
    Copier(copier::Options),
}

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Measure(#[from] hopyard::measure::Error),
    #[error(transparent)]
    Name(#[from] hopyard::model::UnknownName),
    #[error(transparent)]
    Net(#[from] hopyard_net::Error),
    #[error(transparent)]
    Tap(#[from] hopyard_tap::Error),
    #[error(transparent)]
    Claim(#[from] hopyard::tapswitch::Error),
    #[error("cannot {what}")]
    Io {
        what: &'static str,
        source: std::io::Error,
    },
    #[error("there is no program `{0}`: build it with `cargo build --release -p hopyard`")]
    NoProgram(String),
    #[error("a copier takes `tapswitch run NAME` and two taps, not `{0}`")]
    Words(String),
    #[error("the traffic did not take its way: {0}")]
    Way(String),
    #[error("{0} has no figure to compare")]
    NoFigure(&'static str),
    #[error("interrupted")]
    Interrupted,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let done = match &options.role {
        Some(Role::Copier(options)) => copier::main(options),
        None => run::main(options.blocks, options.window, options.seed),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) if signals::interrupted() => ExitCode::from(signals::INTERRUPTED),
        Err(failure) => {
            hopyard::note(format_args!("{}", hopyard::chain(&failure)));
            ExitCode::from(2)
        }
    }
}
