//! Ports that are no pair: taps, and what the kernel or the switch refuses.

use std::process::Command;
use std::time::{Duration, Instant};

use hopyard_net::{BridgeSettings, Error, LinkKind, MacvlanMode, NetkitLayer, NewLink};
use hopyard_switch::{Mac, NewPort, NewSwitch, Switch};

use crate::frames::{BROADCAST, EXPERIMENT, IPV6, frame, tagged};
use crate::listen::Ear;
use crate::site::{FAR_MAC, Site, guest_mac, space};
use crate::skip::skip;
use crate::world::tap::{TAP, TUN, Tap};

const VLAN_TAG: u16 = 0x8100;
const TAP_MAC: [u8; 6] = [2, 0, 0, 0, 0, 99];

#[test]
fn a_tap_is_a_port_like_another() {
    let site = Site::new("tap", 1);
    let tap = Tap::open(&site.hub, "tap0", TAP);
    site.connect(false, |_, _| {});
    let port = |macs| NewPort {
        device: "tap0",
        macs,
        ..NewPort::default()
    };
    // Nobody can read the address of a guest behind a tap.
    let error = site.switch(|switch| switch.add_port(&port(Vec::new())).unwrap_err());
    assert!(
        error.is_usage()
            && matches!(&error, hopyard_switch::Error::NoGuestMac { device, .. } if device == "tap0"),
        "{error}"
    );
    site.switch(|switch| switch.add_port(&port(vec![Mac(TAP_MAC)])).unwrap());
    let shown = site.show();
    let shown = shown
        .ports
        .iter()
        .find(|port| port.device == "tap0")
        .unwrap();
    assert!(!shown.direct && shown.macs == [Mac(TAP_MAC)]);

    let parties = [
        (Ear::open(&site.guests[0], "eth0", EXPERIMENT), guest_mac(0)),
        (Ear::open(&site.far, "far0", EXPERIMENT), FAR_MAC),
        (Ear::open(&site.hub, "up0", EXPERIMENT), site.host_mac()),
    ];
    for (ear, mac) in &parties {
        let to = frame(TAP_MAC, *mac, EXPERIMENT, b"to the tap");
        ear.send(&to);
        assert_eq!(tap.heard(), [to]);
        let from = frame(*mac, TAP_MAC, EXPERIMENT, b"from the tap");
        tap.send(&from);
        assert_eq!(ear.heard(), [from]);
        let all = frame(BROADCAST, *mac, EXPERIMENT, b"to all");
        ear.send(&all);
        assert_eq!(tap.heard(), [all]);
        for (other, _) in &parties {
            other.heard();
        }
    }
    tap.send(&frame(BROADCAST, TAP_MAC, EXPERIMENT, b"to all"));
    for (ear, _) in &parties {
        assert_eq!(ear.heard().len(), 1);
    }
    assert_eq!(tap.heard().len(), 0, "none back");
    tap.send(&frame(guest_mac(0), guest_mac(5), EXPERIMENT, b"lie"));
    assert_eq!(parties[0].0.heard().len(), 0);
    assert_eq!(site.drops("tap0"), [("mac", 1)]);

    // The program ends, and its tap with it: the port is forgotten, nothing goes astray.
    drop(tap);
    let (ear, mac) = &parties[0];
    ear.send(&frame(TAP_MAC, *mac, EXPERIMENT, b"to nobody"));
    ear.send(&frame(BROADCAST, *mac, EXPERIMENT, b"to the rest"));
    assert_eq!(parties[2].0.heard().len(), 1);
    assert_eq!(site.show().ports.len(), 1);
    // Another one may have its name and address.
    let tap = Tap::open(&site.hub, "tap0", TAP);
    site.switch(|switch| switch.add_port(&port(vec![Mac(TAP_MAC)])).unwrap());
    ear.send(&frame(TAP_MAC, *mac, EXPERIMENT, b"again"));
    assert_eq!(tap.heard().len(), 1);
}

#[test]
fn a_tap_whose_program_stopped_reading_harms_nobody_else() {
    let site = Site::new("full", 1);
    let tap = Tap::open(&site.hub, "tap0", TAP);
    site.connect(false, |_, _| {});
    let port = NewPort {
        device: "tap0",
        macs: vec![Mac(TAP_MAC)],
        ..NewPort::default()
    };
    site.switch(|switch| switch.add_port(&port).unwrap());
    let ear = Ear::open(&site.guests[0], "eth0", EXPERIMENT);
    let wire = Ear::open(&site.far, "far0", EXPERIMENT);
    // More than its queue holds (1,000).
    for _ in 0..3000 {
        ear.send(&frame(TAP_MAC, guest_mac(0), EXPERIMENT, b"more"));
    }
    ear.send(&frame(FAR_MAC, guest_mac(0), EXPERIMENT, b"to another"));
    assert_eq!(wire.heard().len(), 1);
    tap.send(&frame(FAR_MAC, TAP_MAC, EXPERIMENT, b"still speaks"));
    assert_eq!(wire.heard().len(), 1);
    assert!(tap.heard().len() >= 500, "what the queue held");
}

/// The refusal to add a device as a port of a site's switch.
fn refusal(site: &Site, device: &str) -> String {
    let port = NewPort {
        device,
        macs: vec![Mac(TAP_MAC)],
        ..NewPort::default()
    };
    let before = site.show();
    let error = site.switch(|switch| switch.add_port(&port).unwrap_err());
    assert!(error.is_usage(), "{error:?}");
    assert_eq!(before, site.show(), "a refusal changes nothing");
    error.to_string()
}

#[test]
fn devices_whose_frames_would_not_pass_the_hook_are_refused() {
    let site = Site::new("kinds", 1);
    site.connect(false, |_, _| {});
    let lower = || "up0".to_owned();
    let mode = MacvlanMode::Bridge;
    for kind in [
        LinkKind::Macvtap {
            lower: lower(),
            mode,
        },
        LinkKind::Macvlan {
            lower: lower(),
            mode,
        },
    ] {
        let name = kind.name();
        match site.hub.add_link(&NewLink::new(name, kind)) {
            Ok(()) => {
                let says = refusal(&site, name);
                assert!(says.contains(&format!("`{name}` is a {name}")), "{says}");
                assert!(says.contains("veth or a tap"), "{says}");
                let uplink = NewSwitch {
                    name: "up-never",
                    uplink: Some(name),
                    ..NewSwitch::default()
                };
                let error = site.in_hub(|| Switch::create(&uplink).unwrap_err());
                assert!(error.is_usage(), "{error:?}");
                assert!(
                    error.to_string().contains("use the device below"),
                    "{error}"
                );
                site.hub.delete_link(name).unwrap();
            }
            Err(Error::Unsupported { feature, .. }) => assert_eq!(feature, name),
            Err(error) => panic!("{error}"),
        }
    }
    let _tun = Tap::open(&site.hub, "tun0", TUN);
    let says = refusal(&site, "tun0");
    assert!(says.contains("no Ethernet"), "{says}");
}

#[test]
fn a_port_of_a_bridge_is_no_port_of_a_switch() {
    let site = Site::new("master", 1);
    site.create(Some("up0"), false);
    let _tap = Tap::open(&site.hub, "tap0", TAP);
    let bridge = NewLink::new("br0", LinkKind::Bridge(BridgeSettings::default()));
    site.hub.add_link(&bridge).unwrap();
    for device in ["tap0", "p0"] {
        site.hub.set_master(device, "br0").unwrap();
        let says = refusal(&site, device);
        assert!(says.contains("nomaster"), "{says}");
    }
}

/// Packets that came to a device of the hub.
fn received(site: &Site, device: &str) -> u64 {
    let all = site.hub.device_stats().unwrap();
    let own = all.iter().find(|one| one.name == device).unwrap();
    own.rx_packets
}

/// For each port, in their order: does the switch's program run where the guest sends?
fn direct_out(site: &Site) -> Vec<bool> {
    let mut out = Vec::new();
    site.switch(|switch| {
        let ports = switch.show().unwrap().ports;
        out = ports.iter().map(|port| port.direct_out).collect();
    });
    out
}

#[test]
fn netkit_is_a_port_or_absent_by_name() {
    let site = Site::new("netkit", 1);
    site.connect(false, |_, _| {});
    let guest = space();
    let kind = LinkKind::Netkit {
        mode: NetkitLayer::L2,
        peer: "eth0".to_owned(),
        peer_ns: Some(guest.ns()),
        peer_mac: None,
    };
    let new = NewLink {
        up: true,
        ..NewLink::new("nk0", kind)
    };
    match site.hub.add_link(&new) {
        Ok(()) => {
            guest.set_up("eth0").unwrap();
            let port = NewPort {
                device: "nk0",
                ..NewPort::default()
            };
            site.switch(|switch| switch.add_port(&port).unwrap());
            assert_eq!(direct_out(&site), [false, true], "a veth, and the netkit");
            let mac = guest.link("eth0").unwrap().mac.unwrap();
            let ear = Ear::open(&guest, "eth0", EXPERIMENT);
            let other = Ear::open(&site.guests[0], "eth0", EXPERIMENT);
            let wire = Ear::open(&site.far, "far0", EXPERIMENT);
            other.send(&frame(mac, guest_mac(0), EXPERIMENT, b"in"));
            wire.send(&frame(mac, FAR_MAC, EXPERIMENT, b"from the wire"));
            assert_eq!(ear.heard().len(), 2);
            ear.send(&frame(guest_mac(0), mac, EXPERIMENT, b"out"));
            assert_eq!((other.heard().len(), wire.heard().len()), (1, 0));
            ear.send(&frame(FAR_MAC, mac, EXPERIMENT, b"to the wire"));
            assert_eq!((other.heard().len(), wire.heard().len()), (0, 1));
            ear.send(&frame(BROADCAST, mac, EXPERIMENT, b"to all"));
            assert_eq!((other.heard().len(), wire.heard().len()), (1, 1));
            // By the socket's word it is IPv6.
            let liar = Ear::open(&guest, "eth0", IPV6);
            // Dropped where it sends, which is an error to it.
            let sent = [
                liar.try_send(&frame(guest_mac(0), mac, EXPERIMENT, b"another type")),
                ear.try_send(&frame(guest_mac(0), guest_mac(0), EXPERIMENT, b"spoofed")),
            ];
            assert!(sent.iter().all(Result::is_err), "{sent:?}");
            assert_eq!(other.heard().len(), 0);
            assert_eq!(site.drops("nk0"), [("malformed", 1), ("mac", 1)]);
            assert_eq!(
                received(&site, "nk0"),
                1,
                "more than the broadcast came to the port"
            );
            // With a priority in front of its type, as from a bridge in the guest.
            let untagged = frame(guest_mac(0), mac, EXPERIMENT, b"with a priority");
            let bridge = Ear::open(&guest, "eth0", VLAN_TAG);
            bridge.send(&tagged(&untagged, 0xe000));
            assert_eq!((other.heard().len(), received(&site, "nk0")), (1, 2));
            // Added again at once, and by the program of another load.
            for _ in 0..3 {
                site.switch(|switch| {
                    switch.remove_port("nk0").unwrap();
                    switch.add_port(&port).unwrap();
                    switch.upgrade().unwrap();
                });
                ear.send(&frame(guest_mac(0), mac, EXPERIMENT, b"again"));
                assert_eq!((other.heard().len(), received(&site, "nk0")), (1, 2));
            }
            // Whoever is to see the frames at the port sees them.
            let queued = NewPort {
                queued: true,
                ..port.clone()
            };
            site.switch(|switch| {
                switch.remove_port("nk0").unwrap();
                switch.add_port(&queued).unwrap();
            });
            assert_eq!(direct_out(&site), [false, false]);
            let end = Instant::now() + Duration::from_secs(30);
            while received(&site, "nk0") == 2 {
                assert!(Instant::now() < end, "the guest's program stays");
                let _ = ear.try_send(&frame(guest_mac(0), mac, EXPERIMENT, b"queued"));
            }
            other.heard();
            // To the host as without a switch.
            site.switch(|switch| switch.remove_port("nk0").unwrap());
            let end = Instant::now() + Duration::from_secs(30);
            loop {
                assert!(Instant::now() < end, "frames are forwarded still");
                ear.send(&frame(guest_mac(0), mac, EXPERIMENT, b"to nobody"));
                if other.heard().is_empty() {
                    break;
                }
            }
        }
        Err(Error::Unsupported {
            feature, remedy, ..
        }) => {
            assert_eq!(feature, "netkit");
            assert!(remedy.contains("CONFIG_NETKIT"), "{remedy}");
            let add = ["--net", "ip", "link", "add", "nk0", "type", "netkit"];
            let added = Command::new("unshare").args(add).output().unwrap();
            skip("netkit", added.status.success(), &remedy);
        }
        Err(error) => panic!("{error}"),
    }
}
