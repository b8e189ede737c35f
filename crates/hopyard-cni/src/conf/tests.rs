use serde_json::json;

use super::*;
use crate::values::network_name;
use crate::version::Version;

fn call(conf: Value, args: &str) -> Call {
    Call {
        version: Version::V1_0_0,
        network: "front".into(),
        container: "c1".into(),
        netns: "/run/netns/c1".into(),
        ifname: "eth0".into(),
        args: args.into(),
        path: String::new(),
        text: conf.to_string(),
        conf,
    }
}

#[test]
fn keys_are_read_and_wrong_values_are_named() {
    let conf = Conf::of(&call(json!({ "name": "front" }), "")).unwrap();
    assert!(!conf.may_spoof && !conf.isolated && conf.device == Device::Veth);
    assert_eq!(
        (conf.mtu, conf.vlan, conf.mac, conf.ipam),
        (None, None, None, None)
    );
    let all = json!({
        "master": "eth0", "mtu": 1400, "vlan": 100, "macspoofchk": false, "portIsolation": true, "mode": "bridge",
        "device": "netkit", "ipam": { "type": "host-local" },
    });
    let conf = Conf::of(&call(all, "")).unwrap();
    assert!(conf.may_spoof && conf.isolated);
    assert_eq!((conf.mtu, conf.vlan), (Some(1400), Some(100)));
    assert_eq!(conf.device, Device::Netkit);
    let kind = conf.ipam.unwrap();
    assert_eq!((kind.name.as_str(), kind.in_process), ("host-local", false));
    for (key, value) in [
        ("mtu", json!("1400")),
        ("mtu", json!(-1)),
        ("mtu", json!(67)),
        ("vlan", json!(4095)),
        ("macspoofchk", json!("yes")),
        ("portIsolation", json!(1)),
        ("master", json!(["eth0"])),
        ("mode", json!("vepa")),
        ("mac", json!("02:00")),
        ("mac", json!("ff:ff:ff:ff:ff:ff")),
        ("mac", json!(5)),
        ("ipam", json!({ "subnet": "10.0.0.0/8" })),
        ("ipam", json!({ "type": "../sh" })),
        ("ipamInProcess", json!(true)),
        ("ipamInProcess", json!(1)),
        ("switch", json!("a/b")),
        ("device", json!("macvlan")),
        ("device", json!(["veth"])),
    ] {
        let error = Conf::of(&call(json!({ key: value }), "")).unwrap_err();
        assert!(error.msg.contains(&format!("`{key}")), "{error}");
    }
}

#[test]
fn the_runtime_comes_before_the_configuration() {
    let mac = |n: u8| format!("02:00:00:00:00:{n:02x}");
    let all = json!({
        "mac": mac(1), "args": { "cni": { "mac": mac(3) } }, "runtimeConfig": { "mac": mac(4) },
    });
    let found = |conf: &Value, args| Conf::of(&call(conf.clone(), args)).unwrap().mac;
    let args = "IgnoreUnknown=1;K8S_POD_NAME=x;MAC=02:00:00:00:00:02";
    let mut conf = all;
    assert_eq!(found(&conf, args), Some(Mac([2, 0, 0, 0, 0, 4])));
    conf["runtimeConfig"] = json!({});
    assert_eq!(found(&conf, args), Some(Mac([2, 0, 0, 0, 0, 3])));
    conf["args"] = Value::Null;
    assert_eq!(found(&conf, args), Some(Mac([2, 0, 0, 0, 0, 2])));
    assert_eq!(found(&conf, ""), Some(Mac([2, 0, 0, 0, 0, 1])));
    // What is no text does not make room for another one.
    for (wrong, key) in [
        (
            json!({ "runtimeConfig": { "mac": 5 } }),
            "`runtimeConfig.mac`",
        ),
        (
            json!({ "args": { "cni": { "mac": [] } }, "mac": mac(1) }),
            "`args.cni.mac`",
        ),
    ] {
        let error = Conf::of(&call(wrong, "")).unwrap_err();
        assert!(
            error.code == code::BAD_CONFIG && error.msg.contains(key),
            "{error}"
        );
    }
}

#[test]
fn unknown_arguments_are_refused_unless_told_otherwise() {
    let with = |args| Conf::of(&call(json!({}), args));
    with("IP=10.0.0.7;GATEWAY=10.0.0.1").unwrap();
    with("").unwrap();
    let error = with("K8S_POD_NAME=x").unwrap_err();
    assert_eq!(error.code, code::BAD_ENVIRONMENT);
    assert!(error.msg.contains("`K8S_POD_NAME`"), "{error}");
    assert!(with("MAC").is_err());
}

#[test]
fn names_of_networks_are_names_of_files() {
    for wrong in [
        json!(null),
        json!(""),
        json!("../x"),
        json!("a/b"),
        json!(".a"),
        json!(7),
    ] {
        assert!(network_name(&json!({ "name": wrong })).is_err(), "{wrong}");
    }
    assert_eq!(
        network_name(&json!({ "name": "a.b-c_9" })).unwrap(),
        "a.b-c_9"
    );
}
