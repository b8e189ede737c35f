use serde_json::json;

use super::*;

fn of(ipam: &Value) -> Result<Config> {
    Config::of(&json!({ "ipam": ipam }), "")
}

fn whole() -> Value {
    json!({
        "ipam": {
            "type": "host-local",
            "subnet": "10.1.0.0/16",
            "ranges": [[{ "subnet": "10.3.0.0/16" }], [{ "subnet": "fd00::/64" }]],
            "routes": [{ "dst": "0.0.0.0/0" }, { "dst": "10.9.0.0/16", "gw": "10.1.0.9", "mtu": 1400, "table": null }],
        },
        "runtimeConfig": { "ipRanges": [[{ "subnet": "10.2.0.0/16" }]], "ips": [] },
    })
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn range_sets_come_from_three_places_in_order() {
    let config = Config::of(&whole(), "").unwrap();
    let sets: Vec<String> = config.sets.iter().map(RangeSet::to_string).collect();
    assert_eq!(
        sets,
        [
            "10.2.0.1 to 10.2.255.254",
            "10.1.0.1 to 10.1.255.254",
            "10.3.0.1 to 10.3.255.254",
            "fd00::1 to fd00::ffff:ffff:ffff:ffff",
        ]
    );
    assert_eq!(config.asked, [None::<IpAddr>; 4]);
    let second = json!({ "dst": "10.9.0.0/16", "gw": "10.1.0.9", "mtu": 1400 });
    assert_eq!(config.routes, [json!({ "dst": "0.0.0.0/0" }), second]);
    assert_eq!(config.dns().unwrap(), Value::Null);
}

#[test]
fn what_is_asked_for_is_found_in_its_range() {
    let mut conf = whole();
    conf["args"] = json!({ "cni": { "ips": ["fd00::9", "10.3.0.5/16"] } });
    conf["runtimeConfig"]["ips"] = json!(["10.3.0.5"]);
    let config = Config::of(&conf, "IgnoreUnknown=1;IP=10.1.0.7;GATEWAY=x").unwrap();
    let asked = ["10.1.0.7", "10.3.0.5", "fd00::9"].map(|text| Some(ip(text)));
    assert_eq!(config.asked, [None, asked[0], asked[1], asked[2]]);
    for (args, code, words) in [
        (
            "IP=10.9.0.1",
            code::BAD_CONFIG,
            ["`IP in CNI_ARGS`", "is in no range"],
        ),
        ("IP=10.1.0.1", code::BAD_CONFIG, ["10.1.0.1", "gateway"]),
        (
            "IP=10.3.0.6",
            code::BAD_CONFIG,
            ["10.3.0.5", "gives 10.3.0.6"],
        ),
        ("IP=x", code::BAD_CONFIG, ["`IP in CNI_ARGS`", "IP address"]),
        (
            "GATEWAY=10.1.0.1",
            code::BAD_ENVIRONMENT,
            ["GATEWAY", "IgnoreUnknown"],
        ),
    ] {
        let error = Config::of(&conf, args).unwrap_err();
        assert_eq!(error.code, code, "{error}");
        for word in words {
            assert!(error.msg.contains(word), "{error}");
        }
    }
}

#[test]
fn a_wrong_key_is_named() {
    let subnet = "10.1.0.0/16";
    for (ipam, code, word) in [
        (json!({}), 7, "`ipam`"),
        (json!({ "ranges": [] }), 7, "`ipam`"),
        (json!({ "ranges": [[]] }), 7, "`ipam.ranges[0]`"),
        (json!({ "ranges": subnet }), 7, "`ipam.ranges`"),
        (json!({ "rangeStart": "10.1.0.5" }), 7, "`ipam.subnet`"),
        (
            json!({ "subnet": subnet, "ranges": [[{ "subnet": "10.1.2.0/24" }]] }),
            7,
            "overlap",
        ),
        (
            json!({ "subnet": subnet, "exclude": [] }),
            2,
            "`ipam.exclude`",
        ),
        (
            json!({ "subnet": subnet, "routes": {} }),
            7,
            "`ipam.routes`",
        ),
        (
            json!({ "subnet": subnet, "routes": [{ "gw": "10.1.0.1" }] }),
            7,
            "`ipam.routes[0].dst`",
        ),
        (
            json!({ "subnet": subnet, "routes": [{ "dst": "0.0.0.0/0", "gw": "x" }] }),
            7,
            "`ipam.routes[0].gw`",
        ),
        (
            json!({ "subnet": subnet, "routes": [{ "dst": "0.0.0.0/0", "mtu": "x" }] }),
            7,
            "`ipam.routes[0].mtu`",
        ),
        (
            json!({ "subnet": subnet, "routes": [{ "dst": "0.0.0.0/0", "via": "x" }] }),
            2,
            "`ipam.routes[0].via`",
        ),
        (
            json!({ "subnet": subnet, "resolvConf": 1 }),
            7,
            "`resolvConf`",
        ),
    ] {
        let error = of(&ipam).unwrap_err();
        assert_eq!(error.code, code, "{error}");
        assert!(error.msg.contains(word), "{error}");
    }
}

#[test]
fn the_store_is_below_its_home() {
    let of = |ipam: Value| directory(&json!({ "ipam": ipam }), "front").unwrap();
    assert_eq!(of(json!({})), Path::new("/var/lib/cni/networks/front"));
    let own = of(json!({ "dataDir": "/run/x" }));
    assert_eq!(own, Path::new("/run/x/front"));
}

#[test]
fn dns_is_read_as_resolv_conf_has_it() {
    let text = "# nameserver 10.0.0.9\n;search no\nnameserver 10.0.0.1 more\n  nameserver\tfd00::1\ndomain a.example\n\
                domain b.example\nsearch c.example d.example\nsearch e.example\noptions ndots:5 rotate\nnameserver\nsortlist x\n";
    let dns = json!({
        "nameservers": ["10.0.0.1", "fd00::1"],
        "domain": "b.example",
        "search": ["c.example", "d.example", "e.example"],
        "options": ["ndots:5", "rotate"],
    });
    assert_eq!(dns_of(text), dns);
    assert_eq!(dns_of(""), json!({}));
    let missing = of(&json!({ "subnet": "10.1.0.0/16", "resolvConf": "/absent" })).unwrap();
    let error = missing.dns().unwrap_err();
    assert!(error.msg.contains("`/absent`"), "{error}");
}

#[test]
fn what_the_reference_programs_read_differently_is_found() {
    let plain = json!({
        "ipam": { "subnet": "10.1.0.0/16", "routes": [{ "dst": "0.0.0.0/0", "gw": "" }] },
        "args": { "cni": { "ips": ["10.1.0.9"], "mac": "02:00:00:00:00:01" }, "labels": {} },
    });
    assert!(is_read_alike(&plain, "IP=10.1.0.9"));
    assert!(!is_read_alike(&plain, "IP=10.3.0.9"));
    for (pointer, value) in [
        ("/ipam/routes/0/mtu", json!(1400)),
        ("/ipam/routes/0/scope", json!(0)),
        ("/ipam/dataDir", json!(1)),
        ("/ipam/Subnet", json!("10.1.0.0/16")),
        ("/args/cni/IPs", json!([])),
        ("/args/CNI", json!({})),
    ] {
        let mut conf = plain.clone();
        let (object, key) = pointer.rsplit_once('/').unwrap();
        conf.pointer_mut(object).unwrap()[key] = value;
        assert!(!is_read_alike(&conf, ""), "{conf}");
    }
}

#[test]
fn what_was_written_otherwise_is_told_as_it_is_known() {
    let route = json!({ "dst": "10.9.0.0/16", "gw": "::ffff:10.1.0.9" });
    let config = of(&json!({ "subnet": "10.1.0.0/16", "routes": [route] })).unwrap();
    assert_eq!(
        config.routes,
        [json!({ "dst": "10.9.0.0/16", "gw": "10.1.0.9" })]
    );
    let config = Config::of(&whole(), "IP=10.1.0.7;IP=10.1.0.8").unwrap();
    assert_eq!(config.asked[1], Some(ip("10.1.0.8")));
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, b"# M\xfcnchen\nnameserver 10.1.0.1\n").unwrap();
    let config = of(&json!({ "subnet": "10.1.0.0/16", "resolvConf": file.path() })).unwrap();
    assert_eq!(
        config.dns().unwrap(),
        json!({ "nameservers": ["10.1.0.1"] })
    );
}
