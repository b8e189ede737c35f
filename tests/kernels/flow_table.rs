//! Flow tables, which this machine's own kernel may lack.

use serde_json::Value;

use super::one_guest::OLDEST;
use crate::support::tell;

#[test]
fn a_flow_table_forwards_inside_a_guest() {
    let measured = OLDEST.proved(|path, _| path == "flowtable", &["flows=3"]);
    let samples = ["udp_rr", "tcp_crr"].map(|load| {
        let of_load = |(cell, sample): &&(Value, Value)| {
            cell["load"] == load && !sample["outcome"]["measured"].is_null()
        };
        let (_, sample) = measured.samples.iter().find(of_load).expect(load);
        let measured = &sample["outcome"]["measured"];
        (
            measured["received"]["transactions"].clone(),
            measured["connections"].clone(),
        )
    });
    for (transactions, connections) in &samples {
        assert_eq!(connections["expected"], "offloaded", "{connections}");
        assert!(transactions.as_u64() > Some(0), "{connections}");
    }
    // Connections that stand are in the table when the window closes; those of `tcp_crr` are gone from it, and the rule has counted them.
    let counts = |key: &str| samples.iter().map(|(_, c)| c[key].as_u64().unwrap()).max();
    assert!(counts("as_expected") >= Some(3), "{samples:?}");
    assert!(counts("handed_over") > Some(3), "{samples:?}");
    tell(&format!("{samples:?}"));
}
