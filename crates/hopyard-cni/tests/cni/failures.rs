//! Calls that fail, say why, and leave nothing.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use hopyard_net::{Handle, LinkKind, NetNs, NewLink};
use hopyard_switch::{NewSwitch, Switch};
use serde_json::{Value, json};

use crate::host::{Host, RESERVED, Running, conf_with, files, on_host, spawn, with};

/// How long the kernel may take to end a namespace.
const PATIENCE: Duration = Duration::from_secs(30);

fn base() -> Value {
    conf_with("1.0.0", "front", "10.1.0.5/16")
}

#[test]
fn refused_keys_and_capabilities_are_named() {
    on_host(|host| {
        let container = host.container("c1");
        let mut confs = Vec::new();
        let mut refuses = |keys: Value, code: u64, word: &str| {
            let conf = with(&base(), keys);
            host.call("ADD", &conf, &container).fails(code, &[word]);
            confs.push(conf);
        };
        let refused = [
            ("isGateway", json!(true)),
            ("isDefaultGateway", json!(true)),
            ("ipMasq", json!(true)),
            ("forceAddress", json!(true)),
            ("hairpinMode", json!(true)),
            ("promiscMode", json!(true)),
            ("bridge", json!("cni0")),
            ("vlanTrunk", json!([{ "id": 100 }])),
            ("preserveDefaultVlan", json!(true)),
            ("enabledad", json!(true)),
            ("disableContainerInterface", json!(true)),
            ("linkInContainer", json!(true)),
            ("mode", json!("passthru")),
            ("isolation", json!(true)),
        ];
        for (key, value) in refused {
            refuses(json!({ key: value }), 2, &format!("`{key}`"));
        }
        for key in ["portMappings", "aliases"] {
            for list in ["capabilities", "runtimeConfig"] {
                let keys = json!({ list: { key: [{ "hostPort": 80 }] } });
                refuses(keys, 2, &format!("capability `{key}`"));
            }
        }
        let wrong = [
            ("vlan", json!(4095)),
            ("mtu", json!(9000)),
            ("master", json!("absent0")),
            ("switch", json!("absent")),
            ("switch", json!("no.name")),
            ("ipam", json!({ "range": 1 })),
        ];
        for (key, value) in wrong {
            refuses(json!({ key: value }), 7, &format!("`{key}`"));
        }
        refuses(json!({ "ipam": { "type": "a/b" } }), 7, "`ipam.type`");
        refuses(json!({ "ipam": { "type": "absent" } }), 103, "`absent`");
        assert!(container.inside.link("eth0").is_err());
        assert!(!Path::new("/run/ipam.log").exists(), "IPAM was asked");
        host.is_clean();
        // As nothing was made, nothing keeps the runtime from deleting the container.
        for conf in &confs {
            host.call("DEL", conf, &container).works();
        }
        host.is_clean();
    });
}

/// Has the switch of `up0` be another version's: its settings are of a size that nobody here knows.
fn make_foreign(host: &Host) {
    let replace = || {
        let switch = Path::new("/sys/fs/bpf/hopyard/switch/cni-dev-up0");
        std::fs::remove_file(switch.join("config")).unwrap();
        std::fs::hard_link(switch.join("rates"), switch.join("config")).unwrap();
    };
    host.in_hub(replace).unwrap();
}

#[test]
fn a_container_is_deleted_from_a_switch_of_another_version() {
    on_host(|host| {
        let conf = conf_with("1.1.0", "front", "10.1.0.5/16");
        let container = host.container("c1");
        host.call("ADD", &conf, &container).works();
        make_foreign(host);
        let way_out =
            "delete it when nothing uses it any more: `hopyard switch delete cni-dev-up0`";
        host.call_network("STATUS", &conf).fails(50, &[way_out]);
        let said = host.call("ADD", &conf, &host.container("c2"));
        said.fails(100, &[way_out]);
        for _ in 0..2 {
            host.call("DEL", &conf, &container).works();
            assert!(container.inside.link("eth0").is_err());
            assert_eq!(host.devices(), Vec::<String>::new());
        }
        // The way out.
        host.in_hub(|| Switch::remove("cni-dev-up0").unwrap())
            .unwrap();
        host.is_clean();
    });
}

/// Another runtime has a namespace of its own with an `up0` in it, and shares the BPF file system.
#[test]
fn a_switch_of_another_namespace_keeps_no_container_from_going() {
    on_host(|host| {
        let name = "cni-dev-up0";
        let new = NewSwitch {
            name,
            ..NewSwitch::default()
        };
        let make_elsewhere = || {
            let make = || Switch::create(&new).map(drop).unwrap();
            host.in_other(&host.wire, make).unwrap();
        };
        let remove = || host.in_hub(|| Switch::remove(name).unwrap()).unwrap();
        let (conf, container) = (base(), host.container("c1"));
        // ADD is refused, and made nothing.
        make_elsewhere();
        let said = host.call("ADD", &conf, &container);
        said.fails(7, &["another network namespace"]);
        host.call("DEL", &conf, &container).works();
        assert_eq!(host.switches(), [name], "it is not the plugin's");
        remove();
        host.is_clean();
        // The switch of the container is gone, and that of the other namespace came to its name.
        host.call("ADD", &conf, &container).works();
        remove();
        make_elsewhere();
        host.call("DEL", &conf, &container).works();
        assert!(container.inside.link("eth0").is_err());
        assert_eq!(host.switches(), [name]);
        remove();
        host.is_clean();
        // DEL in the wrong namespace: the container is still there.
        host.call("ADD", &conf, &container).works();
        let env = [
            ("CNI_CONTAINERID", "c1"),
            ("CNI_NETNS", ""),
            ("CNI_IFNAME", "eth0"),
        ];
        let mut wrong = host.command("DEL", &env);
        host.wire.ns().adopt(&mut wrong).unwrap();
        let said = Running::start(wrong, &conf).said();
        said.fails(100, &["another network namespace"]);
        // Its address is nobody else's meanwhile.
        assert!(files(RESERVED).contains("c1:eth0"));
        let wrong_gc = |conf: &serde_json::Value| {
            let mut wrong = host.command("GC", &[]);
            host.wire.ns().adopt(&mut wrong).unwrap();
            Running::start(wrong, conf).said()
        };
        let none = json!({ "cniVersion": "1.1.0", "cni.dev/valid-attachments": [] });
        wrong_gc(&with(&conf, none)).fails(100, &["another network namespace"]);
        assert!(files(RESERVED).contains("c1:eth0"));
        host.call("DEL", &conf, &container).works();
        host.is_clean();
    });
}

/// `ip netns exec` hides the BPF file system, in which the switch is.
#[test]
fn a_switch_that_is_not_to_be_seen_is_not_taken_for_gone() {
    on_host(|host| {
        let (conf, container) = (base(), host.container("c1"));
        host.call("ADD", &conf, &container).works();
        let env = [
            ("CNI_CONTAINERID", "c1"),
            ("CNI_NETNS", ""),
            ("CNI_IFNAME", "eth0"),
        ];
        for _ in 0..2 {
            let mut elsewhere = host.hiding_command("DEL", &env);
            host.wire.ns().adopt(&mut elsewhere).unwrap();
            let said = Running::start(elsewhere, &conf).said();
            said.fails(100, &["no BPF file system", "`ip netns exec` hides it"]);
        }
        assert!(files(RESERVED).contains("c1:eth0"));
        assert!(container.reaches(&host.wire, "10.1.0.1"));
        // Where ADD ran, the port goes with its device.
        let at_home = host.hiding_command("DEL", &env);
        Running::start(at_home, &conf).said().works();
        assert!(container.inside.link("eth0").is_err());
        assert!(files(RESERVED).is_empty());
        let other = host.container("c2");
        host.call("ADD", &conf, &other).works();
        host.call("DEL", &conf, &other).works();
        host.is_clean();
    });
}

/// The runtime's own network namespace is made again, as that of a node in a container is; BPF file system and records stay.
#[test]
fn containers_of_a_namespace_that_is_gone_can_be_removed() {
    on_host(|host| {
        let [first, second, third] = ["c1", "c2", "c3"].map(|id| host.container(id));
        let before = Handle::new(&NetNs::create().unwrap()).unwrap();
        before.quiet_ipv6().unwrap();
        let kind = LinkKind::veth("far1", Some(host.wire.ns()));
        let up0 = NewLink {
            up: true,
            ..NewLink::new("up0", kind)
        };
        before.add_link(&up0).unwrap();
        host.wire.set_up("far1").unwrap();
        let conf = base();
        let other = conf_with("1.0.0", "front", "10.1.0.6/16");
        for (container, conf) in [(&first, &conf), (&second, &other)] {
            let netns = container.inside.ns().proc_path();
            let env = [
                ("CNI_CONTAINERID", container.id.as_str()),
                ("CNI_NETNS", netns.to_str().unwrap()),
                ("CNI_IFNAME", "eth0"),
            ];
            let mut add = host.command("ADD", &env);
            before.ns().adopt(&mut add).unwrap();
            Running::start(add, conf).said().works();
        }
        assert_eq!(host.switches(), ["cni-dev-up0"]);
        // As long as the namespace is there, so are the containers' ports.
        let said = host.call("DEL", &conf, &first);
        said.fails(100, &["another network namespace"]);
        assert_eq!(host.switches(), ["cni-dev-up0"]);
        drop(before);
        let end = Instant::now() + PATIENCE;
        while host.wire.link("far1").is_ok() {
            assert!(Instant::now() < end, "the namespace is still there");
            thread::sleep(Duration::from_millis(5));
        }
        host.call("DEL", &conf, &first).works();
        let none = with(
            &conf,
            json!({ "cniVersion": "1.1.0", "cni.dev/valid-attachments": [] }),
        );
        host.call_network("GC", &none).works();
        host.is_clean();
        // The network works again.
        host.call("ADD", &conf, &third).works();
        host.call("DEL", &conf, &third).works();
        host.is_clean();
    });
}

#[test]
fn what_the_environment_lacks_is_named() {
    on_host(|host| {
        let call =
            |verb, env: &[(&str, &str)]| Running::start(host.command(verb, env), &base()).said();
        let netns = host.container("c1").inside.ns().proc_path();
        let whole = [
            ("CNI_CONTAINERID", "c1"),
            ("CNI_IFNAME", "eth0"),
            ("CNI_NETNS", netns.to_str().unwrap()),
        ];
        for lacking in 0..3 {
            let mut env = whole.to_vec();
            let (key, _) = env.remove(lacking);
            call("ADD", &env).fails(4, &[key]);
        }
        call("JUMP", &whole).fails(4, &["`JUMP`"]);
        let mut env = whole;
        env[0].1 = "../c1";
        call("ADD", &env).fails(4, &["CNI_CONTAINERID"]);
        let mut env = whole;
        env[1].1 = "a/b";
        call("DEL", &env).fails(4, &["CNI_IFNAME"]);
        let mut env = whole;
        env[2].1 = "/run/netns/absent";
        call("ADD", &env).fails(4, &["CNI_NETNS"]);
        let mut env = whole;
        env[2].1 = "/proc/thread-self/ns/net";
        call("ADD", &env).fails(4, &["runs in"]);
        let said = host.call(
            "ADD",
            &with(&base(), json!({ "cniVersion": "0.3.1" })),
            &host.container("c1"),
        );
        said.fails(1, &["0.3.1", "0.4.0, 1.0.0, 1.1.0"]);
        for text in ["", "[]", "{"] {
            let mut command = host.command("ADD", &whole);
            command.stdin(std::process::Stdio::piped());
            let mut child = spawn(&mut command).unwrap();
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
            Running { child }.said().fails(6, &["stdin"]);
        }
        host.is_clean();
    });
}

#[test]
fn versions_are_told_to_whoever_asks() {
    on_host(|host| {
        // As podman asks.
        let env = [("CNI_IFNAME", "dummy"), ("CNI_NETNS", "dummy")];
        for asked in ["0.1.0", "1.0.0", "1.1.0"] {
            let command = host.command("VERSION", &env);
            let told = Running::start(command, &json!({ "cniVersion": asked }))
                .said()
                .works();
            assert_eq!(told["cniVersion"], asked);
            assert_eq!(
                told["supportedVersions"],
                json!(["0.4.0", "1.0.0", "1.1.0"])
            );
        }
        for verb in ["GC", "STATUS"] {
            host.call_network(verb, &base()).fails(1, &[verb, "1.1.0"]);
        }
    });
}

/// A slip in the configuration of the IPAM plugin, which it refuses each time; then somebody mends it.
#[test]
fn what_the_ipam_plugin_refuses_can_be_mended() {
    on_host(|host| {
        let refusing = |command: &str| {
            let mut conf = conf_with("1.1.0", "front", "10.1.0.5/16");
            conf["ipam"]["fail"] = command.into();
            conf
        };
        let (bad, good) = (refusing("all"), refusing("none"));
        let container = host.container("c1");
        for _ in 0..2 {
            let said = host.call("ADD", &bad, &container);
            said.fails(142, &["`fake-ipam`, ADD", "`fake-ipam`, DEL"]);
            host.is_clean();
        }
        // It may know of something that this plugin does not.
        host.call("DEL", &bad, &container).fails(142, &["DEL"]);
        host.call("DEL", &good, &container).works();
        host.call("ADD", &good, &container).works();
        host.call("DEL", &good, &container).works();
        // What it gave by a configuration that it refuses now is not forgotten, and goes by one that it takes.
        let stuck = refusing("DEL");
        let none = json!({ "cni.dev/valid-attachments": [] });
        type Mend<'a> = &'a dyn Fn();
        let mends: [Mend<'_>; 3] = [
            &|| drop(host.call("DEL", &good, &container).works()),
            &|| drop(host.call_network("GC", &with(&good, none.clone())).works()),
            &|| {
                // Of another container by its name.
                let again = host.container("c1");
                host.call("ADD", &good, &again).works();
                host.call("DEL", &good, &again).works();
            },
        ];
        for mend in mends {
            host.call("ADD", &stuck, &container).works();
            host.call("DEL", &stuck, &container).fails(142, &["DEL"]);
            assert!(files(RESERVED).contains("c1:eth0"));
            mend();
            host.is_clean();
        }
    });
}

#[test]
fn an_add_that_fails_half_way_leaves_nothing() {
    on_host(|host| {
        let container = host.container("c1");
        // IPAM fails, before and after it has reserved something.
        let mut conf = base();
        conf["ipam"]["fail"] = "ADD".into();
        host.call("ADD", &conf, &container)
            .fails(142, &["fake-ipam", "no more addresses", "asked to fail"]);
        host.is_clean();
        for result in ["", "{}", "{", r#"{"ips": [{"address": "10.1.0.5"}]}"#] {
            std::fs::write("/run/broken", result).unwrap();
            let mut conf = base();
            conf["ipam"]["result"] = "/run/broken".into();
            host.call("ADD", &conf, &container).fails(103, &[]);
            host.is_clean();
        }
        // It says addresses, which are used at once, and fails or says more after that.
        for more in ["exit 7", "echo more"] {
            let script = format!(
                "#!/bin/sh\n/run/plugins/fake-ipam || exit 1\n[ $CNI_COMMAND != ADD ] || {{ sleep 0.1; {more}; }}\n"
            );
            std::fs::write("/run/plugins/late-ipam", script).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions("/run/plugins/late-ipam", mode).unwrap();
            let mut conf = base();
            conf["ipam"]["type"] = "late-ipam".into();
            host.call("ADD", &conf, &container)
                .fails(103, &["late-ipam", "ADD"]);
            assert!(container.inside.link("eth0").is_err());
            host.is_clean();
        }
        let conf = with(&base(), json!({ "ipam": { "type": "absent-ipam" } }));
        host.call("ADD", &conf, &container)
            .fails(103, &["absent-ipam", "CNI_PATH"]);
        // The kernel refuses the last thing: a route.
        let result = json!({
            "ips": [{ "address": "10.1.0.5/16" }],
            "routes": [{ "dst": "10.9.0.0/16", "gw": "172.16.0.1" }],
        });
        let conf = crate::host::conf("1.0.0", "front", &result);
        host.call("ADD", &conf, &container)
            .fails(100, &["10.9.0.0/16 via 172.16.0.1"]);
        assert!(container.inside.link("eth0").is_err());
        host.is_clean();
        // The device is there already, somebody else's.
        let (conf, other) = (base(), host.container("c2"));
        host.call("ADD", &conf, &container).works();
        let said = host.call("ADD", &conf, &container);
        said.fails(101, &["`eth0` already"]);
        assert!(container.reaches(&host.wire, "10.1.0.1"));
        drop(other);
        host.call("DEL", &conf, &container).works();
        host.is_clean();
    });
}

#[test]
fn what_could_not_be_taken_away_is_taken_away_the_next_time() {
    on_host(|host| {
        let container = host.container("c1");
        let mut failing = base();
        failing["ipam"]["fail"] = "DEL".into();
        host.call("ADD", &failing, &container).works();
        let said = host.call("DEL", &failing, &container);
        said.fails(142, &["DEL", "no more addresses"]);
        // Device and switch are gone nevertheless.
        assert!(container.inside.link("eth0").is_err());
        assert!(host.devices().is_empty() && host.switches().is_empty());
        assert!(Path::new("/run/ipam/c1:eth0").exists());
        // Nor does it by the configuration of a later call.
        let other = with(&failing, json!({ "note": 1 }));
        host.call("DEL", &other, &container).fails(142, &[]);
        std::fs::write(
            "/run/plugins/fake-ipam",
            "#!/bin/sh\nrm -f \"/run/ipam/$CNI_CONTAINERID:$CNI_IFNAME\"\n",
        )
        .unwrap();
        host.call("DEL", &base(), &container).works();
        host.is_clean();
    });
}
