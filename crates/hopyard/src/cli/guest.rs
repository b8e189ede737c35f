//! `hopyard run --kernel` and `hopyard kernel`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use hopyard_net::cpu;

use super::{Done, Failure, print};
use crate::guest::{self, Accelerator, Kernel, fetch};
use crate::run::guest::{Error, Host};
use crate::signals;

/// A guest to run in.
#[derive(Debug, ClapArgs)]
pub(super) struct GuestArgs {
    /// Run everything inside a guest with this kernel: a bzImage or an ELF vmlinux
    #[arg(long, value_name = "FILE")]
    pub(super) kernel: Option<PathBuf>,
    /// Directory of its modules (default: beside the kernel, or the host's /lib/modules)
    #[arg(long, value_name = "DIR", requires = "kernel")]
    modules: Option<PathBuf>,
    /// More kernel parameters, as in "mitigations=off"
    #[arg(long, value_name = "WORDS", requires = "kernel", default_value = "")]
    append: String,
    /// Accelerator of the guest: kvm, or tcg, which emulates the CPU (default: KVM if it works)
    #[arg(long, value_name = "NAME", requires = "kernel")]
    accel: Option<Accelerator>,
    /// Kernel of the guests of path `vm` (default: the newest fetched)
    #[arg(long, value_name = "FILE", conflicts_with = "kernel")]
    pub(super) guest_kernel: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  hopyard kernel fetch                          # the newest kernel for virtual machines
  hopyard run $(hopyard kernel fetch 6.1)       # every path on Linux 6.1
  hopyard kernel fetch backports --into kernels
  hopyard kernel fetch linux-image-6.12-cloud-amd64

Nothing is installed, and the configuration of apt is left alone.")]
pub(super) struct KernelArgs {
    #[command(subcommand)]
    command: KernelCommand,
}

#[derive(Debug, Subcommand)]
enum KernelCommand {
    /// Fetch a kernel from the packages of Debian or Ubuntu, and print the options for `hopyard run`
    Fetch {
        /// A series (6.1), `backports`, or a package (default: the newest)
        wanted: Option<String>,
        /// Directory to fetch into (default: hopyard/kernels in the user's cache)
        #[arg(long, value_name = "DIR")]
        into: Option<PathBuf>,
    },
}

impl From<guest::Error> for Failure {
    fn from(error: guest::Error) -> Self {
        match error {
            guest::Error::Interrupted => Self::interrupted(),
            guest::Error::Refused { request: false, .. }
            | guest::Error::OutOfTurn { .. }
            | guest::Error::Unbelievable { .. } => Self::internal(&error),
            error => Self::asked(&error),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Guest(error) => error.into(),
            Error::Store(error) => error.into(),
        }
    }
}

/// The failure of a run whose guest ended early: the cells that were not measured have failed.
pub(super) fn cut_short(error: &Error) -> Failure {
    Failure {
        status: 1,
        message: crate::chain(error),
    }
}

impl GuestArgs {
    /// The settings of guests, if any were asked for, with everything checked that can be checked before one boots.
    pub(super) fn host(&self) -> Result<Option<Host>, Failure> {
        let Some(kernel) = &self.kernel else {
            return Ok(None);
        };
        let kernel = Kernel::open(kernel, self.modules.as_deref())?;
        let cpus = cpu::current_affinity().map_err(crate::measure::Error::from)?;
        let host = Host::new(kernel, &self.append, self.accel, cpus.len())?;
        Ok(Some(host))
    }
}

pub(super) fn kernel(args: KernelArgs) -> Done {
    let KernelCommand::Fetch { wanted, into } = args.command;
    let into = into.unwrap_or_else(fetch::home);
    signals::listen().map_err(|e| Failure::internal(&e))?;
    let kernel = fetch::fetch(wanted.as_deref(), &into)?;
    let modules = kernel.modules.unwrap_or_default();
    print(&format!(
        "--kernel {} --modules {}\n",
        kernel.image.display(),
        modules.display()
    ))
}
