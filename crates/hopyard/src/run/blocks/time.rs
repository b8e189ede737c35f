//! How the time of a run is shared between its blocks, and that of a block between its rounds.

use std::time::{Duration, Instant};

use super::Blocks;
use crate::assess::{self, last_attempts};
use crate::measure::Sampler;
use crate::measure::turns;
use crate::model::Cell;
use crate::plan::FOR_A_VERDICT;

impl Blocks<'_> {
    /// Would another block, taking as long as those done just now, end after the limit?
    pub(super) fn next_block_is_too_late(&self, done: u32) -> bool {
        let Some(limit) = self.prepared.time_limit() else {
            return false;
        };
        let spent = self.began.elapsed();
        done > 0 && spent + spent / done > limit
    }

    pub(super) fn out_of_time(&self) -> bool {
        self.prepared
            .time_limit()
            .is_some_and(|limit| self.began.elapsed() > limit)
    }

    /// How many rounds the next generation of a group is to have: as many as the window that was asked for has, until its
    /// samples tell how to share the time between rounds and generations. Then as many as serve best, within a factor of
    /// what was asked for.
    pub(super) fn rounds(&self, group: &[usize], cells: &[&Cell]) -> u32 {
        let asked = self.rounds_in_time(turns::rounds(self.prepared.sampler.window));
        let cost = Sampler::generation_cost(cells);
        let samples = last_attempts(self.samples);
        let worth = assess::rounds_worth(&self.prepared.header, &samples, group, cost);
        turns::chosen_rounds(asked, worth)
    }

    /// When the next generation of some cells is to end, so that the blocks that verdicts need fit into the time limit:
    /// rounds are taken again only for as long as that leaves time.
    pub(super) fn fair_end(&self, block: u32, cells: &[&Cell]) -> Option<Instant> {
        /// The rest is for reading the quiet machine, and for labs that take longer than most.
        const OF_TURNS: f64 = 0.8;
        let limit = self.prepared.time_limit()?;
        let left = limit.saturating_sub(self.began.elapsed()).mul_f64(OF_TURNS);
        let needed = self.prepared.header.blocks_min.min(FOR_A_VERDICT);
        let blocks = needed.saturating_sub(block).max(1);
        let own: Duration = cells
            .iter()
            .map(|cell| self.prepared.sampler.turns_estimate(cell))
            .sum();
        let all = (self.prepared.block_estimate() * blocks).max(own);
        let share = own.as_secs_f64() / all.as_secs_f64().max(f64::MIN_POSITIVE);
        Some(Instant::now() + left.mul_f64(share.min(1.0)))
    }

    /// As many rounds as were asked for, fewer where the blocks that verdicts need would not fit into the time limit.
    fn rounds_in_time(&self, asked: u32) -> u32 {
        let Some(limit) = self.prepared.time_limit() else {
            return asked;
        };
        let blocks = self.prepared.header.blocks_min.min(FOR_A_VERDICT);
        let wanted = (self.prepared.block_estimate() * blocks).as_secs_f64();
        let share = (limit.as_secs_f64() / wanted).min(1.0);
        let fitting = (f64::from(asked) * share) as u32;
        fitting.max(asked.min(*turns::ROUNDS.start()))
    }
}
