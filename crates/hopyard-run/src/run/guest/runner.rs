//! `hopyard runner`: carries out one plan that comes on stdin, or tries deeds, and says on stdout how it goes.

use std::io;
use std::time::Duration;

use super::protocol::{Order, Said, Tried, Wanted};
use crate::guest;
use crate::lab;
use crate::load::lines;
use crate::measure::Error as MeasureError;
use crate::model::{Blocks, Cell, ProfileWindow, Sample};
use crate::run::{Error, Observer, prepare};
use crate::store::{self, End, Record};
use crate::{profile, store::Error as StoreError};

/// Serves one order. `try_out` tries a deed.
///
/// # Errors
/// stdin or stdout failed.
pub fn main(try_out: impl Fn(&str) -> Tried) -> io::Result<()> {
    say(&Said::Hello {
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })?;
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    for text in guest::refused_modules() {
        say(&Said::Note { text })?;
    }
    let order = match serde_json::from_str(&line)? {
        Wanted::Plan(order) => order,
        Wanted::Deeds(wanted) => {
            for name in wanted.deeds {
                let tried = try_out(&name);
                say(&Said::Tried { name, tried })?;
            }
            return say(&Said::Ended { end: End::Complete });
        }
    };
    let last = match carry_out(&order) {
        Ok(end) => Said::Ended { end },
        Err(error) => Said::Refused {
            message: crate::chain(&error),
            request: error.is_request(),
        },
    };
    say(&last)
}

fn carry_out(order: &Order) -> Result<End, Error> {
    if order.profile {
        let cpus = hopyard_net::cpu::online_cpus().map_err(MeasureError::from)?;
        profile::check(&cpus).map_err(MeasureError::from)?;
    }
    let mut plan = order.plan.clone();
    let mut left_out = Vec::new();
    if let Some(known) = &order.left_out {
        left_out.clone_from(known);
        left_out.extend(plan.leave_out(lab::lacking));
        if plan.parts.is_empty() {
            let why = left_out.iter().map(|(name, why)| format!("{name}: {why}"));
            return Err(Error::Nothing(why.collect::<Vec<_>>().join("; ")));
        }
    }
    let mut prepared = prepare(&plan, order.seed)?;
    prepared.header.profile = order.profile;
    prepared.header.left_out.extend(left_out);
    tell(&Said::Prepared(Box::new(prepared.header.clone())))?;
    prepared.carry_out_for(&mut Port, &mut Port)
}

fn say(said: &Said) -> io::Result<()> {
    lines::say(&mut io::stdout().lock(), said)
}

fn tell(said: &Said) -> Result<(), StoreError> {
    say(said).map_err(|source| StoreError::Write {
        file: "stdout".into(),
        source,
    })
}

/// The host at the other end: it stores samples and shows progress.
struct Port;

impl Record for Port {
    fn append(&mut self, sample: &Sample) -> Result<(), store::Error> {
        tell(&Said::Sample(Box::new(sample.clone())))
    }

    fn append_profile(&mut self, profile: &ProfileWindow) -> Result<(), store::Error> {
        tell(&Said::Profile(Box::new(profile.clone())))
    }

    /// The last message reports the end.
    fn finish(&mut self, _end: End) -> Result<(), store::Error> {
        Ok(())
    }
}

/// A line that is lost is no reason to end; if the connection is broken, the next sample fails.
impl Observer for Port {
    fn planned(&mut self, cells: usize, blocks: Blocks, block: Duration) {
        let _ = say(&Said::Planned {
            cells,
            blocks,
            block_ms: u64::try_from(block.as_millis()).unwrap_or(u64::MAX),
        });
    }

    fn measuring(&mut self, block: u32, done: usize, of: usize, cell: &Cell) {
        let _ = say(&Said::Measuring {
            block,
            done,
            of,
            cell: Box::new(cell.clone()),
        });
    }

    fn failed(&mut self, cell: &Cell, cause: &str) {
        let _ = say(&Said::Failed {
            cell: Box::new(cell.clone()),
            cause: cause.to_owned(),
        });
    }

    fn note(&mut self, text: &str) {
        let _ = say(&Said::Note {
            text: text.to_owned(),
        });
    }
}
