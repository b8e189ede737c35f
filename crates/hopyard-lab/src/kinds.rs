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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::HOLDS;

    #[test]
    fn what_changes_the_machine_says_so() {
        let changes: Vec<&str> = KINDS
            .iter()
            .map(|kind| kind.effect())
            .filter(|effect| *effect != HOLDS)
            .collect();
        assert_eq!(changes.len(), 2);
        assert!(TABLES.effect().contains("sysctl") && CARDS.effect().contains("card"));
    }
}
