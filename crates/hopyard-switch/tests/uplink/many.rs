//! ND10 and ND12: a dozen switches, each with an uplink and a guest of its own, in one namespace.

use hopyard_net::Handle;
use hopyard_switch::{NewPort, NewSwitch, Switch};

use crate::frames::{BROADCAST, EXPERIMENT, frame};
use crate::listen::{Ear, who};
use crate::site::{cable, space};

const SWITCHES: u8 = 12;

/// The switches of a test, gone with this value.
struct Switches(Vec<String>);

impl Drop for Switches {
    fn drop(&mut self) {
        for name in &self.0 {
            Switch::discard(name).unwrap();
        }
    }
}

/// Switch `n`: `w{n}` to a wire, `g{n}` to a guest, and ears at all three parties.
fn make(hub: &Handle, n: u8) -> (String, Vec<(String, [u8; 6], Ear)>) {
    let (wire, guest) = (space(), space());
    let name = format!("many-{}-{n}", std::process::id());
    let (up, port) = (format!("w{n}"), format!("g{n}"));
    // The same guest's address at every switch: tables must not mix.
    let (wire_mac, guest_mac) = ([2, 0, 0, 0, 3, n], [2, 0, 0, 0, 4, 0]);
    cable(hub, &up, &wire, "eth0", wire_mac, 1500);
    cable(hub, &port, &guest, "eth0", guest_mac, 1500);
    let new = NewSwitch {
        name: &name,
        uplink: Some(&up),
        ..NewSwitch::default()
    };
    let with = NewPort {
        device: &port,
        ..NewPort::default()
    };
    let bind = || Switch::create(&new)?.add_port(&with);
    hub.ns().run(bind).unwrap().unwrap();
    let host_mac = hub.link(&up).unwrap().mac.unwrap();
    let parties = [
        ("wire", &wire, "eth0", wire_mac),
        ("host", hub, up.as_str(), host_mac),
        ("guest", &guest, "eth0", guest_mac),
    ];
    let ears = parties.map(|(who, at, device, mac)| {
        (format!("{who}{n}"), mac, Ear::open(at, device, EXPERIMENT))
    });
    (name, ears.into())
}

#[test]
fn twelve_switches_stand_side_by_side_and_no_frame_crosses() {
    let hub = space();
    let mut switches = Switches(Vec::new());
    let mut all = Vec::new();
    for n in 0..SWITCHES {
        let (name, parties) = make(&hub, n);
        switches.0.push(name);
        all.push(parties);
    }
    let macs: Vec<Vec<[u8; 6]>> = all
        .iter()
        .map(|parties| parties.iter().map(|(_, mac, _)| *mac).collect())
        .collect();
    let ears: Vec<(&str, &Ear)> = all
        .iter()
        .flatten()
        .map(|(name, _, ear)| (name.as_str(), ear))
        .collect();
    let heard = || who(&ears);
    for (n, parties) in all.iter().enumerate() {
        let names: Vec<&str> = parties.iter().map(|(name, _, _)| name.as_str()).collect();
        for (at, (_, mac, ear)) in parties.iter().enumerate() {
            ear.send(&frame(BROADCAST, *mac, EXPERIMENT, b"all"));
            let others: Vec<&str> = (0..3).filter(|i| *i != at).map(|i| names[i]).collect();
            assert_eq!(heard(), others, "broadcast of {}", names[at]);
            // To a party of the next switch: nobody's here.
            let next = macs[(n + 1) % macs.len()][1];
            ear.send(&frame(next, *mac, EXPERIMENT, b"next"));
            let ears = heard();
            // From the wire it is the host's to drop, perhaps unheard; all else goes to the wire.
            let expected: &[&[&str]] = match at {
                0 => &[&[], &names[1..2]],
                _ => &[&names[..1]],
            };
            assert!(expected.contains(&&ears[..]), "{}: {ears:?}", names[at]);
        }
        // The guests all have one address: each switch's own gets it.
        parties[0]
            .2
            .send(&frame(macs[n][2], macs[n][0], EXPERIMENT, b"own"));
        assert_eq!(heard(), [names[2]]);
    }
}
