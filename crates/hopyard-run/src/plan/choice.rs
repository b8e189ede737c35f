//! The paths of a plan: those that this host can build, and why it cannot build the others.

use super::{Part, Paths, Plan};
use crate::lab::{self, PATHS};

/// The paths of a part.
pub(super) struct Chosen {
    /// Paths that this host can build.
    pub(super) there: Vec<&'static lab::Path>,
    /// Paths that it cannot build, with the reason.
    pub(super) missing: Vec<(&'static lab::Path, String)>,
}

impl Chosen {
    /// Both.
    pub(super) fn all(&self) -> impl Iterator<Item = &'static lab::Path> {
        let missing = self.missing.iter().map(|(path, _)| *path);
        self.there.iter().copied().chain(missing)
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

/// What "all" means: every path that need not be named.
pub(super) fn all_paths() -> impl Iterator<Item = &'static lab::Path> {
    PATHS.iter().copied().filter(|path| !path.by_name_only)
}

/// Available paths. A named path that cannot be built is an error, unless the plan leaves those out.
///
/// # Errors
/// There is no such path, it cannot be built but must be, or it lacks the only peer.
pub(super) fn choose_paths(part: &Part, plan: &Plan) -> Result<Chosen, lab::Error> {
    let mut chosen = Chosen {
        there: Vec::new(),
        missing: Vec::new(),
    };
    match &part.paths {
        Paths::All => {
            let uplink = plan.endpoints.as_ref().and_then(|e| e.uplink.as_ref());
            let fits = |path: &lab::Path| uplink.is_none() || path.crosses_cable;
            for path in all_paths().filter(|path| fits(path)) {
                chosen.add(path)?;
            }
        }
        Paths::Named(names) => {
            for name in names {
                let path = lab::path(name)?;
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
                if !chosen.all().any(|other| other.name == path.name) {
                    chosen.add(path)?;
                }
            }
        }
    }
    Ok(chosen)
}
