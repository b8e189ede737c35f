use hopyard_switch::Loss;

use super::*;

const WHOLE: &str = r#"
uplink = "eth0"
host_mac = "00:00:5e:00:01:07"
answer = true

[defaults]
broadcasts = 50
mtu = 1400

[[ports]]
device = "veth-web"
ip = ["192.0.2.3", "2001:db8::3"]
vlan = 7
isolated = true

[[ports]]
netns = "db"
device = "eth0"
mac = "02:00:00:00:00:04"
broadcasts = "unlimited"
optional = true

[shortcut]
cgroup = "/sys/fs/cgroup/machine.slice"
accept = ["splice", "waitall"]
"#;

fn wrong(line: &str, instead: &str) -> String {
    assert!(WHOLE.contains(line), "{line}");
    parse("guests.toml", "guests", &WHOLE.replace(line, instead)).unwrap_err()
}

#[test]
fn a_file_says_what_a_switch_is_to_be() {
    let Described { spec, .. } = parse("guests.toml", "guests", WHOLE).unwrap();
    assert_eq!(spec.name, "guests");
    assert_eq!(spec.uplink.as_deref(), Some("eth0"));
    assert_eq!(spec.host_macs.len(), 1);
    assert!(spec.answers && !spec.behind_others);
    let [web, db] = &spec.ports[..] else {
        panic!("{spec:?}");
    };
    assert_eq!(
        (web.device.as_str(), web.vlan, web.isolated),
        ("veth-web", Some(7), true)
    );
    assert_eq!(
        (web.ips.len(), web.mtu, web.broadcasts.per_second()),
        (2, Some(1400), Some(50))
    );
    let guest = db.guest.as_ref().unwrap();
    assert_eq!(
        (guest.netns.to_str(), guest.device.as_str()),
        (Some("/run/netns/db"), "eth0")
    );
    assert_eq!(
        (db.macs.len(), db.broadcasts.per_second(), db.optional),
        (1, None, true)
    );
    let shortcut = spec.shortcut.unwrap();
    assert_eq!(
        shortcut.cgroup.to_str(),
        Some("/sys/fs/cgroup/machine.slice")
    );
    assert_eq!(shortcut.accept, [Loss::Splice, Loss::WaitAll]);
    let other = parse("x.toml", "x", "name = \"y\"").unwrap();
    assert_eq!(other.spec.name, "y");
}

#[test]
fn an_unknown_key_names_file_line_and_key() {
    let said = wrong("answer = true", "answers = true");
    assert_eq!(
        said,
        "guests.toml:4: answers: unknown key; known are name, uplink, host_mac, answer, behind_others, shortcut, defaults, ports"
    );
    let said = wrong("vlan = 7", "vlann = 7");
    assert!(
        said.starts_with("guests.toml:13: vlann: unknown key; known are device, netns, "),
        "{said}"
    );
    let said = wrong("mtu = 1400", "device = \"p0\"");
    assert!(
        said.starts_with("guests.toml:8: device: unknown key; known are mtu, ip_prefix, "),
        "{said}"
    );
}

#[test]
fn a_wrong_value_names_file_line_and_key() {
    for (line, instead, says) in [
        (
            "answer = true",
            "answer = 1",
            "guests.toml:4: answer: takes true or false",
        ),
        (
            "mtu = 1400",
            "mtu = 20",
            "guests.toml:8: mtu: takes a number, 68 to 65535",
        ),
        (
            "mtu = 1400",
            "ip = \"192.0.2.1\"",
            "guests.toml:8: ip: each port has its own",
        ),
        (
            "vlan = 7",
            "vlan = 4095",
            "guests.toml:13: vlan: takes a number, 0 to 4094",
        ),
        (
            "vlan = 7",
            "vlan = \"7\"",
            "guests.toml:13: vlan: takes a number, 0 to 4094",
        ),
        (
            "isolated = true",
            "isolated = 1.5",
            "guests.toml:14: isolated: takes a text, a number, true, false, or a list of texts",
        ),
        (
            "device = \"veth-web\"",
            "",
            "guests.toml:10: device: every port takes one",
        ),
        (
            "\"02:00:00:00:00:04\"",
            "\"02:00\"",
            "guests.toml:19: mac: `02:00` is no Ethernet address",
        ),
        (
            "\"192.0.2.3\", ",
            "\"192.0.2\", ",
            "guests.toml:12: ip: `192.0.2`: invalid IP address syntax",
        ),
        (
            "/sys/fs",
            "sys/fs",
            "guests.toml:24: cgroup: takes a path from the root",
        ),
        (
            "cgroup = ",
            "group = ",
            "guests.toml:24: group: unknown key; known are cgroup, accept",
        ),
        (
            "\"splice\", ",
            "\"speed\", ",
            "guests.toml:25: accept: `speed` is none of blocking, waitall, ",
        ),
        (
            "[\"splice\", \"waitall\"]",
            "true",
            "guests.toml:25: accept: takes a list of texts in quotes",
        ),
        (
            "[shortcut]\ncgroup = \"/sys/fs/cgroup/machine.slice\"",
            "[shortcut]",
            "guests.toml:23: shortcut: it takes a cgroup",
        ),
        (
            "broadcasts = 50",
            "broadcasts = -1",
            "guests.toml:7: broadcasts: `-1` is no limit of broadcasts",
        ),
    ] {
        let said = wrong(line, instead);
        assert!(said.starts_with(says), "{said}");
    }
    let said = wrong("answer = true", "answer = ");
    assert!(
        said.starts_with("guests.toml: TOML parse error at line 4"),
        "{said}"
    );
}
