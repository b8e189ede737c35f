//! Where the programs of path `direct` run.

use hopyard::lab::{Lab, role};
use hopyard::model::{Hook, LoadKind, Peer};
use hopyard_net::Side;

use crate::support::{beside, cell, proved};

#[test]
fn the_direct_switch_runs_where_it_is_asked_to() {
    let _beside = beside();
    let classifiers = |lab: &Lab| {
        let hub = &lab.space(role::HUB).unwrap().handle;
        let links = hub.links().unwrap();
        let at = |side| {
            links
                .iter()
                .flat_map(move |link| hub.classifiers(&link.name, side).unwrap())
        };
        at(Side::Ingress).chain(at(Side::Egress)).count()
    };
    for peer in Peer::ALL {
        for (ports, set, wanted) in [
            ("2", None, Hook::Tcx),
            ("2", Some("tcx"), Hook::Tcx),
            ("2", Some("clsact"), Hook::Clsact),
            ("65", None, Hook::Clsact),
        ] {
            let mut axes = vec![("ports", ports)];
            axes.extend(set.map(|hook| ("hook", hook)));
            let cell = cell("direct", peer, LoadKind::TcpRr, &axes);
            let path = hopyard::lab::path("direct").unwrap();
            let lab = Lab::build(path, peer, &cell.axes).unwrap();
            let what = format!("{peer}, {ports} ports, {set:?}");
            let datapath = lab.datapath().unwrap();
            assert_eq!(datapath.hook, Some(wanted), "{what}");
            assert_eq!(classifiers(&lab) > 0, wanted == Hook::Clsact, "{what}");
            if ports == "2" {
                proved(&lab, &cell, 150).unwrap();
            }
        }
    }
}
