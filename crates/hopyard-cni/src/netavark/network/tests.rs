use super::*;

fn network(keys: &Value) -> Network {
    let mut document = json!({
        "name": "guests",
        "id": "2f25",
        "driver": "hopyard",
        "subnets": [
            { "subnet": "10.88.0.0/16", "gateway": "10.88.0.1" },
            { "subnet": "fd00:88::/64", "gateway": "fd00:88::1" },
        ],
    });
    for (key, value) in keys.as_object().unwrap() {
        document[key] = value.clone();
    }
    Network::of(&document).unwrap()
}

fn refused(keys: &Value) -> String {
    let network = network(keys);
    let checked = network.conf().map(drop);
    let checked = checked.and(network.check_subnets());
    checked.and(network.routes().map(drop)).unwrap_err().msg
}

#[test]
fn options_become_keys() {
    let all = network(&json!({ "options": {
        "parent": "eth0", "mtu": "1400", "vlan": "7", "isolate": "true", "allow_spoof": "1",
    } }));
    let conf = all.conf().unwrap();
    assert_eq!(conf["master"], "eth0");
    assert_eq!((&conf["mtu"], &conf["vlan"]), (&json!(1400), &json!(7)));
    assert_eq!(conf["portIsolation"], true);
    assert_eq!(conf["macspoofchk"], false);
    let few = network(&json!({ "network_interface": "eth1" }));
    let conf = few.conf().unwrap();
    assert_eq!(conf["master"], "eth1");
    assert_eq!(conf["macspoofchk"], true);
    let named = network(&json!({ "options": { "switch": "guests" } }));
    assert_eq!(named.conf().unwrap()["switch"], "guests");
    assert!(network(&json!({ "internal": true })).conf().is_ok());
}

#[test]
fn wrong_options_are_named() {
    for (keys, words) in [
        (
            json!({ "options": { "parent": "eth0", "isolatd": "true" } }),
            "unknown option `isolatd` (\"true\")",
        ),
        (
            json!({ "options": { "parent": "eth0", "isolate": "strict" } }),
            "option `isolate` (\"strict\")",
        ),
        (
            json!({ "options": { "parent": "eth0", "mtu": "big" } }),
            "option `mtu` (\"big\")",
        ),
        (
            json!({ "options": { "parent": "eth0", "metric": "-1" } }),
            "option `metric` (\"-1\")",
        ),
        (
            json!({ "options": { "parent": "eth0" }, "network_interface": "eth1" }),
            "`--interface-name` (\"eth1\")",
        ),
        (
            json!({ "options": { "parent": "eth0" }, "internal": true }),
            "internal network has no way",
        ),
        (json!({}), "no way to the wire"),
        (
            json!({ "options": { "parent": "eth0" }, "ipam_options": { "driver": "dhcp" } }),
            "DHCP",
        ),
        (
            json!({ "options": { "parent": "eth0" }, "subnets": null }),
            "there is no subnet",
        ),
        (
            json!({ "options": { "parent": "eth0" }, "routes": [
                { "destination": "10.9.0.0/16", "gateway": "10.88.0.9", "route_type": "blackhole" },
            ] }),
            "type `blackhole`",
        ),
    ] {
        let said = refused(&keys);
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn addresses_have_the_prefix_of_their_subnet_and_its_routes() {
    let ips: Vec<IpAddr> = ["10.88.1.50", "fd00:88::50"]
        .map(|ip| ip.parse().unwrap())
        .into();
    let with = |keys: Value| network(&keys).addresses(&ips).unwrap().unwrap();
    let own = json!([{ "destination": "10.9.0.0/16", "gateway": "10.88.0.9", "metric": 7 }]);
    let both = with(json!({ "options": { "metric": "50" }, "routes": own }));
    let prefixes: Vec<u8> = both.ips.iter().map(|ip| ip.prefix).collect();
    assert_eq!(prefixes, [16, 64]);
    let routes: Vec<_> = both.routes.iter().map(|to| both.route(to, 3)).collect();
    assert_eq!(routes[0].via, Some([10, 88, 0, 1].into()));
    assert_eq!((routes[0].priority, routes[0].prefix), (Some(50), 0));
    assert_eq!(routes[1].via, "fd00:88::1".parse().ok());
    assert_eq!((routes[2].priority, routes[2].prefix), (Some(7), 16));
    assert!(with(json!({ "internal": true })).routes.is_empty());
    assert!(
        with(json!({ "options": { "no_default_route": "true" } }))
            .routes
            .is_empty()
    );
    let none = network(&json!({}));
    assert!(none.addresses(&[]).unwrap().is_none());
    let other = none.addresses(&[[10, 89, 0, 1].into()]).unwrap_err();
    assert!(other.msg.contains("in none of the network's subnets"));
}

#[test]
fn prefixes_hold_their_addresses() {
    for (first, bits, ip, is_in) in [
        ("10.88.0.0", 16, "10.88.255.255", true),
        ("10.88.0.0", 16, "10.89.0.0", false),
        ("0.0.0.0", 0, "192.0.2.1", true),
        ("192.0.2.1", 32, "192.0.2.1", true),
        ("192.0.2.1", 32, "192.0.2.0", false),
        ("fd00::", 64, "fd00::1:0:0:0", true),
        ("fd00::", 64, "fd00:0:0:1::", false),
        ("::", 0, "10.0.0.1", false),
    ] {
        let of = |text: &str| text.parse().unwrap();
        assert_eq!(
            contains(of(first), bits, of(ip)),
            is_in,
            "{first}/{bits} {ip}"
        );
    }
}
