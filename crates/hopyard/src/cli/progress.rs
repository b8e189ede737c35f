//! How it goes, on a terminal only.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::model::Cell;
use crate::plain;
use crate::plan::Blocks;
use crate::run::Observer;
use crate::units::{counted, show_duration};

/// A line that shows block, cell, elapsed and remaining time.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    blocks: Option<Blocks>,
    block: Duration,
    began: Instant,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            bar: None,
            blocks: None,
            block: Duration::ZERO,
            began: Instant::now(),
        }
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| crate::note(format_args!("{text}"))),
            None => crate::note(format_args!("{text}")),
        }
    }

    /// Until the fewest blocks are done, as far as can be told.
    fn left(&self, block: u32, done: usize, of: usize) -> Duration {
        let min = self.blocks.map_or(1, |b| b.min).max(block + 1);
        let passed = f64::from(block) + count(done) / count(of.max(1));
        let per_block = if passed > 0.5 {
            self.began.elapsed().as_secs_f64() / passed
        } else {
            self.block.as_secs_f64()
        };
        Duration::from_secs_f64((per_block * (f64::from(min) - passed)).max(0.0))
    }
}

fn count(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
}

impl Observer for Progress {
    fn planned(&mut self, cells: usize, blocks: Blocks, block: Duration) {
        self.say(&format!(
            "{}, {blocks} block{} of about {} each",
            counted(cells, "cell"),
            if blocks.max == 1 { "" } else { "s" },
            show_duration(block)
        ));
        self.blocks = Some(blocks);
        self.block = block;
        self.began = Instant::now();
        if std::io::stderr().is_terminal() {
            let bar = ProgressBar::new(1);
            if let Ok(style) = ProgressStyle::with_template("{bar:24} {msg}") {
                bar.set_style(style);
            }
            self.bar = Some(bar);
        }
    }

    fn measuring(&mut self, block: u32, done: usize, of: usize, cell: &Cell) {
        let left = self.left(block, done, of);
        let Some(bar) = &self.bar else { return };
        let min = self.blocks.map_or(1, |b| b.min);
        let total = u64::from(min.max(block + 1)) * of as u64;
        bar.set_length(total);
        bar.set_position(u64::from(block) * of as u64 + done as u64);
        bar.set_message(format!(
            "block {} of {min}, cell {} of {of}: {} · {} elapsed, {} to go",
            block + 1,
            done + 1,
            plain::line(&cell.to_string()),
            show_duration(Duration::from_secs(self.began.elapsed().as_secs())),
            show_duration(Duration::from_secs(left.as_secs())),
        ));
    }

    fn failed(&mut self, cell: &Cell, cause: &str) {
        let cell = plain::line(&cell.to_string());
        self.say(&format!("{cell} failed: {}", plain::line(cause)));
    }

    fn note(&mut self, text: &str) {
        self.say(text);
    }

    fn finished(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
