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

    /// Whether each cell that can be built was given up: further blocks would measure nothing.
    pub(super) fn all_are_given_up(&self) -> bool {
        let cells = self.prepared.header.cells.iter().enumerate();
        let mut built = cells.filter(|(_, planned)| planned.unsupported.is_none());
        built.all(|(index, _)| self.is_hopeless(index))
    }

    /// Reports early which differences this machine can show, and how long a smaller one takes: the error falls with
    /// the square root of the number of blocks.
    pub(super) fn tell_what_can_be_seen(&self, block: u32, observer: &mut dyn Observer) {
        const FINE: f64 = 0.05;
        let header = &self.prepared.header;
        let samples = last_attempts(self.samples);
        // An earlier call may have measured some of the blocks.
        let spent = self.offset + self.began.elapsed();
        let note = match header.decide {
            Some(wanted) => still_to_decide(&assess::decided(header, &samples), wanted, spent),
            None => can_be_seen(assess::detectable(header, &samples), FINE, spent),
        };
        if let Some(note) = note {
            observer.note(&format!("after {block} blocks, {note}"));
        }
    }
}

/// What half of the comparisons could show, in words, if that is more than wanted.
fn can_be_seen(mut all: Vec<f64>, wanted: f64, spent: Duration) -> Option<String> {
    all.sort_unstable_by(f64::total_cmp);
    let median = *all.get(all.len() / 2)?;
    (median > wanted).then(|| {
        format!(
            "half of the {} comparisons could show differences of {}; to show {:.0} % on this machine takes {}",
            all.len(),
            difference(median),
            wanted * 100.0,
            more(median, wanted, spent)
        )
    })
}

/// How many comparisons are still to be decided, in words. The one that is known least says how long that takes.
fn still_to_decide(all: &[f64], wanted: f64, spent: Duration) -> Option<String> {
    let open = all
        .iter()
        .filter(|detectable| **detectable > wanted)
        .count();
    let widest = all.iter().copied().max_by(f64::total_cmp)?;
    (widest > wanted).then(|| {
        format!(
            "{open} of {} comparisons are not decided at {:.1} %; the one that is known least could show differences of {}, and \
             takes {} on this machine",
            all.len(),
            wanted * 100.0,
            difference(widest),
            more(widest, wanted, spent)
        )
    })
}

fn difference(detectable: f64) -> String {
    if detectable < 9.995 {
        format!("{:.0} % and more", detectable * 100.0)
    } else {
        "more than 1000 %".to_owned()
    }
}

/// How much longer than so far it takes to show a difference, in words.
fn more(detectable: f64, wanted: f64, spent: Duration) -> String {
    let factor = (detectable.ln_1p() / wanted.ln_1p()).powi(2) - 1.0;
    let more = Duration::try_from_secs_f64(spent.as_secs_f64() * factor);
    more.map_or_else(
        |_| "an unlimited time".to_owned(),
        |more| {
            let whole = Duration::from_secs(more.as_secs());
            format!("about {} more", show_duration(whole))
        },
    )
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::assess::testing::{measured, push, run};
    use crate::measure::Sampler;
    use crate::model::{GIVEN_UP_AFTER, Outcome, ProfileWindow, Sample};
    use crate::run::Prepared;
    use crate::run::groups::of_run;
    use crate::store::{self, End, Header, Record};

    fn prepared(header: Header) -> Prepared {
        let span = Duration::from_millis(10);
        Prepared {
            sampler: Sampler::new(span, span).unwrap(),
            groups: of_run(&header),
            header,
            before: None,
            host: RefCell::new(None),
        }
    }

    /// Takes no samples.
    struct Done;

    impl Record for Done {
        fn append(&mut self, sample: &Sample) -> Result<(), store::Error> {
            panic!("measured in block {}", sample.block)
        }

        fn append_profile(&mut self, _: &ProfileWindow) -> Result<(), store::Error> {
            unreachable!("nothing was measured")
        }

        fn finish(&mut self, _: End) -> Result<(), store::Error> {
            Ok(())
        }
    }

    impl Observer for Done {}

    #[test]
    fn a_note_speaks_of_the_half_or_of_what_is_known_least() {
        let spent = Duration::from_secs(10);
        let all = || vec![0.02, 0.2, 0.03, 0.01];
        assert_eq!(can_be_seen(all(), 0.05, spent), None);
        let half = can_be_seen(all(), 0.02, spent).unwrap();
        assert!(
            half.starts_with("half of the 4 comparisons could show differences of 3 % and more"),
            "{half}"
        );
        let open = still_to_decide(&all(), 0.025, spent).unwrap();
        assert_eq!(
            open,
            "2 of 4 comparisons are not decided at 2.5 %; the one that is known least could show differences of 20 % and more, \
             and takes about 8m55s more on this machine"
        );
        assert_eq!(still_to_decide(&all(), 0.2, spent), None);
        let unknown = still_to_decide(&[f64::INFINITY], 0.02, spent).unwrap();
        assert!(
            unknown.contains("more than 1000 %") && unknown.contains("an unlimited time"),
            "{unknown}"
        );
    }

    /// Eight blocks, in turn so much above and below their mean: an interval of 95 % has 0.89 times that on each side (t is 2.365).
    #[test]
    fn a_run_has_enough_once_its_figures_are_as_narrow_as_asked() {
        let is_enough = |spread: f64| {
            let mut run = run(&["veth", "bridge"]);
            for block in 0..8 {
                let side = if block % 2 == 0 { spread } else { -spread };
                for cell in 0..2 {
                    let of_cell = measured((1e9 * (1.0 + side)) as u64);
                    push(
                        &mut run,
                        block,
                        0,
                        cell,
                        Outcome::Measured(Box::new(of_cell)),
                    );
                }
            }
            run.header.half_width = 0.025;
            let prepared = prepared(run.header);
            let mut profiles = Vec::new();
            Blocks::new(&prepared, &mut run.samples, &mut profiles).is_enough()
        };
        assert!(is_enough(0.027));
        assert!(!is_enough(0.029));
    }

    #[test]
    fn a_run_of_cells_that_are_given_up_ends() {
        let mut run = run(&["veth", "bridge", "netkit"]);
        run.header.cells[2].unsupported = Some("no netkit".to_owned());
        for block in 0..GIVEN_UP_AFTER {
            for cell in 0..2 {
                let cause = "nothing arrived".to_owned();
                push(&mut run, block, 0, cell, Outcome::Failed { cause });
            }
        }
        let prepared = prepared(run.header);
        let mut profiles = Vec::new();
        let blocks = Blocks::new(&prepared, &mut run.samples, &mut profiles);
        assert_eq!(blocks.run(&mut Done, &mut Done).unwrap(), End::Complete);
    }
}
