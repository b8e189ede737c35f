//! The kinds of things that outlive a process.

use super::card::CARDS;
use super::flow_table::TABLES;
use super::group::GROUPS;
use super::part::Kind;
use super::paths::{pasta, slirp4netns, tap_vde, tun_vpn};
use super::switching::SWITCHES;
use super::{af_xdp, ovs, socket_directory, tap};

/// Every kind of thing that can be left by a process that was killed, in the order in which `clean` removes them.
pub(super) static KINDS: [&dyn Kind; 12] = [
    &GROUPS,
    &SWITCHES,
    &ovs::HOME,
    &tap::HOME,
    &af_xdp::HOME,
    &tap_vde::HOME,
    &tun_vpn::HOME,
    &pasta::HOME,
    &slirp4netns::HOME,
    &socket_directory::HOME,
    &TABLES,
    &CARDS,
];
