//! The layout of kube-proxy's mode `nftables` (Kubernetes 1.31): one map leads to a service, whatever their number.

use std::fmt::Write;

use super::Port;
use crate::model::Family;

/// Names of the family: of the table, of its addresses, of its header in rules.
fn names(family: Family) -> (&'static str, &'static str) {
    match family {
        Family::V4 => ("ip", "ipv4_addr"),
        Family::V6 => ("ip6", "ipv6_addr"),
    }
}

/// The whole table with some services.
pub(super) fn all(family: Family, ports: &[Port]) -> String {
    let (ip, address) = names(family);
    let mut text = format!("table {ip} kube-proxy {{\n");
    let mut list = |head: &str, elements: &mut dyn Iterator<Item = String>| {
        let elements: Vec<_> = elements.collect();
        let _ = writeln!(text, "{head}");
        if !elements.is_empty() {
            let _ = writeln!(text, "elements = {{ {} }}", elements.join(",\n"));
        }
        text.push_str("}\n");
    };
    let none = std::iter::empty;
    list(
        &format!("set cluster-ips {{\ntype {address}"),
        &mut ports.iter().map(|port| port.address.to_string()),
    );
    list(&format!("set nodeport-ips {{\ntype {address}"), &mut none());
    list(
        &format!("map service-ips {{\ntype {address} . inet_proto . inet_service : verdict"),
        &mut ports.iter().map(element),
    );
    list(
        "map service-nodeports {\ntype inet_proto . inet_service : verdict",
        &mut none(),
    );
    list(
        &format!(
            "map no-endpoint-services {{\ntype {address} . inet_proto . inet_service : verdict"
        ),
        &mut none(),
    );
    list(
        &format!("map firewall-ips {{\ntype {address} . inet_proto . inet_service : verdict"),
        &mut none(),
    );
    base(ip, &mut text);
    for port in ports {
        for (name, rules) in chains(ip, port, false) {
            let _ = writeln!(text, "chain {name} {{");
            for rule in rules {
                let _ = writeln!(text, "{rule}");
            }
            text.push_str("}\n");
        }
    }
    text.push_str("}\n");
    text
}

/// What is there whatever the services are.
fn base(ip: &str, text: &mut String) {
    let key = format!("{ip} daddr . meta l4proto . th dport");
    let chains: &[(&str, &[&str])] = &[
        ("mark-for-masquerade", &["mark set mark or 0x4000"]),
        (
            "masquerading",
            &[
                "mark and 0x4000 == 0 return",
                "mark set mark xor 0x4000",
                "masquerade fully-random",
            ],
        ),
        ("firewall-check", &[&format!("{key} vmap @firewall-ips")]),
        (
            "service-endpoints-check",
            &[&format!("{key} vmap @no-endpoint-services")],
        ),
        (
            "cluster-ips-check",
            &[&format!("{ip} daddr @cluster-ips reject")],
        ),
        (
            "services",
            &[
                &format!("{key} vmap @service-ips"),
                &format!(
                    "{ip} daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports"
                ),
            ],
        ),
        (
            "filter-prerouting",
            &[
                "type filter hook prerouting priority -110; policy accept;",
                "ct state new jump firewall-check",
            ],
        ),
        (
            "filter-forward",
            &[
                "type filter hook forward priority -110; policy accept;",
                "ct state new jump service-endpoints-check",
                "ct state new jump cluster-ips-check",
            ],
        ),
        (
            "filter-output",
            &[
                "type filter hook output priority -110; policy accept;",
                "ct state new jump service-endpoints-check",
                "ct state new jump firewall-check",
            ],
        ),
        (
            "nat-prerouting",
            &[
                "type nat hook prerouting priority -100; policy accept;",
                "jump services",
            ],
        ),
        (
            "nat-output",
            &[
                "type nat hook output priority -100; policy accept;",
                "jump services",
            ],
        ),
        (
            "nat-postrouting",
            &[
                "type nat hook postrouting priority 100; policy accept;",
                "jump masquerading",
            ],
        ),
    ];
    for (name, rules) in chains {
        let _ = writeln!(text, "chain {name} {{");
        for rule in *rules {
            let _ = writeln!(text, "{rule}");
        }
        text.push_str("}\n");
    }
}

/// Takes some ports out of the table and puts others in, at once.
pub(super) fn exchange(family: Family, gone: &[Port], new: &[Port]) -> String {
    let (ip, _) = names(family);
    let mut text = String::new();
    for port in gone {
        let _ = writeln!(
            text,
            "delete element {ip} kube-proxy service-ips {{ {} }}",
            element(port)
        );
        for (name, _) in chains(ip, port, true) {
            let _ = writeln!(text, "flush chain {ip} kube-proxy {name}");
        }
        for (name, _) in chains(ip, port, true).into_iter().rev() {
            let _ = writeln!(text, "delete chain {ip} kube-proxy {name}");
        }
    }
    for port in new {
        for (name, _) in chains(ip, port, true) {
            let _ = writeln!(text, "add chain {ip} kube-proxy {name}");
        }
        for (name, rules) in chains(ip, port, true) {
            for rule in rules {
                let _ = writeln!(text, "add rule {ip} kube-proxy {name} {rule}");
            }
        }
        let _ = writeln!(
            text,
            "add element {ip} kube-proxy service-ips {{ {} }}",
            element(port)
        );
        let _ = writeln!(
            text,
            "add element {ip} kube-proxy cluster-ips {{ {} }}",
            port.address
        );
    }
    text
}

fn element(port: &Port) -> String {
    let protocol = port.protocol();
    let (address, number) = (port.address, port.port);
    format!("{address} . {protocol} . {number} : goto {}", service(port))
}

fn service(port: &Port) -> String {
    let (protocol, number) = (port.protocol(), port.port);
    format!(
        "service-{}-lab/s{}/{protocol}/{number}",
        port.id(),
        port.service
    )
}

/// The chain of a service's port and that of its endpoint, with their rules; the endpoint's comes first. The choice among
/// endpoints is a map of its own in each chain, for which the kernel looks through all maps of the table
/// (`nf_tables_set_alloc_name`). 30,000 of them take minutes, so that services which nobody asks for have none.
fn chains(ip: &str, port: &Port, has_choice: bool) -> [(String, Vec<String>); 2] {
    let (protocol, number, endpoint) = (port.protocol(), port.port, port.endpoint);
    let its = format!("endpoint-{}-lab/s{}", port.id(), port.service);
    let cluster = super::CLUSTER[usize::from(ip == "ip6")];
    let rules = vec![
        format!(
            "{ip} daddr {} {protocol} dport {number} {ip} saddr != {cluster} jump mark-for-masquerade",
            port.address
        ),
        if has_choice {
            format!("numgen random mod 1 vmap {{ 0 : goto {its} }}")
        } else {
            format!("goto {its}")
        },
    ];
    let translate = vec![
        format!("{ip} saddr {endpoint} jump mark-for-masquerade"),
        format!("meta l4proto {protocol} dnat to {}", port.target()),
    ];
    [(its, translate), (service(port), rules)]
}
