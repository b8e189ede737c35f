//! A wire that pauses: it keeps its rate, carries what a wire carries, and does without a timer for each frame.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hopyard::lab::{Error, Lab};
use hopyard::model::{Cell, LoadKind, Measurement, Peer};
use hopyard_net::PacketSocket;

use crate::axes::build;
use crate::support::cli::run;
use crate::support::walk::{Visit, walk};
use crate::support::{alone, beside, cell, float, mostly, proved, tell};

/// EtherType of a pause (IEEE 802.3, annex 31B).
const PAUSE: u16 = 0x8808;
/// `ETH_P_ALL` of include/uapi/linux/if_ether.h.
const ALL: u16 = 3;

fn lab(cell: &Cell) -> Lab {
    build(cell).unwrap_or_else(|why| panic!("{}", hopyard::chain(&why)))
}

fn mbit(bytes: u64, m: &Measurement) -> f64 {
    float(bytes) * 8000.0 / float(m.window_ns)
}

/// By each path that has a wire, both ways, in packets that are cut into frames later and in single ones.
#[test]
fn a_wire_that_pauses_keeps_its_rate_both_ways() {
    let _beside = beside();
    walk("rate=200mbit wire_pause=1ms", |path, peer| {
        if peer != Peer::Far {
            return Ok(Visit::PassedOver);
        }
        for (load, offload) in [
            (LoadKind::TcpStream, "on"),
            (LoadKind::TcpMaerts, "on"),
            (LoadKind::TcpStream, "off"),
        ] {
            let set = [
                ("rate", "200mbit"),
                ("wire_pause", "1ms"),
                ("offload", offload),
            ];
            let cell = cell(path.name, peer, load, &set);
            let lab = match build(&cell) {
                Ok(lab) => lab,
                // Their devices are to encapsulate what the wire would make pauses of.
                Err(why @ Error::AxisRefused { .. })
                    if ["vxlan", "geneve", "gre", "ipip"].contains(&path.name)
                        && offload == "on" =>
                {
                    tell(&why.to_string());
                    continue;
                }
                Err(why) => return Err(hopyard::chain(&why)),
            };
            // A short window is more often one without steal. pasta is slow to begin, and its own window makes up for no pauses:
            // 114 Mbit/s were seen.
            let (window_ms, least) = match path.name {
                "pasta" => (400, 90.0),
                _ => (120, 160.0),
            };
            mostly(|| {
                let what = format!("{}, {load}, offload {offload}", path.name);
                let m = proved(&lab, &cell, window_ms).map_err(|why| format!("{what}: {why}"))?;
                let came = mbit(m.tcp.unwrap().bytes_received, &m);
                let said = format!("{what}: {came:.1} Mbit/s of payload at 200mbit");
                // Of 1514 bytes 1448 are payload, and two pauses may be ahead. What came before the window and waited for a
                // receiver without a CPU is read in it.
                if (least..199.0).contains(&came) {
                    Ok(())
                } else {
                    Err(said)
                }
            })?;
        }
        Ok(Visit::Checked)
    });
}

/// The length of a frame decides what it pays for: every length is one of a frame that comes, once, at the same rate.
#[test]
fn frames_as_long_as_a_pause_are_no_pauses() {
    let _beside = beside();
    // With the headers of UDP, IPv4 and Ethernet these are frames of 396 to 398 bytes.
    for payload in ["354", "355", "356"] {
        let set = [
            ("rate", "50mbit"),
            ("wire_pause", "2ms"),
            ("message_size", payload),
        ];
        let cell = cell("native", Peer::Far, LoadKind::UdpStream, &set);
        let lab = lab(&cell);
        mostly(|| {
            let m = proved(&lab, &cell, 400)?;
            let bytes: u64 = payload.parse().unwrap();
            assert_eq!(
                m.received.bytes,
                m.received.messages * bytes,
                "datagrams are as they were sent"
            );
            let rate = mbit(m.received.messages * (bytes + 42), &m);
            let said = format!("datagrams of {payload} B: {rate:.1} Mbit/s at 50mbit");
            if (45.0..54.0).contains(&rate) {
                Ok(())
            } else {
                Err(said)
            }
        })
        .unwrap();
    }
}

/// How many pauses are among the frames that a socket has heard.
fn heard(socket: &PacketSocket) -> usize {
    let mut room = [0; 2048];
    let frames = std::iter::from_fn(|| {
        let came = socket.receive(&mut room).unwrap();
        came.map(|_| room[12..14] == PAUSE.to_be_bytes())
    });
    frames.filter(|is_pause| *is_pause).count()
}

/// The frames that stand for pauses end beside the wire: neither its other end nor a switch that floods what it does not know gets one.
#[test]
fn pauses_end_at_the_wire() {
    let _beside = beside();
    for (path, load) in [
        ("bridge", LoadKind::TcpMaerts),
        ("direct", LoadKind::TcpMaerts),
    ] {
        let set = [
            ("rate", "100mbit"),
            ("wire_pause", "1ms"),
            ("offload", "off"),
        ];
        let cell = cell(path, Peer::Far, load, &set);
        let lab = lab(&cell);
        let space = |role| &lab.space(role).unwrap().handle;
        // All frames that waited at the far end, which are heard before the program at the device gets them.
        let beside_wire = PacketSocket::open(space("far").ns(), "pause1", ALL).unwrap();
        // No bridge takes frames from a socket that hears them all.
        let at_wire = PacketSocket::open(space("hub").ns(), "up0", ALL).unwrap();
        let at_guest = PacketSocket::open(space("a").ns(), "eth0", PAUSE).unwrap();
        let done = AtomicBool::new(false);
        let [beside_wire, at_wire] = thread::scope(|scope| {
            let heard = scope.spawn(|| {
                let mut pauses = [0; 2];
                while !done.load(Ordering::Relaxed) {
                    pauses[0] += heard(&beside_wire);
                    pauses[1] += heard(&at_wire);
                    thread::sleep(Duration::from_millis(1));
                }
                pauses
            });
            let proved = proved(&lab, &cell, 300);
            done.store(true, Ordering::Relaxed);
            proved.unwrap();
            heard.join().unwrap()
        });
        let at_guest = heard(&at_guest);
        tell(&format!(
            "{path}: {beside_wire} pauses came beside the wire, {at_wire} by it, {at_guest} to the guest"
        ));
        assert!(beside_wire > 50, "{path}: {beside_wire}");
        assert_eq!([at_wire, at_guest], [0, 0], "{path}");
    }
}

/// Frames that the hub sent, by the wire and by the way beside it.
fn sent(lab: &Lab) -> [u64; 2] {
    let stats = lab.space("hub").unwrap().handle.device_stats().unwrap();
    ["up0", "pause0"].map(|name| {
        let device = stats.iter().find(|device| device.name == name);
        device.unwrap().tx_packets
    })
}

/// A sender below the rate meets no queue, also after one that was held back.
#[test]
fn frames_below_the_rate_pass_by_the_wire_alone() {
    let _beside = beside();
    let paced = |pause: &[(&str, &str)]| {
        let set = [
            pause,
            &[
                ("rate", "100mbit"),
                ("wire_pause", "2ms"),
                ("offload", "off"),
                ("message_size", "1400"),
                ("pace", "80mbit"),
            ],
        ]
        .concat();
        cell("native", Peer::Far, LoadKind::UdpStream, &set)
    };
    let held_back = cell(
        "native",
        Peer::Far,
        LoadKind::UdpStream,
        &[
            ("rate", "100mbit"),
            ("wire_pause", "2ms"),
            ("offload", "off"),
            ("message_size", "1400"),
        ],
    );
    for cell in [paced(&[("pace_pause", "2ms")]), paced(&[])] {
        let lab = lab(&cell);
        mostly(|| {
            proved(&lab, &held_back, 200)?;
            let [_, waited] = sent(&lab);
            assert!(waited > 500, "held back: {waited} frames waited");
            let before = sent(&lab);
            proved(&lab, &cell, 300)?;
            let after = sent(&lab);
            let [passed, waited] = [0, 1].map(|at| after[at] - before[at]);
            let said = format!("{cell}: {passed} frames passed, {waited} of them waited");
            tell(&said);
            if waited * 20 < passed {
                Ok(())
            } else {
                Err(said)
            }
        })
        .unwrap();
    }
}

/// What the shaper of single frames costs: most of what a packet costs. V21 has the figures.
#[test]
fn a_packet_costs_less_than_with_a_timer_for_each() {
    let _alone = alone();
    let cost = |set: &[(&str, &str)]| -> Result<f64, String> {
        let set = [set, &[("rate", "1gbit"), ("offload", "off")]].concat();
        let cell = cell("native", Peer::Far, LoadKind::UdpStream, &set);
        let m = proved(&lab(&cell), &cell, 500)?;
        Ok(m.cpu.net().middle_ns() / float(m.received.messages))
    };
    mostly(|| {
        let by_frames = cost(&[])?;
        let by_pauses = cost(&[("wire_pause", "2ms")])?;
        let said = format!("{by_frames:.0} ns a packet by frames, {by_pauses:.0} by pauses");
        tell(&said);
        if by_pauses < 0.7 * by_frames {
            Ok(())
        } else {
            Err(said)
        }
    })
    .unwrap();
}

#[test]
fn a_pause_takes_a_rate_and_is_within_bounds() {
    let _beside = beside();
    let refused = |set: &[&str], words: &[&str]| {
        let mut arguments = vec![
            "run",
            "--paths",
            "native",
            "--peer",
            "far",
            "--loads",
            "udp_stream",
        ];
        set.iter().for_each(|one| arguments.extend(["--set", one]));
        run(&arguments).exits(2).says(words);
    };
    refused(&["wire_pause=2ms"], &["wire_pause=2ms", "set `rate` too"]);
    refused(
        &["rate=1gbit", "wire_pause=1s"],
        &["`1s` is not a pause", "50us to 20ms"],
    );
    refused(
        &["pace_pause=2ms"],
        &["has nothing to rest for", "set `pace`"],
    );
}
