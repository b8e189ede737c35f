//! A sweep of offloads: which combinations there are, what the kernel makes of them, and what came of it.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Axes, LoadKind, OffloadFlag, Peer, Switch, VerdictReport};

/// All offloads on or off, but for some flags.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct OffloadChange {
    /// What every flag is set to that can be changed.
    pub rest: Switch,
    /// Flags that are set the other way.
    pub flags: Vec<OffloadFlag>,
}

impl OffloadChange {
    /// All of them on or off.
    #[must_use]
    pub fn all(rest: Switch) -> Self {
        Self::but(rest, &[])
    }

    /// All on or off but for these.
    #[must_use]
    pub fn but(rest: Switch, flags: &[OffloadFlag]) -> Self {
        Self {
            rest,
            flags: ordered(|flag| flags.contains(&flag)),
        }
    }

    /// What these axes ask for; `None` where they leave offloads alone.
    #[must_use]
    pub fn of(axes: &Axes) -> Option<Self> {
        let rest = axes.offload?;
        let other = |flag| axes.offload_named(flag) == Some(rest.other());
        Some(Self {
            rest,
            flags: ordered(other),
        })
    }

    /// These axes with this choice of offloads in place of their own.
    #[must_use]
    pub fn with(&self, axes: &Axes) -> Axes {
        let mut axes = axes.clone();
        axes.offload = Some(self.rest);
        for flag in OffloadFlag::ALL {
            let own = self.flags.contains(&flag).then(|| self.rest.other());
            *axes.offload_named_mut(flag) = own;
        }
        axes
    }

    /// What it is compared with: the same without flags of its own; for all off, all on.
    #[must_use]
    pub fn base(&self) -> Self {
        Self::all(if self.flags.is_empty() {
            Switch::On
        } else {
            self.rest
        })
    }

    /// The flags set the other way, as `tso and gso off`.
    #[must_use]
    pub fn flags_in_words(&self) -> String {
        format!("{} {}", listed(&self.flags), self.rest.other())
    }
}

/// The flags that are so, in the order of [`OffloadFlag::ALL`].
fn ordered(is_so: impl Fn(OffloadFlag) -> bool) -> Vec<OffloadFlag> {
    OffloadFlag::ALL.into_iter().filter(|f| is_so(*f)).collect()
}

/// `tso`, `tso and gso`, `tso, gso and gro`.
#[must_use]
pub fn listed(flags: &[OffloadFlag]) -> String {
    let names: Vec<&str> = flags.iter().map(|flag| flag.name()).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

impl fmt::Display for OffloadChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.flags.is_empty() {
            write!(f, "all {}", self.rest)
        } else {
            write!(f, "{}, rest {}", self.flags_in_words(), self.rest)
        }
    }
}

/// What the kernel makes of each combination, as read back from labs before anything is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OffloadSurvey {
    /// The flags as this host sets them where nothing is asked for. Older runs do not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub now: Vec<OffloadNow>,
    /// Flags that no device of the way lets one change.
    pub fixed: Vec<FixedOffload>,
    /// Every combination of the others that is of interest.
    pub combinations: Vec<OffloadCombination>,
}

/// A flag on the devices of the way as they are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OffloadNow {
    /// The flag.
    pub flag: OffloadFlag,
    /// `on`, `off`, or `mixed` where devices differ.
    pub state: String,
}

/// A flag that cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FixedOffload {
    /// The flag that cannot be changed.
    pub flag: OffloadFlag,
    /// `on`, `off`, or `mixed` where devices differ.
    pub state: String,
}

/// A combination of offloads. With neither `same_as` nor `refused` it has a cell for each load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OffloadCombination {
    /// What was asked for.
    pub change: OffloadChange,
    /// Flags that read back other than with all on, on some device of the way.
    pub changed: Vec<OffloadFlag>,
    /// It reads back like this one and is not measured again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<OffloadChange>,
    /// It cannot be had: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl OffloadCombination {
    /// Has it cells of its own?
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.same_as.is_none() && self.refused.is_none()
    }
}

/// What a sweep of offloads showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OffloadReport {
    /// What the kernel makes of each combination.
    #[serde(flatten)]
    pub survey: OffloadSurvey,
    /// Flags switched off as well where another is off already: do they interact?
    pub contrasts: Vec<OffloadContrast>,
    /// What it amounts to, for each load.
    pub findings: Vec<OffloadFinding>,
}

/// Two flags off over one of them off, the rest on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OffloadContrast {
    /// The traffic.
    pub load: LoadKind,
    /// Whom the endpoint talks to.
    pub peer: Peer,
    /// What is switched off as well.
    pub flag: OffloadFlag,
    /// What is off in both.
    pub given: OffloadFlag,
    /// Name of the quantity → comparison, judged in one table with those of the cells.
    pub verdicts: BTreeMap<String, VerdictReport>,
}

/// Which flag matters, by the verdicts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OffloadFinding {
    /// The traffic.
    pub load: LoadKind,
    /// Whom the endpoint talks to.
    pub peer: Peer,
    /// The flag that does most when it alone is switched off; absent where none is shown to do anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<OffloadFlag>,
    /// Other flags whose intervals overlap that one's: which does more is not shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_told_apart: Vec<OffloadFlag>,
    /// Name of the quantity → what switching it off does to that, where a difference is shown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub verdicts: BTreeMap<String, VerdictReport>,
    /// The finding in words.
    pub sentence: String,
    /// What else the verdicts show: interactions, what goes off with what, all off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use OffloadFlag::{Gro, Gso, Tso, TxChecksum};

    #[test]
    fn a_change_is_said_and_read_back() {
        for (change, text) in [
            (OffloadChange::all(Switch::On), "all on"),
            (OffloadChange::but(Switch::On, &[Tso]), "tso off, rest on"),
            (
                OffloadChange::but(Switch::Off, &[Tso, TxChecksum]),
                "tx_checksum and tso on, rest off",
            ),
            (
                OffloadChange::but(Switch::On, &[Gro, Gso, Tso]),
                "tso, gso and gro off, rest on",
            ),
        ] {
            assert_eq!(change.to_string(), text);
            let axes = change.with(&Axes::default());
            assert_eq!(OffloadChange::of(&axes), Some(change));
        }
        assert_eq!(OffloadChange::of(&Axes::default()), None);
    }
}
