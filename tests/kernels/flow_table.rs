//! Flow tables, which this machine's own kernel may lack.

use std::fs;

use serde_json::Value;

use super::{PATIENCE, in_guest};
use crate::support::cli::Running;
use crate::support::kernels::kernel;
use crate::support::{beside, tell};

#[test]
fn a_flow_table_forwards_inside_a_guest() {
    let _beside = beside();
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("run");
    let more = [
        "--paths",
        "flowtable",
        "--loads",
        "udp_rr,tcp_crr",
        "--set",
        "flows=3",
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
    let said = Running::start(in_guest(&kernel(), &out, &more)).wait_for(PATIENCE);
    let document = said.json();
    for cell in document["cells"].as_array().unwrap() {
        assert_eq!(cell["status"], "ok", "{cell}");
        assert_eq!(cell["way"]["proved"], true, "{cell}");
    }
    let samples = fs::read_to_string(out.join("samples.jsonl")).unwrap();
    let samples = samples.lines().map(|line| {
        let sample: Value = serde_json::from_str(line).unwrap();
        let measured = &sample["outcome"]["measured"];
        (
            measured["received"]["transactions"].clone(),
            measured["connections"].clone(),
        )
    });
    let samples: Vec<_> = samples.collect();
    assert_eq!(samples.len(), 2, "{said}");
    for (transactions, connections) in &samples {
        assert_eq!(connections["expected"], "offloaded", "{connections}");
        assert!(transactions.as_u64() > Some(0), "{connections}");
    }
    // Connections that stand are in the table when the window closes; those of `tcp_crr` are gone from it, and the rule has counted them.
    let counts = |key: &str| samples.iter().map(|(_, c)| c[key].as_u64().unwrap()).max();
    assert!(counts("as_expected") >= Some(3), "{samples:?}");
    assert!(counts("handed_over") > Some(3), "{samples:?}");
    tell(&format!("{samples:?} in {:?}", said.took));
}
