//! Addresses of `host-local` in the plugin's own process, beside the reference program on the same store.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use serde_json::{Value, json};

use crate::garbage::{attachments, how_many, killed, set_ahead};
use crate::host::{Container, Host, RECORDS, Running, Said, files, on_host, with};
use crate::skip::skip;

pub(crate) const REFERENCE: &str = "/usr/lib/cni/host-local";
/// The store of the network `front`.
pub(crate) const STORE: &str = "/var/lib/cni/networks/front";

pub(crate) fn conf(ipam: Value) -> Value {
    let mut ipam = ipam;
    ipam["type"] = "host-local".into();
    json!({
        "cniVersion": "1.0.0",
        "name": "front",
        "type": "hopyard",
        "master": "up0",
        "ipam": ipam,
    })
}

pub(crate) fn in_process(conf: &Value) -> Value {
    with(conf, json!({ "ipamInProcess": true }))
}

pub(crate) fn by_program(conf: &Value) -> Value {
    with(conf, json!({ "ipamInProcess": false }))
}

/// Addresses of `up0`'s network.
pub(crate) fn simple() -> Value {
    conf(json!({ "subnet": "10.1.0.0/16", "rangeStart": "10.1.3.1" }))
}

pub(crate) fn with_reference(f: impl FnOnce(&Host) + Send) {
    if Path::new(REFERENCE).exists() {
        on_host(f);
    } else {
        let reason = format!("{REFERENCE} is not there (containernetworking-plugins)");
        skip("host-local", false, &reason);
    }
}

/// The addresses that are reserved.
pub(crate) fn reserved() -> BTreeSet<String> {
    let of_store = |name: &String| name != "lock" && !name.starts_with("last_reserved_ip.");
    files(STORE).into_iter().filter(of_store).collect()
}

pub(crate) fn address(result: &Value) -> String {
    let text = result["ips"][0]["address"].as_str().unwrap();
    text.split('/').next().unwrap().to_owned()
}

/// What a result says of addresses; null where there is none.
fn given(said: &Said) -> Value {
    if !said.ok {
        return Value::Null;
    }
    let keys = ["ips", "routes", "dns"].map(|key| said.json[key].clone());
    json!(keys)
}

fn given_in(history: &[Value]) -> usize {
    history.iter().filter(|given| !given.is_null()).count()
}

/// What the store holds, by file.
fn contents(store: &str) -> BTreeMap<String, String> {
    let names = files(store).into_iter();
    names
        .map(|name| {
            let text = fs::read_to_string(format!("{store}/{name}")).unwrap();
            (name, text)
        })
        .collect()
}

/// What containers get that come and go, and what the store holds in between.
fn history(host: &Host, conf: &Value, args: &str) -> (Vec<Value>, BTreeMap<String, String>) {
    let containers: Vec<Container> = (0..6).map(|n| host.container(&format!("c{n}"))).collect();
    let add = |n: usize| given(&host.call_with("ADD", conf, &containers[n], args));
    let mut all = vec![add(0), add(1), add(2)];
    host.call("DEL", conf, &containers[1]).works();
    all.extend([add(3), add(4)]);
    host.call("DEL", conf, &containers[0]).works();
    all.extend([add(5), add(0)]);
    let home = conf["ipam"]["dataDir"].as_str().unwrap();
    let mut held = contents(&format!("{home}/front"));
    // Where all are refused, the reference program has begun nevertheless.
    if all.iter().all(Value::is_null) {
        held.clear();
    }
    for container in &containers {
        host.call("DEL", conf, container).works();
    }
    host.is_clean();
    (all, held)
}

#[test]
fn it_gives_what_the_reference_program_gives() {
    let routes = json!([
        { "dst": "0.0.0.0/0" },
        { "dst": "10.9.0.0/16", "gw": "10.1.0.9" },
    ]);
    let range = |start: &str, end: &str| json!({ "subnet": "10.1.0.0/16", "rangeStart": start, "rangeEnd": end });
    let six = json!({ "subnet": "fd01::/64", "rangeStart": "fd01::30", "rangeEnd": "fd01::32" });
    let long = range("10.1.3.1", "10.1.3.200");
    let keys = |range: &Value, keys: Value| with(range, keys);
    // With the number of ADDs of seven that get addresses.
    let confs = [
        ("routes", keys(&long, json!({ "routes": routes })), "", 7),
        ("too few", range("10.1.3.1", "10.1.3.3"), "", 5),
        (
            "a gateway within",
            keys(
                &range("10.1.3.1", "10.1.3.4"),
                json!({ "gateway": "10.1.3.2" }),
            ),
            "",
            5,
        ),
        ("one address", json!({ "subnet": "10.1.3.0/30" }), "", 2),
        (
            "two ranges",
            json!({ "ranges": [[
                range("10.1.3.1", "10.1.3.2"),
                { "subnet": "10.2.0.0/24", "rangeStart": "10.2.0.1", "rangeEnd": "10.2.0.4" },
            ]] }),
            "",
            7,
        ),
        (
            "dual stack",
            json!({ "ranges": [[range("10.1.3.1", "10.1.3.200")], [six]] }),
            "",
            5,
        ),
        (
            "both ways to write ranges",
            keys(&long, json!({ "ranges": [[six]] })),
            "",
            5,
        ),
        (
            "dns",
            keys(&long, json!({ "resolvConf": "/run/resolv" })),
            "",
            7,
        ),
        ("asked", long.clone(), "IP=10.1.3.77", 2),
        ("asked with its prefix", long.clone(), "IP=10.1.3.78/16", 2),
        ("asked elsewhere", long.clone(), "IP=10.1.2.1", 0),
        (
            "the gateway is asked",
            range("10.1.0.1", "10.1.0.9"),
            "IP=10.1.0.1",
            0,
        ),
    ];
    with_reference(|host| {
        let text = "nameserver 10.1.0.1\nnameserver fd01::1\nsearch a.example b.example\n\
                    options ndots:2\ndomain a.example\n";
        fs::write("/run/resolv", text).unwrap();
        for (n, (what, ipam, args, adds)) in confs.into_iter().enumerate() {
            let of = |home: &str| {
                let home = format!("/run/{home}-{n}");
                conf(with(&ipam, json!({ "dataDir": home })))
            };
            let theirs = history(host, &by_program(&of("theirs")), args);
            let ours = history(host, &in_process(&of("ours")), args);
            assert_eq!(ours, theirs, "{what}");
            assert_eq!(given_in(&ours.0), adds, "{what}");
        }
        // What the runtime asks for.
        for (n, (asked, adds)) in [
            (json!({ "runtimeConfig": { "ips": ["10.1.3.9/16"] } }), 2),
            (json!({ "args": { "cni": { "ips": ["10.1.3.9"] } } }), 2),
            (
                json!({ "runtimeConfig": { "ipRanges": [[range("10.1.4.1", "10.1.4.9")]] } }),
                7,
            ),
        ]
        .into_iter()
        .enumerate()
        {
            let of = |home: &str| {
                let home = format!("/run/{home}-asked-{n}");
                let conf = conf(with(&long, json!({ "dataDir": home })));
                with(&conf, asked.clone())
            };
            let theirs = history(host, &by_program(&of("theirs")), "");
            let ours = history(host, &in_process(&of("ours")), "");
            assert_eq!(ours, theirs, "{asked}");
            assert_eq!(given_in(&ours.0), adds, "{asked}");
        }
    });
}

#[test]
fn one_store_is_used_in_turns() {
    with_reference(|host| {
        let theirs = by_program(&simple());
        let ours = in_process(&theirs);
        let containers: Vec<Container> = (0..4).map(|n| host.container(&format!("c{n}"))).collect();
        for (n, container) in containers.iter().enumerate() {
            let conf = if n % 2 == 0 { &ours } else { &theirs };
            let result = host.call("ADD", conf, container).works();
            assert_eq!(address(&result), format!("10.1.3.{}", n + 1));
            let previous = json!({ "prevResult": result });
            for conf in [&ours, &theirs] {
                host.call("CHECK", &with(conf, previous.clone()), container)
                    .works();
            }
        }
        assert!(containers[0].reaches(&containers[1].inside, "10.1.3.2"));
        assert!(containers[2].reaches(&host.wire, "10.1.0.1"));
        // The other way round.
        for (n, container) in containers.iter().enumerate() {
            let conf = if n % 2 == 0 { &theirs } else { &ours };
            host.call("DEL", conf, container).works();
            assert_eq!(reserved().len(), 3 - n);
        }
        host.is_clean();
        let result = host.call("ADD", &ours, &containers[0]).works();
        assert_eq!(address(&result), "10.1.3.5");
        host.del_without_namespace(&ours, "c0").works();
        assert_eq!(reserved(), BTreeSet::new());
        host.is_clean();
    });
}

#[test]
fn a_hundred_at_once_get_addresses_of_their_own() {
    on_host(|host| {
        let conf = in_process(&simple());
        let containers: Vec<Container> =
            (0..100).map(|n| host.container(&format!("c{n}"))).collect();
        let all = |verb: &str| -> Vec<Value> {
            let calls = containers.iter().map(|c| host.start(verb, &conf, c, ""));
            let calls: Vec<Running> = calls.collect();
            calls.into_iter().map(|call| call.said().works()).collect()
        };
        let given: BTreeSet<String> = all("ADD").iter().map(address).collect();
        assert_eq!(given.len(), 100);
        assert_eq!(reserved(), given);
        all("DEL");
        assert_eq!(reserved(), BTreeSet::new());
        host.is_clean();
    });
}

#[test]
fn it_and_the_reference_program_never_give_the_same_address() {
    with_reference(|host| {
        let confs = [in_process(&simple()), by_program(&simple())];
        let containers: Vec<Container> =
            (0..40).map(|n| host.container(&format!("c{n}"))).collect();
        for _ in 0..2 {
            let calls = containers.iter().zip(confs.iter().cycle());
            let calls = calls.map(|(container, conf)| host.start("ADD", conf, container, ""));
            let calls: Vec<Running> = calls.collect();
            let results = calls.into_iter().map(|call| call.said().works());
            let given: BTreeSet<String> = results.map(|result| address(&result)).collect();
            assert_eq!(given.len(), 40);
            assert_eq!(reserved(), given);
            let calls = containers.iter().zip(confs.iter().rev().cycle());
            let calls = calls.map(|(container, conf)| host.start("DEL", conf, container, ""));
            let calls: Vec<Running> = calls.collect();
            for call in calls {
                call.said().works();
            }
            assert_eq!(reserved(), BTreeSet::new());
        }
        host.is_clean();
    });
}

#[test]
fn killed_adds_leave_no_reservation_after_gc() {
    on_host(|host| {
        let conf = with(&in_process(&simple()), json!({ "cniVersion": "1.1.0" }));
        let mut containers = Vec::new();
        let done = killed(host, how_many(), &mut containers, |_| conf.clone());
        let leaked = reserved().len();
        assert!(leaked > 2, "nothing was reserved ({done} were done)");
        thread::sleep(Duration::from_millis(50));
        let stay = json!({ "cni.dev/valid-attachments": attachments(&["first", "second"]) });
        host.call_network("GC", &with(&conf, stay)).works();
        assert_eq!(reserved().len(), 2);
        assert_eq!(host.devices().len(), 2);
        // Without a record, as of another plugin. What names no device is not GC's.
        fs::write(format!("{STORE}/10.1.9.1"), "gone\r\neth0").unwrap();
        fs::write(format!("{STORE}/10.1.9.2"), "kept by hand").unwrap();
        fs::write(format!("{STORE}/10.1.9.3"), "gone\r\neth0").unwrap();
        set_ahead(&format!("{STORE}/10.1.9.3"));
        thread::sleep(Duration::from_millis(20));
        host.call_network("GC", &conf).works();
        assert_eq!(reserved(), BTreeSet::from(["10.1.9.2".to_owned()]));
        let left = ["10.1.9.2", "last_reserved_ip.0", "lock"].map(str::to_owned);
        assert_eq!(files(STORE), BTreeSet::from(left));
        host.is_clean();
    });
}

#[test]
fn an_add_that_fails_afterwards_gives_its_addresses_back() {
    on_host(|host| {
        let container = host.container("c1");
        let routes = json!([{ "dst": "10.9.0.0/16", "gw": "172.16.0.1" }]);
        let mut conf = in_process(&simple());
        conf["ipam"]["routes"] = routes;
        host.call("ADD", &conf, &container)
            .fails(100, &["10.9.0.0/16 via 172.16.0.1"]);
        assert_eq!(reserved(), BTreeSet::new());
        host.is_clean();
    });
}

/// Has the record name no addresses, as one of an ADD that was killed.
pub(crate) fn forget_addresses(record: &str) {
    let text = fs::read_to_string(record).unwrap();
    let mut entry: Value = serde_json::from_str(&text).unwrap();
    let known = entry.as_object_mut().unwrap().remove("reserved");
    assert_eq!(known.unwrap().as_array().unwrap().len(), 1);
    fs::write(record, entry.to_string()).unwrap();
}

#[test]
fn del_frees_what_the_record_does_not_name() {
    on_host(|host| {
        let conf = in_process(&simple());
        let record = format!("{RECORDS}/front/c1:eth0");
        let container = host.container("c1");
        let add = || {
            let result = host.call("ADD", &conf, &container).works();
            format!("{STORE}/{}", address(&result))
        };
        // As an earlier version of the plugin wrote it, or an ADD that was killed.
        add();
        forget_addresses(&record);
        host.call("DEL", &conf, &container).works();
        assert_eq!(reserved(), BTreeSet::new());
        // As an old version of the reference program wrote it.
        let file = add();
        forget_addresses(&record);
        fs::write(file, "c1").unwrap();
        host.call("DEL", &conf, &container).works();
        assert_eq!(reserved(), BTreeSet::new());
        // Without a record.
        add();
        fs::remove_file(&record).unwrap();
        host.call("DEL", &conf, &container).works();
        assert_eq!(reserved(), BTreeSet::new());
        // Somebody else's by now.
        let file = add();
        fs::write(file, "c2\r\neth0").unwrap();
        host.call("DEL", &conf, &container).works();
        host.call("DEL", &conf, &container).works();
        assert_eq!(reserved().len(), 1);
        host.is_clean();
    });
}

/// A runtime that lost what it knew gives no ranges at DEL. Without one the reference program frees nothing.
#[test]
fn del_frees_by_the_ranges_that_add_had() {
    with_reference(|host| {
        let ranges =
            json!({ "ipRanges": [[{ "subnet": "10.1.0.0/16", "rangeStart": "10.1.4.1" }]] });
        let bare = with(
            &conf(json!({})),
            json!({ "capabilities": { "ipRanges": true } }),
        );
        let with_ranges = with(&bare, json!({ "runtimeConfig": ranges }));
        for conf in [by_program(&bare), in_process(&bare)] {
            let own = conf["ipamInProcess"].clone();
            let container = host.container("c1");
            let add = with(&with_ranges, json!({ "ipamInProcess": own }));
            host.call("ADD", &add, &container).works();
            assert_eq!(reserved().len(), 1);
            host.call("DEL", &conf, &container).works();
            assert_eq!(reserved(), BTreeSet::new());
            host.is_clean();
        }
        // Without a record the plugin looks through all reservations, whatever ranges there are by now.
        let (conf, container) = (in_process(&bare), host.container("c1"));
        let add = with(&with_ranges, json!({ "ipamInProcess": true }));
        host.call("ADD", &add, &container).works();
        fs::remove_file(format!("{RECORDS}/front/c1:eth0")).unwrap();
        host.call("DEL", &conf, &container).works();
        assert_eq!(reserved(), BTreeSet::new());
        host.is_clean();
    });
}

#[test]
fn what_it_does_not_take_is_named() {
    on_host(|host| {
        let container = host.container("c1");
        let mut confs = Vec::new();
        let mut refuses = |conf: Value, code: u64, words: &[&str]| {
            host.call("ADD", &conf, &container).fails(code, words);
            confs.push(conf);
        };
        let other = json!({ "ipam": { "type": "static" } });
        refuses(
            with(&in_process(&simple()), other),
            7,
            &["`ipamInProcess`", "`host-local`", "static"],
        );
        let none = json!({ "ipam": {}, "ipamInProcess": true });
        refuses(with(&simple(), none), 7, &["`ipamInProcess`"]);
        let text = json!({ "ipamInProcess": "yes" });
        refuses(with(&simple(), text), 7, &["`ipamInProcess`"]);
        for (ipam, code, word) in [
            (
                json!({ "subnet": "10.1.0.0/16", "exclude": [] }),
                2,
                "`ipam.exclude`",
            ),
            (json!({ "subnet": "10.1.0.0" }), 7, "`ipam.subnet`"),
            (
                json!({ "ranges": [[{ "subnet": "10.1.0.0/31" }]] }),
                7,
                "`ipam.ranges[0][0].subnet`",
            ),
        ] {
            refuses(in_process(&conf(ipam)), code, &[word]);
        }
        let said = host.call_with("ADD", &in_process(&simple()), &container, "IP=10.1.2.1");
        said.fails(7, &["IP in CNI_ARGS", "10.1.2.1"]);
        assert!(container.inside.link("eth0").is_err());
        assert!(!Path::new(STORE).exists());
        host.is_clean();
        for conf in &confs {
            host.call("DEL", conf, &container).works();
            let status = with(conf, json!({ "cniVersion": "1.1.0" }));
            assert!(!host.call_network("STATUS", &status).ok);
        }
        host.is_clean();
    });
}

#[test]
fn it_needs_no_program_and_status_no_lock() {
    on_host(|host| {
        let conf = with(&in_process(&simple()), json!({ "cniVersion": "1.1.0" }));
        let container = host.container("c1");
        let netns = container.inside.ns().proc_path();
        let call = |verb: &str| {
            let env = [
                ("CNI_CONTAINERID", "c1"),
                ("CNI_NETNS", netns.to_str().unwrap()),
                ("CNI_IFNAME", "eth0"),
                ("CNI_PATH", "/run/absent"),
            ];
            Running::start(host.command(verb, &env), &conf).said()
        };
        call("ADD").works();
        let lock = fs::File::open(format!("{STORE}/lock")).unwrap();
        let lock = Flock::lock(lock, FlockArg::LockExclusive).unwrap();
        call("STATUS").works();
        drop(lock);
        call("DEL").works();
        assert_eq!(reserved(), BTreeSet::new());
        host.is_clean();
        // What this process has reserved it frees, also where the key is gone or came to another IPAM plugin.
        let without = by_program(&conf);
        let other = with(&conf, json!({ "ipam": { "type": "static" } }));
        for (now, is_named) in [(&without, true), (&other, true), (&without, false)] {
            call("ADD").works();
            if !is_named {
                forget_addresses(&format!("{RECORDS}/front/c1:eth0"));
            }
            let env = [
                ("CNI_CONTAINERID", "c1"),
                ("CNI_NETNS", netns.to_str().unwrap()),
                ("CNI_IFNAME", "eth0"),
                ("CNI_PATH", "/run/absent"),
            ];
            Running::start(host.command("DEL", &env), now)
                .said()
                .works();
            assert_eq!(reserved(), BTreeSet::new());
            host.is_clean();
        }
    });
}
