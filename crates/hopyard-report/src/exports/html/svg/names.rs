//! Names in pictures: whole where they fit, else cut so that names that differ stay different.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::{CHARACTER, Canvas, Chart, Drawn, WIDTH, ink, pixels, place, width};
use crate::model::distinct;

/// Names with at most this many characters are beside their rows, longer ones above them.
const BESIDE: usize = 24;
/// Pixels for a name above its row.
const ABOVE: u32 = 18;
/// Pixels on each side of a name above its row, more than those left of the axis.
const EDGE: u32 = 14;

/// How many characters fit into this many pixels.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a picture has a few hundred pixels"
)]
pub(super) fn characters(pixels: f64) -> usize {
    (pixels / CHARACTER).max(0.0) as usize
}

/// The names with at most `most` characters each, cut in the middle, where names differ least. If two then look the same,
/// they are cut elsewhere; as a last resort they have numbers.
pub(super) fn told_apart(names: &[String], most: usize) -> Vec<String> {
    let different = distinct(names.iter()).len();
    let kept = most.saturating_sub(1);
    let mut ends: Vec<usize> = (0..=kept).collect();
    ends.sort_by_key(|end| end.abs_diff(kept / 2));
    let shortened = |end: usize| -> Vec<String> {
        let short = |name: &String| cut(name, kept - end, end);
        names.iter().map(short).collect()
    };
    let mut apart = ends
        .into_iter()
        .map(shortened)
        .filter(|short| distinct(short.iter()).len() == different);
    apart.next().unwrap_or_else(|| numbered(names, most))
}

/// The first characters of a name and its last ones, so many of each.
fn cut(name: &str, begin: usize, end: usize) -> String {
    let count = name.chars().count();
    if count <= begin + end + 1 {
        return name.to_owned();
    }
    let first: String = name.chars().take(begin).collect();
    let last: String = name.chars().skip(count - end).collect();
    format!("{}…{}", first.trim_end(), last.trim_start())
}

fn numbered(names: &[String], most: usize) -> Vec<String> {
    let all = distinct(names.iter());
    let number = |name: &String| {
        let at = all.iter().position(|other| *other == name).unwrap_or(0);
        let number = format!(" ({})", at + 1);
        let begin = most.saturating_sub(number.chars().count() + 1);
        match cut(name, begin, 0) {
            short if short == *name => short,
            short => short + &number,
        }
    };
    names.iter().map(number).collect()
}

/// The names of rows.
pub(super) struct RowNames {
    texts: Vec<String>,
    is_above: bool,
    /// Pixels of a row.
    row: u32,
}

impl RowNames {
    /// For rows of this many pixels, to which names above them add.
    pub(super) fn of(names: impl Iterator<Item = String>, row: u32) -> Self {
        let names: Vec<String> = names.collect();
        let is_above = names.iter().any(|name| name.chars().count() > BESIDE);
        let room = f64::from(WIDTH - 2 * EDGE);
        Self {
            texts: told_apart(&names, characters(room)),
            is_above,
            row: if is_above { row + ABOVE } else { row },
        }
    }

    pub(super) fn count(&self) -> usize {
        self.texts.len()
    }

    /// Pixels of all rows.
    pub(super) fn height(&self) -> u32 {
        pixels(self.count(), self.row)
    }

    /// Pixels left of the rows.
    pub(super) fn margin(&self) -> i32 {
        let widest = self.texts.iter().map(|name| width(name)).max();
        let beside = widest.filter(|_| !self.is_above);
        beside.unwrap_or(0) + 10
    }

    /// The coordinate in a row that is free for marks: 0 is its upper end, 1 its lower end.
    pub(super) fn within(&self, index: usize, share: f64) -> f64 {
        let name = if self.is_above {
            f64::from(ABOVE) / f64::from(self.row)
        } else {
            0.0
        };
        place(index) + name + (1.0 - name) * share
    }

    /// Writes the name of a row.
    pub(super) fn draw(&self, canvas: &Canvas<'_>, chart: &Chart<'_, '_>, index: usize) -> Drawn {
        let pixel = |row: f64| chart.backend_coord(&(0.0, row)).1;
        let edge = i32::try_from(EDGE).unwrap_or_default();
        let (at, style) = if self.is_above {
            let top = pixel(place(index)) + 4;
            ((edge, top), ink(HPos::Left, VPos::Top))
        } else {
            let middle = pixel(self.within(index, 0.5));
            let style = ink(HPos::Right, VPos::Center);
            ((self.margin() - 6, middle), style)
        };
        let text = self.texts.get(index).cloned().unwrap_or_default();
        canvas.draw(&Text::new(text, at, style))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_stays() {
        let names = ["/etc/nftables.d/some/where/old.nft", "new.nft"].map(str::to_owned);
        let short = told_apart(&names, 15);
        assert_eq!(short, ["/etc/nf…old.nft", "new.nft"]);
    }

    #[test]
    fn names_that_differ_stay_different() {
        let long = "x".repeat(40);
        for names in [
            [
                "veth-route · containers native",
                "veth-route · containers own",
            ]
            .map(str::to_owned),
            [format!("a{long}"), format!("b{long}")],
            [format!("{long}a"), format!("{long}b")],
            [format!("{long}a{long}"), format!("{long}b{long}")],
            [format!("{long}1{long}"), format!("{long}{long}")],
        ] {
            for most in 5..60 {
                let short = told_apart(&names, most);
                assert_ne!(short[0], short[1], "{most}: {names:?}");
                assert!(
                    short.iter().all(|name| name.chars().count() <= most),
                    "{short:?}"
                );
            }
        }
    }
}
