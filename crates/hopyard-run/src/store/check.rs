//! Impossible contents of files that can be parsed: they may be damaged, or edited by hand.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::{Header, PlannedCell};
use crate::model::{AXES, Axes, Base, Blocks, Outcome, ProfileWindow, Sample, WINDOW};
use crate::profile;
use crate::units::CONFIDENCE;

/// Losses that a gate may allow.
const LOSS: RangeInclusive<f64> = 0.0..=1.0;

/// Longer than any command that switches the host may take: a day, in seconds.
const LONGEST_SWITCH_S: f64 = 86_400.0;
/// Longer than any run takes, ns; sums of shorter spans do not overflow.
const LONGEST_NS: u64 = 1 << 60;
/// More often than any block is begun anew.
const MOST_ATTEMPTS: u32 = 1000;
/// The limit of file systems, minus room for a number.
const LONGEST_ID: usize = 240;
/// The most CPUs that Linux supports (`NR_CPUS`).
const MOST_CPUS: u32 = 8192;

/// Checks that a header is possible.
pub(crate) fn header(header: &Header) -> Result<(), String> {
    let blocks = Blocks {
        min: header.blocks_min,
        max: header.blocks_max,
    };
    if !blocks.are_possible() {
        let Blocks { min, max } = blocks;
        return Err(format!(
            "blocks_min {min} and blocks_max {max} are no range within 1 to {}",
            Blocks::MOST
        ));
    }
    spans(header)?;
    let shares = [
        ("confidence", header.confidence, CONFIDENCE),
        ("half_width", header.half_width, 0.0..=1.0),
        ("margin", header.margin, 0.0..=1.0),
    ];
    shares
        .iter()
        .try_for_each(|(what, value, bounds)| within(what, *value, bounds))?;
    if let Some(base) = &header.base {
        Base::parse(base)
            .map(drop)
            .map_err(|e| format!("base: {e}"))?;
    }
    if let Some(loss) = header.fail_on {
        within("fail_on", loss, &LOSS)?;
    }
    if let Some(settings) = &header.settings {
        within("switch_s", settings.switch_s, &(0.0..=LONGEST_SWITCH_S))?;
    }
    machine(header)?;
    let mut before = HashSet::new();
    for planned in &header.cells {
        cell(planned).map_err(|why| format!("cell {}: {why}", planned.cell))?;
        if !before.insert(&planned.cell) {
            return Err(format!("cell {} is there twice", planned.cell));
        }
    }
    Ok(())
}

/// Checks that an id can be the name of a directory, as that of a new run is.
pub(crate) fn id(id: &str) -> Result<(), String> {
    let is_plain = |c: char| c != '/' && !c.is_control();
    if !id.is_empty() && id.len() <= LONGEST_ID && !id.starts_with('.') && id.chars().all(is_plain)
    {
        return Ok(());
    }
    Err(format!(
        "id: {id:.100?} is no name for a directory: 1 to {LONGEST_ID} bytes, without `/` and control characters, no \
         `.` first"
    ))
}

fn within(what: &str, value: f64, bounds: &RangeInclusive<f64>) -> Result<(), String> {
    if bounds.contains(&value) {
        return Ok(());
    }
    let (low, high) = (bounds.start(), bounds.end());
    Err(format!("{what} is {value}: it goes from {low} to {high}"))
}

fn spans(header: &Header) -> Result<(), String> {
    let mut spans = vec![
        ("window_ns", header.window_ns, WINDOW),
        (
            "warm_up_ns",
            header.warm_up_ns,
            Duration::ZERO..=*WINDOW.end(),
        ),
    ];
    let profile = header.profile_window_ns;
    spans.extend(profile.map(|ns| ("profile_window_ns", ns, profile::WINDOW)));
    for (what, ns, bounds) in spans {
        if !bounds.contains(&Duration::from_nanos(ns)) {
            let (low, high) = (bounds.start(), bounds.end());
            return Err(format!("{what} is {ns}: it goes from {low:?} to {high:?}"));
        }
    }
    Ok(())
}

fn machine(header: &Header) -> Result<(), String> {
    let machine = &header.environment;
    if machine.cpus == 0 || machine.cpus > MOST_CPUS {
        return Err(format!("a machine of {} CPUs", machine.cpus));
    }
    match machine.cpu_hz {
        Some(hz) => within("cpu_hz", hz, &(1e6..=1e12)),
        None => Ok(()),
    }
}

/// Checks that the axes accept their values.
fn cell(planned: &PlannedCell) -> Result<(), String> {
    if let Some(ceiling) = planned.ceiling_per_s {
        within("ceiling_per_s", ceiling, &(0.0..=1e15))?;
    }
    for axis in AXES {
        if let Some(shown) = (axis.show)(&planned.cell.axes) {
            (axis.set)(&mut Axes::default(), &shown).map_err(|e| format!("{}: {e}", axis.name))?;
        }
    }
    Ok(())
}

/// Lines of a file read so far.
#[derive(Debug)]
pub(crate) struct Known {
    blocks: u32,
    /// The last attempt at a block that there may be.
    last_attempt: u32,
    /// For each cell, whether it is measured.
    cells: Vec<bool>,
    /// Block, attempt and cell of each line.
    seen: HashSet<(u32, u32, usize)>,
}

impl Known {
    /// None yet.
    pub(crate) fn of(header: &Header) -> Self {
        let cells = header.cells.iter();
        Self {
            blocks: header.blocks_max,
            last_attempt: MOST_ATTEMPTS,
            cells: cells.map(|cell| cell.unsupported.is_none()).collect(),
            seen: HashSet::new(),
        }
    }

    /// None yet, of a run in a guest. Such a run is never continued, so each block has one attempt. A guest that could send more could
    /// go on for ever, and its last attempt would count.
    pub(crate) fn of_a_guest(header: &Header) -> Self {
        Self {
            last_attempt: 0,
            ..Self::of(header)
        }
    }

    /// Checks that a sample is possible after those before it.
    pub(crate) fn sample(&mut self, sample: &Sample) -> Result<(), String> {
        self.place(sample.block, sample.attempt, sample.cell)?;
        for (what, ns) in [
            ("started_ns", sample.started_ns),
            ("took_ns", sample.took_ns),
        ] {
            if ns > LONGEST_NS {
                return Err(format!("{what}: {ns} is more than any run takes"));
            }
        }
        match &sample.outcome {
            Outcome::Measured(measurement) => measurement.check().map_err(|e| e.to_string()),
            Outcome::Failed { .. } => Ok(()),
        }
    }

    /// Checks that a profile is possible.
    pub(crate) fn profile(&mut self, profile: &ProfileWindow) -> Result<(), String> {
        self.place(profile.block, profile.attempt, profile.cell)?;
        profile.check().map_err(|e| e.to_string())
    }

    fn place(&mut self, block: u32, attempt: u32, cell: usize) -> Result<(), String> {
        let (blocks, cells) = (self.blocks, self.cells.len());
        if block >= blocks {
            return Err(format!("block {block} in a run of at most {blocks}"));
        }
        if attempt > self.last_attempt {
            return Err(format!("attempt {attempt} at block {block}"));
        }
        let Some(is_measured) = self.cells.get(cell) else {
            return Err(format!("cell {cell} in a run of {cells}"));
        };
        if !is_measured {
            return Err(format!("cell {cell}, which this run could not measure"));
        }
        if !self.seen.insert((block, attempt, cell)) {
            return Err(format!("cell {cell} for the second time in block {block}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
