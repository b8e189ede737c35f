//! A printed profile beside today's: the printed functions in their order, then those of the subsystems that connect
//! devices here.

use super::evidence::{Evidence, Value, scaled};
use super::file::{Form, Row, Table};
use super::place::{Filled, Place, blank, place, without};
use super::print::{Print, Rules};
use super::spec::{Here, Samples};
use crate::assess::counted_windows;
use crate::document::{Cell, Footnotes};
use crate::functions::{Counts, wanted};
use crate::stats::{Estimate, ratio_of_sums};
use crate::units::float;

/// The report's name for the sum.
const TOTAL: &str = "TOTAL";

pub(super) fn rows(
    evidence: &Evidence<'_>,
    printed: &Table,
    form: &Form,
    notes: &mut Footnotes,
) -> Vec<Filled> {
    let profile = Profile::of(evidence, printed);
    let (total, functions): (Vec<_>, Vec<_>) =
        printed.rows.iter().partition(|row| is_total(&row.key));
    let filled = |row: &Row, notes: &mut Footnotes| {
        let name = row.key.first().map_or("", String::as_str);
        let places = row.print.iter().zip(&form.columns).map(|(print, column)| {
            let answer = match (&profile, &column.here) {
                (Ok(profile), Here::Samples(what)) => profile.value(name, *what),
                (Err(why), _) => Err(why.clone()),
                (Ok(_), _) => Err("it is no figure of a profile".to_owned()),
            };
            match (answer, &column.here) {
                // The number of samples shows how long was sampled.
                (Ok(value), Here::Samples(Samples::Count)) => {
                    let [print, here, _] = place(print, Ok(value), evidence.rules(), notes);
                    [print, here, Cell::lone("")]
                }
                (Ok(value), _) => place(print, Ok(value), evidence.rules(), notes),
                (Err(why), _) => without(print, why, notes),
            }
        });
        Filled {
            keys: row.key.clone(),
            places: places.collect(),
        }
    };
    let mut rows: Vec<Filled> = functions.iter().map(|row| filled(row, notes)).collect();
    if let Ok(profile) = &profile {
        let known = |name: &&String| {
            printed
                .rows
                .iter()
                .any(|row| row.key.first() == Some(*name))
        };
        let others = profile.names().into_iter().filter(|name| !known(name));
        rows.extend(others.map(|name| {
            Filled {
                keys: vec![name.clone()],
                places: form
                    .columns
                    .iter()
                    .map(|column| today(profile, name, &column.here))
                    .collect(),
            }
        }));
    }
    rows.extend(total.iter().map(|row| filled(row, notes)));
    rows
}

fn is_total(key: &[String]) -> bool {
    key.first().is_some_and(|key| key == TOTAL)
}

/// A function that the report does not have.
fn today(profile: &Profile, name: &str, here: &Here) -> Place {
    let Here::Samples(what) = here else {
        return blank();
    };
    match profile.value(name, *what) {
        Ok(value) => {
            let [_, here, _] = place(
                &Print::Blank,
                Ok(value),
                profile.rules,
                &mut Footnotes::default(),
            );
            [Cell::lone(""), here, Cell::lone("")]
        }
        Err(_) => blank(),
    }
}

/// The samples of a cell.
struct Profile {
    /// All windows together.
    all: Counts,
    /// Each window.
    windows: Vec<Counts>,
    confidence: f64,
    rules: Rules,
}

impl Profile {
    fn of(evidence: &Evidence<'_>, printed: &Table) -> Result<Self, String> {
        let plan = &evidence.report.run.plan;
        let wanted_cell = evidence.stand.wanted(&[&printed.cells]);
        let cell = evidence.cell(&wanted_cell)?;
        let none = || format!("no profile was taken: `hopyard run {plan} --profile`");
        let index = evidence.report.cells.iter().position(|c| c == cell);
        let index = index.ok_or_else(none)?;
        let subsystems = wanted(&[]).map_err(|e| e.to_string())?;
        let run = evidence.run;
        let mut windows = counted_windows(&run.samples, &run.profiles);
        windows.retain(|window| window.cell == index);
        let count = |windows: &[&_]| Counts::over(windows.iter().copied(), &subsystems);
        Ok(Self {
            all: count(&windows).ok_or_else(none)?,
            windows: windows
                .iter()
                .filter_map(|window| count(&[*window]))
                .collect(),
            confidence: evidence.report.run.confidence,
            rules: evidence.rules(),
        })
    }

    /// The functions that were seen, the busiest first.
    fn names(&self) -> Vec<&String> {
        let mut names: Vec<(&String, &u64)> = self.all.functions.iter().collect();
        names.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
        names.into_iter().map(|(name, _)| name).collect()
    }

    fn value(&self, name: &str, what: Samples) -> Result<Value, String> {
        let samples = |counts: &Counts| {
            if name == TOTAL {
                return counts.functions.values().sum();
            }
            counts.functions.get(name).copied().unwrap_or(0)
        };
        let all: u64 = samples(&self.all);
        if all == 0 {
            return Err("no sample of this run is in it".to_owned());
        }
        if what == Samples::Count {
            return Ok(Value::Set(float(all)));
        }
        let own: Vec<f64> = self.windows.iter().map(|w| float(samples(w))).collect();
        let busy: Vec<f64> = self.windows.iter().map(|w| float(w.busy)).collect();
        let share = ratio_of_sums(&own, &busy, self.confidence).unwrap_or_else(|| {
            let value = float(all) / float(self.all.busy);
            Estimate {
                value,
                low: value,
                high: value,
                confidence: self.confidence,
                n: 1,
            }
        });
        Ok(Value::Measured(scaled(&share, 100.0)))
    }
}
