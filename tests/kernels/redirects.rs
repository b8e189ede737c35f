//! Paths on which eBPF programs forward, or that carry no packets, on kernels which this machine's own may differ from.

use serde_json::Value;

use super::one_guest::{Measured, NEWEST, OLDEST};
use super::proved;
use crate::support::kernels::{backported_kernel, kernel};

/// Of a window, where a cell is measured again.
const WINDOW: [&str; 2] = ["--window", "400ms"];

/// Its programs are attached to the pair alone, and to the uplink for peer `far`; what they count has to move. With IPv4 and the usual
/// MTU, `conformance` has them.
#[test]
fn netkit_pairs_redirect_large_packets_of_ipv6_inside_a_guest() {
    let found = NEWEST.measured().of(|path, _| path.starts_with("netkit-"));
    assert_eq!(found.cells.len(), 4);
    proved(&found.cells, |one| {
        let large = ["--set", "family=6", "--set", "mtu=9000"];
        Measured::in_guest(&backported_kernel(), &[one, &large, &WINDOW].concat()).cells
    });
}

/// What this machine's kernel has as well: the oldest kernel that is tried has it too.
#[test]
fn xdp_and_unix_sockets_work_on_an_older_kernel() {
    let has_frames = |path: &str| path.ends_with("xdp");
    let found = OLDEST
        .measured()
        .of(|path, _| has_frames(path) || path.starts_with("unix"));
    let found = found.cells;
    let with_frames = |cell: &&Value| has_frames(cell["path"].as_str().unwrap());
    assert_eq!(found.iter().filter(with_frames).count(), 8, "{found:#?}");
    // Unix sockets have no peer `far`.
    assert_eq!(found.len(), 8 + 4, "{found:#?}");
    proved(&found, |one| {
        Measured::in_guest(&kernel(), &[one, &WINDOW].concat()).cells
    });
}
