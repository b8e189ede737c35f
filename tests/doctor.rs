//! What `hopyard doctor` says of rules that a switch would pass by.

use hopyard_net::{NetNs, apply_ruleset};

use crate::support::beside;
use crate::support::cli::{Said, run};

/// The program, run in a namespace.
fn doctor(ns: &NetNs, arguments: &[&str]) -> Said {
    let arguments = [&["doctor"], arguments].concat();
    ns.run(|| run(&arguments)).unwrap()
}

/// Findings about rules.
fn about_rules(ns: &NetNs) -> Vec<String> {
    let said = doctor(ns, &["--json"]);
    let document = said.exits(0).json();
    let findings = document["findings"].as_array().unwrap();
    let text = findings
        .iter()
        .map(|finding| finding["what"].as_str().unwrap());
    let text = text.filter(|what| what.contains("packet filter"));
    text.map(str::to_owned).collect()
}

#[test]
fn doctor_warns_of_rules_that_a_switch_would_bypass() {
    let _beside = beside();
    let ns = NetNs::create().unwrap();
    assert_eq!(about_rules(&ns), [""; 0]);
    let input = "chain input { type filter hook input priority 0; policy drop; }";
    apply_ruleset(&ns, &format!("table inet host {{\n{input}\n}}")).unwrap();
    assert_eq!(
        about_rules(&ns),
        [""; 0],
        "what is for the host is not bypassed"
    );
    let rules = "
        table inet wall {
            chain forward { type filter hook forward priority 0; policy drop; }
        }
        table bridge lan {
            chain forward { type filter hook forward priority 0; drop; }
        }
        table netdev edge {
            chain in { type filter hook ingress device lo priority 0; counter; }
        }
    ";
    apply_ruleset(&ns, rules).unwrap();
    let what = "packet filter rules for forwarded frames: bridge lan forward, inet wall forward, netdev edge \
                in (ingress";
    let found = about_rules(&ns);
    assert!(found.len() == 1 && found[0].starts_with(what), "{found:?}");
    let said = doctor(&ns, &[]);
    said.exits(0)
        .prints(&[what, "hopyard switch", "bypass these rules"]);
}
