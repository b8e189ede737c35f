//! The commands: help, completions and manual pages are generated from them.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use super::args::{LabArgs, ListArgs, RunArgs, SwitchArgs};
use super::guest::KernelArgs;
use super::offloads::DoctorArgs;
use crate::guest;

/// hopyard builds every path that Linux offers between network namespaces, drives netperf-class load over it, and says
/// what it costs on this kernel.
#[derive(Debug, Parser)]
#[command(
    version,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  hopyard run                                       # what every path here costs, in two minutes
  hopyard run --paths veth,bridge --loads tcp_rr    # two paths, one load
  hopyard run --peer far --set rate=1gbit           # over a wire of 1 Gbit/s
  hopyard doctor                                    # what this host can build, and what would distort figures
  hopyard doctor --offloads bridge                  # which offload matters on a path
  hopyard lab up bridge && hopyard lab exec bridge a -- ip -brief address

Exit status: 0 fine, 1 a cell or check failed, 2 wrong usage or a request this host cannot meet,
3 an internal failure, 4 a gate that could not see such a loss, 130 interrupted."
)]
pub(super) struct Args {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Measure the paths of a plan and print the results
    Run(Box<RunArgs>),
    /// Print the report of a run again, from its stored samples
    Report(super::report::ReportArgs),
    /// Compare repeated runs of two things cell by cell, or fail if one is worse
    Diff(super::diff::DiffArgs),
    /// Measure how long a container waits for its network: ADD, first answer and DEL of CNI plugins
    Attach(Box<super::attach::AttachArgs>),
    /// Measure many machines in pairs, each machine in one pair at a time
    Fleet(super::fleet::FleetArgs),
    /// Check published claims here: holds, fails, undecided, or cannot be tested here and why
    Claims(Box<super::claims::ClaimsArgs>),
    /// Say what this host can build, what distorts figures, and how to fix it; or which offload matters
    Doctor(DoctorArgs),
    /// List paths, loads, axes, plans or claims
    List(ListArgs),
    /// Build a path and keep it, for experiments by hand
    Lab(LabArgs),
    /// The direct switch: bind virtual interfaces to a device, forward by MAC address, no bridge
    Switch(SwitchArgs),
    /// Run one plan under several kernels, and say what works on which
    Kernels(super::kernels::KernelsArgs),
    /// Fetch a kernel for guests
    Kernel(KernelArgs),
    /// The tap switch: join multi-queue taps by MAC address, in user space
    Tapswitch(super::tapswitch::TapswitchArgs),
    /// Remove leftovers of interrupted labs
    Clean {
        /// Also remove kept labs that this version does not understand
        #[arg(long)]
        force: bool,
    },
    /// Print the JSON schema of results (`hopyard/run/1`)
    Schema {
        /// Print the schema of comparisons (`hopyard/diff/2`)
        #[arg(long, group = "document")]
        diff: bool,
        /// Print the schema of claims (`hopyard/claims/1`)
        #[arg(long, group = "document")]
        claims: bool,
        /// Print the schema of `kernels` (`hopyard/kernels/1`)
        #[arg(long, group = "document")]
        kernels: bool,
        /// Print the schema of `attach` (`hopyard/attach/1`)
        #[arg(long, group = "document")]
        attach: bool,
        /// Print the schema of fleets (`hopyard/fleet/1`)
        #[arg(long, group = "document")]
        fleet: bool,
        /// Print the schema of reports of fleets (`hopyard/fleet-report/1`)
        #[arg(long, group = "document")]
        fleet_report: bool,
        /// Print the schema of matrices (`hopyard/matrix/1`)
        #[arg(long, group = "document")]
        matrix: bool,
    },
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  hopyard completions bash > /etc/bash_completion.d/hopyard")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page `hopyard.1`, or write it and those of all commands into a directory
    Man {
        /// The directory
        directory: Option<PathBuf>,
    },
    /// Drive load for a run, controlled over stdin and stdout
    #[command(hide = true)]
    Worker,
    /// Pass the frames of two devices on to each other by AF_XDP, for a lab
    #[command(hide = true)]
    XdpForward {
        /// Where it says what it has passed on
        socket: PathBuf,
        /// One device
        one: String,
        /// The other
        other: String,
    },
    /// Be the far end of labs whose wire is a card of this machine, as stdin says
    #[command(hide = true)]
    Far {
        /// The card
        card: String,
    },
    /// Calls CNI plugins as a process of `attach` tells it to, over stdin and stdout
    #[command(hide = true)]
    AttachHost,
    /// Execute a plan from stdin
    #[command(hide = true)]
    Runner,
    /// The first process of a guest
    #[command(hide = true)]
    Init {
        /// The program to start in the guest
        job: guest::Job,
        #[command(flatten)]
        interface: guest::Interface,
    },
}
