//! Pictures as text, for screen readers.

use super::{Across, Curve, Curves, Drawing, Found, Mark, Plot};
use crate::number::significant;

/// Up to this many values of an axis, each is named; for more, only where the curve begins, ends and is highest.
const READ_OUT: usize = 24;

impl Plot {
    /// The figures in words.
    pub(crate) fn in_words(&self) -> String {
        let items: Vec<String> = match &self.drawing {
            Drawing::Rows(lines) => lines
                .iter()
                .map(|line| format!("{} {}", line.name, mark(line.mark.as_ref())))
                .collect(),
            Drawing::Curves(curves) => curves.in_words(),
            Drawing::Stacks { parts, bars } => {
                let words = |sizes: &[f64]| {
                    let sizes = sizes.iter().map(|size| significant(*size));
                    listed(parts.iter().zip(sizes))
                };
                bars.iter()
                    .map(|(name, sizes)| format!("{name}: {}", words(sizes)))
                    .collect()
            }
        };
        format!("In {}. {}.", self.unit, items.join("; "))
    }
}

impl Curves {
    fn in_words(&self) -> Vec<String> {
        let across = &self.across;
        let curve = |curve: &Curve| {
            let words = if across.ticks.len() > READ_OUT {
                curve.in_short(across)
            } else {
                let marks = curve.marks.iter().map(|m| mark(m.as_ref()));
                listed(across.ticks.iter().map(|tick| &tick.name).zip(marks))
            };
            format!("{} by {}: {words}", curve.name, across.name)
        };
        let found = |f: &Found| format!("{} of {}: {}", f.what, f.of, f.words);
        let curves = self.curves.iter().map(curve);
        curves.chain(self.found.iter().map(found)).collect()
    }
}

impl Curve {
    fn in_short(&self, across: &Across) -> String {
        let there: Vec<(&str, &Mark)> = across
            .ticks
            .iter()
            .zip(&self.marks)
            .filter_map(|(tick, mark)| Some((tick.name.as_str(), mark.as_ref()?)))
            .collect();
        let at = |what: &str, place: Option<&(&str, &Mark)>| {
            place.map(|(tick, mark)| format!("{what} {} at {tick}", significant(mark.value)))
        };
        let highest = there.iter().max_by(|a, b| a.1.value.total_cmp(&b.1.value));
        let places = [
            at("from", there.first()),
            at("to", there.last()),
            at("highest", highest),
        ];
        let said: Vec<String> = places.into_iter().flatten().collect();
        said.join(", ")
    }
}

fn listed<'a>(named: impl Iterator<Item = (&'a String, String)>) -> String {
    let each = named.map(|(name, words)| format!("{name} {words}"));
    each.collect::<Vec<_>>().join(", ")
}

fn mark(mark: Option<&Mark>) -> String {
    let Some(mark) = mark else {
        return "none".to_owned();
    };
    let value = significant(mark.value);
    match mark.interval {
        Some((low, high)) => format!("{value} ({} to {})", significant(low), significant(high)),
        None => value,
    }
}
