//! The findings as text, based only on verdicts.

use super::{Shown, Single, Sweep, Verdicts, judged, shown};
use crate::model::{FOR_A_VERDICT, OffloadChange, OffloadFlag, Switch, listed_offloads};
use crate::stats::{Estimate, Verdict};

impl Sweep<'_> {
    /// Which flag matters, and which are not shown to.
    pub(super) fn sentence(
        &self,
        alone: &[&Single<'_>],
        leader: Option<&Single<'_>>,
        near: &[&Single<'_>],
    ) -> String {
        if self.summary.quick_look {
            return format!(
                "no flag is named: verdicts need {FOR_A_VERDICT} blocks, and this is a quick look of {}.",
                self.summary.blocks
            );
        }
        if alone.is_empty() {
            return "no flag is named: there are no figures of one alone beside those of all on."
                .to_owned();
        }
        let mut clauses = match leader {
            None => vec!["no flag is shown to matter when it alone is switched off".to_owned()],
            Some(leader) => self.led(alone, leader, near),
        };
        clauses.extend(self.equals(alone));
        clauses.extend(unclear(alone, leader.is_some()));
        clauses.extend(self.unjudged(alone));
        format!("{}.", clauses.join("; "))
    }

    /// The flag with the greatest effect, and the others with an effect.
    fn led(&self, alone: &[&Single<'_>], leader: &Single<'_>, near: &[&Single<'_>]) -> Vec<String> {
        let different = alone.iter().filter(|s| s.shown == Shown::Different);
        let others: Vec<_> = different.filter(|s| s.flag != leader.flag).collect();
        let (name, effect) = (leader.flag.name(), self.effect(leader.verdicts));
        let together: Vec<OffloadFlag> = std::iter::once(leader)
            .chain(near.iter().copied())
            .map(|s| s.flag)
            .collect();
        let what = match (near.is_empty(), others.is_empty()) {
            (true, true) => format!("{name} decides: switching it"),
            (true, false) => format!("{name} matters most: switching it"),
            (false, _) => format!(
                "{} matter and are not told apart: switching {name}",
                listed_offloads(&together)
            ),
        };
        let first = format!("{what} off alone takes {effect}");
        let rest = others.iter().map(|s| {
            let (name, effect) = (s.flag.name(), self.effect(s.verdicts));
            format!("{name} off alone takes {effect}")
        });
        std::iter::once(first).chain(rest).collect()
    }

    /// Flags that were switched off by name but have no verdict.
    fn unjudged(&self, alone: &[&Single<'_>]) -> Option<String> {
        let named = self.survey.combinations.iter().filter_map(|c| {
            let [flag] = c.change.flags[..] else {
                return None;
            };
            let own = c.changed.is_empty() || c.changed == [flag];
            let tried = c.change.rest == Switch::On && own && c.same_as.is_none();
            (tried && alone.iter().all(|s| s.flag != flag)).then_some(flag)
        });
        let flags: Vec<OffloadFlag> = named.collect();
        (!flags.is_empty()).then(|| format!("of {} off there is no verdict", listed_or(&flags)))
    }

    /// Flags shown to have no effect alone.
    fn equals(&self, alone: &[&Single<'_>]) -> Option<String> {
        let flags = flags(alone, |shown| shown == Shown::Equivalent);
        (!flags.is_empty()).then(|| {
            format!(
                "{} off alone changes nothing ({})",
                listed_or(&flags),
                self.equivalent()
            )
        })
    }

    fn equivalent(&self) -> String {
        format!("equivalent within {}", percent(self.summary.margin))
    }

    /// The shown differences: `goodput to 0.312× (0.290 to 0.334) and CPU per byte to 3.10× (…)`.
    fn effect(&self, verdicts: &Verdicts) -> String {
        let parts: Vec<String> = judged(verdicts, self.load)
            .filter(|(_, report)| report.verdict == Some(Verdict::Different))
            .map(|(name, report)| format!("{} to {}", words(name), ratio(&report.ratio)))
            .collect();
        parts.join(" and ")
    }

    /// Other results of the verdicts.
    pub(super) fn remarks(
        &self,
        alone: &[&Single<'_>],
        taking: &[&Single<'_>],
        leader: Option<&Single<'_>>,
    ) -> Vec<String> {
        let mut remarks: Vec<String> = taking.iter().map(|s| self.beyond(s)).collect();
        for single in alone {
            for given in alone.iter().filter(|g| g.flag != single.flag) {
                let leads = leader.is_some_and(|l| l.flag == given.flag);
                remarks.extend(self.interaction(single, given.flag, leads));
            }
        }
        remarks.extend(self.all_off());
        remarks
    }

    /// A flag that cannot go off alone: its effect beyond the flag that goes off with it.
    fn beyond(&self, single: &Single<'_>) -> String {
        let (name, along) = (single.flag.name(), listed_offloads(&single.along));
        let beyond = match single.along[..] {
            [other] => self.contrast(single.flag, other),
            _ => None,
        };
        let Some(contrast) = beyond else {
            return format!("{name} off takes {along} off with it: it was not compared by itself.");
        };
        let what = match shown(&contrast.verdicts, self.load) {
            Some(Shown::Different) => format!("it takes {}", self.effect(&contrast.verdicts)),
            Some(Shown::Equivalent) => format!("it changes nothing ({})", self.equivalent()),
            Some(Shown::Unclear(size)) => {
                format!("it is not shown to matter ({})", would_have_shown(size))
            }
            None => "nothing is known".to_owned(),
        };
        format!("{name} off takes {along} off with it; beyond that {what}.")
    }

    /// A flag whose effect changes once another is off.
    fn interaction(&self, single: &Single<'_>, given: OffloadFlag, leads: bool) -> Option<String> {
        let contrast = self.contrast(single.flag, given)?;
        let (name, given) = (single.flag.name(), given.name());
        let effect = || {
            format!(
                "switching it off as well takes {} of that with {given} off alone",
                self.effect(&contrast.verdicts)
            )
        };
        match (single.shown, shown(&contrast.verdicts, self.load)?) {
            (Shown::Equivalent, Shown::Different) => Some(format!(
                "{name} matters only once {given} is off: {}.",
                effect()
            )),
            (Shown::Unclear(_), Shown::Different) => Some(format!(
                "{name} is shown to matter once {given} is off: {}.",
                effect()
            )),
            (Shown::Different, Shown::Different) if leads => Some(format!(
                "{name} matters once {given} is off, too: {}.",
                effect()
            )),
            (Shown::Different, Shown::Equivalent) => Some(format!(
                "{name} no longer matters once {given} is off ({}).",
                self.equivalent()
            )),
            (_, Shown::Equivalent) if leads => Some(format!(
                "{name} changes nothing once {given} is off, either ({}).",
                self.equivalent()
            )),
            (_, Shown::Unclear(size)) if leads => Some(format!(
                "{name} is not shown to matter once {given} is off ({}).",
                would_have_shown(size)
            )),
            _ => None,
        }
    }

    fn all_off(&self) -> Option<String> {
        let verdicts = self.verdicts(&OffloadChange::all(Switch::Off))?;
        let what = match shown(verdicts, self.load)? {
            Shown::Different => format!("takes {}", self.effect(verdicts)),
            Shown::Equivalent => format!("changes nothing ({})", self.equivalent()),
            Shown::Unclear(size) => {
                format!("is not shown to matter ({})", would_have_shown(size))
            }
        };
        Some(format!("All off {what}."))
    }
}

fn flags(alone: &[&Single<'_>], which: impl Fn(Shown) -> bool) -> Vec<OffloadFlag> {
    alone
        .iter()
        .filter(|s| which(s.shown))
        .map(|s| s.flag)
        .collect()
}

/// Flags without a shown effect, with the largest difference that may have been missed.
fn unclear(alone: &[&Single<'_>], others_matter: bool) -> Option<String> {
    let flags = flags(alone, |shown| matches!(shown, Shown::Unclear(_)));
    let missed = alone.iter().filter_map(|s| match s.shown {
        Shown::Unclear(size) => Some(size),
        _ => None,
    });
    let most = missed.fold(0.0, f64::max);
    (!flags.is_empty()).then(|| {
        let (flags, missed) = (listed_or(&flags), would_have_shown(most));
        if others_matter {
            format!("{flags} off alone is not shown to matter ({missed})")
        } else {
            format!("of {flags} off {missed}")
        }
    })
}

/// `gso or gro`: each alone, not together.
fn listed_or(flags: &[OffloadFlag]) -> String {
    listed_offloads(flags).replace(" and ", " or ")
}

fn would_have_shown(size: f64) -> String {
    if size.is_finite() {
        format!("a difference of {} would have shown", percent(size))
    } else {
        "no difference would have shown".to_owned()
    }
}

/// Words for a quantity that has none of its own.
pub(super) const OTHER: &str = "the main figure";

/// A quantity as a sentence names it.
pub(super) fn words(name: &str) -> &'static str {
    match name {
        "goodput_bps" => "goodput",
        "transactions_per_s" => "transactions",
        "latency_p50_ns" => "latency (median)",
        "latency_p99_ns" => "latency (p99)",
        "cpu_ns_per_byte" => "CPU per byte",
        "cpu_ns_per_packet" => "CPU per packet",
        "cpu_ns_per_transaction" => "CPU per transaction",
        _ => OTHER,
    }
}

/// `0.312× (0.290 to 0.334)`.
fn ratio(estimate: &Estimate) -> String {
    let [value, low, high] = [estimate.value, estimate.low, estimate.high].map(three_digits);
    format!("{value}× ({low} to {high})")
}

fn three_digits(value: f64) -> String {
    match value {
        v if v < 0.999_5 => format!("{v:.3}"),
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    // A margin set by the user has as many digits as it needs.
    if percent >= 9.95 || (percent - percent.round()).abs() < 1e-9 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}
