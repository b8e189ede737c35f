//! Curves of this host with the points that a report printed on them.

use super::cells::{Cells, shown};
use super::curves::SENDERS;
use super::evidence::{Evidence, has, scaled};
use super::picture::{Draws, Picture};
use crate::group::phrase;
use crate::model::{CellReport, SeriesReport};
use crate::plot::{Across, Curve, Curves, Drawing, Found, Mark, Plot};
use crate::stats::Estimate;

/// Points of a curve: coordinate and mark.
type Points = Vec<(f64, Mark)>;

impl Evidence<'_> {
    /// Each picture of which the run has a curve.
    pub(super) fn pictures(&self) -> Vec<Plot> {
        let pictures = self.file.pictures.iter();
        pictures
            .flat_map(|picture| {
                let values = picture.each.values.iter();
                values.filter_map(|value| self.picture(picture, &value.to_string()))
            })
            .collect()
    }

    fn picture(&self, picture: &Picture, value: &str) -> Option<Plot> {
        let axis = picture.each.axis.as_str();
        let value = shown(axis, value).ok()?;
        let mut wanted = self.stand.wanted(&[&picture.cells]);
        wanted.set.insert(axis.to_owned(), value.clone());
        let lines = picture.lines.iter().map(|line| {
            let own = Cells {
                path: line.path.clone(),
                set: line.set.clone(),
                ..Cells::default()
            };
            (
                line.name.clone(),
                self.line(&picture.draws, &wanted.clone().with(&own)),
            )
        });
        let lines: Vec<(String, Points)> = lines.collect();
        if lines.iter().all(|(_, points)| points.is_empty()) {
            return None;
        }
        let spans = picture.spans.iter().map(|span| span.name.clone());
        let words = [picture.title.clone(), phrase(axis, &value)];
        let title = words.into_iter().chain(spans).collect::<Vec<_>>();
        let drawing = Drawing::Curves(drawn(picture, &lines));
        Some(Plot::new(title.join(" · "), picture.unit.clone(), drawing))
    }

    fn line(&self, draws: &Draws, wanted: &Cells) -> Points {
        // Traffic that went another way is not of the path that was printed.
        let is_it = |cell: &&CellReport| has(cell, wanted) && !cell.is_unproved();
        let cells = self.report.cells.iter().filter(is_it);
        match draws {
            Draws::Figure { of, factor } => cells
                .filter_map(|cell| {
                    let estimate = cell.estimates.get(of)?;
                    let dots = self.seen.iter().filter(|o| o.counted && o.is_of(cell));
                    let dots = dots.filter_map(|o| o.values.get(of.as_str()));
                    let mark = Mark {
                        dots: dots.map(|dot| dot * factor).collect(),
                        ..mark(&scaled(estimate, *factor))
                    };
                    Some((f64::from(cell.axes.flows), mark))
                })
                .collect(),
            Draws::Ratio(of) => cells
                .filter_map(|cell| {
                    let mut wanted = wanted.clone();
                    let flows = cell.axes.flows.to_string();
                    wanted.set.insert(SENDERS.to_owned(), flows);
                    let ratio = self.over_base(of, &wanted, &self.file.base)?;
                    Some((f64::from(cell.axes.flows), mark(&ratio)))
                })
                .collect(),
            Draws::Jitter { factor } => cells
                .filter_map(|cell: &CellReport| cell.series.as_ref())
                .find(|series| series.settling.is_some())
                .map_or_else(Vec::new, |series| over_time(series, *factor)),
        }
    }
}

fn mark(estimate: &Estimate) -> Mark {
    Mark {
        interval: (estimate.n > 1).then(|| (estimate.low.max(0.0), estimate.high)),
        ..Mark::lone(estimate.value)
    }
}

/// Jitter at the end of each interval since the traffic began.
fn over_time(series: &SeriesReport, factor: f64) -> Points {
    let ends = (1_u32..).map(|end| series.interval_s * f64::from(end));
    let values = ends.zip(&series.interarrival_sd_ns).enumerate();
    values
        .filter_map(|(at, (end, value))| {
            let interval = series
                .interarrival_sd_interval_ns
                .get(at)
                .copied()
                .flatten();
            let mark = Mark {
                interval: interval.map(|(low, high)| (low.max(0.0) * factor, high * factor)),
                ..Mark::lone((*value)? * factor)
            };
            Some((end, mark))
        })
        .collect()
}

/// The measured lines, then the printed ones.
fn drawn(picture: &Picture, lines: &[(String, Points)]) -> Curves {
    let printed = picture.points.iter().flat_map(|points| &points.at);
    let measured = lines
        .iter()
        .flat_map(|(_, points)| points.iter().map(|(at, _)| *at));
    let measured: Vec<f64> = measured.collect();
    let across = match picture.draws {
        Draws::Jitter { .. } => Across::series(
            "s from the start of the traffic",
            distinct(measured.clone()).into_iter(),
        ),
        Draws::Figure { .. } | Draws::Ratio(_) => {
            let all = measured.iter().copied().chain(printed.map(|(at, _)| *at));
            Across::numbers(
                "senders",
                all.map(|at| (at, crate::number::chosen(at))).collect(),
            )
        }
    };
    let places: Vec<f64> = across.ticks.iter().map(|tick| tick.place).collect();
    let marks = |points: &[(f64, Mark)]| {
        let at = |place: &f64| {
            let mut own = points.iter().filter(|(at, _)| across.place(*at) == *place);
            own.next().map(|(_, mark)| mark.clone())
        };
        places.iter().map(at).collect()
    };
    let lone = |at: &[(f64, f64)]| -> Points {
        at.iter()
            .map(|(at, value)| (*at, Mark::lone(*value)))
            .collect()
    };
    let mut curves: Vec<Curve> = lines
        .iter()
        .enumerate()
        .map(|(hue, (name, points))| Curve {
            name: name.clone(),
            hue,
            marks: marks(points),
            is_points: false,
        })
        .collect();
    curves.retain(|curve| curve.marks.iter().any(Option::is_some));
    let first = lines.len();
    for (at, points) in picture.points.iter().enumerate() {
        let band = points.between.map(|(low, high)| Mark {
            interval: Some((low, high)),
            ..Mark::lone(f64::midpoint(low, high))
        });
        curves.push(Curve {
            name: points.name.clone(),
            hue: first + at,
            marks: match &band {
                Some(band) => vec![Some(band.clone()); places.len()],
                None => marks(&lone(&points.at)),
            },
            is_points: band.is_none(),
        });
    }
    let found = picture.spans.iter().enumerate().map(|(at, span)| Found {
        what: "print",
        of: span.name.clone(),
        hue: first + picture.points.len() + at,
        span: (across.place(span.from), across.place(span.to)),
        interval: None,
        words: format!("{} to {}", span.from, span.to),
    });
    Curves {
        found: found.collect(),
        curves,
        across,
    }
}

fn distinct(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}
