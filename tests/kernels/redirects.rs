//! Paths on which eBPF programs forward, or that carry no packets, on kernels which this machine's own may differ from.

use serde_json::Value;

use super::{PATIENCE, in_guest};
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

/// A host that takes an emulated CPU away for the whole of a window fails its sample; a path that does not work fails more than one
/// cell.
fn proved(cells: &[Value]) {
    let failed = |cell: &&Value| cell["status"] != "ok" || cell["way"]["proved"] != true;
    let failed: Vec<_> = cells.iter().filter(failed).collect();
    assert!(failed.len() <= 1, "{failed:#?}");
    for cell in failed {
        tell(&format!("{} failed: {}", cell["path"], cell["cause"]));
    }
}

/// Its programs are attached to the pair alone, and to the uplink for peer `far`; what they count has to move. With IPv4 and the usual
/// MTU, `conformance` has them.
#[test]
fn netkit_pairs_redirect_large_packets_of_ipv6_inside_a_guest() {
    let _beside = beside();
    let paths = "netkit-redirect,netkit-redirect-l3";
    let found = cells(
        &backported_kernel(),
        &[
            "--paths",
            paths,
            "--peer",
            "local,far",
            "--loads",
            "tcp_stream",
            "--set",
            "family=6",
            "--set",
            "mtu=9000",
        ],
    );
    assert_eq!(found.len(), 4);
    proved(&found);
}

/// What this machine's kernel has as well: the oldest kernel that is tried has it too.
#[test]
fn xdp_and_unix_sockets_work_on_an_older_kernel() {
    let _beside = beside();
    let paths = "veth-xdp,af-xdp";
    let found = cells(
        &kernel(),
        &[
            "--paths",
            paths,
            "--peer",
            "local,far",
            "--loads",
            "tcp_rr,tcp_stream",
        ],
    );
    assert_eq!(found.len(), 8);
    proved(&found);
    let paths = "unix,unix-seqpacket";
    let found = cells(
        &kernel(),
        &["--paths", paths, "--loads", "tcp_rr,tcp_stream"],
    );
    assert_eq!(found.len(), 4);
    proved(&found);
}
