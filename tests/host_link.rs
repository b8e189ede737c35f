//! How the host is on a bridge: by the bridge's own device, or by a veth pair (axis `host_link`).

use hopyard::lab::role;
use hopyard::model::{LoadKind, Peer};

use crate::axes::build;
use crate::support::{beside, cell, proved};

/// Either way the traffic goes by the devices that are named and by no others, with both families, from the first packet on.
#[test]
fn the_host_is_on_a_bridge_by_its_device_or_by_a_pair() {
    let _beside = beside();
    for (path, link, family, device) in [
        ("bridge", "device", "4", "br0"),
        ("bridge", "device", "6", "br0"),
        ("bridge", "pair", "4", "host0"),
        ("bridge", "pair", "6", "host0"),
        ("bridge-nf", "pair", "4", "host0"),
    ] {
        let set = [("host_link", link), ("family", family)];
        for load in [LoadKind::TcpRr, LoadKind::TcpMaerts] {
            let cell = cell(path, Peer::Host, load, &set);
            let lab = build(&cell).unwrap();
            proved(&lab, &cell, 200)
                .unwrap_or_else(|why| panic!("{path} {link} IPv{family}: {why}"));
            let hub = &lab.space(role::HUB).unwrap().handle;
            let with_address = |name: &str| {
                let index = hub.link(name).ok().map(|link| link.index);
                let addresses = hub.addresses().unwrap();
                addresses.iter().any(|(of, _)| Some(*of) == index)
            };
            for name in ["br0", "host0"] {
                assert_eq!(with_address(name), name == device, "{path} {link}: {name}");
            }
        }
    }
}
