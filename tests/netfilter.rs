//! Rules in the hub act on `bridge-nf`, and not on `bridge`.

use std::net::IpAddr;
use std::time::Duration;

use hopyard::lab::paths::Need;
use hopyard::lab::{Addresses, Lab, PATHS, role};
use hopyard::model::{LoadKind, Peer};
use hopyard_net::{apply_ruleset, nft_counters};

use crate::support::icmp::{ping, ping_within};
use crate::support::walk::{Visit, machine_has, walk};
use crate::support::{beside, cell, proved, sampler, skip, skip_part, tell};

/// Counts what is forwarded, and does something with it.
fn forward(family: &str, verdict: &str) -> String {
    format!(
        "table {family} lab {{
            counter seen {{}}
            chain forward {{
                type filter hook forward priority filter; policy accept;
                counter name seen
                {verdict}
            }}
        }}"
    )
}

/// A lab of `bridge-nf`; none where the machine lacks that, which is recorded: [`skip`] or [`skip_part`].
fn bridge_nf(peer: Peer, record: fn(&str, bool, &str)) -> Option<Lab> {
    let name = "bridge-nf";
    let path = hopyard::lab::path(name).unwrap();
    match path.available() {
        Ok(()) => {
            let cell = cell(name, peer, LoadKind::TcpRr, &[]);
            Some(Lab::build(path, peer, &cell.axes).unwrap())
        }
        Err(e) => {
            let present = machine_has(Need::BRIDGE_NETFILTER);
            record(name, present, &hopyard::chain(&e));
            None
        }
    }
}

/// Over IPv4 and IPv6, is an echo answered where it should be, and only there?
#[track_caller]
fn echoes(lab: &Lab, answered: [bool; 2], when: &str) {
    let ns = lab.space(role::A).unwrap().handle.ns();
    let server = lab.topology.server.addresses;
    let addresses = [IpAddr::from(server.v4), server.v6.into()];
    for (address, answered) in addresses.into_iter().zip(answered) {
        // What will come may come late on a busy machine; what will not is not worth a long wait.
        let patience = Duration::from_millis(if answered { 5000 } else { 300 });
        let said = ping_within(ns, address, patience);
        assert_eq!(said.is_ok(), answered, "{when}: {address}: {said:?}");
    }
}

fn packets(lab: &Lab) -> u64 {
    let hub = lab.space(role::HUB).unwrap().handle.ns();
    nft_counters(hub).unwrap().iter().map(|c| c.packets).sum()
}

#[test]
fn a_forward_rule_stops_bridge_nf_and_not_bridge() {
    let _beside = beside();
    for (family, stopped) in [
        ("inet", [true, true]),
        ("ip", [true, false]),
        ("ip6", [false, true]),
    ] {
        for peer in [Peer::Local, Peer::Far] {
            if let Some(lab) = bridge_nf(peer, skip_part) {
                echoes(&lab, [true, true], "before the rule");
                let hub = lab.space(role::HUB).unwrap().handle.ns();
                apply_ruleset(hub, &forward(family, "drop")).expect("nft (nftables) is installed");
                echoes(&lab, stopped.map(|s| !s), &format!("bridge-nf, {family}"));
                assert!(packets(&lab) > 0, "{family}");
            }
            let axes = cell("bridge", peer, LoadKind::TcpRr, &[]).axes;
            let lab = Lab::build(hopyard::lab::path("bridge").unwrap(), peer, &axes).unwrap();
            let hub = lab.space(role::HUB).unwrap().handle.ns();
            apply_ruleset(hub, &forward(family, "drop")).unwrap();
            echoes(&lab, [true, true], &format!("bridge, {family}"));
            assert_eq!(packets(&lab), 0, "{family}");
        }
    }
}

#[test]
fn every_packet_of_bridge_nf_passes_the_hook() {
    let _beside = beside();
    let Some(lab) = bridge_nf(Peer::Local, skip) else {
        return;
    };
    let hub = lab.space(role::HUB).unwrap().handle.ns();
    let count = forward("inet", "accept");
    apply_ruleset(hub, &count).unwrap();
    let cell = cell("bridge-nf", Peer::Local, LoadKind::UdpRr, &[]);
    let measured = proved(&lab, &cell, 100).unwrap();
    let (seen, transactions) = (packets(&lab), measured.received.transactions);
    assert!(
        seen >= 2 * transactions,
        "{seen} packets, {transactions} transactions"
    );
}

#[test]
fn a_hub_that_drops_everything_is_a_failure_with_a_cause_and_never_a_zero() {
    let _beside = beside();
    let connecting = [
        "at `a`: cannot connect to 198.18.0.2:",
        " within 2000 ms: timed out",
    ];
    let greeting = [
        "at `a`: no answer to datagrams from 198.18.0.2:",
        ": nothing came back for 2000 ms",
    ];
    for (load, [start, end]) in [
        (LoadKind::TcpStream, connecting),
        (LoadKind::TcpCrr, connecting),
        (LoadKind::UdpRr, greeting),
    ] {
        let Some(lab) = bridge_nf(Peer::Local, skip) else {
            return;
        };
        let hub = lab.space(role::HUB).unwrap().handle.ns();
        apply_ruleset(hub, &forward("inet", "drop")).unwrap();
        let cell = cell("bridge-nf", Peer::Local, load, &[]);
        let error = sampler(100, 20).measure_in(&lab, &cell, 0.0).unwrap_err();
        let text = hopyard::chain(&error);
        tell(&format!("{load} through a wall: {text}"));
        assert!(
            text.starts_with(start) && text.ends_with(end),
            "{load}: {text}"
        );
    }
}

#[test]
fn a_receiver_that_gets_nothing_in_the_window_says_so() {
    let _beside = beside();
    let Some(lab) = bridge_nf(Peer::Local, skip) else {
        return;
    };
    // The greeting of a flow passes, its data does not.
    let rules = forward("ip", "udp length > 100 drop");
    let hub = lab.space(role::HUB).unwrap().handle.ns();
    apply_ruleset(hub, &rules).unwrap();
    let cell = cell("bridge-nf", Peer::Local, LoadKind::UdpStream, &[]);
    let error = sampler(100, 20).measure_in(&lab, &cell, 0.0).unwrap_err();
    let text = hopyard::chain(&error);
    assert!(
        text.contains("the receiver got nothing in the whole window"),
        "{text}"
    );
}

#[test]
fn rules_of_one_lab_do_nothing_to_another() {
    let _beside = beside();
    let (Some(one), Some(other)) = (bridge_nf(Peer::Local, skip), bridge_nf(Peer::Local, skip))
    else {
        return;
    };
    apply_ruleset(
        one.space(role::HUB).unwrap().handle.ns(),
        &forward("inet", "drop"),
    )
    .unwrap();
    echoes(&one, [false, false], "the one with the rule");
    echoes(&other, [true, true], "the one without");
    // `veth` has no hub to hold rules at all.
    assert!(PATHS.iter().any(|p| p.name == "veth"));
    let veth = Lab::build(
        hopyard::lab::path("veth").unwrap(),
        Peer::Local,
        &cell("veth", Peer::Local, LoadKind::TcpRr, &[]).axes,
    )
    .unwrap();
    let ns = veth.space(role::A).unwrap().handle.ns();
    ping(ns, veth.topology.server.addresses.v4.into()).unwrap();
}

/// Counts what comes from the client, at every hook that a packet of another could pass first.
fn count_from(client: &Addresses) -> String {
    let hooks = ["prerouting", "output"].map(|hook| {
        format!(
            "chain {hook} {{
                type filter hook {hook} priority raw; policy accept;
                ip saddr {} counter name seen
            }}",
            client.v4
        )
    });
    format!(
        "table inet lab {{ counter seen {{}}\n{}\n}}",
        hooks.join("\n")
    )
}

#[test]
fn the_hubs_filter_sees_what_the_paths_say() {
    let _beside = beside();
    walk("rules that count", |path, peer| {
        let cell = cell(path.name, peer, LoadKind::TcpRr, &[]);
        let lab = Lab::build(path, peer, &cell.axes).map_err(|e| hopyard::chain(&e))?;
        let (client, server) = (&lab.topology.client, &lab.topology.server);
        let from = lab.space(client.role).unwrap().handle.ns();
        let seen = if let Ok(hub) = lab.space(role::HUB) {
            apply_ruleset(hub.handle.ns(), &count_from(&client.addresses)).unwrap();
            ping(from, server.addresses.v4.into())?;
            packets(&lab) > 0
        } else {
            false
        };
        if seen == path.filter_sees.contains(&peer) {
            return Ok(Visit::Checked);
        }
        Err(format!("the filter sees it: {seen}"))
    });
}
