//! Arguments and flags of `hopyard tapswitch`.

use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use hopyard_tap::MAX_QUEUES;
use hopyard_tap::switch::{Choice, Join};

use super::ports::Ports;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hopyard tapswitch run guests --tap tap0 --tap tap1              # until Ctrl-C or SIGTERM
  hopyard tapswitch run pods --tap eth0@web --tap eth0@db --tap uplink0 --queues auto
  hopyard tapswitch run vms --tap tap0 --mac 02:00:00:00:00:01 --isolated --tap tap1 --isolated --tap uplink0
  hopyard tapswitch show
  hopyard tapswitch stats guests --watch

Taps that do not exist are made with many queues, and removed with the switch; existing ones must be
multi-queue. A frame goes to the port that last sent from its destination address, or else to every port.
--mac, --isolated, --addresses and --broadcasts apply to the --tap before them.")]
pub(in crate::cli) struct TapswitchArgs {
    #[command(subcommand)]
    pub(super) command: TapswitchCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum TapswitchCommand {
    /// Run a switch in the foreground
    Run(RunArgs),
    /// Print the state of a switch and its problems
    Show {
        /// The switch (default: all running ones)
        name: Option<String>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print what each port sent and received, and what was dropped and why
    Stats {
        /// The switch
        name: String,
        /// Print as JSON
        #[arg(long)]
        json: bool,
        /// Repeat every second, with rates
        #[arg(long)]
        watch: bool,
    },
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Its name
    pub(super) name: String,
    #[command(flatten)]
    pub(super) ports: Ports,
    /// Queues of each tap: a number, or `auto` for as many as the load needs, at most one per CPU
    #[arg(long, default_value = "auto", value_name = "N|auto")]
    pub(super) queues: Queues,
    /// Threads that serve the queues, which are dealt out to them in turn; takes a number of queues (default: a thread
    /// for each queue)
    #[arg(long, value_name = "N")]
    pub(super) threads: Option<usize>,
    /// Queue selection of the taps: by the kernel, a hash, the CPU, or the switch
    #[arg(long, default_value = "hash")]
    pub(super) steering: Steering,
    /// Accept only finished frames: none above the MTU, all checksums computed
    #[arg(long)]
    pub(super) no_offloads: bool,
    /// Which consecutive frames of a TCP flow are joined before they are written to a device with TCP segmentation offload
    #[arg(long, default_value = "stream")]
    pub(super) join: Joining,
    /// Bytes that each queue may have under way in the kernel before frames wait
    #[arg(long, default_value = "4MiB", value_name = "SIZE", value_parser = send_buffer)]
    pub(super) send_buffer: u32,
}

/// Queues on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Queues {
    Auto,
    Fixed(usize),
}

impl FromStr for Queues {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "auto" => Ok(Self::Auto),
            Ok(count) if (1..=MAX_QUEUES).contains(&count) => Ok(Self::Fixed(count)),
            _ => Err(format!("give `auto` or a number from 1 to {MAX_QUEUES}")),
        }
    }
}

/// Queue selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Steering {
    /// The kernel: a flow uses the queue on which its replies arrived
    Kernel,
    /// A hash of addresses, protocol and ports, both directions alike
    Hash,
    /// The number of the CPU that sends
    Cpu,
    /// The switch: each flow stays on one queue, new flows are assigned to the queues in turn
    Pinned,
}

/// Which frames are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Joining {
    /// None
    Off,
    /// Those that the kernel's GRO would join: segmented again, they are identical to the originals
    Packets,
    /// All that follow each other: segmented again, they have the same bytes, in packets no longer than the originals
    Stream,
}

impl From<Joining> for Join {
    fn from(joining: Joining) -> Self {
        match joining {
            Joining::Off => Self::Off,
            Joining::Packets => Self::Packets,
            Joining::Stream => Self::Stream,
        }
    }
}

impl From<Steering> for Choice {
    fn from(steering: Steering) -> Self {
        match steering {
            Steering::Kernel => Self::Kernel,
            Steering::Hash => Self::Hash,
            Steering::Cpu => Self::Cpu,
            Steering::Pinned => Self::Pinned,
        }
    }
}

fn send_buffer(text: &str) -> Result<u32, String> {
    const LEAST: u32 = 128 * 1024;
    let bytes = crate::units::parse_bytes(text).map_err(|e| e.to_string())?;
    // With less, even the largest frame would have to wait for the one before it.
    if bytes < LEAST || i32::try_from(bytes).is_err() {
        return Err("give 128KiB to 2047MiB".into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_a_number_or_auto() {
        assert_eq!("auto".parse(), Ok(Queues::Auto));
        assert_eq!("256".parse(), Ok(Queues::Fixed(256)));
        for wrong in ["0", "257", "-1", "many"] {
            let error = wrong.parse::<Queues>().unwrap_err();
            assert!(error.contains("1 to 256"), "{error}");
        }
    }
}
