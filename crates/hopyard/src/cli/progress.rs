//! Progress on a terminal: the comparisons so far, and the state of the run.

mod table;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::assess::SoFar;
use crate::model::{Blocks, Cell};
use crate::plain;
use crate::run::Observer;
use crate::store::Header;
use crate::units::{counted, show_duration};

/// Columns of the bar.
const BAR: usize = 24;

/// A table of comparisons, and a line with block, cell, elapsed and remaining time. It is drawn only while nothing is
/// measured.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    blocks: Option<Blocks>,
    block: Duration,
    began: Instant,
    /// The block that this call began with.
    first: Option<u32>,
    /// Time after which measuring ends.
    limit: Option<Duration>,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            bar: None,
            blocks: None,
            block: Duration::ZERO,
            began: Instant::now(),
            first: None,
            limit: None,
        }
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| crate::note(format_args!("{text}"))),
            None => crate::note(format_args!("{text}")),
        }
    }

    /// Estimated time until the fewest blocks are done.
    fn left(&self, block: u32, done: usize, of: usize) -> Duration {
        let min = self.blocks.map_or(1, |b| b.min).max(block + 1);
        let passed = f64::from(block) + count(done) / count(of.max(1));
        // A run that is continued has blocks that an earlier call measured.
        let own = passed - f64::from(self.first.unwrap_or(block));
        let per_block = if own > 0.5 {
            self.began.elapsed().as_secs_f64() / own
        } else {
            self.block.as_secs_f64()
        };
        let left = Duration::from_secs_f64((per_block * (f64::from(min) - passed)).max(0.0));
        self.limit.map_or(left, |limit| {
            left.min(limit.saturating_sub(self.began.elapsed()))
        })
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
            // Every change is drawn, because there are few.
            let target = ProgressDrawTarget::stderr_with_hz(u8::MAX);
            let bar = ProgressBar::with_draw_target(Some(1), target);
            if let Ok(style) =
                ProgressStyle::with_template(&format!("{{prefix}}{{bar:{BAR}}} {{msg}}"))
            {
                bar.set_style(style);
            }
            self.bar = Some(bar);
        }
    }

    fn limited(&mut self, limit: Duration) {
        self.limit = Some(limit);
    }

    fn compared(&mut self, blocks: u32, header: &Header, so_far: &dyn Fn() -> Vec<SoFar>) {
        let Some(bar) = &self.bar else { return };
        let all: Vec<(&Cell, SoFar)> = so_far()
            .into_iter()
            .map(|one| (&header.cells[one.cell].cell, one))
            .collect();
        let (height, width) = Term::stderr().size();
        let table = table::table(&all, blocks, (height.into(), width.into()));
        bar.set_prefix(table.map_or_else(String::new, |table| table + "\n"));
    }

    fn measuring(&mut self, block: u32, done: usize, of: usize, cell: &Cell) {
        self.first.get_or_insert(block);
        let left = self.left(block, done, of);
        let Some(bar) = &self.bar else { return };
        let min = self.blocks.map_or(1, |b| b.min);
        let total = u64::from(min.max(block + 1)) * of as u64;
        bar.set_length(total);
        bar.set_position(u64::from(block) * of as u64 + done as u64);
        let message = format!(
            "block {} of {min}, cell {} of {of}: {} · {} elapsed, {} to go",
            block + 1,
            done + 1,
            plain::line(&cell.to_string()),
            show_duration(Duration::from_secs(self.began.elapsed().as_secs())),
            show_duration(Duration::from_secs(left.as_secs())),
        );
        // A wrapped line would not fit below the table.
        let (_, width) = Term::stderr().size();
        let room = usize::from(width).saturating_sub(BAR + 1);
        bar.set_message(message.chars().take(room).collect::<String>());
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
