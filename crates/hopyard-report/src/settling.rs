//! Jitter over time: when it settled, if the window opened with the traffic.

use super::document::{Block, Cell, Column, Row, Table};
use super::figures::{key_columns, key_texts};
use super::group::{Group, Layout};
use super::number::{ABSENT, chosen_percent, significant};
use super::plot::{Across, Curve, Curves, Drawing, Found, Gallery, Mark, Plot, Shared, shared};
use super::quantity::{self, GAP_SD, Scale};
use crate::model::{CellReport, SeriesReport, Settling};

/// A table for each load and peer that has such cells.
pub(super) fn blocks(layout: &Layout<'_>, gallery: &Gallery<'_>) -> Vec<Block> {
    let sections = layout.groups.iter().filter_map(Section::of);
    let mut blocks: Vec<Block> = sections
        .flat_map(|section| [section.table(), section.plots(gallery)])
        .collect();
    if !blocks.is_empty() {
        blocks.insert(
            0,
            Block::Heading("Jitter from the start of the traffic".to_owned()),
        );
        blocks.push(Block::Notes(vec![format!(
            "Settled: from then on within {} of its final value, the median of the last quarter. Jitter: standard deviation of \
             the time between two arrivals of the same flow, all flows together.",
            chosen_percent(Settling::BAND)
        )]));
    }
    blocks
}

/// Such cells of one load and peer.
struct Section<'a> {
    group: &'a Group<'a>,
    told: Vec<(&'a CellReport, &'a SeriesReport, &'a Settling)>,
    /// Length of an interval, s.
    interval_s: f64,
    scale: Scale,
}

impl<'a> Section<'a> {
    fn of(group: &'a Group<'a>) -> Option<Self> {
        let told = group.cells.iter().filter_map(|cell| {
            let series = cell.series.as_ref()?;
            Some((*cell, series, series.settling.as_ref()?))
        });
        let told: Vec<_> = told.collect();
        let jitter = told
            .iter()
            .flat_map(|(_, series, _)| series.interarrival_sd_ns.iter().flatten());
        Some(Self {
            group,
            scale: quantity::scale(GAP_SD, jitter.copied().fold(0.0, f64::max)),
            interval_s: told.first()?.1.interval_s,
            told,
        })
    }

    fn table(&self) -> Block {
        let interval = format!("{} s", self.interval_s);
        let mut columns = key_columns(self.group);
        let keys = columns.len();
        columns.extend([
            Column::right(&[
                &format!("{} in the", self.scale.unit),
                &format!("first {interval}"),
            ]),
            Column::right(&[
                &format!("{} in the", self.scale.unit),
                &format!("last {interval}"),
            ]),
            Column::left(&["settled", &format!("(steps of {interval})")]),
        ]);
        let show = |value: Option<&Option<f64>>| {
            let value = value.copied().flatten();
            Cell::lone(value.map_or_else(|| ABSENT.to_owned(), |v| self.scale.show(v)))
        };
        let row = |(cell, series, settling): &(&CellReport, &SeriesReport, &Settling)| {
            let names = key_texts(self.group, cell, "").into_iter().map(Cell::lone);
            let figures = [
                show(series.interarrival_sd_ns.first()),
                show(series.interarrival_sd_ns.last()),
                Cell::lone(settled(settling, series)),
            ];
            Row::Cells(names.chain(figures).collect())
        };
        Block::Table(Table {
            rows: self.told.iter().map(row).collect(),
            columns,
            keys,
        })
    }

    /// Jitter over time, with the time at which it had settled.
    fn plots(&self, gallery: &Gallery<'_>) -> Block {
        let cells: Vec<&CellReport> = self.told.iter().map(|(cell, ..)| *cell).collect();
        let varying = &self.group.varying;
        let pictures = shared(&cells, |c| (c.path.as_str(), &c.axes), varying, gallery);
        let plot = |shared: &Shared<'_, &CellReport>| {
            let drawing = Drawing::Curves(self.curves(shared));
            Plot::new(
                shared.title(quantity::words(GAP_SD)),
                self.scale.unit,
                drawing,
            )
        };
        Block::Plots(pictures.iter().map(plot).collect())
    }

    fn curves(&self, shared: &Shared<'_, &CellReport>) -> Curves {
        let told = shared
            .lines
            .iter()
            .filter_map(|(cell, name, hue)| Some((cell.series.as_ref()?, name, *hue)));
        let told: Vec<(&SeriesReport, &String, usize)> = told.collect();
        let longest = told
            .iter()
            .map(|(series, ..)| series.interarrival_sd_ns.len());
        let ends = (1..=longest.max().unwrap_or(0)).map(|end| self.interval_s * float(end));
        let across = Across::series("s from the start of the traffic", ends);
        let curve = |(series, name, hue): &(&SeriesReport, &String, usize)| Curve {
            is_points: false,
            name: (*name).clone(),
            hue: *hue,
            marks: (0..across.ticks.len())
                .map(|at| self.mark(series, at))
                .collect(),
        };
        let found = |(series, name, hue): &(&SeriesReport, &String, usize)| {
            let settling = series.settling.as_ref()?;
            let time = settling.time_s.as_ref()?;
            let [at, low, high] = [time.value, time.low, time.high].map(|s| across.place(s));
            Some(Found {
                what: "settled",
                of: (*name).clone(),
                hue: *hue,
                span: (at, at),
                interval: (low < high).then_some((low, high)),
                words: settled(settling, series),
            })
        };
        Curves {
            curves: told.iter().map(curve).collect(),
            found: told.iter().filter_map(found).collect(),
            across,
        }
    }

    fn mark(&self, series: &SeriesReport, at: usize) -> Option<Mark> {
        let value = series.interarrival_sd_ns.get(at).copied().flatten()?;
        let interval = series
            .interarrival_sd_interval_ns
            .get(at)
            .copied()
            .flatten();
        let scaled = |(low, high): (f64, f64)| (self.scale.of(low.max(0.0)), self.scale.of(high));
        Some(Mark {
            interval: interval.map(scaled),
            ..Mark::lone(self.scale.of(value))
        })
    }
}

fn settled(settling: &Settling, series: &SeriesReport) -> String {
    let watched_s = series.interval_s * float(series.interarrival_sd_ns.len());
    let within = format!("within {} s", significant(watched_s));
    match (&settling.time_s, settling.settled_samples, settling.samples) {
        (Some(time), ..) => format!(
            "after {} s ({} to {})",
            significant(time.value),
            // It cannot have settled before the traffic began, whatever the t interval says.
            significant(time.low.max(0.0)),
            significant(time.high)
        ),
        (None, 0, _) => format!("not {within}"),
        (None, some, all) => format!("{some} of {all} times {within}"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a window has few intervals")]
fn float(intervals: usize) -> f64 {
    intervals as f64
}
