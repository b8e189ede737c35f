//! The lab: namespaces, devices and addresses of one path, built fresh and gone without a trace.
//!
//! Everything lives in namespaces of the lab's own, the hub included. Unnamed namespaces end with the
//! process that holds them, however it ends; what could outlive it (a control group, a kept lab) carries
//! the lab's id and is found by [`clean`].

pub mod af_xdp;
mod axes;
mod bridging;
mod builder;
mod card;
pub mod clean;
mod clients;
pub mod daemon;
mod encrypted;
mod endpoints;
mod error;
mod far;
mod flags;
mod flow_table;
mod group;
pub mod guest;
mod guests;
mod joined;
pub mod keep;
mod kept;
mod key;
mod kinds;
mod need;
mod offloads;
mod outlive;
pub mod ovs;
mod own_chains;
mod part;
pub mod paths;
mod processes;
mod random;
mod reach;
mod redirect;
mod routing;
mod secured;
mod seen;
mod services;
mod socket_directory;
mod standing;
mod switching;
pub mod tap;
pub mod tapswitch;
mod topology;
mod tracking;
mod unix_connections;
mod upper;
mod usermode;
mod wire;
mod wireguard_api;
mod workers;

use hopyard_host::{bounded, note, owner, programs, signals};
use hopyard_load as load;
use hopyard_model::{self as model, plain::chain, units};

pub use axes::ruleset::with_digest;
pub use bridging::forwarding_bridge;
pub use builder::Builder;
pub use clients::ClientSlot;
pub use endpoints::{Endpoints, NoPrefix, Prefix, Uplink};
pub use error::{Cable, Error, Result};
pub use far::serve as serve_far;
pub use guests::HubEnd;
pub use key::LabKey;
pub use owner::{LabId, Life};
pub use paths::{PATHS, Path, carried, lacking, path};
pub use reach::CONNECT;
pub use standing::Lab;
pub use topology::{Addresses, Client, Endpoint, Space, Subnet, Topology, host, role};
pub use wire::is_beside_the_wire;
