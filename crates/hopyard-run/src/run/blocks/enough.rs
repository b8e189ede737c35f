//! When a run has enough blocks.

use std::time::Duration;

use super::Blocks;
use crate::assess::{self, last_attempts};
use crate::model::Blocks as PlannedBlocks;
use crate::run::Observer;
use crate::stats;
use crate::units::show_duration;

impl Blocks<'_> {
    /// Numbers of blocks after which to check whether they are enough.
    pub(super) fn looks(&self, blocks: PlannedBlocks) -> Vec<usize> {
        let (min, max) = (blocks.min as usize, blocks.max as usize);
        if self.prepared.header.decide.is_some() {
            stats::frequent_looks(min, max)
        } else {
            stats::looks(min, max)
        }
    }

    pub(super) fn is_enough(&self) -> bool {
        let (header, samples) = (&self.prepared.header, last_attempts(self.samples));
        match header.decide {
            Some(difference) => assess::decided(header, &samples)
                .iter()
                .all(|detectable| *detectable <= difference),
            None => assess::settled(header, &samples),
        }
    }

    /// Reports early which differences this machine can show, and how long a smaller one takes: the error falls with
    /// the square root of the number of blocks.
    pub(super) fn tell_what_can_be_seen(&self, block: u32, observer: &mut dyn Observer) {
        const FINE: f64 = 0.05;
        let header = &self.prepared.header;
        let samples = last_attempts(self.samples);
        let mut all = match header.decide {
            Some(_) => assess::decided(header, &samples),
            None => assess::detectable(header, &samples),
        };
        all.sort_unstable_by(f64::total_cmp);
        let Some(&median) = all.get(all.len() / 2) else {
            return;
        };
        let wanted = header.decide.unwrap_or(FINE);
        if median <= wanted {
            return;
        }
        let seen = if median < 9.995 {
            format!("{:.0} % and more", median * 100.0)
        } else {
            "more than 1000 %".to_owned()
        };
        // An earlier call may have measured some of the blocks.
        let spent = self.offset + self.began.elapsed();
        let factor = (median.ln_1p() / wanted.ln_1p()).powi(2) - 1.0;
        let more = Duration::try_from_secs_f64(spent.as_secs_f64() * factor);
        let more = more.map_or_else(
            |_| "an unlimited time".to_owned(),
            |more| {
                format!(
                    "about {} more",
                    show_duration(Duration::from_secs(more.as_secs()))
                )
            },
        );
        observer.note(&format!(
            "after {block} blocks, half of the {} comparisons could show differences of {seen}; to show {:.0} % on \
             this machine takes {more}",
            all.len(),
            wanted * 100.0
        ));
    }
}
