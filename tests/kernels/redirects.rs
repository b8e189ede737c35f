//! Paths on which eBPF programs forward, or that carry no packets, on kernels which this machine's own may differ from.

use serde_json::Value;

use super::one_guest::{NEWEST, OLDEST};

/// Its programs are attached to the pair alone, and to the uplink for peer `far`; what they count has to move. With IPv4 and the usual
/// MTU, `conformance` has them.
#[test]
fn netkit_pairs_redirect_large_packets_of_ipv6_inside_a_guest() {
    let large = ["family=6", "mtu=9000"];
    let found = NEWEST.proved(|path, _| path.starts_with("netkit-"), &large);
    assert_eq!(found.cells.len(), 4);
}

/// What this machine's kernel has as well: the oldest kernel that is tried has it too.
#[test]
fn xdp_and_unix_sockets_work_on_an_older_kernel() {
    let has_frames = |path: &str| path.ends_with("xdp");
    let is_own = |path: &str, _: &str| has_frames(path) || path.starts_with("unix");
    let found = OLDEST.proved(is_own, &[]).cells;
    let with_frames = |cell: &&Value| has_frames(cell["path"].as_str().unwrap());
    assert_eq!(found.iter().filter(with_frames).count(), 8, "{found:#?}");
    // Unix sockets have no peer `far`.
    assert_eq!(found.len(), 8 + 4, "{found:#?}");
}
