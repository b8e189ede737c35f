//! `hopyard attach`: how long a container waits for its network.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use hopyard_attach::{Changes, Plan, assess, measure, page, read, text};

use super::{Done, Failure, deliver, pretty, print};
use crate::model::stored::End;
use crate::signals;

/// What is written of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    /// `hopyard/attach/1`, with everything that was measured
    Json,
    /// A page with pictures
    Html,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hopyard attach                                                  # bridge, macvlan, ptp and hopyard, where installed
  sed s/eth0/up0/ /etc/cni/net.d/guests.conflist > mine.conflist
  hopyard attach --conflist mine.conflist --conflist other.conflist --ports 1,100 --beside 1,16
  hopyard attach --json > attach.json && hopyard attach --from attach.json --format html -o attach.html

The plugins are called in namespaces of their own, on a host that has one device, `up0`; `\"master\"` in a
network's file has to name it. Nothing outside is touched, and nothing stays.")]
pub(super) struct AttachArgs {
    /// A network's configuration (.conflist or .conf), instead of the plan's; may be repeated
    #[arg(long, value_name = "FILE")]
    conflist: Vec<PathBuf>,
    /// Number of containers of each network that exist before
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    ports: Vec<u32>,
    /// Number of ADDs at the same time
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    beside: Vec<u32>,
    /// Fresh hosts for each number of ports; verdicts need 8
    #[arg(long, value_name = "N")]
    blocks: Option<u32>,
    /// Attachments of each network in a block
    #[arg(long, value_name = "N")]
    attachments: Option<u32>,
    /// The network that the others are compared with (default: the plan's, or the first)
    #[arg(long, value_name = "NETWORK")]
    base: Option<String>,
    /// The plan: `attach`, or a file like plans/attach.toml
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// A directory of plugins, instead of the plan's; may be repeated
    #[arg(long, value_name = "DIR")]
    cni_path: Vec<PathBuf>,
    /// Stop measuring after this time, and tell what was measured
    #[arg(long, value_name = "TIME", value_parser = crate::plan::time_limit)]
    time_limit: Option<Duration>,
    /// Seed of the random order (default: random)
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Write to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Measure nothing; print such a document again
    #[arg(long, value_name = "FILE", conflicts_with_all = ["conflist", "ports", "beside", "blocks", "attachments", "base", "plan", "cni_path", "time_limit", "seed"])]
    from: Option<PathBuf>,
}

pub(super) fn attach(args: &AttachArgs) -> Done {
    let run = match &args.from {
        Some(file) => read(file)?,
        None => measured(args)?,
    };
    let document = assess(run);
    let is_now = args.from.is_none();
    let broken = document.run.broken.clone().filter(|_| is_now);
    let is_interrupted = document.run.end == End::Interrupted && is_now;
    let failed = document.cells.iter().any(|cell| cell.failed.is_some());
    let format = if args.json { Format::Json } else { args.format };
    let printed = match format {
        Format::Text => crate::plain::document(&text(&document)).into_owned(),
        Format::Json => pretty(&document)?,
        Format::Html => page(&document),
    };
    match &args.output {
        // What took half an hour is not lost for a wrong name.
        Some(file) => match deliver(&printed, Some(file)) {
            Err(failure) if is_now => {
                print(&printed)?;
                return Err(failure);
            }
            delivered => delivered?,
        },
        None => print(&printed)?,
    };
    if let Some(why) = broken {
        return Err(Failure::unforeseen(why));
    }
    Ok(ExitCode::from(if is_interrupted {
        signals::INTERRUPTED
    } else {
        u8::from(failed)
    }))
}

fn measured(args: &AttachArgs) -> Result<hopyard_attach::Run, Failure> {
    let changes = Changes {
        conflists: args.conflist.clone(),
        base: args.base.clone(),
        ports: args.ports.clone(),
        beside: args.beside.clone(),
        blocks: args.blocks,
        attachments: args.attachments,
        cni_path: args.cni_path.clone(),
    };
    let plan = Plan::read(args.plan.as_deref(), &changes)?;
    if !nix::unistd::geteuid().is_root() {
        return Err(Failure::request(
            "only root can make network namespaces and call CNI plugins: run `hopyard attach` as root",
        ));
    }
    let program = std::env::current_exe()
        .map_err(|error| Failure::request(format!("cannot find this program: {error}")))?;
    let mut program = Command::new(program);
    program.arg("attach-host");
    signals::listen().map_err(|error| Failure::internal(&error))?;
    let is_watched = std::io::stderr().is_terminal();
    let seed = args.seed.unwrap_or_else(crate::run::any_seed);
    let began = Instant::now();
    let is_over = || {
        args.time_limit
            .is_some_and(|limit| began.elapsed() >= limit)
    };
    let stop = || match signals::interrupted() {
        true => Some(End::Interrupted),
        false => is_over().then_some(End::TimeLimit),
    };
    let mut last = None;
    let run = measure(&plan, seed, program, stop, |progress| {
        let group = Some((progress.block, progress.ports));
        if is_watched {
            // The terminal may be gone.
            let _written = write!(std::io::stderr(), "\r\x1b[K{progress}");
        } else if last != group {
            crate::note(format_args!("{progress}"));
        }
        last = group;
    });
    if is_watched {
        // Clears the line of the progress.
        let _written = write!(std::io::stderr(), "\r\x1b[K");
    }
    Ok(run?)
}

/// The process that calls the plugins.
pub(super) fn host() -> Done {
    hopyard_attach::inside()?;
    Ok(ExitCode::SUCCESS)
}
