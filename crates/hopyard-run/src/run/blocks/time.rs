//! How the time of a run is divided among its blocks, that of a block among its groups, and that of a group between
//! labs and rounds.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use super::Blocks;
use crate::assess::{self, last_attempts};
use crate::measure::Sampler;
use crate::measure::turns;
use crate::model::FOR_A_VERDICT;
use crate::run::groups::Group;

/// Share of a time limit that the last block may use: the rest is for removing its labs.
const OF_LIMIT: f64 = 0.97;

impl Blocks<'_> {
    /// Whether there is no time for another block. Blocks that share the time can be as short as
    /// [`Prepared::shortest_block`]; any other block is assumed to take as long as those before it.
    pub(super) fn next_block_is_too_late(&self, block: u32) -> bool {
        let (Some(limit), done) = (self.prepared.time_limit(), block - self.first.0) else {
            return false;
        };
        let spent = self.began.elapsed();
        let next = if block < self.shared_by() {
            self.prepared.shortest_block() + self.own_reading()
        } else {
            spent / done.max(1)
        };
        done > 0 && spent + next > limit
    }

    pub(super) fn out_of_time(&self) -> bool {
        self.prepared
            .time_limit()
            .is_some_and(|limit| self.began.elapsed() > limit)
    }

    /// When a block must end that has read the idle machine, so that all blocks that share the time have equal parts of what is left.
    pub(super) fn block_end(&self, block: u32) -> Option<Instant> {
        let limit = self.prepared.time_limit()?.mul_f64(OF_LIMIT);
        let blocks = self.shared_by().saturating_sub(block).max(1);
        let readings = self.own_reading() * (blocks - 1);
        let left = limit.saturating_sub(self.began.elapsed() + readings);
        Some(Instant::now() + left / blocks)
    }

    /// What each further block takes to read the idle machine, beyond its estimate, because a disturbed reading is not shared.
    fn own_reading(&self) -> Duration {
        let disturbed = self.quiet.filter(|reading| reading.is_disturbed);
        disturbed.map_or(Duration::ZERO, |reading| reading.took)
    }

    /// When the rounds of the first of these groups must end, so that all groups end with the block. Each gets a part of the
    /// remaining time in proportion to its estimate; its profiles come after its rounds.
    pub(super) fn group_end(
        &self,
        block_end: Option<Instant>,
        groups: &[(Group, u32)],
    ) -> Option<Instant> {
        let now = Instant::now();
        let profiles: Duration = groups.iter().map(|(group, _)| self.profiles(group)).sum();
        let left = block_end?.saturating_duration_since(now);
        let left = left.saturating_sub(profiles);
        let each = |(group, rounds): &(Group, u32)| self.estimate(group, *rounds).as_secs_f64();
        let all: f64 = groups.iter().map(each).sum();
        let own = groups.first().map_or(0.0, each);
        Some(now + left.mul_f64(own / all.max(f64::MIN_POSITIVE)))
    }

    /// Approximate duration of the profiles of a group.
    fn profiles(&self, group: &Group) -> Duration {
        if !self.prepared.header.profile {
            return Duration::ZERO;
        }
        let cells = group.cells.iter().map(|cell| self.cell(*cell));
        let sampler = &self.prepared.sampler;
        cells.map(|cell| sampler.profile_estimate(cell)).sum()
    }

    /// Approximate duration of a group without disturbances.
    fn estimate(&self, group: &Group, rounds: u32) -> Duration {
        let sampler = &self.prepared.sampler;
        if group.takes_turns {
            Sampler::generation_estimate(&self.participants(group), rounds)
        } else {
            let cells = group.cells.iter().map(|cell| self.cell(*cell));
            cells.map(|cell| sampler.estimate(cell)).sum()
        }
    }

    /// The number of rounds of the next generations of these groups: as many as the given window has, until samples
    /// suggest another number. If the time limit has no room for more blocks than verdicts need, groups with more cells
    /// near their base get more rounds. Otherwise rounds and generations share the time in the best ratio, within a
    /// factor of what was asked for.
    ///
    /// Earlier generations decide about the rounds of a later one, but never about the number of generations. Each is
    /// expected to show the same ratio, however many rounds it has, and all of them count alike.
    pub(super) fn with_rounds(&self, groups: Vec<Group>) -> Vec<(Group, u32)> {
        let (header, samples) = (&self.prepared.header, last_attempts(self.samples));
        let asked = |group: &Group| self.prepared.rounds_asked(group);
        let worth = |group: &Group| {
            let cost = Sampler::generation_cost(&self.participants(group));
            assess::rounds_worth(header, &samples, &group.cells, cost)
        };
        let far: Option<Vec<usize>> = self.is_short_of_time().then(|| {
            let compared = assess::so_far(header, &samples).into_iter();
            let far = compared.filter(assess::SoFar::is_far);
            far.map(|one| one.cell).collect()
        });
        let rounds = |group: &Group| match &far {
            Some(far) => Some(f64::from(asked(group)) * need(&group.cells, far)),
            None => worth(group),
        };
        let with = |group: Group| {
            let rounds = turns::chosen_rounds(asked(&group), rounds(&group));
            (group, rounds)
        };
        groups.into_iter().map(with).collect()
    }

    /// Whether the blocks that verdicts need take the whole time.
    fn is_short_of_time(&self) -> bool {
        let block = self.prepared.block_estimate() + self.own_reading();
        let wanted = block * self.still_to_do(self.needed());
        self.prepared
            .time_limit()
            .is_some_and(|limit| wanted > limit)
    }

    /// The number of blocks that share the time.
    fn shared_by(&self) -> u32 {
        let needed = self.needed();
        if !self.is_short_of_time() {
            return needed;
        }
        let limit = self
            .prepared
            .time_limit()
            .unwrap_or_default()
            .mul_f64(OF_LIMIT);
        let most = self.prepared.header.blocks_max.max(needed);
        let bounds = self.still_to_do(needed)..=self.still_to_do(most);
        let leanest = self.prepared.leanest_block() + self.own_reading();
        self.first.0 + blocks_within(limit, leanest, bounds)
    }

    /// How many of the first blocks are still to be measured. The time limit counts from now: blocks that an earlier call measured
    /// take none of it.
    fn still_to_do(&self, blocks: u32) -> u32 {
        blocks.saturating_sub(self.first.0)
    }

    /// The number of blocks that verdicts need, if as many were asked for.
    fn needed(&self) -> u32 {
        self.prepared.header.blocks_min.min(FOR_A_VERDICT)
    }
}

/// How many blocks fit into a time limit if each has the fewest rounds, within the bounds. A short time is best used by
/// many short blocks: a ratio's interval from 8 blocks has 7 degrees of freedom. With some hundred comparisons to
/// correct for, it is half as wide again as the interval from 16 blocks with as many rounds in all.
fn blocks_within(limit: Duration, leanest: Duration, bounds: RangeInclusive<u32>) -> u32 {
    let fit = limit.as_secs_f64() / leanest.as_secs_f64().max(f64::MIN_POSITIVE);
    // Saturates: no run has so many blocks.
    (fit as u32).clamp(*bounds.start(), *bounds.end())
}

/// The factor on a group's rounds, by which of its cells are far from their base: those show so in a few rounds. From a
/// half if all are, to two if none is.
fn need(cells: &[usize], far: &[usize]) -> f64 {
    let near = cells.iter().filter(|cell| !far.contains(cell)).count();
    let count = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    0.5 + 1.5 * count(near) / count(cells.len().max(1))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{blocks_within, need};

    #[test]
    fn a_short_time_goes_to_many_blocks_of_few_rounds() {
        let fit = |limit_s, leanest_s, bounds| {
            let [limit, leanest] = [limit_s, leanest_s].map(Duration::from_secs);
            blocks_within(limit, leanest, bounds)
        };
        assert_eq!(fit(100, 8, 8..=20), 12);
        assert_eq!(fit(100, 8, 8..=10), 10);
        assert_eq!(fit(100, 20, 8..=20), 8);
        assert_eq!(fit(100, 0, 8..=20), 20);
    }

    #[test]
    fn rounds_go_where_cells_are_near_to_their_base() {
        assert!((need(&[4, 7], &[7, 4, 1]) - 0.5).abs() < 1e-9);
        assert!((need(&[4, 7], &[]) - 2.0).abs() < 1e-9);
        assert!((need(&[4, 7], &[7]) - 1.25).abs() < 1e-9);
    }
}
