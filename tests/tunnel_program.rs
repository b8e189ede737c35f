//! Path `tun-vpn`: a tunnel program with a thread for each queue of its tun.

use hopyard::lab::{self, Lab};
use hopyard::model::{DatapathKind, LoadKind, Peer};

use crate::axes::build;
use crate::support::cli::run;
use crate::support::walk::machine_has;
use crate::support::{beside, cell, proved, skip};

/// Is the program there? Without it the tests are skipped.
fn is_here() -> bool {
    let path = lab::path("tun-vpn").unwrap();
    let Err(error) = path.available() else {
        return true;
    };
    let present = path.needs.iter().all(|need| machine_has(*need));
    skip("tun-vpn", present, &hopyard::chain(&error));
    false
}

fn queues(lab: &Lab) -> Vec<Option<u32>> {
    let ends = [("a", "vpn0"), ("b", "vpn0")];
    let attached = ends.map(|(role, name)| {
        let tun = lab.space(role).unwrap().handle.tun_link(name).unwrap();
        tun.unwrap().attached
    });
    attached.into()
}

#[test]
fn both_tuns_have_the_queues_that_were_asked_for() {
    let _beside = beside();
    if !is_here() {
        return;
    }
    for (set, wanted) in [
        (&[][..], 2),
        (&[("queues", "1")], 1),
        (&[("queues", "5")], 5),
    ] {
        let set = [set, &[("flows", "4")]].concat();
        let cell = cell("tun-vpn", Peer::Local, LoadKind::TcpStream, &set);
        let lab = build(&cell).unwrap_or_else(|why| panic!("{}", hopyard::chain(&why)));
        assert_eq!(queues(&lab), [Some(wanted), Some(wanted)]);
        let m = proved(&lab, &cell, 200).unwrap();
        assert!(m.received.bytes > 0);
        let datapath = lab.datapath().unwrap();
        assert_eq!(datapath.kind, DatapathKind::Userspace);
        assert!(
            !datapath.version.is_empty() && datapath.switch == "boringtun",
            "{datapath:?}"
        );
        // What the programs use is the load's.
        assert_eq!(lab.daemons().len(), 2);
    }
}

/// What leaves the tunnel's ends cannot be read by whoever has the wire, and nothing passes beside it.
#[test]
fn what_is_sent_is_encrypted() {
    let _beside = beside();
    if !is_here() {
        return;
    }
    let cell = cell("tun-vpn", Peer::Far, LoadKind::UdpRr, &[]);
    let lab = build(&cell).unwrap_or_else(|why| panic!("{}", hopyard::chain(&why)));
    let hub = &lab.space("hub").unwrap().handle;
    let wire = hopyard_net::PacketSocket::open(hub.ns(), "up0", 0x0800).unwrap();
    proved(&lab, &cell, 100).unwrap();
    let mut room = [0; 2048];
    let mut seen = 0;
    while let Some(length) = wire.receive(&mut room).unwrap() {
        seen += 1;
        // IPv4, UDP, and the port of WireGuard: no packet of the endpoints themselves.
        let packet = &room[14..length];
        assert_eq!(packet[9], 17, "{packet:?}");
        let to = u16::from_be_bytes([packet[22], packet[23]]);
        assert_eq!(to, 51820, "{packet:?}");
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn packets_that_the_program_would_cut_are_refused() {
    let _beside = beside();
    if !is_here() {
        return;
    }
    let common = [
        "run", "--paths", "tun-vpn", "--loads", "tcp_rr", "--blocks", "1", "--set",
    ];
    run(&[&common[..], &["mtu=1561"]].concat()).exits(2).says(&[
        "vpn0",
        "mtu=1561",
        "1560 or less",
    ]);
    run(&[&common[..], &["mtu=1300"]].concat())
        .exits(2)
        .says(&["tun-vpn", "1340"]);
}
