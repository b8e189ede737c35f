//! The current offloads of a path, and what changing each would do.

use crate::answer::time;
use crate::document::Block;
use crate::group::Group;
use crate::model::{
    CellReport, OffloadChange, OffloadCombination, OffloadFlag, OffloadReport, RunReport, Switch,
    VerdictReport, listed_offloads,
};
use crate::number::{chosen_percent, ratio};
use crate::plain;
use crate::quantity;
use crate::stats::{Estimate, Verdict};

/// The state of each flag in one sentence, then the effect of changing each; empty for a run that did not record the
/// state.
pub(crate) fn blocks(
    report: &RunReport,
    sweep: &OffloadReport,
    groups: &[Group<'_>],
) -> Vec<Block> {
    if sweep.survey.now.is_empty() {
        return Vec::new();
    }
    let several = groups.len() > 1;
    let items = groups.iter().flat_map(|group| {
        let now = Now::of(report, sweep, group);
        let place = match several {
            true => format!("{} · {}: ", group.load, group.peer),
            false => String::new(),
        };
        let sentences: Vec<String> = now
            .flags()
            .into_iter()
            .map(|flag| format!("{place}{}", now.sentence(flag)))
            .collect();
        sentences
    });
    let list = items.collect();
    vec![Block::Answer(states(report, sweep)), Block::List(list)]
}

/// `bridge now has gro off, and tx_checksum, tso and gso on; lro is fixed off.`
fn states(report: &RunReport, sweep: &OffloadReport) -> String {
    let survey = &sweep.survey;
    let path = report.cells.first().map_or("the path", |cell| &cell.path);
    let is_fixed = |flag: OffloadFlag| survey.fixed.iter().any(|fixed| fixed.flag == flag);
    let with = |state: &str| {
        let own = survey.now.iter().filter(|now| now.state == state);
        let flags: Vec<OffloadFlag> = own.map(|n| n.flag).filter(|f| !is_fixed(*f)).collect();
        let text = format!("{} {}", listed_offloads(&flags), plain::line(state));
        (!flags.is_empty()).then_some(text)
    };
    let changeable: Vec<String> = ["off", "on", "mixed"]
        .into_iter()
        .filter_map(with)
        .collect();
    let fixed = survey.fixed.iter().map(|fixed| {
        let state = plain::line(&fixed.state);
        format!("; {} is fixed {state}", fixed.flag.name())
    });
    let fixed: String = fixed.collect();
    format!(
        "{} now has {}{fixed}.",
        plain::line(path),
        changeable.join(", and ")
    )
}

/// The current offloads, for one load.
struct Now<'a> {
    report: &'a RunReport,
    sweep: &'a OffloadReport,
    group: &'a Group<'a>,
    /// Flags that can be changed and are off; `None` if devices differ.
    off: Option<Vec<OffloadFlag>>,
}

/// The effect of changing a flag.
struct Effect {
    /// Main figure and CPU cost, if they were judged.
    verdicts: Vec<(&'static str, VerdictReport)>,
    /// Flags that were on in this measurement, although they are off now.
    with_on: Vec<OffloadFlag>,
    /// Flags that change as well.
    along: Vec<OffloadFlag>,
}

impl<'a> Now<'a> {
    fn of(report: &'a RunReport, sweep: &'a OffloadReport, group: &'a Group<'a>) -> Self {
        let mut now = Self {
            report,
            sweep,
            group,
            off: None,
        };
        let states = || now.flags().into_iter().map(|flag| (flag, now.state(flag)));
        let mixed = states().any(|(_, state)| state.is_none());
        let off = states().filter(|(_, state)| *state == Some(Switch::Off));
        let off = off.map(|(flag, _)| flag).collect();
        now.off = (!mixed).then_some(off);
        now
    }

    /// Flags that can be changed; those that are off come first, because switching them on may gain something.
    fn flags(&self) -> Vec<OffloadFlag> {
        let survey = &self.sweep.survey;
        let fixed = |flag: OffloadFlag| survey.fixed.iter().any(|fixed| fixed.flag == flag);
        let flags = survey.now.iter().map(|now| now.flag);
        let mut flags: Vec<OffloadFlag> = flags.filter(|flag| !fixed(*flag)).collect();
        flags.sort_by_key(|flag| self.state(*flag) != Some(Switch::Off));
        flags
    }

    fn state(&self, flag: OffloadFlag) -> Option<Switch> {
        let mut all = self.sweep.survey.now.iter();
        match &*all.find(|now| now.flag == flag)?.state {
            "on" => Some(Switch::On),
            "off" => Some(Switch::Off),
            _ => None,
        }
    }

    /// `gro is off; on: goodput 1.15×, undecided, needs about 4 more minutes`.
    fn sentence(&self, flag: OffloadFlag) -> String {
        let name = flag.name();
        let Some(state) = self.state(flag) else {
            return format!("{name} is on for some devices and off for others.");
        };
        let to = state.other();
        let Some(effect) = self.effect(flag, state) else {
            return format!("{name} is {state}; {to}: no figures.");
        };
        let along = match &effect.along[..] {
            [] => String::new(),
            along => format!(" ({} goes {to} with it)", listed_offloads(along)),
        };
        let with = match &effect.with_on[..] {
            [] => String::new(),
            flags => format!(" Measured with {} on.", listed_offloads(flags)),
        };
        format!(
            "{name} is {state}; {to}{along}: {}.{with}",
            self.words(&effect)
        )
    }

    fn words(&self, effect: &Effect) -> String {
        let named = |(name, verdict): &(&'static str, VerdictReport)| {
            format!("{} {}", quantity::words(name), ratio(verdict.ratio.value))
        };
        let with = |wanted: Verdict| {
            let own = effect.verdicts.iter();
            let own = own.filter(move |(_, v)| v.verdict == Some(wanted));
            own.collect::<Vec<_>>()
        };
        let all = || {
            effect
                .verdicts
                .iter()
                .map(named)
                .collect::<Vec<_>>()
                .join(", ")
        };
        if effect.verdicts.iter().all(|(_, v)| v.verdict.is_none()) {
            return format!("{}, too few blocks for a verdict", all());
        }
        let different = with(Verdict::Different);
        if !different.is_empty() {
            let figures: Vec<String> = different.into_iter().map(named).collect();
            return figures.join(", ");
        }
        let mut undecided = effect.verdicts.iter().collect::<Vec<_>>();
        undecided.retain(|(_, v)| v.verdict != Some(Verdict::Equivalent));
        if undecided.is_empty() {
            let margin = chosen_percent(self.report.run.margin);
            let same = match &effect.verdicts[..] {
                [(name, _)] => format!("no difference in {}", quantity::words(name)),
                _ => "no difference".to_owned(),
            };
            return format!("{same} (equivalent within {margin})");
        }
        let wanted = |verdict: &VerdictReport| {
            let size = verdict.ratio.value.ln().abs().exp_m1();
            size.max(self.report.run.margin)
        };
        let times = undecided.iter().map(|(_, verdict)| {
            let size = verdict.smallest_detectable?;
            time::needed(size, wanted(verdict), self.report)
        });
        let longest = times.max_by(|a, b| match (a, b) {
            (Some(a), Some(b)) => a.total_cmp(b),
            // An unknown time counts as longer than any known one.
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
        let needs = longest.flatten().map_or_else(String::new, |seconds| {
            format!(", needs {}", time::in_words(seconds))
        });
        format!("{}, undecided{needs}", all())
    }

    /// The effect of changing a flag, measured from the current state, or else with all others on.
    fn effect(&self, flag: OffloadFlag, state: Switch) -> Option<Effect> {
        if let Some(off) = &self.off
            && let Some(verdicts) = self.starting_now(flag, off)
        {
            return Some(Effect {
                verdicts,
                with_on: Vec::new(),
                along: Vec::new(),
            });
        }
        let alone = OffloadChange::but(Switch::On, &[flag]);
        let combination = self.combination(&alone)?;
        let mut along = combination.changed.clone();
        let verdicts = self.judged(self.cell(&alone)?);
        let verdicts = match state {
            Switch::On => verdicts,
            Switch::Off => turned_round(verdicts),
        };
        let is_on = |other: &OffloadFlag| self.state(*other) == Some(Switch::On);
        let mut with_on = self.flags();
        with_on.retain(|other| *other != flag && !is_on(other) && !along.contains(other));
        along.retain(|other| *other != flag);
        (!verdicts.is_empty()).then_some(Effect {
            verdicts,
            with_on,
            along,
        })
    }

    /// The comparison of the current state, with these flags off, and the state with one flag changed, if the sweep has
    /// it.
    fn starting_now(
        &self,
        flag: OffloadFlag,
        off: &[OffloadFlag],
    ) -> Option<Vec<(&'static str, VerdictReport)>> {
        let changed = |flags: &[OffloadFlag]| -> Vec<OffloadFlag> {
            let all = OffloadFlag::ALL.into_iter();
            all.filter(|f| flags.contains(f) != (*f == flag)).collect()
        };
        let then = changed(off);
        let (less, more, inverse) = match off.contains(&flag) {
            true => (&then[..], off, true),
            false => (off, &then[..], false),
        };
        let verdicts = match less {
            [] => self.judged(self.with_off(more)?),
            [given] => {
                let proved = |flags| self.with_off(flags).is_some_and(|cell| cell.way.proved);
                if !proved(less) || !proved(more) {
                    return None;
                }
                let mut contrasts = self.sweep.contrasts.iter();
                let contrast = contrasts.find(|c| {
                    (c.load, c.peer) == (self.group.load, self.group.peer)
                        && (c.flag, c.given) == (flag, *given)
                })?;
                self.named(&contrast.verdicts)
            }
            _ => return None,
        };
        (!verdicts.is_empty()).then(|| match inverse {
            true => turned_round(verdicts),
            false => verdicts,
        })
    }

    fn judged(&self, cell: &CellReport) -> Vec<(&'static str, VerdictReport)> {
        match cell.way.proved {
            true => self.named(&cell.verdicts),
            false => Vec::new(),
        }
    }

    fn named(
        &self,
        verdicts: &std::collections::BTreeMap<String, VerdictReport>,
    ) -> Vec<(&'static str, VerdictReport)> {
        [self.group.main, quantity::cpu_cost(self.group.load)]
            .into_iter()
            .filter_map(|name| Some((name, verdicts.get(name)?.clone())))
            .collect()
    }

    /// The cell in which exactly these flags read back as off, and the others as on.
    fn with_off(&self, flags: &[OffloadFlag]) -> Option<&'a CellReport> {
        let mut all = self.sweep.survey.combinations.iter();
        let own = all.find(|c| c.is_measured() && c.changed == flags)?;
        self.cell(&own.change)
    }

    fn combination(&self, change: &OffloadChange) -> Option<&'a OffloadCombination> {
        let mut all = self.sweep.survey.combinations.iter();
        all.find(|c| c.change == *change && c.is_measured())
    }

    fn cell(&self, change: &OffloadChange) -> Option<&'a CellReport> {
        let mut cells = self.group.cells.iter().copied();
        cells.find(|cell| OffloadChange::of(&cell.axes).as_ref() == Some(change))
    }
}

/// The same comparisons, inverted.
fn turned_round(
    verdicts: Vec<(&'static str, VerdictReport)>,
) -> Vec<(&'static str, VerdictReport)> {
    let mut verdicts = verdicts;
    for (_, verdict) in &mut verdicts {
        let ratio = &verdict.ratio;
        verdict.ratio = Estimate {
            value: ratio.value.recip(),
            low: ratio.high.recip(),
            high: ratio.low.recip(),
            ..*ratio
        };
    }
    verdicts
}
