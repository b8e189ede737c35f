//! What a guest can do while its switch is applied anew: nothing.

use super::*;

/// `p0` with an address that the file does not name.
const OWN: [u8; 6] = [2, 0, 0, 0, 0, 0xaa];

/// The Ethernet addresses that the switch has for `p0`.
fn macs_of_p0(site: &Site) -> Value {
    let (_, port) = ports(site)
        .into_iter()
        .find(|(name, _)| name == "p0")
        .unwrap();
    port["macs"].clone()
}

#[test]
fn a_guest_that_changes_its_address_is_not_believed() {
    apart(|| {
        let site = Site::new();
        let files = Files::new();
        let file = files.write(TWO);
        apply(&site, &file, &[]).exits(0);
        let before = macs_of_p0(&site);
        let inside = Handle::new(&site.guests[0]).unwrap();
        inside.set_mac("eth0", OWN).unwrap();
        let own = hopyard_switch::Mac(OWN);
        let words = [
            format!(
                "lan: port `p0` has {}, but its guest now has {own}, ",
                before[0].as_str().unwrap()
            ),
            "lan: nothing to do".to_owned(),
        ];
        apply(&site, &file, &[])
            .exits(0)
            .prints(&words.each_ref().map(String::as_str));
        // Nor where its port has to be made anew.
        let file = files.write(&TWO.replace("device = \"p0\"", "device = \"p0\"\nvlan = 9"));
        apply(&site, &file, &[]).exits(0).prints(&["2 steps taken"]);
        assert_eq!(macs_of_p0(&site), before);
        // Its operator may say so.
        let given = format!("device = \"p0\"\nmac = \"{own}\"");
        let file = files.write(&TWO.replace("device = \"p0\"", &given));
        let said = apply(&site, &file, &[]);
        said.exits(0);
        assert!(!said.stdout.contains("its guest"), "{}", said.stdout);
        assert_eq!(macs_of_p0(&site), serde_json::json!([own.to_string()]));
        site.switch(&["delete", NAME]).exits(0);
    });
}

/// A program stands between the guest and the host's stack all the time.
#[test]
fn a_port_that_is_made_anew_never_leads_to_the_host() {
    apart(|| {
        let site = Site::new();
        let files = Files::new();
        apply(&site, &files.write(TWO), &[]).exits(0);
        let host: Ipv4Addr = [198, 51, 100, 1].into();
        let hub = Handle::new(&site.hub).unwrap();
        hub.add_address("p0", host.into(), 24).unwrap();
        let inside = Handle::new(&site.guests[0]).unwrap();
        inside
            .add_address("eth0", [198, 51, 100, 2].into(), 24)
            .unwrap();
        let mac = hub.link("p0").unwrap().mac.unwrap();
        inside.add_neighbour("eth0", host.into(), mac).unwrap();
        let bind = || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 9000)).unwrap();
        let receiver = site.hub.run(bind).unwrap();
        receiver.set_nonblocking(true).unwrap();
        let sender = site.guests[0].run(bind).unwrap();
        sender.connect((host, 9000)).unwrap();
        let stop = AtomicBool::new(false);
        let sent = std::thread::scope(|scope| {
            let sending = scope.spawn(|| {
                let mut sent = 0_u32;
                let began = Instant::now();
                while !stop.load(Relaxed) && began.elapsed() < Duration::from_secs(60) {
                    sent += u32::from(sender.send(b"in").is_ok());
                    std::thread::sleep(Duration::from_micros(50));
                }
                sent
            });
            let swapped = TWO
                .replace("192.0.2.1", "192.0.2.9")
                .replace("192.0.2.2", "192.0.2.1")
                .replace("192.0.2.9", "192.0.2.2");
            for _ in 0..5 {
                // Alone, and where addresses move between two ports.
                for text in [
                    &TWO.replace("device = \"p0\"", "device = \"p0\"\nvlan = 9"),
                    TWO,
                    &swapped,
                    TWO,
                ] {
                    apply(&site, &files.write(text), &[])
                        .exits(0)
                        .prints(&["remove port `p0`, to add it again"]);
                }
            }
            stop.store(true, Relaxed);
            sending.join().unwrap()
        });
        let mut datagram = [0; 2];
        let arrived = std::iter::from_fn(|| receiver.recv(&mut datagram).ok()).count();
        tell(&format!(
            "{sent} datagrams to the host's end, {arrived} arrived"
        ));
        assert!(sent > 1000, "{sent}");
        assert_eq!(arrived, 0);
        // They would arrive without a program.
        site.switch(&["delete", NAME]).exits(0);
        let began = Instant::now();
        while receiver.recv(&mut datagram).is_err() {
            assert!(began.elapsed() < Duration::from_secs(5));
            sender.send(b"in").unwrap();
        }
    });
}
