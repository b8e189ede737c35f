//! The user's own packet filter rules in the hub: which chains see whose traffic, and what cannot be loaded.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::support::cli::{Said, run};
use crate::support::{beside, tell};

/// Chains of three families. Those of `inet` let nothing pass but what comes from addresses of labs, and begin as most files
/// do: by removing all rules.
const RULES: &str = "#!/usr/sbin/nft -f
flush ruleset

table inet filter {
	chain input {
		type filter hook input priority filter; policy accept;
		ct state invalid drop
	}
	chain forward {
		type filter hook forward priority filter; policy drop;
		ct state established,related accept
		ip saddr 198.18.0.0/15 accept
		ip6 saddr 2001:2::/48 accept
		icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
	}
}
table bridge frames {
	chain forward {
		type filter hook forward priority filter; policy accept;
		ether type arp accept
	}
}
table ip unused {
	chain lone {
		accept
	}
}
";

/// What of the traffic a chain sees, as results say it.
const SEES: [&str; 3] = ["nothing", "few_packets", "traffic"];

/// Runs each path once with the rules of a file.
fn with_rules(file: &str, paths: &str, more: &[&str]) -> Said {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("run");
    let base = [
        "run",
        "--paths",
        paths,
        "--blocks",
        "1",
        "--window",
        "100ms",
        "--warm-up",
        "20ms",
        "--turns",
        "off",
        "--json",
    ];
    let own = ["--ruleset", file, "--out", out.to_str().unwrap()];
    run(&[&base[..], &own, more].concat())
}

/// For each path, what of its traffic came to each chain.
fn seen(said: &Said) -> BTreeMap<String, BTreeMap<String, String>> {
    let document = said.json();
    let cells = document["cells"].as_array().unwrap().iter();
    let of_cell = |cell: &Value| {
        let chains = cell["chains"]
            .as_array()
            .unwrap_or_else(|| panic!("{cell}"))
            .iter();
        let of_chain = |chain: &Value| {
            let word = |key: &str| chain[key].as_str().unwrap().to_owned();
            let name = format!("{} {}", word("family"), word("name"));
            assert_eq!(chain["packets"] == 0, chain["sees"] == "nothing", "{chain}");
            (name, word("sees"))
        };
        (
            cell["path"].as_str().unwrap().to_owned(),
            chains.map(of_chain).collect(),
        )
    };
    cells.map(of_cell).collect()
}

#[test]
fn each_chain_tells_whose_traffic_it_sees() {
    let _beside = beside();
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("fw.nft");
    fs::write(&file, RULES).unwrap();
    let of = |input: usize, forward: usize, frames: usize| {
        let all = [
            ("inet input", input),
            ("inet forward", forward),
            ("bridge forward", frames),
        ];
        all.map(|(name, seen)| (name.to_owned(), SEES[seen].to_owned()))
            .into()
    };
    // A router is asked for its own address by IPv6, which its input chain sees; ARP is nothing that it would.
    for (family, load, own) in [
        ("4", "udp_rr", 0),
        ("6", "tcp_rr", 1),
        ("4", "tcp_stream", 0),
    ] {
        let set = format!("family={family}");
        let more = ["--loads", load, "--set", &set];
        let said = with_rules(
            file.to_str().unwrap(),
            "veth,veth-route,bridge,bridge-nf,direct,bridge-nat",
            &more,
        );
        said.exits(0);
        let seen = seen(&said);
        tell(&format!("IPv{family}: {seen:?}"));
        assert_eq!(seen["veth"], [].into(), "it has no hub");
        assert_eq!(seen["veth-route"], of(own, 2, 0));
        assert_eq!(seen["bridge"], of(0, 0, 2));
        assert_eq!(seen["bridge-nf"], of(0, 2, 2));
        assert_eq!(seen["direct"], of(0, 0, 0));
        // Its own rules are still there: they translate, or its way would be refuted.
        assert_eq!(seen["bridge-nat"]["inet forward"], "traffic");
        for cell in said.json()["cells"].as_array().unwrap() {
            assert_eq!(cell["way"]["proved"], true, "{cell}");
            let rules = cell["axes"]["ruleset"].as_str().unwrap();
            let digest = rules.strip_prefix(&format!("{}#", file.display()));
            assert_eq!(digest.map(str::len), Some(12), "{rules}");
        }
    }
}

/// The chain without a rule is there too: what it costs is the question.
#[test]
fn samples_come_with_the_program() {
    let _beside = beside();
    let samples = "none,sample:bridge,sample:bridge-rule";
    let said = with_rules(samples, "bridge", &["--loads", "udp_rr"]);
    let document = said.exits(0).json();
    let cells = document["cells"].as_array().unwrap();
    let rules: Vec<&Value> = cells.iter().map(|cell| &cell["axes"]["ruleset"]).collect();
    assert_eq!(rules, ["none", "sample:bridge", "sample:bridge-rule"]);
    for cell in cells {
        assert_eq!(cell["status"], "ok", "{cell:#}");
    }
    // The one with a rule is seen by its traffic.
    let chain = &cells[2]["chains"][0];
    assert_eq!(chain["family"], "bridge", "{chain}");
    assert_eq!(chain["sees"], "traffic", "{chain}");
}

#[test]
fn a_host_sees_what_is_for_itself_in_its_input_chain() {
    let _beside = beside();
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("fw.nft");
    fs::write(&file, RULES).unwrap();
    let said = with_rules(
        file.to_str().unwrap(),
        "bridge",
        &["--peer", "host", "--loads", "tcp_rr"],
    );
    let seen = seen(said.exits(0));
    let own = &seen["bridge"];
    assert_eq!(
        (&*own["inet input"], &*own["inet forward"]),
        ("traffic", "nothing")
    );
}

#[test]
fn rules_of_iptables_and_of_devices_are_taken() {
    let _beside = beside();
    let home = tempfile::tempdir().unwrap();
    let saved = home.path().join("rules.v4");
    let text = "# Generated by iptables-save v1.8.9 (nf_tables)\n*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n\
                -A FORWARD -s 198.18.0.0/15 -j ACCEPT\nCOMMIT\n";
    fs::write(&saved, text).unwrap();
    let said = with_rules(
        saved.to_str().unwrap(),
        "veth-route,bridge",
        &["--loads", "udp_rr"],
    );
    let seen_by = seen(said.exits(0));
    assert_eq!(
        seen_by["veth-route"],
        [("ip FORWARD".to_owned(), "traffic".to_owned())].into()
    );
    assert_eq!(
        seen_by["bridge"],
        [("ip FORWARD".to_owned(), "nothing".to_owned())].into()
    );

    // A device that one of two paths has.
    let device = home.path().join("device.nft");
    let text = "table netdev in {\nchain c {\ntype filter hook ingress device \"br0\" priority 0\nether type arp accept\n}\n}\n";
    fs::write(&device, text).unwrap();
    let said = with_rules(
        device.to_str().unwrap(),
        "bridge,direct",
        &["--loads", "udp_rr", "--peer", "host"],
    );
    let document = said.exits(0).json();
    let cell = |path: &str| {
        let mut cells = document["cells"].as_array().unwrap().iter();
        cells.find(|cell| cell["path"] == path).unwrap().clone()
    };
    let other = cell("direct");
    if other["status"] == "unsupported" {
        let cause = other["cause"].as_str().unwrap();
        assert!(cause.contains("cannot be loaded into the hub"), "{cause}");
    } else {
        // Since Linux 6.16 a chain may wait for its device.
        assert_eq!(other["chains"][0]["sees"], "nothing", "{said}");
    }
    assert!(cell("bridge")["chains"][0]["sees"] == "traffic", "{said}");
}

#[test]
fn what_cannot_be_used_as_rules_is_refused_by_name() {
    let _beside = beside();
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("fw.nft");
    let named = file.to_str().unwrap();
    with_rules(named, "bridge", &[])
        .exits(2)
        .says(&["cannot read the rules in", "No such file"]);
    for (text, why) in [
        (
            RULES.replace("198.18.0.0/15", "10.0.0.0/8"),
            "tcp_rr over `veth-route` failed when it was tried",
        ),
        (
            RULES.replace("198.18.0.0/15", "10.0.0.0/8"),
            "inet filter forward (hook forward), whose policy is drop, saw ",
        ),
        (RULES.replace("policy drop", "policy dorp"), "nft says: "),
        (
            "table inet t {\nchain c {\naccept\n}\n}\n".to_owned(),
            "none of its rules hangs on a hook",
        ),
        (String::new(), "none of its rules hangs on a hook"),
    ] {
        fs::write(&file, text).unwrap();
        let said = with_rules(named, "veth-route", &["--loads", "tcp_rr"]);
        said.exits(2).says(&[why, named]);
    }
    fs::write(&file, [0x7f, 0x45, 0xff]).unwrap();
    with_rules(named, "bridge", &[])
        .exits(2)
        .says(&["it is no text"]);
}

/// Some paths have a device that others do not have.
#[test]
fn rules_may_name_a_device_by_its_index() {
    let _beside = beside();
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("fw.nft");
    let text = "table inet t {\nchain f {\ntype filter hook forward priority 0\niif \"up0\" accept\n}\n}\n";
    fs::write(&file, text).unwrap();
    let named = file.to_str().unwrap();
    let of = |peer: &str| with_rules(named, "veth-route", &["--loads", "udp_rr", "--peer", peer]);
    of("far").exits(0);
    of("local").exits(2).says(&["Interface does not exist"]);
}

/// Where reports say that rules would see what those of the hub do not.
#[test]
fn rules_see_the_traffic_where_reports_say_they_do() {
    let _beside = beside();
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("fw.nft");
    let text = "table netdev wire {
    chain out { type filter hook egress device \"up0\" priority 0; ip protocol icmp accept; }
}
table bridge frames {
    chain forward { type filter hook forward priority 0; ether type arp accept; }
}
table ip host {
    chain output { type filter hook output priority 0; ip protocol icmp accept; }
}
";
    fs::write(&file, text.replace("; }", "\n}")).unwrap();
    let more = ["--loads", "udp_rr", "--peer", "far"];
    let said = with_rules(file.to_str().unwrap(), "macvlan,bridge,vxlan", &more);
    let seen = seen(said.exits(0));
    tell(&format!("{seen:?}"));
    let said_of = |path: &str| {
        let document = said.json();
        let mut cells = document["cells"].as_array().unwrap().iter();
        let cell = cells.find(|cell| cell["path"] == path).unwrap();
        cell["rules_instead"]
            .as_str()
            .unwrap_or_else(|| panic!("{cell}"))
            .to_owned()
    };
    for (path, chain, words) in [
        (
            "macvlan",
            "netdev out",
            "family netdev of nftables, at the uplink",
        ),
        ("bridge", "bridge forward", "family bridge of nftables"),
        ("vxlan", "ip output", "the host: the tunnel's UDP"),
    ] {
        assert_eq!(seen[path][chain], "traffic", "{path}");
        assert!(said_of(path).contains(words), "{path}: {}", said_of(path));
    }
    assert_eq!(seen["macvlan"]["ip output"], "nothing");
    assert_eq!(seen["macvlan"]["bridge forward"], "nothing");
}

/// A load that the rules drop is left out with the cause, and the others are measured; a base is named by its file.
#[test]
fn rules_that_drop_one_load_leave_the_others() {
    let _beside = beside();
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("fw.nft");
    let named = file.to_str().unwrap();
    let text = "table inet filter {\nchain forward {\ntype filter hook forward priority 0; policy drop;\nmeta l4proto tcp accept\n}\n}\n";
    fs::write(&file, text).unwrap();
    let both = format!("none,{named}");
    let base = format!("ruleset={named}");
    let said = with_rules(
        &both,
        "veth-route",
        &["--loads", "tcp_rr,udp_rr", "--base", &base],
    );
    let document = said.exits(0).json();
    let cell = |load: &str, has_rules: bool| {
        let mut cells = document["cells"].as_array().unwrap().iter();
        let own = |cell: &&Value| {
            cell["load"] == load && (cell["axes"]["ruleset"] != "none") == has_rules
        };
        cells.find(own).unwrap_or_else(|| panic!("{said}"))
    };
    for (load, has_rules, status) in [
        ("tcp_rr", true, "ok"),
        ("tcp_rr", false, "ok"),
        ("udp_rr", true, "unsupported"),
        ("udp_rr", false, "ok"),
    ] {
        assert_eq!(
            cell(load, has_rules)["status"],
            status,
            "{load} {has_rules}: {said}"
        );
    }
    let cause = cell("udp_rr", true)["cause"].as_str().unwrap();
    assert!(
        cause.starts_with("udp_rr over `veth-route` failed when it was tried"),
        "{cause}"
    );
    let digest = document["run"]["base"]
        .as_str()
        .unwrap()
        .strip_prefix(&format!("{base}#"));
    assert_eq!(digest.map(str::len), Some(12), "{said}");
}

/// Rules of IPv4 stay so where the traffic is of IPv6.
#[test]
fn rules_of_iptables_are_of_their_own_family() {
    let _beside = beside();
    let home = tempfile::tempdir().unwrap();
    let saved = home.path().join("rules");
    let drop_all = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -p tcp -j ACCEPT\nCOMMIT\n";
    for (text, chain, sees) in [
        (drop_all.to_owned(), "ip FORWARD", "nothing"),
        (
            format!("# Generated by ip6tables-save v1.8.9\n{drop_all}"),
            "ip6 FORWARD",
            "traffic",
        ),
    ] {
        fs::write(&saved, text).unwrap();
        let more = ["--loads", "tcp_rr", "--set", "family=6"];
        let said = with_rules(saved.to_str().unwrap(), "veth-route", &more);
        assert_eq!(
            seen(said.exits(0))["veth-route"],
            [(chain.to_owned(), sees.to_owned())].into()
        );
    }
}
