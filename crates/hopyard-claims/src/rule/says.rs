//! What the figures of a rule mean, in words.

use serde::Deserialize;

use crate::model::ClaimVerdict;

/// What figures mean, by how they lie to the bounds.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Says {
    /// All are within.
    pub inside: String,
    /// Some are outside.
    pub outside: String,
    /// Neither is shown.
    pub across: String,
}

impl Says {
    /// The words for figures that lie like that; none where there are no figures.
    pub(crate) fn of(&self, verdict: ClaimVerdict) -> Option<&str> {
        match verdict {
            ClaimVerdict::Holds => Some(&self.inside),
            ClaimVerdict::Fails => Some(&self.outside),
            ClaimVerdict::Undecided => Some(&self.across),
            ClaimVerdict::Untestable => None,
        }
    }
}
