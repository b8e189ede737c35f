//! The horizontal axis of a picture of curves: names side by side, or numbers to scale.

use crate::model::axis;
use crate::number::{chosen, leading};

/// An axis from left to right.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Across {
    /// Its name, with its unit.
    pub(crate) name: String,
    /// Its values in order.
    pub(crate) ticks: Vec<Tick>,
    /// Whether there are values between two neighbours: true for numbers, false for `on` and `off`.
    pub(crate) is_joined: bool,
    spread: Spread,
}

/// A value of an axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    /// Its text.
    pub(crate) name: String,
    /// Its coordinate.
    pub(crate) place: f64,
    /// Whether it may have a label below the axis. Of many evenly spaced values, only a few have.
    pub(crate) is_labelled: bool,
}

/// How numbers become coordinates.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Spread {
    Even,
    Logarithm,
    /// The logarithm of the value plus one, so that 0 has a coordinate: `rules=0,1,10,100`.
    LogarithmFromZero,
}

impl Spread {
    fn place(self, value: f64) -> f64 {
        match self {
            Self::Even => value,
            Self::Logarithm => value.ln(),
            Self::LogarithmFromZero => value.ln_1p(),
        }
    }

    /// Logarithmic if that spaces the values more evenly.
    fn of(values: &[f64]) -> Self {
        let logarithm = match values.first() {
            Some(first) if *first > 0.0 => Self::Logarithm,
            Some(first) if *first == 0.0 => Self::LogarithmFromZero,
            _ => return Self::Even,
        };
        let most_over_least = |spread: Self| {
            let gaps = values
                .windows(2)
                .map(|pair| spread.place(pair[1]) - spread.place(pair[0]));
            let ends = gaps.fold((f64::INFINITY, 0.0_f64), |(least, most), gap| {
                (least.min(gap), most.max(gap))
            });
            ends.1 / ends.0
        };
        if most_over_least(logarithm) < most_over_least(Self::Even) {
            logarithm
        } else {
            Self::Even
        }
    }
}

impl Across {
    /// The values of an axis of the plan: of a quantity in rising order and to scale, of others side by side, even if each
    /// begins with a digit (`family=4,6`, `ruleset=1a.nft,1b.nft`). A quantity with a value that is no number (`rate=none`)
    /// has no scale: its values stand side by side too, numbers in rising order before the others.
    pub(crate) fn of(name: &str, mut values: Vec<String>) -> Self {
        let is_quantity = axis(name).is_ok_and(|axis| axis.is_quantity);
        let number = |value: &String| leading(value).filter(|_| is_quantity);
        let numbers: Option<Vec<f64>> = values.iter().map(number).collect();
        match numbers {
            Some(numbers) => Self::numbers(name, numbers.into_iter().zip(values).collect()),
            None => {
                let size = |value: &String| number(value).unwrap_or(f64::INFINITY);
                values.sort_by(|a, b| size(a).total_cmp(&size(b)));
                Self::names(name, values)
            }
        }
    }

    fn names(name: &str, values: Vec<String>) -> Self {
        let ticks = (0_u32..).zip(values).map(|(index, name)| Tick {
            name,
            place: f64::from(index),
            is_labelled: true,
        });
        Self {
            name: name.to_owned(),
            ticks: ticks.collect(),
            is_joined: false,
            spread: Spread::Even,
        }
    }

    /// Numbers with their texts.
    pub(crate) fn numbers(name: &str, mut values: Vec<(f64, String)>) -> Self {
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        values.dedup_by(|a, b| a.0 == b.0);
        let numbers: Vec<f64> = values.iter().map(|(value, _)| *value).collect();
        let spread = Spread::of(&numbers);
        let ticks = values.into_iter().map(|(value, name)| Tick {
            name,
            place: spread.place(value),
            is_labelled: true,
        });
        Self::placed(name, ticks.collect(), spread)
    }

    /// Many evenly spaced numbers.
    pub(crate) fn series(name: &str, values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.collect();
        let every = every(values.len());
        let tick = |(index, value): (usize, &f64)| Tick {
            name: chosen(*value),
            place: *value,
            is_labelled: (index + 1) % every == 0,
        };
        Self::evenly(name, values.iter().enumerate().map(tick).collect())
    }

    /// Numbers with given coordinates.
    pub(crate) fn evenly(name: &str, ticks: Vec<Tick>) -> Self {
        Self::placed(name, ticks, Spread::Even)
    }

    fn placed(name: &str, ticks: Vec<Tick>, spread: Spread) -> Self {
        Self {
            name: name.to_owned(),
            is_joined: ticks.len() > 1,
            ticks,
            spread,
        }
    }

    /// The coordinate of a number; beyond the axis, that of its end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let (low, high) = self.ends();
        self.spread.place(value).max(low).min(high)
    }

    /// The coordinates of the ends of the axis, with some margin.
    pub(crate) fn ends(&self) -> (f64, f64) {
        let first = self.ticks.first().map_or(0.0, |tick| tick.place);
        let last = self.ticks.last().map_or(0.0, |tick| tick.place);
        let room = match self.ticks.len() {
            0 | 1 => 0.5,
            _ if self.is_joined => (last - first) * 0.05,
            _ => 0.3,
        };
        (first - room, last + room)
    }
}

/// One of this many values has a label, so that there are some eight labels: 1, 2, 5, 10, 20, …
fn every(count: usize) -> usize {
    let steps = (0..).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_usize.pow(power)));
    let mut enough = steps.filter(|step| count / step <= 8);
    enough.next().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(name: &str, values: &[&str]) -> Vec<f64> {
        let across = Across::of(name, values.iter().map(|&v| v.to_owned()).collect());
        let (low, high) = across.ends();
        let share = |tick: &Tick| ((tick.place - low) / (high - low) * 100.0).round();
        across.ticks.iter().map(share).collect()
    }

    #[test]
    fn numbers_stand_where_they_belong() {
        // Proportional, by doubling, and starting at zero.
        assert_eq!(
            places("flows", &["1", "2", "3", "4"]),
            [5.0, 35.0, 65.0, 95.0]
        );
        assert_eq!(
            places("flows", &["1", "2", "4", "8"]),
            [5.0, 35.0, 65.0, 95.0]
        );
        assert_eq!(
            places("flows", &["8", "1", "2", "4"]),
            [5.0, 35.0, 65.0, 95.0]
        );
        assert_eq!(
            places("rules", &["0", "10", "100", "1000"])[1..3],
            [36.0, 65.0]
        );
        assert_eq!(
            places("message_size", &["64 B", "1 KiB", "16 KiB"]),
            [5.0, 50.0, 95.0]
        );
        assert_eq!(
            places("wire_pause", &["2ms", "500us", "8ms"]),
            [5.0, 50.0, 95.0]
        );
    }

    #[test]
    fn names_stand_side_by_side() {
        let across = Across::of("offload", vec!["on".to_owned(), "off".to_owned()]);
        assert!(!across.is_joined);
        assert_eq!(across.ticks[1].place, 1.0);
        assert_eq!(across.ends(), (-0.3, 1.3));
    }

    #[test]
    fn amounts_beside_a_word_are_in_order_before_it() {
        for (axis, values, wanted) in [
            (
                "rate",
                &["none", "10gbit", "1gbit", "100mbit"][..],
                &["100mbit", "1gbit", "10gbit", "none"][..],
            ),
            (
                "socket_buffer",
                &["–", "1 MiB", "64 KiB"],
                &["64 KiB", "1 MiB", "–"],
            ),
        ] {
            let across = Across::of(axis, values.iter().map(|&v| v.to_owned()).collect());
            let names: Vec<&str> = across.ticks.iter().map(|tick| tick.name.as_str()).collect();
            assert_eq!(names, wanted, "{axis}");
            assert!(!across.is_joined, "{axis}");
        }
        // 90, 120 and 600 s, by their logarithms.
        let minutes = places("wire_pause", &["2m", "10m", "1m30s"]);
        assert_eq!(minutes, [5.0, 18.0, 95.0]);
    }

    #[test]
    fn names_that_begin_with_a_digit_are_no_numbers() {
        for (axis, values) in [
            ("family", ["4", "6"]),
            ("ruleset", ["1b.nft", "1a.nft"]),
            ("client_cpus", ["0", "1"]),
        ] {
            let across = Across::of(axis, values.map(str::to_owned).to_vec());
            assert!(!across.is_joined, "{axis}");
            let names: Vec<&str> = across.ticks.iter().map(|tick| tick.name.as_str()).collect();
            assert_eq!(names, values, "{axis}");
        }
    }

    #[test]
    fn of_many_values_some_are_written() {
        let across = Across::series("s", (1..=120).map(|i| f64::from(i) * 5.0));
        let labelled = across.ticks.iter().filter(|tick| tick.is_labelled);
        let names: Vec<&str> = labelled.map(|tick| tick.name.as_str()).collect();
        assert_eq!(names, ["100", "200", "300", "400", "500", "600"]);
        assert_eq!(every(8), 1);
    }

    #[test]
    fn what_is_beyond_the_axis_is_at_its_end() {
        let across = Across::of("flows", ["1", "2", "4"].map(str::to_owned).to_vec());
        assert_eq!(across.place(f64::INFINITY), across.ends().1);
        assert_eq!(across.place(2.0), 2.0_f64.ln());
        assert_eq!(across.place(0.0), across.ends().0);
    }
}
