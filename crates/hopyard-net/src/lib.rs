//! Kernel plumbing without policy: what Linux offers to make, change and read network objects.
//!
//! A [`NetNs`] is an owned network namespace, a [`Handle`] everything one does inside it: links,
//! addresses, routes, shaping, counters, offloads and sysctls. The rest are the neighbours of
//! measuring: control groups, clocks, CPU sets and nftables rule sets.
//!
//! Everything is synchronous. All raw system calls of the workspace live in this crate, but for those on
//! `/dev/net/tun` (`hopyard-tap`). Nothing here
//! decides what to build, and nothing here touches the caller's own namespace unless it is asked to
//! by a [`Handle`] on [`NetNs::current`].
//!
//! ```no_run
//! use hopyard_net::{Handle, NetNs};
//!
//! // It ends with the value, also when the process is killed.
//! let handle = Handle::new(&NetNs::create()?)?;
//! handle.set_up("lo")?;
//! handle.add_address("lo", [192, 0, 2, 1].into(), 32)?;
//! let socket = handle.ns().run(|| std::net::UdpSocket::bind("192.0.2.1:0"))?;
//! # Ok::<(), hopyard_net::Error>(())
//! ```
#![warn(missing_docs)]

/// Its examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod address;
mod af_xdp;
mod attrs;
mod cgroup;
mod classifier;
pub mod clock;
mod conntrack;
mod container;
pub mod cpu;
pub mod datagrams;
mod device_config;
mod device_program;
mod directories;
mod error;
mod ethtool;
mod exec;
mod fed;
mod fresh_thread;
mod genl;
mod gso;
mod handle;
mod ifreq;
mod ipsec;
mod iptables;
mod ipv6;
mod kind;
mod limits;
mod link;
mod lookup;
mod macsec;
mod macvtap;
mod many;
mod monitor;
mod mounts;
pub mod mptcp;
mod napi;
mod netlink;
mod netns;
mod nfnetlink;
mod nft;
mod nft_devices;
mod offload;
pub mod owned;
mod packet;
mod pause;
pub mod pipe;
mod probe;
mod process;
mod program_link;
mod route;
mod shape;
mod socket;
mod stats;
mod steering;
mod sysctl;
pub mod tcp_info;
mod tun;
mod unawaited;
mod unix_sockets;
pub mod uring;
mod user_namespace;
mod vhost;
mod wireguard;
mod xtables;

pub use af_xdp::{PassedOn, XdpPair};
pub use cgroup::{Cgroup, own_cgroup};
pub use classifier::{Classifier, NewClassifier, Side};
pub use conntrack::{ConntrackStats, Tracked, conntrack_stats, fill_conntrack, tracked_to};
pub use container::{start_first, unshare_mount_and_cgroup};
pub use device_config::DeviceConfig;
pub use device_program::DeviceHook;
pub use directories::make_directories;
pub use error::{Error, Result};
pub use exec::{end_with_starter, enter_for_exec, inherit, limit_files};
pub use fresh_thread::on_fresh_thread;
pub use genl::{has_genl_family, is_wireless_client};
pub use gso::MaxSizes;
pub use handle::Handle;
pub use ipsec::{EspDirection, EspKey, EspMode, EspState, EspTraffic, probe_esp};
pub use iptables::{IptablesFamily, restore_iptables};
pub use ipv6::LinkLocal;
pub use kind::{BridgeSettings, IpvlanMode, LinkKind, MacvlanMode, NetkitLayer, NewLink};
pub use limits::allow_files;
pub use link::{Link, XdpHook};
pub use lookup::WayTo;
pub use macsec::{MacsecKey, MacsecTraffic, probe_macsec};
pub use monitor::{Heard, Monitor};
pub use netns::{BoundNs, NetNs, unbind};
pub use nft::{
    NftChain, NftCounter, apply_ruleset, check_ruleset, count_chains, counted_chains, nft_chains,
    nft_counters,
};
pub use offload::{Offload, OffloadState, Offloads};
pub use packet::PacketSocket;
pub use pause::Pause;
pub use probe::{KINDS, probe_kind, probe_link, probe_shaping};
pub use process::{Process, end_within, group_lives, is_ending, kill_group, name_and_flags};
pub use program_link::ProgramLink;
pub use route::Route;
pub use shape::{Pauses, Shape};
pub use socket::{allow_zerocopy, attach_message_program, readable_bytes};
pub use stats::DeviceStats;
pub use steering::ReceiveSteering;
pub use tun::{TunLayer, TunLink};
pub use unix_sockets::{UnixSocket, unix_sockets};
pub use user_namespace::{
    enter_own_user_namespace, is_in_first_user_namespace, may_make_namespaces,
};
pub use vhost::VhostQueue;
pub use wireguard::WireguardKey;
pub use xtables::{LegacyChain, legacy_chains};
