//! The paths of a plan: those that this host can build, and why it cannot build the others.

use super::{Part, Paths, Plan};
use crate::lab::{self, PATHS};
use crate::model::LoadKind;

/// The paths of a part.
#[derive(Default)]
pub(super) struct Chosen {
    /// Paths that this host can build.
    pub(super) there: Vec<&'static lab::Path>,
    /// Paths that it cannot build, or that carry none of the loads, with the reason.
    pub(super) missing: Vec<(&'static lab::Path, String)>,
    /// Loads that some of the others do not carry, with the reason.
    pub(super) without: Vec<(&'static lab::Path, LoadKind, String)>,
}

impl Chosen {
    /// Both.
    pub(super) fn all(&self) -> impl Iterator<Item = &'static lab::Path> {
        let missing = self.missing.iter().map(|(path, _)| *path);
        self.there.iter().copied().chain(missing)
    }

    /// Adds a path that was not named: the loads that it does not carry are left out.
    fn add_of_all(
        &mut self,
        path: &'static lab::Path,
        loads: &[LoadKind],
    ) -> Result<(), lab::Error> {
        let refused = refused(path, loads);
        if refused.len() == loads.len() {
            let why = refused.into_iter().next().map(|(_, why)| why);
            self.missing.extend(why.map(|why| (path, why)));
            return Ok(());
        }
        self.add(path)?;
        if self.there.iter().any(|there| there.name == path.name) {
            let without = refused.into_iter().map(|(load, why)| (path, load, why));
            self.without.extend(without);
        }
        Ok(())
    }

    /// Does a path have cells of this load?
    pub(super) fn carries(&self, path: &lab::Path, load: LoadKind) -> bool {
        let mut without = self.without.iter();
        !without.any(|(other, refused, _)| other.name == path.name && *refused == load)
    }

    /// Adds a path, as buildable or with the reason why it is not.
    fn add(&mut self, path: &'static lab::Path) -> Result<(), lab::Error> {
        match path.available() {
            Ok(()) => self.there.push(path),
            Err(e) if e.is_unsupported() => self.missing.push((path, e.lacks())),
            Err(e) => return Err(e),
        }
        Ok(())
    }
}

/// The loads that a path does not carry, and why.
fn refused(path: &lab::Path, loads: &[LoadKind]) -> Vec<(LoadKind, String)> {
    let refused = |&load: &LoadKind| {
        let why = match path.check_load(load).err()? {
            lab::Error::NotCarried { why, .. } => why,
            error => error.to_string(),
        };
        Some((load, why))
    };
    loads.iter().filter_map(refused).collect()
}

/// What "all" means: every path that need not be named.
pub(super) fn all_paths() -> impl Iterator<Item = &'static lab::Path> {
    PATHS.iter().copied().filter(|path| !path.by_name_only)
}

/// Available paths. A named path that cannot be built is an error, unless the plan leaves those out.
///
/// # Errors
/// There is no such path, it cannot be built but must be, or it lacks the only peer.
pub(super) fn choose_paths(part: &Part, plan: &Plan) -> Result<Chosen, lab::Error> {
    let mut chosen = Chosen::default();
    if matches!(part.paths, Paths::All(_)) {
        let uplink = plan.endpoints.as_ref().and_then(|e| e.uplink.as_ref());
        let fits = |path: &lab::Path| uplink.is_none() || path.crosses_cable;
        let named = part.paths.named();
        let is_named = |path: &lab::Path| named.iter().any(|name| name == path.name);
        for path in all_paths().filter(|path| fits(path)) {
            if is_named(path) {
                chosen.add(path)?;
            } else {
                chosen.add_of_all(path, &part.loads)?;
            }
        }
    }
    for name in part.paths.named() {
        let path = lab::path(name)?;
        check_named(path, part, plan)?;
        if !chosen.all().any(|other| other.name == path.name) {
            chosen.add(path)?;
        }
    }
    Ok(chosen)
}

/// Checks that a path can be what its name asks for.
fn check_named(path: &lab::Path, part: &Part, plan: &Plan) -> Result<(), lab::Error> {
    if !plan.where_installed {
        path.available()?;
    }
    if !path.is_built && plan.endpoints.is_none() {
        return Err(lab::Error::NoEndpoints { path: path.name });
    }
    // If only one peer is asked for, each named path must have it.
    if let [peer] = part.peers[..] {
        path.check(peer)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Peer;
    use crate::plan;

    #[test]
    fn all_and_a_name_are_all_and_that_path() {
        let mut plan = plan::find("paths").unwrap();
        plan.where_installed = true;
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let part = Part {
                paths: Paths::from_names(&names),
                peers: vec![Peer::Local],
                loads: vec![LoadKind::TcpRr],
                set: Vec::new(),
            };
            let mut paths: Vec<_> = choose_paths(&part, &plan)?
                .all()
                .map(|path| path.name)
                .collect();
            paths.sort_unstable();
            Ok::<_, lab::Error>(paths)
        };
        let all = of(&["all"]).unwrap();
        assert!(!all.contains(&"bridge-nat"));
        for names in [["all", "bridge-nat"], ["bridge-nat", "all"]] {
            let mut more = of(&names).unwrap();
            assert!(more.contains(&"bridge-nat"));
            more.retain(|name| *name != "bridge-nat");
            assert_eq!(more, all);
        }
        assert_eq!(of(&["all", "veth"]).unwrap(), all);
        assert!(of(&["all", "wormhole"]).is_err());
    }

    /// Whoever asks for all paths need not know which of them do not carry a load.
    #[test]
    fn loads_that_a_path_does_not_carry_are_known() {
        let ipsec = lab::path("ipsec").unwrap();
        let (streams, gso) = (LoadKind::UdpStream, LoadKind::UdpGso);
        let refused = refused(ipsec, &[streams, gso]);
        assert!(matches!(&refused[..], [(load, why)] if *load == gso && why.contains("udp_gso")));
        let chosen = Chosen {
            without: vec![(ipsec, gso, String::new())],
            ..Chosen::default()
        };
        assert!(chosen.carries(ipsec, streams) && !chosen.carries(ipsec, gso));
        assert!(chosen.carries(lab::path("veth").unwrap(), gso));
        // Nothing is left of it.
        let mut none = Chosen::default();
        none.add_of_all(ipsec, &[gso]).unwrap();
        assert!(none.there.is_empty() && none.missing.len() == 1 && none.without.is_empty());
    }
}
