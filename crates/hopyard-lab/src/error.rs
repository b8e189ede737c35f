//! What can go wrong with a lab.

pub(crate) mod bpf;
mod cable;
pub(crate) mod daemon;
pub(crate) mod ovs;

pub(crate) use self::bpf::Bpf;
pub use self::cable::Cable;
use crate::model::{Attach, Cpus, Family, Peer, UnknownName};

/// The result of everything in the lab that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong with a lab. As in hopyard-net, the text of an error never repeats its source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This host cannot build it; retrying does not help.
    #[error("path `{path}` cannot be built here")]
    Unsupported {
        path: &'static str,
        /// What is missing and what provides it.
        #[source]
        source: hopyard_net::Error,
    },
    /// The path has no such peer.
    #[error("path `{path}` has no peer `{peer}`: choose {choices}")]
    NoSuchPeer {
        path: &'static str,
        /// The peer that was asked for.
        peer: Peer,
        /// The peers of the path, for people.
        choices: String,
    },
    /// The path has the peer, but not as its endpoint is attached.
    #[error(
        "path `{path}` has no peer `{peer}` with `attach={attach}`: choose peer {choices}, or another `attach`"
    )]
    NoSuchPeerAttached {
        path: &'static str,
        /// The peer that was asked for.
        peer: Peer,
        /// How the endpoint is attached.
        attach: Attach,
        /// The peers with this attachment, for people.
        choices: String,
    },
    /// The path has sockets of another kind than the load.
    #[error("path `{path}` {why}, or another path")]
    NotCarried {
        path: &'static str,
        /// What it cannot carry, and what to choose.
        why: String,
    },
    /// Nobody said between which endpoints.
    #[error(
        "path `{path}` measures between endpoints that stand already: name them with --client and --server, commands \
         that run a program there, as in --server 'ssh host2'"
    )]
    NoEndpoints { path: &'static str },
    /// An axis that decides how a lab is built.
    #[error(
        "path `{path}` builds nothing, so it cannot be given `{axis}={value}`: set the endpoints up that way, and leave \
         `{axis}` out"
    )]
    NotBuilt {
        path: &'static str,
        axis: &'static str,
        /// The value that was asked for, as text.
        value: String,
    },
    /// A command does not lead to a worker.
    #[error(
        "cannot reach the {role} by `{prefix}`: it must run the rest of its arguments there, and `hopyard` must be in \
         PATH there"
    )]
    Reach {
        /// Which endpoint: `client` or `server`.
        role: &'static str,
        prefix: String,
        #[source]
        source: Box<crate::load::remote::Error>,
    },
    /// There is no worker at an endpoint, and none here to be taken there.
    #[error(
        "the {role}, by `{prefix}`, has no `hopyard` in PATH, and {why}: put hopyard into PATH there, or `hopyard-worker` \
         beside hopyard here"
    )]
    NoWorker {
        /// Which endpoint: `client` or `server`.
        role: &'static str,
        prefix: String,
        /// Why none can be taken there.
        why: String,
        /// How it shows that there is none.
        #[source]
        source: Box<crate::load::remote::Error>,
    },
    /// The worker cannot be taken to an endpoint.
    #[error(
        "the {role}, by `{prefix}`, has no `hopyard` in PATH, and hopyard-worker cannot be copied there: put hopyard \
         into PATH there"
    )]
    Carry {
        /// Which endpoint: `client` or `server`.
        role: &'static str,
        prefix: String,
        #[source]
        source: Box<crate::load::remote::Error>,
    },
    /// A command leads to another place than before.
    #[error(
        "`{prefix}` leads to another machine, namespace or device than before: the {role} has to be the same for all \
         of a run"
    )]
    Moved {
        /// Which endpoint: `client` or `server`.
        role: &'static str,
        prefix: String,
    },
    /// This process cannot find out where it runs itself.
    #[error("cannot tell which machine this is: {0}")]
    Here(String),
    /// The server's address is of another family than the cells.
    #[error(
        "the server's address {address} is not of family {family}, which the cells are about: set `family`, or give \
         another address"
    )]
    OtherFamily {
        /// The address that was given.
        address: std::net::IpAddr,
        /// Family of the cells.
        family: Family,
    },
    /// The address that was given is not the server's.
    #[error("{address} is no address of the server: it has {own}")]
    NotItsAddress {
        /// The address that was given.
        address: std::net::IpAddr,
        /// The server's addresses of the family, for people.
        own: String,
    },
    /// The server has no address that others could reach.
    #[error(
        "the server has no address of family {family} that others can reach: give it one, set `family`, or name one \
         with --server-address"
    )]
    NoAddress {
        /// Family of the cells.
        family: Family,
    },
    /// The server has several addresses.
    #[error(
        "the server has several addresses, and it is not clear which of them leads to the client: choose one of \
         {candidates} with --server-address"
    )]
    AddressUnclear {
        /// The server's addresses, for people.
        candidates: String,
    },
    /// The client's kernel names no address of its own on the way to the server.
    #[error("the client has no address on its way to {to}: give its interface one")]
    NoSource {
        /// The server's address.
        to: std::net::IpAddr,
    },
    /// An offload flag was asked for by name and a device does not let it be changed.
    #[error(
        "device `{device}` of path `{path}` has {flag} {state} [fixed], so it cannot be changed: leave `{flag}` \
         out, or choose another path"
    )]
    OffloadFixed {
        path: &'static str,
        device: String,
        /// Name of the flag, as the axis has it.
        flag: &'static str,
        /// The state that cannot be changed: `on` or `off`.
        state: &'static str,
    },
    /// A switch is of a device that the lab does not have.
    #[error(
        "path `{path}` with peer {peer} has no device `{device}`, which `{switch}` is for: choose among {choices}"
    )]
    NoSuchDevice {
        path: &'static str,
        /// Whom the endpoint talks to.
        peer: Peer,
        /// The device that was asked for.
        device: String,
        /// The whole switch.
        switch: String,
        /// The devices that there are, with their namespaces.
        choices: String,
    },
    /// A device, or another part of the lab, cannot have what an axis asks for.
    #[error("{device} cannot have {axis}={value}: {why}")]
    AxisRefused {
        /// The name of the device, or words for the part.
        device: String,
        axis: &'static str,
        /// The value that was asked for, as text.
        value: String,
        /// What the device has, and what to do about it.
        why: String,
    },
    /// The user's packet filter rules cannot be loaded.
    #[error("the rules in {file} cannot be loaded into the hub")]
    Rules {
        file: String,
        /// What nft or iptables-restore says.
        #[source]
        source: hopyard_net::Error,
    },
    /// A file is no use as rules.
    #[error("cannot use the rules in {file}: {why}")]
    RulesFile {
        file: String,
        /// What is wrong with it.
        why: String,
    },
    /// Nothing is left for IPv6 below a tunnel's headers.
    #[error(
        "path `{path}` needs an MTU of {least} at least, since its headers take part of it and IPv6 \
         needs 1280: set `mtu` to {least} or more, or choose another path"
    )]
    MtuTooSmall {
        path: &'static str,
        /// Smallest MTU that the path carries IPv6 with, bytes.
        least: u32,
    },
    /// The switch cuts longer frames.
    #[error(
        "path `{path}` carries an MTU of {most} at most with Open vSwitch's userspace datapath, which accepts no \
         larger frames from an internal port in another namespace: set `mtu` to {most} or less, load \
         module `openvswitch` for the kernel datapath, or choose path `ovs-veth`"
    )]
    MtuTooLarge {
        path: &'static str,
        /// Largest MTU that the path carries, bytes.
        most: u32,
    },
    /// A guest's network card is made as a whole.
    #[error(
        "path `{path}` cannot change `{flag}` by itself: set `offload`, which switches all offloads of the guest's \
         network card, or choose another path"
    )]
    GuestOffload {
        path: &'static str,
        /// Name of the flag, as the axis has it.
        flag: &'static str,
    },
    /// A guest of the path cannot be booted or does not answer.
    #[error(transparent)]
    Guest(#[from] crate::guest::Error),
    /// A tap cannot be made or used.
    #[error(transparent)]
    Tap(#[from] hopyard_tap::Error),
    /// The tap switch of the path cannot be started or does not answer.
    #[error(transparent)]
    TapSwitch(#[from] crate::tapswitch::Error),
    /// An eBPF program of the path cannot be loaded, or does not answer.
    #[error(transparent)]
    Bpf(#[from] Bpf),
    /// Open vSwitch cannot be started or configured.
    #[error(transparent)]
    Ovs(#[from] ovs::Error),
    /// A daemon of a lab.
    #[error(transparent)]
    Daemon(#[from] daemon::Error),
    /// The direct switch cannot be made or changed.
    #[error(transparent)]
    Switch(#[from] hopyard_switch::Error),
    /// The programs of a wire that pauses cannot be loaded or attached.
    #[error(
        "cannot have `{device}` pause at the wire's rate: run as root (CAP_BPF and CAP_NET_ADMIN), or leave `wire_pause` out"
    )]
    Pauses {
        device: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The ends cannot be placed as asked.
    #[error(
        "placement `split` needs two CPUs and this process may use one: choose placement `same` or `free`"
    )]
    OneCpu,
    /// The ends share no CPU.
    #[error(
        "placement `same` needs a CPU that both ends may use, and they share none: choose placement `split` or `free`"
    )]
    NoSharedCpu,
    /// Shares are of processes.
    #[error(
        "scheduler `groups` divides the CPU between the processes of the client, and there is only one: set \
         `containers`, or choose another scheduler"
    )]
    OneProcess,
    /// CPUs that there are not, or that this process may not use.
    #[error("cannot use client_cpus {wanted}: this process may run on CPUs {allowed}")]
    NoSuchCpu {
        /// The CPUs that were asked for.
        wanted: Cpus,
        /// The CPUs that this process may run on.
        allowed: Cpus,
    },
    /// No path, load or axis has this name.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// A namespace, device, address or sysctl: the kernel refused an operation on it.
    #[error(transparent)]
    Net(#[from] hopyard_net::Error),
    /// A worker did not start.
    #[error(transparent)]
    Worker(#[from] crate::load::remote::Error),
    /// A file of a kept lab.
    #[error("cannot {what}")]
    File {
        /// Operation and object.
        what: String,
        #[source]
        source: std::io::Error,
    },
    /// The state of a kept lab is not understood.
    #[error(
        "{} is damaged, or of another version of hopyard: take the lab down with the version that built it, or \
         remove it with `hopyard clean --force`", .file.display()
    )]
    ForeignLab {
        file: std::path::PathBuf,
        /// What is wrong with the text of the file.
        #[source]
        source: serde_json::Error,
    },
    /// A lab on a cable between two machines.
    #[error(transparent)]
    Cable(#[from] Cable),
    /// A kept lab cannot do what was asked.
    #[error("{0}")]
    Kept(String),
}

/// The way out that is always there where a host cannot make a device of a path.
pub(crate) fn or_another_path(error: hopyard_net::Error) -> hopyard_net::Error {
    error.or("choose another path")
}

impl Error {
    /// This device, or part of the lab, cannot have this value of an axis. `why` says what it has, and what to do about it.
    pub(crate) fn refused(
        device: impl Into<String>,
        axis: &'static str,
        value: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        Self::AxisRefused {
            device: device.into(),
            axis,
            value: value.into(),
            why: why.into(),
        }
    }

    /// Is it this host that lacks something, rather than something that went wrong?
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self,
            Self::Unsupported { .. }
                | Self::OffloadFixed { .. }
                | Self::NotBuilt { .. }
                | Self::AxisRefused { .. }
                | Self::MtuTooSmall { .. }
                | Self::MtuTooLarge { .. }
                | Self::OneCpu
                | Self::NoSharedCpu
                | Self::NoSuchCpu { .. }
                | Self::GuestOffload { .. }
                // They may name a device that this path does not have.
                | Self::Rules { .. }
                // Other people's programs: where they cannot be set up, the rest of a plan can be all the same.
                | Self::Ovs(_)
                | Self::Daemon(_)
        ) || matches!(self, Self::Net(hopyard_net::Error::Unsupported { .. }))
    }

    /// What is missing and what provides it, for somebody who knows already which path it is about, and has others.
    #[must_use]
    pub fn lacks(&self) -> String {
        let text = match self {
            Self::Unsupported { source, .. } => crate::chain(source),
            other => crate::chain(other),
        };
        let without = text.strip_suffix(", or choose another path");
        without.unwrap_or(&text).to_owned()
    }
}
