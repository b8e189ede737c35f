//! Paths on which eBPF programs forward, or that carry no packets, on kernels which this machine's own may differ from.

use serde_json::Value;

use super::{PATIENCE, in_guest, proved};
use crate::support::cli::Running;
use crate::support::kernels::{backported_kernel, kernel};
use crate::support::{beside, tell};

/// The cells of a run in a guest, each of one block.
fn cells(kernel: &std::path::Path, more: &[&str]) -> Vec<Value> {
    let home = tempfile::tempdir().unwrap();
    let plan = [
        "--blocks", "1", "--turns", "off", "--window", "400ms", "--accel", "tcg", "--json",
    ];
    let command = in_guest(kernel, &home.path().join("run"), &[more, &plan].concat());
    let said = Running::start(command).wait_for(PATIENCE);
    let document = said.json();
    tell(&format!("{more:?} in {:?}", said.took));
    document["cells"].as_array().unwrap().clone()
}

/// Its programs are attached to the pair alone, and to the uplink for peer `far`; what they count has to move. With IPv4 and the usual
/// MTU, `conformance` has them.
#[test]
fn netkit_pairs_redirect_large_packets_of_ipv6_inside_a_guest() {
    let _beside = beside();
    let paths = "netkit-redirect,netkit-redirect-l3";
    let measured = |which: &[&str]| {
        let large = ["--set", "family=6", "--set", "mtu=9000"];
        cells(&backported_kernel(), &[which, &large].concat())
    };
    let found = measured(&[
        "--paths",
        paths,
        "--peer",
        "local,far",
        "--loads",
        "tcp_stream",
    ]);
    assert_eq!(found.len(), 4);
    proved(&found, measured);
}

/// What this machine's kernel has as well: the oldest kernel that is tried has it too.
#[test]
fn xdp_and_unix_sockets_work_on_an_older_kernel() {
    let _beside = beside();
    let paths = "veth-xdp,af-xdp,unix,unix-seqpacket";
    let measured = |which: &[&str]| cells(&kernel(), which);
    let found = measured(&[
        "--paths",
        paths,
        "--peer",
        "local,far",
        "--loads",
        "tcp_rr,tcp_stream",
    ]);
    // Unix sockets have no peer `far`.
    let has_frames = |cell: &&Value| cell["path"].as_str().unwrap().ends_with("xdp");
    assert_eq!(found.iter().filter(has_frames).count(), 8, "{found:#?}");
    assert_eq!(found.len(), 8 + 4, "{found:#?}");
    proved(&found, measured);
}
