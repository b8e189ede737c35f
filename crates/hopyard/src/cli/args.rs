//! Arguments and flags of commands that several files need.

mod endpoints;
mod switch;
mod values;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::guest::GuestArgs;
use crate::model::{Blocks, LoadKind, Peer, SearchFor};
use crate::units;

pub(super) use endpoints::EndpointArgs;
pub(super) use switch::{ApplyArgs, PortCommand, SwitchArgs, SwitchCommand, TraceArgs};
pub(super) use values::{Need, format};
use values::{axis_values, base, command, on_or_off};

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  hopyard run                                  # the default plan `paths`
  hopyard run my-plan.toml --seed 7            # your own plan, with the random order of another run
  hopyard run --paths veth,bridge,bridge-nf --loads tcp_stream,udp_stream --set message_size=64,1400
  hopyard run --paths native,macvlan --peer far --set rate=100mbit --window 2s --blocks 8
  hopyard run --paths veth,bridge --loads udp_paced --search ndr    # the rate that each carries without loss
  hopyard run --ruleset none,/etc/nftables.conf --base ruleset=none    # what your packet filter costs, and what it sees
  hopyard run --blocks 2                       # a quick look: figures without verdicts
  hopyard run --resume hopyard-runs/20260301-101500-paths --time-limit 10m
  hopyard run --paths bridge,bridge-nf --loads udp_stream --profile    # what each part of the kernel costs
  hopyard run --kernel arch/x86/boot/bzImage   # inside a guest with a kernel of your own (docs/guests.md)
  hopyard run --paths veth --a 'sysctl -qw net.core.busy_poll=0' --b 'sysctl -qw net.core.busy_poll=50' \
              --restore 'sysctl -qw net.core.busy_poll=0'    # two settings of this host (docs/ab.md)
  hopyard run --paths veth,direct --base veth --loads tcp_rr --fail-on 3%    # a gate: status 1 where a path is slower
  hopyard run --paths as-is --client env --server 'ssh host2'    # between endpoints as they are (docs/endpoints.md)
  hopyard run --json | jq '.cells[] | {path, load, goodput: .estimates.goodput_bps.value}'

`hopyard list paths|loads|axes|plans` prints all names. Several values of an axis are a sweep.
Exit status with --fail-on: 0 passed, 1 the gate failed, 4 the gate could not see such a loss.")]
pub(super) struct RunArgs {
    /// A plan by name, or a TOML file
    #[arg(default_value = "paths")]
    pub(super) plan: String,
    /// Paths to build, or `all` that this host can build
    #[arg(long, value_delimiter = ',', value_name = "PATH,…")]
    pub(super) paths: Option<Vec<String>>,
    /// Skip named paths that this host cannot build, instead of refusing
    #[arg(long)]
    pub(super) where_installed: bool,
    /// Peers that exchange traffic with the endpoint: local, far, host
    #[arg(long, value_delimiter = ',', value_name = "PEER,…")]
    pub(super) peer: Option<Vec<Peer>>,
    /// Loads to measure
    #[arg(long, value_delimiter = ',', value_name = "LOAD,…")]
    pub(super) loads: Option<Vec<LoadKind>>,
    /// Set an axis; several values are all measured
    #[arg(long, value_name = "AXIS=VALUE,…", value_parser = axis_values)]
    pub(super) set: Vec<(String, Vec<String>)>,
    /// Search for the highest rate of udp_paced with no loss (ndr), at most 0.5 % (pdr) or SHARE (pdr:SHARE); same as
    /// --set search=…
    #[arg(long, value_name = "ndr|pdr")]
    pub(super) search: Option<SearchFor>,
    /// Load packet filter rules into the hub, for `nft -f` or in the format of iptables-save; same as --set ruleset=…
    #[arg(long, value_name = "FILE,…", value_delimiter = ',')]
    pub(super) ruleset: Vec<String>,
    /// Length of a measured window
    #[arg(long, value_name = "TIME", value_parser = crate::plan::window)]
    pub(super) window: Option<Duration>,
    /// Time of traffic before each window that is not counted; `0s` counts from the first packet on. Turns have a few ms of their own
    #[arg(long, value_name = "TIME", value_parser = crate::plan::warm_up)]
    pub(super) warm_up: Option<Duration>,
    /// Measure compared cells in short turns, side by side (on, the default), or one after another (off)
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    pub(super) turns: Option<bool>,
    /// Smallest and largest number of blocks
    #[arg(long, value_name = "MIN..MAX")]
    pub(super) blocks: Option<Blocks>,
    /// Half-width of intervals at which measuring may stop
    #[arg(long, value_name = "SHARE", value_parser = units::parse_half_width)]
    pub(super) half_width: Option<f64>,
    /// Measure until each comparison could show a difference of this size (with --fail-on: each that the gate looks at), at most 30
    /// minutes unless --time-limit says otherwise; not with --half-width or --quick
    #[arg(long, value_name = "SHARE", value_parser = units::parse_difference, conflicts_with_all = ["half_width", "quick"])]
    pub(super) decide: Option<f64>,
    /// Confidence of intervals
    #[arg(long, value_name = "LEVEL", value_parser = units::parse_confidence)]
    pub(super) confidence: Option<f64>,
    /// Base of all comparisons: a path, a value of an axis as in `ports=2`, or `offload`: all
    /// offloads on or off
    #[arg(long, value_name = "PATH|AXIS=VALUE", value_parser = base)]
    pub(super) base: Option<String>,
    /// Command that applies setting A to this host: compare two settings, B with A (docs/ab.md)
    #[arg(long, value_name = "CMD", requires = "b", conflicts_with = "kernel", value_parser = command)]
    pub(super) a: Option<String>,
    /// Command that applies setting B
    #[arg(long, value_name = "CMD", requires = "a", value_parser = command)]
    pub(super) b: Option<String>,
    /// Command that restores this host at the end, however the run ends
    #[arg(long, value_name = "CMD", requires = "a", value_parser = command)]
    pub(super) restore: Option<String>,
    /// A gate: fail if a cell is shown to be worse than its base by more than this
    #[arg(long, value_name = "LOSS", value_parser = units::parse_loss)]
    pub(super) fail_on: Option<f64>,
    /// Stop measuring after this time; until then blocks are added beyond the plan's largest number, unless the plan has one number of
    /// blocks or --blocks is given
    #[arg(long, value_name = "TIME", value_parser = crate::plan::time_limit)]
    pub(super) time_limit: Option<Duration>,
    /// Keep CPUs from halting while measuring: on virtual machines this avoids the steal of wake-ups. Figures are those of a machine whose
    /// CPUs do not sleep
    #[arg(long, conflicts_with_all = ["uplink", "client", "server"])]
    pub(super) keep_awake: bool,
    /// What the recommended path must offer: filter, vlan, host-access, unprivileged, learning; kept with the run
    #[arg(long, value_delimiter = ',', value_name = "NEED,…")]
    pub(super) need: Vec<Need>,
    /// A shorter run: windows of at most 200 ms, 8 blocks, at most 4 minutes
    #[arg(long)]
    pub(super) quick: bool,
    /// Continue a run that was interrupted, killed or out of time
    #[arg(long, value_name = "RUN", conflicts_with_all = [
        "plan", "paths", "where_installed", "peer", "loads", "set", "search", "ruleset", "window", "warm_up", "turns", "blocks", "half_width",
        "decide", "confidence", "base", "seed", "out", "profile", "quick", "kernel", "keep_awake",
    ])]
    pub(super) resume: Option<PathBuf>,
    /// Seed of every random order (default: random, and recorded)
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Also break the cost down by kernel subsystem, sampled in separate windows
    #[arg(long)]
    pub(super) profile: bool,
    /// Directory for the run (default: hopyard-runs/TIME-PLAN)
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) endpoints: EndpointArgs,
    #[command(flatten)]
    pub(super) guest: GuestArgs,
}

impl RunArgs {
    /// Does `--set` name this axis?
    pub(super) fn sets(&self, axis: &str) -> bool {
        self.set.iter().any(|(name, _)| name == axis)
    }
}

#[derive(Debug, ClapArgs)]
pub(super) struct ListArgs {
    /// What to list
    pub(super) what: Listed,
    /// Print as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Listed {
    /// Ways to connect an endpoint
    Paths,
    /// Kinds of traffic
    Loads,
    /// Settings of paths and loads, for --set
    Axes,
    /// Built-in plans
    Plans,
    /// Published claims
    Claims,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  hopyard lab up bridge --name mine --set mtu=9000
  hopyard lab exec mine a -- ip -brief address
  hopyard lab exec mine hub -- tcpdump -ni veth-a
  hopyard lab down mine

Namespaces of a lab are also at /run/hopyard/NAME/ROLE, for `nsenter --net=…`.")]
pub(super) struct LabArgs {
    #[command(subcommand)]
    pub(super) command: LabCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum LabCommand {
    /// Build a path and keep it until `hopyard lab down`
    Up {
        /// The path
        path: String,
        /// Name of the lab (default: the path's)
        #[arg(long)]
        name: Option<String>,
        /// Peer that exchanges traffic with the endpoint: local, far or host
        #[arg(long, default_value = "local")]
        peer: Peer,
        /// Set an axis
        #[arg(long, value_name = "AXIS=VALUE", value_parser = axis_values)]
        set: Vec<(String, Vec<String>)>,
    },
    /// Run a command in a namespace of a lab
    Exec {
        /// The lab
        name: String,
        /// The namespace: a, b, hub or far; of many containers c1, c2 and so on, of routers f1 and r1 (docs/containers.md)
        endpoint: String,
        /// The command
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Take a lab down
    Down {
        /// The lab
        name: String,
        /// Take it down even while processes run in it
        #[arg(long)]
        force: bool,
    },
    /// List the labs that are up
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}

#[cfg(test)]
mod tests;
