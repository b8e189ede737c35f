//! `hopyard doctor --offloads PATH`: which offload flag matters on a path.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::run::{carry_out, check_out, destination};
use super::{Done, Failure};
use crate::model::{Blocks, LoadKind, OffloadSurvey, Peer};
use crate::plan::{self, Plan};
use crate::{lab, run, signals};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hopyard doctor                                          # what this host can build, what would distort figures
  hopyard doctor --offloads bridge                        # which of tso, gso, gro, lro and checksums matters
  hopyard doctor --offloads bridge --peer far --loads tcp_stream,udp_stream
  hopyard doctor --offloads veth --json | jq '.offloads.findings[] | {flag, sentence}'")]
pub(super) struct DoctorArgs {
    #[command(flatten)]
    pub(super) sweep: SweepArgs,
    /// Say what this machine lacks for published claims to be tested, and how to get it
    #[arg(long, conflicts_with = "offloads")]
    pub(super) claims: bool,
    /// Print as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Options of a sweep of offloads.
#[derive(Debug, Args)]
pub(super) struct SweepArgs {
    /// Show the current offloads of a path, what changing each would do, and which one matters: measures them one at a
    /// time and in the pairs that interact; about two minutes for one load
    #[arg(long, value_name = "PATH")]
    pub(super) offloads: Option<String>,
    /// Peers that exchange traffic with the endpoint: local, far, host
    #[arg(
        long,
        value_name = "PEER",
        default_value = "local",
        requires = "offloads"
    )]
    peer: Peer,
    /// Loads to measure
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "LOAD,…",
        default_value = "tcp_stream",
        requires = "offloads"
    )]
    loads: Vec<LoadKind>,
    /// Length of a measured window (default 300ms)
    #[arg(long, value_name = "TIME", value_parser = plan::window, requires = "offloads")]
    window: Option<Duration>,
    /// Smallest and largest number of blocks (default 10..16)
    #[arg(long, value_name = "MIN..MAX", requires = "offloads")]
    blocks: Option<Blocks>,
    /// Stop measuring after this time (default 100s for each load)
    #[arg(long, value_name = "TIME", value_parser = plan::time_limit, requires = "offloads")]
    time_limit: Option<Duration>,
    /// Seed of every random order (default: random, and recorded)
    #[arg(long, value_name = "N", requires = "offloads")]
    seed: Option<u64>,
    /// Directory for the run (default: hopyard-runs/TIME-offloads)
    #[arg(long, value_name = "DIR", requires = "offloads")]
    out: Option<PathBuf>,
}

pub(super) fn doctor(path: &str, args: &DoctorArgs) -> Done {
    signals::listen().map_err(|e| Failure::internal(&e))?;
    let sweep = &args.sweep;
    let path = lab::path(path)?;
    check_out(sweep.out.as_deref())?;
    let survey = run::survey_offloads(path, sweep.peer)?;
    let plan = planned(path.name, sweep, &survey);
    let seed = sweep.seed.unwrap_or_else(run::any_seed);
    let mut prepared = run::prepare(&plan, seed)?;
    prepared.header.offloads = Some(survey);
    let directory = destination(sweep.out.as_deref(), &prepared.header.id);
    carry_out(prepared, &directory, args.json)
}

/// The plan with changes from the command line.
fn planned(path: &str, sweep: &SweepArgs, survey: &OffloadSurvey) -> Plan {
    let plan = plan::offloads(path, sweep.peer, &sweep.loads, survey);
    Plan {
        window: sweep.window.unwrap_or(plan.window),
        blocks: sweep.blocks.unwrap_or(plan.blocks),
        time_limit: sweep.time_limit.or(plan.time_limit),
        ..plan
    }
}
