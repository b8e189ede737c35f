//! What can go wrong with a lab.

use crate::model::{Attach, Cpus, Peer, UnknownName};

/// The result of everything in the lab that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong with a lab. As in hopyard-net, the text of an error never repeats its source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This host cannot build it; retrying does not help.
    #[error("path `{path}` cannot be built here")]
    Unsupported {
        /// The path.
        path: &'static str,
        /// What is missing and what provides it.
        #[source]
        source: hopyard_net::Error,
    },
    /// The path has no such peer.
    #[error("path `{path}` has no peer `{peer}`: choose {choices}")]
    NoSuchPeer {
        /// The path.
        path: &'static str,
        /// What was asked.
        peer: Peer,
        /// What there is.
        choices: String,
    },
    /// The path has the peer, but not as its endpoint is attached.
    #[error(
        "path `{path}` has no peer `{peer}` with `attach={attach}`: choose peer {choices}, or another `attach`"
    )]
    NoSuchPeerAttached {
        /// The path.
        path: &'static str,
        /// What was asked.
        peer: Peer,
        /// How the endpoint is attached.
        attach: Attach,
        /// What there is.
        choices: String,
    },
    /// An offload flag was asked for by name and a device does not let it be changed.
    #[error(
        "device `{device}` of path `{path}` has {flag} {state} [fixed], so it cannot be changed: leave `{flag}` \
         out, or choose another path"
    )]
    OffloadFixed {
        /// The path.
        path: &'static str,
        /// The device.
        device: String,
        /// The flag.
        flag: &'static str,
        /// `on` or `off`.
        state: &'static str,
    },
    /// Nothing is left for IPv6 below a tunnel's headers.
    #[error(
        "path `{path}` needs an MTU of {least} at least, since its headers take part of it and IPv6 \
         needs 1280: set `mtu` to {least} or more, or choose another path"
    )]
    MtuTooSmall {
        /// The path.
        path: &'static str,
        /// Least MTU, bytes.
        least: u32,
    },
    /// The switch cuts longer frames.
    #[error(
        "path `{path}` carries an MTU of {most} at most with Open vSwitch's userspace datapath, which accepts no \
         larger frames from an internal port in another namespace: set `mtu` to {most} or less, load \
         module `openvswitch` for the kernel datapath, or choose path `ovs-veth`"
    )]
    MtuTooLarge {
        /// The path.
        path: &'static str,
        /// Largest MTU, bytes.
        most: u32,
    },
    /// A guest's network card is made as a whole.
    #[error(
        "path `{path}` cannot change `{flag}` by itself: set `offload`, which switches all offloads of the guest's \
         network card, or choose another path"
    )]
    GuestOffload {
        /// The path.
        path: &'static str,
        /// The flag.
        flag: &'static str,
    },
    /// A guest.
    #[error(transparent)]
    Guest(#[from] crate::guest::Error),
    /// A tap.
    #[error(transparent)]
    Tap(#[from] hopyard_tap::Error),
    /// The tap switch.
    #[error(transparent)]
    TapSwitch(#[from] crate::tapswitch::Error),
    /// Open vSwitch.
    #[error(transparent)]
    Ovs(#[from] super::ovs::Error),
    /// A daemon of a lab.
    #[error(transparent)]
    Daemon(#[from] super::daemon::Error),
    /// The direct switch.
    #[error(transparent)]
    Switch(#[from] hopyard_switch::Error),
    /// The ends cannot be placed as asked.
    #[error(
        "placement `split` needs two CPUs and this process may use one: choose placement `same` or `free`"
    )]
    OneCpu,
    /// Shares are of processes.
    #[error(
        "scheduler `groups` divides the CPU between the processes of the client, and there is only one: set \
         `containers`, or choose another scheduler"
    )]
    OneProcess,
    /// CPUs that there are not, or that this process may not use.
    #[error("cannot use client_cpus {wanted}: this process may run on CPUs {allowed}")]
    NoSuchCpu {
        /// What was asked.
        wanted: Cpus,
        /// What there is.
        allowed: Cpus,
    },
    /// An unknown name.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// The kernel refused.
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
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The state of a kept lab is not understood.
    #[error(
        "{} is damaged, or of another version of hopyard: take the lab down with the version that built it, or \
         remove it with `hopyard clean --force`", .file.display()
    )]
    ForeignLab {
        /// The file.
        file: std::path::PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A kept lab cannot do what was asked.
    #[error("{0}")]
    Kept(String),
}

impl Error {
    /// Is it this host that lacks something, rather than something that went wrong?
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self,
            Self::Unsupported { .. }
                | Self::OffloadFixed { .. }
                | Self::MtuTooSmall { .. }
                | Self::MtuTooLarge { .. }
                | Self::OneCpu
                | Self::NoSuchCpu { .. }
                | Self::GuestOffload { .. }
                // Other people's programs: where they cannot be set up, the rest of a plan can be all the same.
                | Self::Ovs(_)
                | Self::Daemon(_)
        ) || matches!(self, Self::Net(hopyard_net::Error::Unsupported { .. }))
    }
}
