//! Flow tables, which this machine's own kernel may lack.

use super::one_guest::OLDEST;
use crate::support::tell;

#[test]
fn a_flow_table_forwards_inside_a_guest() {
    let measured = OLDEST.measured().of(|path, _| path == "flowtable");
    for cell in &measured.cells {
        assert_eq!(cell["status"], "ok", "{cell}");
        assert_eq!(cell["way"]["proved"], true, "{cell}");
    }
    let samples = measured.samples.iter().map(|(_, sample)| {
        let measured = &sample["outcome"]["measured"];
        (
            measured["received"]["transactions"].clone(),
            measured["connections"].clone(),
        )
    });
    let samples: Vec<_> = samples.collect();
    assert_eq!(samples.len(), 2, "{:#?}", measured.cells);
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
