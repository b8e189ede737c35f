//! `hopyard switch metrics`, as Prometheus reads it.

use std::collections::{BTreeMap, BTreeSet};

use hopyard_net::{Handle, LinkKind, NewLink};
use serde_json::Value;

use crate::exports::{python, read};
use crate::support::apart;
use crate::support::icmp::ping;
use crate::support::site::{NAME, Site, nothing_stands};

/// Every family by its name, with its type and unit, and its samples as `labels value`. The reader refuses two samples with the
/// same labels.
const FAMILIES: &str = "import json, sys\n\
     from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse\n\
     families = list(parse(open(sys.argv[1]).read()))\n\
     print(json.dumps({f.name: {'type': f.type, 'unit': f.unit, \
     'samples': [[s.name, s.labels, s.value] for s in f.samples]} for f in families}))";

/// A counter of each party by role and name.
fn by_party(family: &Value) -> BTreeMap<(String, String), f64> {
    let samples = family["samples"].as_array().unwrap();
    let party = |s: &Value| {
        let label = |name: &str| s[1][name].as_str().unwrap().to_owned();
        ((label("role"), label("party")), s[2].as_f64().unwrap())
    };
    samples.iter().map(party).collect()
}

#[test]
fn prometheus_reads_the_counters_of_every_port() {
    // It may have to be fetched, by names that the host's `/run` may say how to look up.
    python();
    apart(|| {
        let site = Site::new();
        site.furnish(2);
        // A device may be called as the parties are that are no ports.
        let kind = LinkKind::veth("inner", None);
        let hub = Handle::new(&site.hub).unwrap();
        hub.add_link(&NewLink::new("wire", kind)).unwrap();
        site.switch(&["port", "add", NAME, "wire"]).exits(0);
        site.switch(&["create", "other"]).exits(0);
        site.talks();
        // p0 has no address for which anybody would answer: a broadcast, and no reply.
        let _ = ping(&site.guests[0], [192, 0, 2, 99].into());

        let file = "/run/hopyard.prom";
        std::fs::write(file, "of yesterday").unwrap();
        site.switch(&["metrics", "--output", file]).exits(0);
        let families = read(FAMILIES, file);
        for (name, unit) in [
            ("rx_packets", "packets"),
            ("rx_bytes", "bytes"),
            ("tx_packets", "packets"),
            ("tx_bytes", "bytes"),
            ("answered_packets", "packets"),
            ("over_rate_packets", "packets"),
            ("too_big_packets", "packets"),
            ("dropped_packets", "packets"),
        ] {
            let name = format!("hopyard_switch_{name}");
            let family = &families[&name];
            assert_eq!(
                (&family["type"], &family["unit"]),
                (&"counter".into(), &unit.into())
            );
            assert_eq!(family["samples"][0][0], format!("{name}_total"));
        }
        let ports = families["hopyard_switch_ports"]["samples"]
            .as_array()
            .unwrap();
        // Whether 3 is read as 3.0 depends on the reader's version.
        let ports = ports
            .iter()
            .map(|s| (s[1]["switch"].as_str(), s[2].as_f64()));
        assert!(ports.eq([(Some(NAME), Some(3.0)), (Some("other"), Some(0.0))]));

        let rx = by_party(&families["hopyard_switch_rx_packets"]);
        let stats = site.switch(&["stats", NAME, "--json"]).exits(0).json();
        let mut compared = BTreeSet::new();
        for party in stats["parties"].as_array().unwrap() {
            let name = party["party"].as_str().unwrap();
            let is_port = name.starts_with('p') || party["rx_packets"] == 0 && name == "wire";
            let role = if is_port { "port" } else { name };
            if let Some(seen) = rx.get(&(role.to_owned(), name.to_owned())) {
                assert!(
                    party["rx_packets"].as_f64() >= Some(*seen),
                    "{party} {seen}"
                );
                compared.insert((role, name));
            }
        }
        assert!(compared.len() > 3, "{compared:?} of {rx:?}");
        let of = |role: &str, party: &str| rx[&(role.to_owned(), party.to_owned())];
        assert!(of("port", "p0") > 0.0 && of("port", "p1") > 0.0);
        assert_eq!(of("port", "wire"), 0.0);
        assert!(rx.contains_key(&("wire".to_owned(), "wire".to_owned())));
        let drops = families["hopyard_switch_dropped_packets"]["samples"]
            .as_array()
            .unwrap();
        let of_p0 = drops.iter().filter(|s| s[1]["party"] == "p0");
        assert!(of_p0.count() > 15, "every reason is there: {drops:?}");

        // One switch, to stdout; one that is not there.
        site.switch(&["metrics", "other"])
            .exits(0)
            .prints(&["hopyard_switch_ports{switch=\"other\"} 0\n", "# EOF\n"]);
        site.switch(&["metrics", "absent"]).exits(2);
        site.switch(&["metrics", "-o", "/run/absent/hopyard.prom"])
            .exits(2)
            .says(&["cannot write /run/absent/hopyard.prom"]);
        for name in [NAME, "other"] {
            site.switch(&["delete", name]).exits(0);
        }
        nothing_stands();
        // Where there is no switch, there is a page without samples.
        site.switch(&["metrics"]).exits(0).prints(&["# EOF\n"]);
    });
}
