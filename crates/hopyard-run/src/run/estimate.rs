//! Estimates of a run's duration, before it begins.

use std::collections::HashSet;
use std::time::Duration;

use super::{Observer, Prepared, groups, resume};
use crate::lab::{self, LabKey};
use crate::measure::turns::Participant;
use crate::measure::{Sampler, turns};
use crate::model::{Cell, FOR_A_VERDICT, Sample};
use crate::units::show_duration;

impl Prepared {
    /// Approximate duration of a block.
    #[must_use]
    pub(crate) fn block_estimate(&self) -> Duration {
        self.block_with(|cell| turns::rounds(cell, self.sampler.window))
    }

    /// Approximate least duration of a block: with a single round of each cell.
    pub(super) fn shortest_block(&self) -> Duration {
        self.block_with(|_| 1)
    }

    /// Approximate duration of a block with the fewest rounds that still leave a choice if some are disturbed.
    pub(super) fn leanest_block(&self) -> Duration {
        self.block_with(|_| *turns::ROUNDS.start())
    }

    fn block_with(&self, rounds: impl Fn(&Cell) -> u32) -> Duration {
        let cells = self.groups.iter().flat_map(|group| {
            let cells = group.cells.iter();
            let one = |cell: &usize| Participant {
                cell: &self.header.cells[*cell].cell,
                turns: group.turns(*cell),
            };
            cells.map(move |cell| (one(cell), group.takes_turns))
        });
        // Cells that take turns share labs, but for those of two settings, and those whose load leaves connections behind.
        let mut labs = HashSet::new();
        let mut needs_lab = |cell: &Cell| {
            let shares = self.header.settings.is_none() && !cell.load.connects_anew();
            !shares || labs.insert(LabKey::of(cell))
        };
        let each = |(one, takes_turns): (Participant<'_>, bool)| {
            let cell = one.cell;
            let rounds = rounds(cell);
            let extra = lab::path(&cell.path).map(|path| path.extra_time);
            let extra = extra.unwrap_or_default();
            let mut each = if !takes_turns {
                self.sampler.estimate(cell) + extra
            } else if needs_lab(cell) {
                Sampler::generation_estimate(&[one], rounds) + Sampler::around(cell) + extra
            } else {
                Sampler::generation_estimate(&[one], rounds)
            };
            if self.header.profile {
                each += self.sampler.profile_estimate(cell) + extra;
            }
            each
        };
        let measuring: Duration = cells.map(each).sum();
        let measuring = measuring + self.switching_estimate();
        Sampler::quiet_estimate(measuring) + measuring
    }

    /// Approximate time that a block needs for switching between the settings.
    fn switching_estimate(&self) -> Duration {
        let Some(settings) = &self.header.settings else {
            return Duration::ZERO;
        };
        let switches = |group: &groups::Group| {
            if group.setting.is_none() && group.takes_turns {
                2 * (self.rounds_asked(group) + 2)
            } else {
                0
            }
        };
        // Also before each half of the block.
        let count = 3 + self.groups.iter().map(switches).sum::<u32>();
        Duration::from_secs_f64(settings.switch_s).saturating_mul(count)
    }

    /// The number of rounds of a group that add up to the window asked for, of each of its cells.
    pub(super) fn rounds_asked(&self, group: &groups::Group) -> u32 {
        let cells = group.cells.iter();
        let each = cells.map(|at| turns::rounds(&self.header.cells[*at].cell, self.sampler.window));
        each.max().unwrap_or(1)
    }

    /// Approximate longest duration of everything that is still to be measured.
    #[must_use]
    pub fn estimate(&self) -> Duration {
        let all = self.block_estimate()
            * self
                .header
                .blocks_max
                .saturating_sub(self.done(self.stored()));
        self.time_limit().map_or(all, |limit| limit.min(all))
    }

    /// The samples of an interrupted run.
    fn stored(&self) -> &[Sample] {
        self.before.as_ref().map_or(&[], |before| &before.samples)
    }

    /// Whole blocks in these samples.
    fn done(&self, samples: &[Sample]) -> u32 {
        resume::place(&self.header, samples).0
    }

    /// Blocks still missing for a verdict.
    fn missing(&self, samples: &[Sample]) -> u32 {
        let wanted = self.header.blocks_min.min(FOR_A_VERDICT);
        wanted.saturating_sub(self.done(samples))
    }

    /// Approximate time that the missing blocks take without which there is no verdict, and at most the whole of it.
    #[must_use]
    pub fn least_estimate(&self) -> Duration {
        (self.block_estimate() * self.missing(self.stored())).min(self.estimate())
    }

    pub(super) fn warn_of_the_limit(&self, samples: &[Sample], observer: &mut dyn Observer) {
        let Some(limit) = self.time_limit() else {
            return;
        };
        let least = self.shortest_block() * self.missing(samples);
        if least > limit {
            let (least, limit) = (show_duration(least), show_duration(limit));
            // With fewer blocks than a verdict takes there would be none anyway.
            observer.note(&if self.header.blocks_max < FOR_A_VERDICT {
                format!("the blocks asked for take about {least} even with the fewest turns, more than the time limit of {limit}")
            } else {
                format!(
                    "the blocks that verdicts still need take about {least} even with the fewest turns, more than the time limit of \
                     {limit}: expect fewer blocks and no verdicts"
                )
            });
        }
    }
}
