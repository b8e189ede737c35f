//! Rules that frames between ports do not meet, as `show` names them.

use hopyard_net::apply_ruleset;

use crate::frames::{EXPERIMENT, frame};
use crate::listen::Ear;
use crate::site::{Site, guest_mac};

const RULES: &str = "
table inet old {
    chain forward { type filter hook forward priority 0; policy accept; counter; }
    chain input { type filter hook input priority 0; policy accept; counter; }
}
table bridge lan {
    chain in { type filter hook input priority 0; policy accept; counter; }
}
table netdev edge {
    chain port { type filter hook ingress device p0 priority 0; policy accept; counter drop; }
    chain other { type filter hook ingress device other priority 0; policy accept; counter; }
}
table ip unused {
    chain forward { type filter hook forward priority 0; policy accept; }
}
";

#[test]
fn show_names_the_rules_that_frames_of_its_ports_bypass() {
    let site = Site::new("rules", 2);
    let other = crate::site::space();
    crate::site::cable(&site.hub, "other", &other, "eth0", guest_mac(9), 1500);
    site.connect(false, |_, _| {});
    assert_eq!(site.show().warnings, [""; 0]);
    apply_ruleset(site.hub.ns(), RULES).unwrap();
    let warnings = site.show().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let (_, chains) = warnings[0].rsplit_once(": ").unwrap();
    let mut chains: Vec<&str> = chains.split(", ").collect();
    // An nft that does not tell the devices leaves both to be named.
    if chains.contains(&"netdev edge other (ingress)") {
        chains.retain(|chain| *chain != "netdev edge other (ingress)");
    } else {
        assert!(
            chains.contains(&"netdev edge port (ingress of p0)"),
            "{chains:?}"
        );
    }
    assert_eq!(chains[..2], ["bridge lan in", "inet old forward"]);
    assert!(
        chains[2].starts_with("netdev edge port (ingress"),
        "{chains:?}"
    );
    assert_eq!(chains.len(), 3, "{chains:?}");
    // And so it is: the rule at the port would drop this.
    let ear = Ear::open(&site.guests[1], "eth0", EXPERIMENT);
    let hello = frame(guest_mac(1), guest_mac(0), EXPERIMENT, b"hello");
    Ear::open(&site.guests[0], "eth0", EXPERIMENT).send(&hello);
    assert_eq!(ear.heard(), [hello]);
}
