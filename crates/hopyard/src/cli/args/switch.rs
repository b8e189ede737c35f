//! Arguments and flags of `hopyard switch`.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  hopyard switch create guests --uplink eth0
  hopyard switch port add guests veth-web                       # the guest's MAC is read from the other end
  hopyard switch port add guests tap3 --mac 02:00:00:00:00:03 --ip 192.0.2.3 --vlan 7 --isolated
  hopyard switch port set guests veth-web --isolated
  hopyard switch port set guests veth-web --rate-in 100mbit --rate-out 20mbit
  hopyard switch show guests
  hopyard switch stats guests --watch
  hopyard switch trace veth-web --timeout 60s                   # which frames are dropped, and why
  hopyard switch metrics -o /var/lib/node_exporter/hopyard.prom
  hopyard switch uplink guests eth0                             # after eth0 was made again
  hopyard switch apply /etc/hopyard/switch/guests.toml --dry-run  # what a file would change
  hopyard switch delete guests

The uplink stays up and keeps its addresses and routes. Frames between ports, and between ports and
the wire, do not pass the host's netfilter.")]
pub(in crate::cli) struct SwitchArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: SwitchCommand,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum SwitchCommand {
    /// Make a switch
    Create {
        /// Its name
        name: String,
        /// The device towards the wire
        #[arg(long, value_name = "DEV")]
        uplink: Option<String>,
        /// Answer ARP and neighbour solicitations for the ports' --ip addresses, so that broadcasts do
        /// not grow with the number of ports
        #[arg(long)]
        answer: bool,
        /// Another Ethernet address of the host behind the uplink: of a macvlan, a bridge, VRRP
        #[arg(long, value_name = "M")]
        host_mac: Vec<hopyard_switch::Mac>,
        /// Attach behind the eBPF programs that others have at the devices: those see frames first, and may keep them
        /// from the switch (default: attach before them)
        #[arg(long)]
        behind_others: bool,
        /// Experimental: join TCP connections between two ports whose sockets are in this control group (a directory of a
        /// cgroup2 mount) or below; see `switch shortcut --help`
        #[arg(long, value_name = "CGROUP")]
        shortcut: Option<std::path::PathBuf>,
        /// Something that joined sockets may lack; several with commas between
        #[arg(
            long,
            value_name = "LOSS",
            value_delimiter = ',',
            requires = "shortcut"
        )]
        accept: Vec<hopyard_switch::Loss>,
    },
    /// Experimental: give a switch a shortcut for TCP between two ports, or remove it
    ///
    /// What one socket sends is put into the queue of the other, without packets: no capture, packet filter or counter
    /// sees it. Both must be in the control group when the connection is made. A self-test runs first and refuses the
    /// shortcut if joined sockets behave wrongly on this kernel. What joined sockets lack otherwise must be accepted by
    /// name (--accept waitall,splice,…), for programs that do not use it.
    Shortcut {
        /// The switch
        name: String,
        /// Directory of the control group, below a cgroup2 mount
        #[arg(required_unless_present = "off", conflicts_with = "off")]
        cgroup: Option<std::path::PathBuf>,
        /// Something that joined sockets may lack; several with commas between
        #[arg(
            long,
            value_name = "LOSS",
            value_delimiter = ',',
            conflicts_with = "off"
        )]
        accept: Vec<hopyard_switch::Loss>,
        /// Remove it; existing connections continue by frames
        #[arg(long)]
        off: bool,
    },
    /// Set the uplink, also after its device was recreated or its Ethernet address changed
    ///
    /// Ports stay unchanged.
    Uplink {
        /// The switch
        name: String,
        /// The device towards the wire
        device: String,
        /// Another Ethernet address of the host behind the uplink; these replace the present ones (for none, give the
        /// device's own)
        #[arg(long, value_name = "M")]
        host_mac: Vec<hopyard_switch::Mac>,
    },
    /// Bind devices to a switch, or remove them
    Port(PortArgs),
    /// Make a switch from a file, or change it accordingly
    ///
    /// Takes only the steps that are needed. If it is interrupted, the next `apply` finishes. Ports that were not made
    /// from a file, such as those of the CNI plugin, are left alone.
    Apply(ApplyArgs),
    /// Print a file from which `apply` makes the switch
    Export {
        /// The switch
        name: String,
    },
    /// Print the state of a switch and its problems
    Show {
        /// The switch (default: all)
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
    /// Print the dropped frames from and to a port, with the reason and their headers
    ///
    /// The first ones that the switch drops from now on. Frames that pass do not become slower.
    Trace(TraceArgs),
    /// Print the counters as OpenMetrics, for Prometheus and similar programs
    ///
    /// With --output the file is replaced atomically, as the textfile collector of node_exporter needs it.
    Metrics {
        /// The switch (default: all)
        name: Option<String>,
        /// Write to a file instead of stdout; node_exporter reads files whose names end in .prom
        #[arg(short, long, value_name = "FILE")]
        output: Option<std::path::PathBuf>,
    },
    /// Replace the running eBPF programs with those of this version; no packet is lost
    Upgrade {
        /// The switch (default: all)
        name: Option<String>,
    },
    /// Remove a switch; its devices stay
    Delete {
        /// The switch
        name: String,
        /// Only if it exists and has no ports: for scripts that remove ports
        #[arg(long)]
        unused: bool,
    },
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct ApplyArgs {
    /// The TOML file; the switch has its name, without `.toml`, unless the file has `name`
    pub(in crate::cli) file: std::path::PathBuf,
    /// Only print the steps; exit status 0: nothing to do, 1: something
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
    /// Also remove ports that are not in the file and were not made from one
    #[arg(long)]
    pub(in crate::cli) prune: bool,
    /// Wait this long for missing devices
    #[arg(long, value_name = "TIME", value_parser = crate::units::parse_duration)]
    pub(in crate::cli) wait: Option<std::time::Duration>,
    /// Print as JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct PortArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: PortCommand,
}

/// The value of a switchable setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum OnOff {
    On,
    Off,
}

impl From<OnOff> for bool {
    fn from(value: OnOff) -> Self {
        value == OnOff::On
    }
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct TraceArgs {
    /// The port's device, `wire` or `host`
    pub(in crate::cli) port: String,
    /// The switch (default: the one that has the port)
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) switch: Option<String>,
    /// End after this many frames, at most 500
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=hopyard_switch::MOST_TOLD))]
    pub(in crate::cli) count: u64,
    /// End after this time, such as 60s (default: wait)
    #[arg(long, value_name = "TIME", value_parser = crate::units::parse_duration)]
    pub(in crate::cli) timeout: Option<std::time::Duration>,
    /// Print a JSON document per line
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum PortCommand {
    /// Bind a device: a veth's or netkit's end on the host, or a tap
    Add {
        /// The switch
        name: String,
        /// The device
        device: String,
        /// The guest's MAC address; several: the first is its own (default: read from the other end)
        #[arg(long, value_name = "M")]
        mac: Vec<hopyard_switch::Mac>,
        /// An IP address that the guest may use; without any, it may use all
        #[arg(long, value_name = "A")]
        ip: Vec<std::net::IpAddr>,
        /// A prefix whose addresses the guest may use (SLAAC, privacy addresses); other ports may have the same
        #[arg(long, value_name = "P")]
        ip_prefix: Vec<hopyard_switch::Prefix>,
        /// Its VLAN: untagged here, tagged at the uplink
        #[arg(long, value_name = "V")]
        vlan: Option<u16>,
        /// Let it talk to the uplink and the host only
        #[arg(long)]
        isolated: bool,
        /// Let it send from any address that no other port has
        #[arg(long)]
        allow_spoof: bool,
        /// Send frames to it through the queue of the device, where captures, filters and shapers are, instead of
        /// directly into the guest's namespace
        #[arg(long)]
        queued: bool,
        /// Let it send router advertisements and redirects, and claim the addresses of the host and its gateways
        #[arg(long)]
        router: bool,
        /// Let it answer DHCP
        #[arg(long)]
        dhcp_server: bool,
        /// Broadcasts and multicasts per second that it may send (`unlimited`: any number), in bursts of up to 10 seconds' worth
        #[arg(long, value_name = "N", default_value_t)]
        broadcasts: hopyard_switch::Broadcasts,
        /// How fast it may receive frames, such as 100mbit, or 100mbit,burst=1000000 with the bytes that may pass at
        /// once; frames beyond that are dropped
        #[arg(long, value_name = "RATE", default_value_t)]
        rate_in: hopyard_switch::Rate,
        /// How fast it may send, in the same form
        #[arg(long, value_name = "RATE", default_value_t)]
        rate_out: hopyard_switch::Rate,
    },
    /// Change what a port may do; no frame is lost
    #[command(group = clap::ArgGroup::new("change").required(true).multiple(true))]
    Set {
        /// The switch
        name: String,
        /// The device
        device: String,
        /// Let it talk to the uplink and the host only, or to all
        #[arg(long, group = "change", value_name = "on|off", num_args = 0..=1, default_missing_value = "on")]
        isolated: Option<OnOff>,
        /// Let it send from any address that no other port has
        #[arg(long, group = "change", value_name = "on|off", num_args = 0..=1, default_missing_value = "on")]
        allow_spoof: Option<OnOff>,
        /// Let it send router advertisements and redirects, and claim the addresses of the host and its gateways
        #[arg(long, group = "change", value_name = "on|off", num_args = 0..=1, default_missing_value = "on")]
        router: Option<OnOff>,
        /// Let it answer DHCP
        #[arg(long, group = "change", value_name = "on|off", num_args = 0..=1, default_missing_value = "on")]
        dhcp_server: Option<OnOff>,
        /// Broadcasts and multicasts per second that it may send (`unlimited`: any number)
        #[arg(long, group = "change", value_name = "N")]
        broadcasts: Option<hopyard_switch::Broadcasts>,
        /// How fast it may receive frames, such as 100mbit, or 100mbit,burst=1000000 with the bytes that may pass at
        /// once; `unlimited` removes the limit
        #[arg(long, group = "change", value_name = "RATE")]
        rate_in: Option<hopyard_switch::Rate>,
        /// How fast it may send, in the same form
        #[arg(long, group = "change", value_name = "RATE")]
        rate_out: Option<hopyard_switch::Rate>,
    },
    /// Remove a port; its device stays
    Del {
        /// The switch
        name: String,
        /// The device
        device: String,
    },
}
