use std::fs;
use std::path::Path;

use super::*;

fn call<'a>(home: &Path, container: &'a str, ipam: Value) -> HostLocal<'a> {
    let mut ipam = ipam;
    ipam["type"] = "host-local".into();
    ipam["dataDir"] = home.to_str().into();
    HostLocal {
        network: "front-of-the-unit-tests",
        container,
        ifname: "eth0",
        args: "",
        conf: json!({ "ipam": ipam }),
    }
}

fn addresses(home: &Path) -> Vec<String> {
    let entries = fs::read_dir(home.join("front-of-the-unit-tests"));
    let names = entries
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names
        .filter(|name| name.contains(['.', ':']) && !name.starts_with("last_reserved_ip."))
        .collect();
    names.sort();
    names
}

fn dual() -> Value {
    json!({
        "ranges": [
            [{ "subnet": "10.1.0.0/29" }],
            [{ "subnet": "fd00::/64", "rangeEnd": "fd00::3" }],
        ],
    })
}

#[test]
fn each_range_set_gives_an_address_or_none_does() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let result = call(home, "c1", dual()).add().unwrap();
    let ips = json!([
        { "address": "10.1.0.2/29", "gateway": "10.1.0.1" },
        { "address": "fd00::2/64", "gateway": "fd00::1" },
    ]);
    assert_eq!(result, json!({ "ips": ips, "routes": [], "dns": null }));
    call(home, "c2", dual()).add().unwrap();
    let all = ["10.1.0.2", "10.1.0.3", "fd00::2", "fd00::3"];
    assert_eq!(addresses(home), all);
    // There are more of IPv4 alone.
    let error = call(home, "c3", dual()).add().unwrap_err();
    assert_eq!(error.code, code::IPAM);
    assert!(error.msg.contains("fd00::1 to fd00::3"), "{error}");
    assert_eq!(addresses(home), all);
    let mut asks = call(home, "c3", dual());
    asks.args = "IP=10.1.0.3";
    let error = asks.add().unwrap_err();
    assert!(error.msg.contains("container `c2`, `eth0`"), "{error}");
    call(home, "c1", dual()).del(None).unwrap();
    call(home, "c1", dual()).del(None).unwrap();
    // After the last one, though others are free.
    let result = call(home, "c3", dual()).add().unwrap();
    assert_eq!(result["ips"][0]["address"], "10.1.0.5/29");
    assert_eq!(result["ips"][1]["address"], "fd00::2/64");
}

#[test]
fn check_finds_what_is_reserved_no_longer() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let mut call = call(home, "c1", dual());
    let found = |call: &HostLocal<'_>, word: &str| {
        let error = call.check().unwrap_err();
        assert_eq!(error.code, code::CHANGED);
        assert!(error.msg.contains(word), "{error}");
    };
    found(&call, "no address");
    let result = call.add().unwrap();
    call.conf["prevResult"] = result;
    call.check().unwrap();
    // The ranges are others now.
    let ranges = call.conf["ipam"]["ranges"].clone();
    call.conf["ipam"]["ranges"] = json!([[{ "subnet": "10.7.0.0/16" }]]);
    call.check().unwrap();
    call.conf["ipam"]["ranges"] = ranges;
    fs::remove_file(home.join("front-of-the-unit-tests/fd00::2")).unwrap();
    found(&call, "fd00::2");
}

#[test]
fn gc_frees_what_is_of_no_valid_attachment() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let ipam = || json!({ "subnet": "10.1.0.0/24" });
    let collect = |valid: &BTreeSet<(String, String)>, began| {
        call(home, "", ipam()).collect(valid, began).unwrap();
    };
    collect(&BTreeSet::new(), SystemTime::now());
    for id in ["c1", "c2"] {
        call(home, id, ipam()).add().unwrap();
    }
    let write = |name: &str, text: &str| {
        fs::write(home.join("front-of-the-unit-tests").join(name), text).unwrap();
    };
    write("10.1.0.50", "c9");
    write("10.1.0.51", "");
    write("10.1.0.52", "c2\r\neth1");
    write("10.1.0.53", "the printer\r\nsecond floor");
    write("read.me", "c2\r\neth1");
    let pair = |id: &str| (id.to_owned(), "eth0".to_owned());
    let valid = BTreeSet::from([pair("c2"), pair("c3")]);
    // What was reserved since then may be of an ADD that the runtime did not know of when it listed what is valid.
    collect(&valid, SystemTime::now() - Duration::from_secs(1));
    assert_eq!(addresses(home).len(), 7);
    collect(&valid, SystemTime::now() + Duration::from_secs(1));
    let left = ["10.1.0.3", "10.1.0.50", "10.1.0.51", "10.1.0.53", "read.me"];
    assert_eq!(addresses(home), left);
}

#[test]
fn del_asks_nothing_of_the_ranges() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    call(home, "c1", json!({ "subnet": "10.1.0.0/24" }))
        .add()
        .unwrap();
    let wrong = call(home, "c1", json!({ "subnet": "10.1.0.0" }));
    assert!(wrong.ready().is_err());
    wrong.del(None).unwrap();
    assert!(addresses(home).is_empty());
}
