//! What `hopyard doctor` says of rules that a switch would pass by, and of claims that cannot be tested here.

use std::collections::BTreeSet;
use std::path::Path;

use hopyard_net::{NetNs, apply_ruleset, cpu};

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

/// Each missing thing with its claims: the same as JSON and as text, and what this machine has is not among them.
#[test]
fn doctor_names_what_claims_lack_here() {
    let _beside = beside();
    let lacks = run(&["doctor", "--claims", "--json"]).exits(0).json();
    let lacks = lacks.as_array().unwrap();
    let said = run(&["doctor", "--claims"]);
    let mut lacking = BTreeSet::new();
    for lack in lacks {
        let (what, claims) = (&lack["what"], lack["claims"].as_array().unwrap());
        let ids: Vec<&str> = claims.iter().map(|id| id.as_str().unwrap()).collect();
        said.prints(&[&format!("- {}: {}", ids.join(" "), what.as_str().unwrap())]);
        lacking.extend(ids);
    }
    said.exits(0)
        .prints(&[&format!("{} of 69 claims", 69 - lacking.len())]);
    let lacks_what = |part: &str| {
        lacks
            .iter()
            .any(|l| l["what"].as_str().unwrap().contains(part))
    };
    assert_eq!(
        lacks_what("load module `vhost_net`"),
        !Path::new("/dev/vhost-net").exists(),
        "{said}"
    );
    let cpus = cpu::online_cpus().unwrap().len();
    for needed in [4, 8] {
        let has_too_few = cpus < needed;
        assert_eq!(
            lacks_what(&format!("{needed} CPUs: ")),
            has_too_few,
            "{said}"
        );
    }
    // No kernel has this: a guest under KVM with patches of 2011.
    assert!(lacking.contains("MQ16"), "{said}");
}
