//! The words of `hopyard switch`.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  hopyard switch create guests --uplink eth0
  hopyard switch port add guests veth-web                       the guest's MAC is read from the other end
  hopyard switch port add guests tap3 --mac 02:00:00:00:00:03 --ip 192.0.2.3 --vlan 7 --isolated
  hopyard switch port set guests veth-web --isolated
  hopyard switch show guests
  hopyard switch stats guests --watch
  hopyard switch uplink guests eth0                             after eth0 was made again
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
        /// The device that leads to the wire
        #[arg(long, value_name = "DEV")]
        uplink: Option<String>,
        /// Answer ARP and neighbour solicitations for the ports' --ip addresses, so that broadcasts do
        /// not grow with the number of ports
        #[arg(long)]
        answer: bool,
        /// Another Ethernet address of the host behind the uplink: of a macvlan, a bridge, VRRP
        #[arg(long, value_name = "M")]
        host_mac: Vec<hopyard_switch::Mac>,
        /// Attach behind the eBPF programs that others have at the devices: they see frames first, and may
        /// keep them from the switch (default: attach before them)
        #[arg(long)]
        behind_others: bool,
    },
    /// Set the uplink, also after its device was recreated or its Ethernet address changed
    ///
    /// Ports stay as they are.
    Uplink {
        /// The switch
        name: String,
        /// The device that leads to the wire
        device: String,
        /// Another Ethernet address of the host behind the uplink; these replace the present ones (for none, give
        /// the device's own)
        #[arg(long, value_name = "M")]
        host_mac: Vec<hopyard_switch::Mac>,
    },
    /// Bind devices to a switch, or remove them
    Port(PortArgs),
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
    /// Replace the eBPF programs that run with those of this version; no packet is lost
    Upgrade {
        /// The switch
        name: String,
    },
    /// Remove a switch; its devices stay
    Delete {
        /// The switch
        name: String,
    },
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct PortArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: PortCommand,
}

/// Whether a port is to have something.
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

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum PortCommand {
    /// Bind a device: a veth's or netkit's end on the host, a tap, a macvtap
    Add {
        /// The switch
        name: String,
        /// The device
        device: String,
        /// The guest's MAC address; several: the first is its own (default: read from the other end)
        #[arg(long, value_name = "M")]
        mac: Vec<hopyard_switch::Mac>,
        /// An IP address that the guest may use; without any it may use all
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
        /// Send frames to it through the queue of the device, where captures, filters and shapers are, instead of straight
        /// into the guest's namespace
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
        /// Let it send router advertisements and redirects, and claim the addresses of the host and its gateways
        #[arg(long, group = "change", value_name = "on|off", num_args = 0..=1, default_missing_value = "on")]
        router: Option<OnOff>,
        /// Let it answer DHCP
        #[arg(long, group = "change", value_name = "on|off", num_args = 0..=1, default_missing_value = "on")]
        dhcp_server: Option<OnOff>,
        /// Broadcasts and multicasts per second that it may send (`unlimited`: any number)
        #[arg(long, group = "change", value_name = "N")]
        broadcasts: Option<hopyard_switch::Broadcasts>,
    },
    /// Remove a port; its device stays
    Del {
        /// The switch
        name: String,
        /// The device
        device: String,
    },
}
