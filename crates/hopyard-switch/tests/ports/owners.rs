//! Who gets the frames to an address while its owners change: the programs remember the port that they found last.

use crate::frames::{EXPERIMENT, frame};
use crate::listen::{Ear, who};
use crate::site::{Site, guest_mac};

/// The program remembers at the first frame whom it found, and uses that for the next ones.
const FRAMES: usize = 3;

/// Who hears frames that a guest sends to an address, one after another.
fn receivers(site: &Site, sender: usize, to: [u8; 6]) -> Vec<String> {
    let names: Vec<String> = (0..site.guests.len())
        .map(|n| format!("guest {n}"))
        .collect();
    let ears: Vec<Ear> = site
        .guests
        .iter()
        .map(|ns| Ear::open(ns, "eth0", EXPERIMENT))
        .collect();
    let wire = Ear::open(&site.far, "far0", EXPERIMENT);
    let others = names
        .iter()
        .map(String::as_str)
        .zip(&ears)
        .enumerate()
        .filter(|(n, _)| *n != sender);
    let mut places: Vec<(&str, &Ear)> = others.map(|(_, place)| place).collect();
    places.push(("wire", &wire));
    let from = site.guests[sender].link("eth0").unwrap().mac.unwrap();
    let mut heard = Vec::new();
    for _ in 0..FRAMES {
        ears[sender].send(&frame(to, from, EXPERIMENT, b"to its owner"));
        heard.extend(who(&places).into_iter().map(str::to_owned));
    }
    heard
}

#[test]
fn frames_follow_an_address_from_one_port_to_another() {
    let site = Site::silent("owners", 3);
    site.connect(false, |_, _| {});
    let address = guest_mac(1);
    assert_eq!(receivers(&site, 0, address), ["guest 1"; FRAMES]);
    site.remove(1);
    assert_eq!(receivers(&site, 0, address), ["wire"; FRAMES]);
    // Another guest has the address now, at the place of the port that is gone.
    site.remove(2);
    site.guests[2].set_mac("eth0", address).unwrap();
    site.add(2, |_| {});
    assert_eq!(receivers(&site, 0, address), ["guest 2"; FRAMES]);
    // The two ports change their places and addresses.
    site.remove(2);
    site.add(1, |_| {});
    site.guests[2].set_mac("eth0", guest_mac(2)).unwrap();
    site.add(2, |_| {});
    assert_eq!(receivers(&site, 0, address), ["guest 1"; FRAMES]);
    assert_eq!(receivers(&site, 0, guest_mac(2)), ["guest 2"; FRAMES]);
}

#[test]
fn addresses_of_one_end_are_told_apart() {
    let site = Site::silent("ends", 3);
    // They are remembered at one place.
    let [a, b, c, _, e, f] = guest_mac(1);
    let other = [a, b, c, 0x77, e, f];
    site.guests[2].set_mac("eth0", other).unwrap();
    site.connect(false, |_, _| {});
    for _ in 0..2 {
        assert_eq!(receivers(&site, 0, guest_mac(1)), ["guest 1"; FRAMES]);
        assert_eq!(receivers(&site, 0, other), ["guest 2"; FRAMES]);
        assert_eq!(receivers(&site, 0, [a, b, c, 0x78, e, f]), ["wire"; FRAMES]);
    }
}

#[test]
fn one_address_in_two_vlans_is_two_guests() {
    let site = Site::silent("vlans", 4);
    site.guests[2].set_mac("eth0", guest_mac(1)).unwrap();
    site.connect(false, |n, port| port.vlan = (n >= 2).then_some(7));
    for _ in 0..2 {
        assert_eq!(receivers(&site, 0, guest_mac(1)), ["guest 1"; FRAMES]);
        assert_eq!(receivers(&site, 3, guest_mac(1)), ["guest 2"; FRAMES]);
    }
}
