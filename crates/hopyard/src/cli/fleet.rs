//! `hopyard fleet`: many machines measured in pairs.

mod matrix;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use hopyard_fleet::{
    Children, End, Endpoint, Error, FOR_PAIRS, Fleet, Manifest, Pairs, Plan, Progress, Ranks,
    Relays, Settings, Store, document, drive, plan_text, pods, read_endpoints, serve_relay,
    slurm_endpoints, text, write,
};

use super::{Done, Failure, deliver, pretty, print};
use crate::lab::Prefix;
use crate::model::{Blocks, Family, LoadKind};
use crate::signals;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hopyard fleet plan endpoints.toml                    # the rounds, and how long all of it takes
  hopyard fleet run endpoints.toml -o rack3            # all pairs, each machine in one at a time
  hopyard fleet run endpoints.toml -o rack3 --resume   # what is missing or failed
  hopyard fleet run --slurm -o night --pairs ring      # the nodes of the allocation around us
  hopyard fleet manifest night --image debian:13 --pods 8 | kubectl apply -f -
  hopyard fleet run --pods 'kubectl get pods -l job-name=night -o json' -o night
  hopyard fleet show rack3                             # worst machines, worst pairs, what failed

ENDPOINTS is a TOML file of [[endpoint]] with name, connect and, if wanted, address and rack; or lines of
`NAME PREFIX`, as in `n1 ssh n1` (docs/fleet.md). PREFIX is a command that runs the rest of its arguments there.
Exit status: 0 all pairs were measured, 1 some failed or were skipped or have samples that could not be read, 2 wrong usage, 3
nothing more can be measured, 130 interrupted.")]
pub(super) struct FleetArgs {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    /// Measure the pairs of a fleet, each by a run of its own
    Run(RunArgs),
    /// Print the rounds and the expected time; contacts and measures nothing
    Plan(PlanArgs),
    /// Print a fleet again, from its directory
    Show(ShowArgs),
    /// Measure kernels × paths × loads, a cell on each node, each compared with the base on its own node alone
    Matrix(matrix::MatrixArgs),
    /// Run pairs as `hopyard fleet run --relay` on another machine says on stdin
    #[command(hide = true)]
    Relay,
    /// Print a Kubernetes Job whose pods are endpoints, for `kubectl apply -f -`
    Manifest(ManifestArgs),
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct FromArgs {
    /// File that names the machines
    endpoints: Option<PathBuf>,
    /// Use the nodes of the current Slurm allocation, by `srun`
    #[arg(long)]
    slurm: bool,
    /// The pods that this command lists, as in `kubectl get pods -l app=x -o json`; they are reached by its `exec`
    #[arg(long, value_name = "COMMAND")]
    pods: Option<String>,
}

#[derive(Debug, Args)]
struct SettingArgs {
    /// Which pairs: all, both-ways (all, each machine as client and as server), ring (default: all)
    #[arg(long, value_name = "all|both-ways|ring")]
    pairs: Option<Pairs>,
    /// Loads to measure (default: tcp_stream,tcp_rr)
    #[arg(long, value_delimiter = ',', value_name = "LOAD,…")]
    loads: Option<Vec<LoadKind>>,
    /// Length of a measured window (default: 500ms)
    #[arg(long, value_name = "TIME", value_parser = crate::plan::window)]
    window: Option<Duration>,
    /// Time of traffic before each window that is not counted (default: 200ms)
    #[arg(long, value_name = "TIME", value_parser = crate::plan::warm_up)]
    warm_up: Option<Duration>,
    /// Smallest and largest number of blocks of a pair (default: 4)
    #[arg(long, value_name = "MIN..MAX")]
    blocks: Option<Blocks>,
    /// IP version of the traffic (default: that of the endpoints' addresses where they are given, or 4)
    #[arg(long, value_name = "4|6", value_parser = family)]
    family: Option<Family>,
    /// Most pairs at the same time (default: half of the machines, at most 50); with --resume too
    #[arg(long, value_name = "N")]
    at_once: Option<usize>,
    /// End a pair that takes longer (default: a minute and three times its expected time)
    #[arg(long, value_name = "TIME", value_parser = crate::plan::time_limit)]
    pair_limit: Option<Duration>,
}

#[derive(Debug, Args)]
struct RunArgs {
    #[command(flatten)]
    from: FromArgs,
    /// Directory for results
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Continue in the directory: measure what is missing or failed, with its settings
    #[arg(long, conflicts_with_all = ["pairs", "loads", "window", "warm_up", "blocks", "family", "pair_limit"])]
    resume: bool,
    /// Begin no further pairs after this time
    #[arg(long, value_name = "TIME", value_parser = crate::plan::time_limit)]
    time_limit: Option<Duration>,
    /// Run pairs on another machine, which this command leads to, instead of here; several share the pairs. `connect` has to work there
    #[arg(long, value_name = "PREFIX")]
    relay: Vec<Prefix>,
    /// Print `hopyard/fleet/1` as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: SettingArgs,
}

#[derive(Debug, Args)]
struct PlanArgs {
    #[command(flatten)]
    from: FromArgs,
    #[command(flatten)]
    settings: SettingArgs,
    /// Print as JSON, with all rounds
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// The directory of a fleet
    directory: PathBuf,
    /// Print `hopyard/fleet/1` as JSON, with all pairs
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ManifestArgs {
    /// Name of the Job
    name: String,
    /// Image of the pods: any with a shell, `sleep`, `mktemp`, `head` and `sha256sum`, as `debian:13` or `busybox`
    #[arg(long)]
    image: String,
    /// Number of pods, each on a node of its own
    #[arg(long, value_name = "N")]
    pods: u16,
    /// Namespace of the Job (default: the one of your context)
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// End all pods after this time
    #[arg(long, value_name = "TIME", default_value = "4h", value_parser = crate::plan::time_limit)]
    deadline: Duration,
    /// Measure the networks of the nodes instead of those of pods
    #[arg(long)]
    host_network: bool,
}

fn family(text: &str) -> Result<Family, String> {
    match text {
        "4" => Ok(Family::V4),
        "6" => Ok(Family::V6),
        _ => Err("it is 4 or 6".to_owned()),
    }
}

impl FromArgs {
    fn read(&self) -> Result<Vec<Endpoint>, Error> {
        match (&self.endpoints, &self.pods) {
            (Some(file), _) => read_endpoints(file, FOR_PAIRS),
            (None, Some(command)) => pods(command),
            (None, None) => slurm_endpoints(),
        }
    }
}

impl SettingArgs {
    fn settings(&self) -> Settings {
        Settings {
            pairs: self.pairs,
            loads: self.loads.clone(),
            window: self.window,
            warm_up: self.warm_up,
            blocks: self.blocks,
            family: self.family,
            at_once: self.at_once,
            relays: 0,
            deadline: self.pair_limit,
        }
    }
}

pub(super) fn fleet(args: FleetArgs) -> Done {
    match args.command {
        FleetCommand::Run(args) => run(&args),
        FleetCommand::Plan(args) => {
            let plan = Plan::new(args.from.read()?, &args.settings.settings())?;
            if args.json {
                print(&pretty(&plan.preview())?)
            } else {
                print(&plan_text(&plan))
            }
        }
        FleetCommand::Manifest(args) => {
            let manifest = Manifest {
                name: args.name,
                image: args.image,
                namespace: args.namespace,
                pods: args.pods,
                deadline: args.deadline,
                host_network: args.host_network,
            };
            print(&manifest.yaml()?)
        }
        FleetCommand::Matrix(args) => matrix::matrix(args),
        FleetCommand::Relay => {
            signals::listen().map_err(|e| Failure::internal(&e))?;
            serve_relay(own_program()?, signals::interrupted)?;
            Ok(ExitCode::SUCCESS)
        }
        FleetCommand::Show(args) => told(&Fleet::read(&args.directory)?, args.json, None),
    }
}

fn run(args: &RunArgs) -> Done {
    let endpoints = args.from.read()?;
    // Before anything is made, so that no signal is missed.
    signals::listen().map_err(|e| Failure::internal(&e))?;
    let program = own_program()?;
    let (mut store, relays) = if args.resume {
        let store = Store::resume(&args.output, &endpoints, args.settings.at_once)?;
        let relays = relays(&args.relay, &store.fleet.plan)?;
        (store, relays)
    } else {
        let settings = Settings {
            relays: args.relay.len(),
            ..args.settings.settings()
        };
        let plan = Plan::new(endpoints, &settings)?;
        Store::check_unused(&args.output)?;
        // The directory is made after the relays: a relay that cannot be used leaves none behind.
        let relays = relays(&args.relay, &plan)?;
        (Store::create(&args.output, plan)?, relays)
    };
    let mut watch = Watch::new();
    let see = |progress| watch.see(progress);
    let (limit, stopped) = (args.time_limit, signals::interrupted);
    let driven = match relays {
        None => drive(&mut store, &mut Children::new(program), limit, stopped, see),
        Some(mut relays) => drive(&mut store, &mut relays, limit, stopped, see),
    };
    watch.end();
    if let Some((place, why)) = store.missing.first() {
        let [client, server] = store.fleet.pairs[*place]
            .ends()
            .map(|m| store.fleet.name(m));
        crate::note(format_args!(
            "{} measured, but their samples cannot be read and are missing in samples/, as of {client} → {server}: {why}; \
             --resume measures them again",
            crate::units::counted(store.missing.len(), "pair")
        ));
    }
    let status = told(&store.fleet, args.json, Some(store.directory()))?;
    crate::note(format_args!(
        "the fleet is in {}; `hopyard fleet show {}` prints it again{}",
        args.output.display(),
        crate::run::quoted(&args.output.to_string_lossy()),
        if store.fleet.is_whole() {
            ""
        } else {
            ", the same command with --resume in place of settings measures what is missing or failed"
        }
    ));
    match driven? {
        End::Interrupted => Ok(ExitCode::from(signals::INTERRUPTED)),
        // Those that are missing are tried again by --resume.
        End::Complete | End::TimeLimit if !store.missing.is_empty() => Ok(ExitCode::FAILURE),
        End::Complete | End::TimeLimit | End::Broken => Ok(status),
    }
}

/// The machines that measure in place of this one, if any were named.
fn relays(named: &[Prefix], plan: &Plan) -> Result<Option<Relays>, Failure> {
    Ok(match named {
        [] => None,
        _ => Some(Relays::start(named, plan)?),
    })
}

fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|error| Failure::request(format!("cannot find this program: {error}")))
}

/// Prints a fleet, and keeps its document in the directory where one is given.
fn told(fleet: &Fleet, json: bool, directory: Option<&Path>) -> Done {
    let ranks = Ranks::of(fleet);
    let document = document(fleet, &ranks);
    // Results of hours are printed even if the document cannot be written.
    let written = directory.map_or(Ok(()), |directory| write(&document, directory));
    if json {
        deliver(&pretty(&document)?, None)?;
    } else {
        print(&text(fleet, &ranks))?;
    }
    written?;
    Ok(if fleet.is_whole() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// A progress line for a terminal.
struct Watch {
    is_watched: bool,
    last: String,
}

impl Watch {
    fn new() -> Self {
        Self {
            is_watched: std::io::stderr().is_terminal(),
            last: String::new(),
        }
    }

    fn see(&mut self, progress: Progress) {
        if !self.is_watched {
            return;
        }
        let Progress {
            measured,
            failed,
            running,
            lost,
            of,
        } = progress;
        let line = format!(
            "{measured} of {of} pairs measured, {failed} failed, {running} run, {lost} machines lost"
        );
        if line != self.last {
            // The terminal may be gone.
            let _written = write!(std::io::stderr(), "\r\x1b[K{line}");
            self.last = line;
        }
    }

    fn end(&self) {
        if self.is_watched {
            // Clears the line.
            let _written = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
