//! A sweep of offloads: the combinations, the state that the kernel makes of each, and the results.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Axes, LoadKind, OffloadFlag, Peer, Switch, VerdictReport};

/// All offloads on or off, except some flags.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct OffloadChange {
    /// State of every other flag that can be changed.
    pub rest: Switch,
    /// Flags with the opposite state.
    pub flags: Vec<OffloadFlag>,
}

impl OffloadChange {
    /// All of them on or off.
    #[must_use]
    pub fn all(rest: Switch) -> Self {
        Self::but(rest, &[])
    }

    /// All on or off, except these.
    #[must_use]
    pub fn but(rest: Switch, flags: &[OffloadFlag]) -> Self {
        Self {
            rest,
            flags: ordered(|flag| flags.contains(&flag)),
        }
    }

    /// The offloads that these axes ask for; `None` if they leave them alone.
    #[must_use]
    pub fn of(axes: &Axes) -> Option<Self> {
        let rest = axes.offload?;
        let other = |flag| axes.offload_named(flag) == Some(rest.other());
        Some(Self {
            rest,
            flags: ordered(other),
        })
    }

    /// These axes with this choice of offloads instead of their own.
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

    /// Its base: the same without exceptions; for all off, all on.
    #[must_use]
    pub fn base(&self) -> Self {
        Self::all(if self.flags.is_empty() {
            Switch::On
        } else {
            self.rest
        })
    }

    /// The exceptions in words: `tso and gso off`.
    #[must_use]
    pub fn flags_in_words(&self) -> String {
        format!("{} {}", listed(&self.flags), self.rest.other())
    }
}

/// The flags with this property, in the order of [`OffloadFlag::ALL`].
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

/// The state that the kernel makes of each combination, read back from labs before anything is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OffloadSurvey {
    /// The flags as this host sets them by default. Absent in older runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub now: Vec<OffloadNow>,
    /// Flags that no device of the path allows to change.
    pub fixed: Vec<FixedOffload>,
    /// The relevant combinations of the other flags.
    pub combinations: Vec<OffloadCombination>,
}

/// A flag on the devices of the path, by default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OffloadNow {
    /// The flag.
    pub flag: OffloadFlag,
    /// `on`, `off`, or `mixed` if devices differ.
    pub state: String,
}

/// A flag that cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FixedOffload {
    /// The flag that cannot be changed.
    pub flag: OffloadFlag,
    /// `on`, `off`, or `mixed` if devices differ.
    pub state: String,
}

/// A combination of offloads. Without `same_as` and `refused` it has a cell for each load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OffloadCombination {
    /// The combination asked for.
    pub change: OffloadChange,
    /// Flags that read back differently from all on, on some device of the path.
    pub changed: Vec<OffloadFlag>,
    /// It reads back like this one, which is measured instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<OffloadChange>,
    /// Why the kernel refuses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl OffloadCombination {
    /// Whether it has cells of its own.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.same_as.is_none() && self.refused.is_none()
    }
}

/// The result of a sweep of offloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OffloadReport {
    /// The state that the kernel makes of each combination.
    #[serde(flatten)]
    pub survey: OffloadSurvey,
    /// Flags switched off while another one is off already, which shows whether they interact.
    pub contrasts: Vec<OffloadContrast>,
    /// The result for each load.
    pub findings: Vec<OffloadFinding>,
}

/// Two flags off compared with one of them off, the rest on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OffloadContrast {
    /// The load.
    pub load: LoadKind,
    /// Where the other end is.
    pub peer: Peer,
    /// The flag that is switched off in addition.
    pub flag: OffloadFlag,
    /// The flag that is off in both.
    pub given: OffloadFlag,
    /// Name of the quantity → comparison, judged in one table with those of the cells.
    pub verdicts: BTreeMap<String, VerdictReport>,
}

/// Which flag matters, by the verdicts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OffloadFinding {
    /// The load.
    pub load: LoadKind,
    /// Where the other end is.
    pub peer: Peer,
    /// The flag with the greatest effect when it alone is switched off; absent if none is shown to have an effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<OffloadFlag>,
    /// Other flags whose intervals overlap that one's, so that the order is not shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_told_apart: Vec<OffloadFlag>,
    /// Name of the quantity → effect of switching the flag off, if a difference is shown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub verdicts: BTreeMap<String, VerdictReport>,
    /// The finding in words.
    pub sentence: String,
    /// Further results: interactions, flags that go off together, all off.
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
