//! Which load to try next, and when to stop.
//!
//! The search has phases: short trials and a wide goal first, each next phase four times as long and half as wide, the
//! last one the goal itself. The first trial is at the greatest load. What it forwards hints at the bounds, so most
//! searches bracket them in three or four trials instead of halving the whole range.

use super::{Asked, Class, Goal, GoalResult, Trial, classify, conditional_throughput};

/// A search ends after this many trials in any case.
pub(crate) const MOST_TRIALS: usize = 60;
/// Trials of a phase are this many times longer than those of the phase before.
const LONGER: f64 = 4.0;
/// Where to try around the rate that an overloaded system forwards, in widths of the goal.
const AROUND: [f64; 6] = [-0.5, 0.5, -2.0, 2.0, -8.0, 8.0];
/// A load nearer to a known bound than this share of the width shows nothing new.
const NEAR: f64 = 0.25;

/// The relevant bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Bounds {
    lower: Option<f64>,
    upper: Option<f64>,
}

/// A search under way.
#[derive(Debug, Clone)]
pub struct Search {
    goal: Goal,
    least: f64,
    most: f64,
    phases: Vec<Goal>,
    /// Index into `phases`; beyond the last one the search is over.
    phase: usize,
    /// Bounds of the phase before.
    before: Bounds,
    /// The capacity that the upper bound's trials suggest.
    hint: Option<f64>,
    trials: Vec<Trial>,
}

impl Search {
    /// A search between two loads, both above 0.
    #[must_use]
    pub fn new(goal: Goal, least_per_s: f64, most_per_s: f64) -> Self {
        Self {
            goal,
            least: least_per_s.min(most_per_s),
            most: most_per_s,
            phases: phases(goal),
            phase: 0,
            before: Bounds::default(),
            hint: None,
            trials: Vec::new(),
        }
    }

    /// What to try next; `None` when the search is over.
    pub fn ask(&mut self) -> Option<Asked> {
        while self.trials.len() < MOST_TRIALS {
            let goal = *self.phases.get(self.phase)?;
            if let Some(load_per_s) = self.choose(&goal) {
                return Some(Asked {
                    load_per_s,
                    duration_s: goal.final_trial_s,
                });
            }
            self.before = self.bounds(&goal);
            self.hint = None;
            self.phase += 1;
        }
        None
    }

    /// Records the result of a trial.
    pub fn tell(&mut self, trial: Trial) {
        self.trials.push(trial);
    }

    /// All trials so far, in their order.
    #[must_use]
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// The result so far.
    #[must_use]
    pub fn result(&self) -> GoalResult {
        let Bounds { lower, upper } = self.bounds(&self.goal);
        let regular = lower
            .zip(upper)
            .is_some_and(|(lower, upper)| is_narrow(&self.goal, lower, upper));
        GoalResult {
            regular,
            lower_per_s: lower,
            upper_per_s: upper,
            throughput_per_s: lower
                .map(|load| conditional_throughput(&self.goal, load, self.at(load))),
        }
    }

    /// The load that a phase needs next; `None` if the phase is complete.
    fn choose(&mut self, goal: &Goal) -> Option<f64> {
        let classes = self.classes(goal);
        let undecided = |load: f64| classes.contains(&(load, Class::Undecided));
        let bounds = Bounds::of(&classes);
        if let Some(begun) = self.trials.last()
            && goal.is_full(begun)
            && undecided(begun.load_per_s)
        {
            return Some(begun.load_per_s);
        }
        let tried = || {
            let loads = classes
                .iter()
                .filter(|(_, class)| *class == Class::Undecided);
            loads.map(|(load, _)| *load)
        };
        match (bounds.lower, bounds.upper) {
            (None, None) => self.before.lower.or(self.before.upper).or(Some(self.most)),
            (Some(lower), None) if lower >= self.most => None,
            // First the loads at which shorter trials lost too much.
            (Some(lower), None) => tried().find(|load| *load > lower).or(Some(self.most)),
            (None, Some(upper)) if upper <= self.least => None,
            (None, Some(upper)) => {
                let below = tried().rfind(|load| *load < upper);
                below.or_else(|| Some(self.between(goal, None, upper)))
            }
            (Some(lower), Some(upper)) if is_narrow(goal, lower, upper) => None,
            (Some(lower), Some(upper)) => Some(self.between(goal, Some(lower), upper)),
        }
    }

    /// A load between two bounds. The lower one may be the least load, untried.
    fn between(&mut self, goal: &Goal, lower: Option<f64>, upper: f64) -> f64 {
        let width = goal.width_ratio;
        let from = lower.unwrap_or(self.least);
        if lower.is_none() && is_narrow(goal, from, upper) {
            return from;
        }
        let hint = match self.hint {
            Some(hint) => hint,
            None => *self
                .hint
                .insert(self.forwarded(upper) / (1.0 - goal.loss_ratio)),
        };
        let is_new = |load: &f64| {
            *load >= from * (1.0 + NEAR * width) && *load <= upper * (1.0 - NEAR * width)
        };
        let around = AROUND.map(|widths| hint * (1.0 + widths * width));
        let found = around.into_iter().find(is_new);
        found.unwrap_or_else(|| (from * upper).sqrt())
    }

    /// Mean of what arrived per second in the trials of a load.
    fn forwarded(&self, load: f64) -> f64 {
        let (sum, count) = self.at(load).fold((0.0, 0.0), |(sum, count), trial| {
            (sum + trial.forwarded_per_s, count + 1.0)
        });
        if count > 0.0 { sum / count } else { 0.0 }
    }

    fn at(&self, load: f64) -> impl Iterator<Item = &Trial> {
        let same = move |trial: &&Trial| trial.load_per_s.total_cmp(&load).is_eq();
        self.trials.iter().filter(same)
    }

    fn bounds(&self, goal: &Goal) -> Bounds {
        Bounds::of(&self.classes(goal))
    }

    /// Every load that was tried, ascending.
    fn classes(&self, goal: &Goal) -> Vec<(f64, Class)> {
        let mut loads: Vec<f64> = self.trials.iter().map(|trial| trial.load_per_s).collect();
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        let class = |load| (load, classify(goal, self.at(load)));
        loads.into_iter().map(class).collect()
    }
}

impl Bounds {
    /// The least upper bound, and the greatest lower bound below it.
    fn of(classes: &[(f64, Class)]) -> Self {
        let of = |wanted| classes.iter().filter(move |(_, class)| *class == wanted);
        let upper = of(Class::Upper).next().map(|(load, _)| *load);
        let below = |load: &&(f64, Class)| upper.is_none_or(|upper| load.0 < upper);
        let lower = of(Class::Lower).rfind(below);
        Self {
            lower: lower.map(|(load, _)| *load),
            upper,
        }
    }
}

/// From short trials and a wide goal to the goal itself.
fn phases(goal: Goal) -> Vec<Goal> {
    let mut phases = vec![goal];
    let mut next = goal;
    loop {
        next.final_trial_s /= LONGER;
        next.duration_sum_s = next.final_trial_s;
        next.width_ratio *= 2.0;
        if next.final_trial_s < goal.initial_trial_s * (1.0 - 1e-6) {
            phases.reverse();
            return phases;
        }
        phases.push(next);
    }
}

fn is_narrow(goal: &Goal, lower: f64, upper: f64) -> bool {
    upper - lower <= goal.width_ratio * upper * (1.0 + 1e-9)
}
