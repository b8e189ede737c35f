//! What a guest is given for a plan: what its labs need, and no more, since each module takes an emulated CPU a moment to load.

use std::collections::BTreeSet;

use super::choice::all_paths;
use super::expand::combinations;
use super::{Part, Paths, Plan};
use crate::lab::{self, paths::Carried};

/// What a machine must carry to build every lab of a plan, whatever this host can build. Unknown names and
/// wrong values add nothing: the guest refuses such a plan.
pub(crate) fn carried(plan: &Plan) -> BTreeSet<Carried> {
    plan.parts.iter().flat_map(of_part).collect()
}

fn of_part(part: &Part) -> BTreeSet<Carried> {
    let combinations = combinations(part).unwrap_or_default();
    let paths = paths(part);
    let of_path = |path: &&'static lab::Path| {
        let path = *path;
        combinations.iter().flat_map(|axes| path.carried(axes))
    };
    paths.iter().flat_map(of_path).collect()
}

fn paths(part: &Part) -> Vec<&'static lab::Path> {
    let all = matches!(part.paths, Paths::All(_)).then(all_paths);
    let named = part.paths.named().iter();
    let named = named.filter_map(|name| lab::path(name).ok());
    all.into_iter().flatten().chain(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LoadKind, Peer};

    fn modules(paths: Paths, set: &[(&str, &[&str])]) -> BTreeSet<&'static str> {
        let owned = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
        let part = Part {
            paths,
            peers: vec![Peer::Local],
            loads: vec![LoadKind::TcpRr],
            set: set
                .iter()
                .map(|&(axis, values)| (axis.to_owned(), owned(values)))
                .collect(),
        };
        let carried = of_part(&part);
        let modules = carried.iter().flat_map(|carried| carried.modules);
        modules.copied().collect()
    }

    #[test]
    fn a_guest_is_given_what_its_labs_need() {
        let only = |path: &str| Paths::Named(vec![path.to_owned()]);
        // What TCP loads have unless somebody sets another.
        let with_cubic =
            |more: &[&'static str]| more.iter().copied().chain(["tcp_cubic"]).collect();
        let bridge = modules(only("bridge"), &[]);
        assert_eq!(bridge, with_cubic(&["bridge", "veth"]));
        let filtered = modules(only("bridge"), &[("rules", &["0", "10"])]);
        assert_eq!(filtered, with_cubic(&["bridge", "nf_tables", "veth"]));
        let chain = modules(only("forward"), &[("segments", &["veth", "macvlan"])]);
        assert_eq!(chain, with_cubic(&["macvlan", "veth"]));
        let set = modules(only("veth"), &[("congestion", &["htcp", "bbr"])]);
        assert_eq!(set, BTreeSet::from(["tcp_bbr", "tcp_htcp", "veth"]));
        assert_eq!(modules(only("wormhole"), &[]), BTreeSet::new());
    }

    #[test]
    fn all_paths_are_those_that_need_not_be_named() {
        let all = modules(Paths::All(Vec::new()), &[]);
        for module in ["bridge", "vxlan", "netkit", "wireguard"] {
            assert!(all.contains(module), "{module}");
        }
    }
}
