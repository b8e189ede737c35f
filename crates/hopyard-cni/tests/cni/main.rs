//! The plugin as a container runtime calls it, in throw-away hosts. Needs root.
//!
//! The scenarios are those of the reference plugins' own suites for `bridge` and `macvlan`, and those that these lack: isolation and
//! spoofing, killed calls, GC.
//!
//! | scenario of theirs | here |
//! |---|---|
//! | ADD, CHECK and DEL in each version, with addresses of IPv4, IPv6 and both | `every_version_adds_checks_and_deletes_with_each_kind_of_addresses` |
//! | a container without IPAM, or without an address | `a_container_without_ipam_has_a_device_and_may_choose_its_addresses` |
//! | DEL of what was never added, twice, with an empty or a vanished namespace | `deleting_again_and_without_the_namespace_works` |
//! | an Ethernet address by `args`, by capability and by `CNI_ARGS`; MTU of the master, or a smaller one | `the_runtime_chooses_address_and_mtu` |
//! | a bridge that is there is used and stays (a switch that is named) | `a_switch_that_is_named_is_used_and_stays` |
//! | default routes, several networks in one container | `a_second_default_route_is_made_beside_the_first`, `a_device_of_each_network_in_one_container` |
//! | DHCP | `a_container_is_connected_before_dhcp_asks`, `leases_of_a_real_server_are_got_held_renewed_and_given_back` |
//! | VLANs | `vlans_are_apart_and_share_the_uplink` |
//! | port isolation | `isolated_containers_reach_host_and_wire_and_no_other` |
//! | anti-spoofing | `a_container_sends_from_the_addresses_alone_that_ipam_gave`, `without_macspoofchk_a_container_sends_from_what_it_likes` |
//! | CHECK after a change | `check_finds_what_somebody_changed` |
//! | ADD fails, by IPAM or half-way | `an_add_that_fails_half_way_leaves_nothing` |
//! | STATUS | `status_says_whether_a_container_can_be_added` |
//!
//! Not here, because the keys are refused (`refused_keys_and_capabilities_are_named`): gateway addresses, masquerading, hairpin,
//! promiscuous mode, VLAN trunks, other modes of macvlan, a master in the container. Without `master`, macvlan takes the device of the
//! default route; this plugin makes a network without a wire (`a_network_without_a_master_connects_its_containers_alone`).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attach;
mod bandwidth;
mod changing;
mod crowd;
mod dhcp;
mod failures;
mod garbage;
mod host;
mod host_local;
mod netavark;
mod podman;
mod rules;
mod states;
mod tools;
mod who_reserves;

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../../../../tests/support/skip.rs"]
mod skip;
