//! What a check is about: quantities, cells and paths.

use super::{Check, Judge};
use crate::model::Base;
use crate::select::Selection;
use crate::what::What;

impl Check {
    /// What of the cells that it is compared with, where it is something else than of its own.
    pub(crate) fn of_base(&self) -> Option<&What> {
        match &self.judge {
            Judge::Ratio { to_quantity, .. } => to_quantity.as_ref(),
            _ => None,
        }
    }

    /// The paths that it names: of its cells, and of what they are compared with.
    pub(crate) fn named_paths(&self) -> Vec<String> {
        let cells = self.of_cells().map(|(_, cells)| cells.paths().to_vec());
        let bases = self.bases().into_iter().filter_map(|base| match base {
            Base::Path(path) => Some(path.to_owned()),
            _ => None,
        });
        cells.into_iter().flatten().chain(bases).collect()
    }

    /// What the cells are compared with.
    pub(crate) fn bases(&self) -> Vec<Base<'_>> {
        let texts: Vec<&String> = match &self.judge {
            Judge::Ratio { to, .. } => to.iter().collect(),
            Judge::Share { without, base, .. } => vec![without, base],
            Judge::Corrected { to, less, .. } => vec![to, less],
            Judge::Curve { to, .. } => to.iter().collect(),
            _ => Vec::new(),
        };
        texts
            .into_iter()
            .filter_map(|text| Base::parse(text).ok())
            .collect()
    }

    /// The parts of it that are about some paths: their cells, and of ratios the other cells over theirs.
    pub(crate) fn of_paths(&self, wanted: &dyn Fn(&str) -> bool) -> Vec<Self> {
        let mut own = self.clone();
        let mut parts = Vec::new();
        match &mut own.judge {
            Judge::Ratio { cells, .. }
            | Judge::Level { cells, .. }
            | Judge::Share { cells, .. }
            | Judge::Corrected { cells, .. }
            | Judge::Peak { cells, .. }
            | Judge::Curve { cells, .. } => {
                if let Some(of_paths) = cells.of_paths(wanted) {
                    *cells = of_paths;
                    parts.push(own);
                }
            }
            Judge::Does { .. } | Judge::Bench { .. } | Judge::Missing { .. } => {}
        }
        let mut over = self.clone();
        if let Judge::Ratio { cells, to, .. } = &mut over.judge {
            to.retain(|base| matches!(Base::parse(base), Ok(Base::Path(path)) if wanted(path)));
            if let (Some(others), false) = (cells.of_paths(&|path| !wanted(path)), to.is_empty()) {
                *cells = others;
                parts.push(over);
            }
        }
        parts
    }

    /// What is measured of which cells, where it is of cells.
    pub(crate) fn of_cells(&self) -> Option<(&What, &Selection)> {
        match &self.judge {
            Judge::Ratio {
                quantity, cells, ..
            }
            | Judge::Level { quantity, cells }
            | Judge::Share {
                quantity, cells, ..
            }
            | Judge::Corrected {
                quantity, cells, ..
            }
            | Judge::Peak {
                quantity, cells, ..
            }
            | Judge::Curve {
                quantity, cells, ..
            } => Some((quantity, cells)),
            Judge::Does { .. } | Judge::Bench { .. } | Judge::Missing { .. } => None,
        }
    }
}
