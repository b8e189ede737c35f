//! The direct switch on another kernel than this machine's: each has a verifier of its own.

use super::{PATIENCE, in_guest};
use crate::support::beside;
use crate::support::cli::Running;
use crate::support::kernels::backported_kernel;

#[test]
fn the_direct_switch_and_its_shortcut_work_inside_a_guest() {
    let _beside = beside();
    let home = tempfile::tempdir().unwrap();
    let more = [
        "--paths",
        "direct,direct-shortcut",
        "--loads",
        "tcp_rr",
        "--blocks",
        "1",
        "--turns",
        "off",
        "--window",
        "400ms",
        "--accel",
        "tcg",
        "--json",
    ];
    let guest = in_guest(&backported_kernel(), &home.path().join("run"), &more);
    let document = Running::start(guest).wait_for(PATIENCE).json();
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2, "{document:#}");
    for cell in cells {
        assert_eq!(cell["status"], "ok", "{cell:#}");
        assert_eq!(cell["way"]["proved"], true, "{cell:#}");
    }
}
