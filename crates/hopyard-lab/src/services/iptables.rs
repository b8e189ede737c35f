//! The layout of kube-proxy's mode `iptables`: a rule for each service in one chain, which a packet that begins a connection
//! passes up to its own.

use std::fmt::Write;

use super::Port;

/// The last rule of `KUBE-SERVICES`.
const NODE_PORTS: &str = "KUBE-SERVICES -m comment --comment \"node ports, after all services\" -m addrtype --dst-type LOCAL \
                          -j KUBE-NODEPORTS";

/// Both tables with some services; the last rule is not there yet.
pub(super) fn all(cluster: &str, ports: &[Port]) -> String {
    let mut text = String::from(
        "*filter\n\
         :KUBE-NODEPORTS - [0:0]\n:KUBE-SERVICES - [0:0]\n:KUBE-EXTERNAL-SERVICES - [0:0]\n:KUBE-FORWARD - [0:0]\n\
         :KUBE-PROXY-FIREWALL - [0:0]\n\
         -A INPUT -m conntrack --ctstate NEW -m comment --comment \"firewall of load balancers\" -j KUBE-PROXY-FIREWALL\n\
         -A INPUT -m comment --comment \"health checks\" -j KUBE-NODEPORTS\n\
         -A INPUT -m conntrack --ctstate NEW -m comment --comment \"services seen from outside\" -j KUBE-EXTERNAL-SERVICES\n\
         -A FORWARD -m conntrack --ctstate NEW -m comment --comment \"firewall of load balancers\" -j KUBE-PROXY-FIREWALL\n\
         -A FORWARD -m comment --comment \"what is forwarded\" -j KUBE-FORWARD\n\
         -A FORWARD -m conntrack --ctstate NEW -m comment --comment \"services\" -j KUBE-SERVICES\n\
         -A FORWARD -m conntrack --ctstate NEW -m comment --comment \"services seen from outside\" -j KUBE-EXTERNAL-SERVICES\n\
         -A OUTPUT -m conntrack --ctstate NEW -m comment --comment \"firewall of load balancers\" -j KUBE-PROXY-FIREWALL\n\
         -A OUTPUT -m conntrack --ctstate NEW -m comment --comment \"services\" -j KUBE-SERVICES\n\
         -A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP\n\
         -A KUBE-FORWARD -m comment --comment \"what is forwarded\" -m mark --mark 0x4000/0x4000 -j ACCEPT\n\
         -A KUBE-FORWARD -m comment --comment \"answers\" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
         COMMIT\n\
         *nat\n\
         :KUBE-SERVICES - [0:0]\n:KUBE-NODEPORTS - [0:0]\n:KUBE-POSTROUTING - [0:0]\n:KUBE-MARK-MASQ - [0:0]\n",
    );
    for port in ports {
        declare(&mut text, port);
    }
    text.push_str(
        "-A PREROUTING -m comment --comment \"services\" -j KUBE-SERVICES\n\
         -A OUTPUT -m comment --comment \"services\" -j KUBE-SERVICES\n\
         -A POSTROUTING -m comment --comment \"masquerade\" -j KUBE-POSTROUTING\n\
         -A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN\n\
         -A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0\n\
         -A KUBE-POSTROUTING -m comment --comment \"masquerade\" -j MASQUERADE --random-fully\n\
         -A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000\n",
    );
    for port in ports {
        add(&mut text, cluster, port);
    }
    text.push_str("COMMIT\n");
    text
}

/// Takes some ports out of table `nat` and puts others in behind all services.
pub(super) fn exchange(cluster: &str, gone: &[Port], new: &[Port]) -> String {
    let mut text = String::from("*nat\n");
    for port in new {
        declare(&mut text, port);
    }
    for port in gone {
        let _ = writeln!(text, "-D {}", jump(port));
        let [service, endpoint] = chains(port);
        let _ = writeln!(
            text,
            "-F {service}\n-F {endpoint}\n-X {service}\n-X {endpoint}"
        );
    }
    if !gone.is_empty() {
        let _ = writeln!(text, "-D {NODE_PORTS}");
    }
    for port in new {
        add(&mut text, cluster, port);
    }
    let _ = writeln!(text, "-A {NODE_PORTS}\nCOMMIT");
    text
}

fn chains(port: &Port) -> [String; 2] {
    let id = port.id();
    [format!("KUBE-SVC-{id}"), format!("KUBE-SEP-{id}")]
}

fn declare(text: &mut String, port: &Port) {
    for chain in chains(port) {
        let _ = writeln!(text, ":{chain} - [0:0]");
    }
}

/// What a packet has to match to be for a service's port.
fn matched(port: &Port) -> String {
    let protocol = port.protocol();
    format!(
        "-d {} -p {protocol} -m comment --comment \"lab/s{}:{}\" -m {protocol} --dport {}",
        port.address, port.service, port.port, port.port
    )
}

fn jump(port: &Port) -> String {
    let [service, _] = chains(port);
    format!("KUBE-SERVICES {} -j {service}", matched(port))
}

fn add(text: &mut String, cluster: &str, port: &Port) {
    let [service, endpoint] = chains(port);
    let (its, target, protocol) = (port.endpoint, port.target(), port.protocol());
    let name = format!(
        "-m comment --comment \"lab/s{}:{}\"",
        port.service, port.port
    );
    let _ = writeln!(text, "-A {}", jump(port));
    let _ = writeln!(
        text,
        "-A {service} ! -s {cluster} {} -j KUBE-MARK-MASQ",
        matched(port)
    );
    let _ = writeln!(
        text,
        "-A {service} -m comment --comment \"lab/s{}:{} -> {target}\" -j {endpoint}",
        port.service, port.port
    );
    let _ = writeln!(text, "-A {endpoint} -s {its} {name} -j KUBE-MARK-MASQ");
    let _ = writeln!(
        text,
        "-A {endpoint} -p {protocol} {name} -m {protocol} -j DNAT --to-destination {target}"
    );
}
