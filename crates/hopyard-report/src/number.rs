//! Numbers as text for people: three significant digits, never more than the samples justify.

use crate::model::units::parse_duration;

/// The text for a value that was not measured.
pub(super) const ABSENT: &str = "–";

/// Three significant digits in plain notation; powers of ten only if plain digits would be too long. A value that is
/// not finite counts as not measured.
pub(super) fn significant(value: f64) -> String {
    if !value.is_finite() {
        return ABSENT.to_owned();
    }
    let value = rounded(value);
    match exponent(value) {
        _ if value == 0.0 => "0".to_owned(),
        -4..=1 => {
            let decimals = usize::try_from(2 - exponent(value)).unwrap_or(0);
            format!("{value:.decimals$}")
        }
        2..=8 => format!("{value:.0}"),
        _ => format!("{value:.2e}"),
    }
}

/// The same without trailing zeros: `0.5`.
pub(super) fn trimmed(value: f64) -> String {
    let text = significant(value);
    match text.split_once('e') {
        None if text.contains('.') => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        _ => text,
    }
}

/// Two significant digits in plain notation, or all digits before the point: for half-widths.
pub(super) fn rough(value: f64) -> String {
    if !value.is_finite() {
        return ABSENT.to_owned();
    }
    let value = parsed_or(value, &format!("{value:.1e}"));
    match exponent(value) {
        _ if value == 0.0 => "0".to_owned(),
        power @ -4..=0 => {
            let decimals = usize::try_from(1 - power).unwrap_or(0);
            format!("{value:.decimals$}")
        }
        1..=8 => format!("{value:.0}"),
        _ => format!("{value:.1e}"),
    }
}

/// Rounded to three significant digits, so that the prefix fits the number shown: 999.9 is 1000.
pub(super) fn rounded(value: f64) -> f64 {
    parsed_or(value, &format!("{value:.2e}"))
}

/// What a text with fewer digits says; the greatest numbers have none with so few.
fn parsed_or(value: f64, text: &str) -> f64 {
    let parsed = text.parse().ok();
    parsed.filter(|it: &f64| it.is_finite()).unwrap_or(value)
}

/// The power of ten of the first digit.
fn exponent(value: f64) -> i32 {
    let text = format!("{value:e}");
    text.rsplit_once('e')
        .and_then(|(_, power)| power.parse().ok())
        .unwrap_or(0)
}

/// A share as a percentage for a table, `1.2%`, with the two digits that a half-width needs.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        p if !p.is_finite() => ABSENT.to_owned(),
        p if p >= 999.5 => ">999%".to_owned(),
        p if p >= 9.95 => format!("{percent:.0}%"),
        p if p >= 0.095 || p == 0.0 => format!("{percent:.1}%"),
        _ => "<0.1%".to_owned(),
    }
}

/// A share set by the user (95 %, 99.9 %, 2.5 %), with all its digits.
pub(super) fn chosen_percent(share: f64) -> String {
    if !share.is_finite() {
        return ABSENT.to_owned();
    }
    format!("{} %", (share * 1e6).round() / 1e4)
}

/// A length set by the user: `1`, `0.5`, `2.25`.
pub(super) fn chosen(seconds: f64) -> String {
    if seconds.fract() == 0.0 && seconds < 1e6 {
        format!("{seconds:.0}")
    } else {
        trimmed(seconds)
    }
}

/// A ratio, `1.31×`.
pub fn ratio(value: f64) -> String {
    if value.is_finite() {
        format!("{}×", significant(value))
    } else {
        ABSENT.to_owned()
    }
}

/// The number that a text begins with, including the prefix of its unit: 65536 for `64 KiB`, 0.0005 for `500us`, 125 for `2m05s`,
/// 1.31 for `1.31×`. `None` if the text is not a single number (`0-3`).
pub(super) fn leading(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || "+-.".contains(c)));
    let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
    let number: f64 = digits.parse().ok()?;
    // As units write sizes, rates and times, and as `significant` writes very long numbers.
    let (word, _) = unit
        .trim_start()
        .split_once(' ')
        .unwrap_or((unit.trim_start(), ""));
    Some(match word {
        "KiB" => number * 1024.0,
        "MiB" => number * 1024.0 * 1024.0,
        "kbit" => number * 1e3,
        "mbit" => number * 1e6,
        "gbit" => number * 1e9,
        "ns" => number * 1e-9,
        "us" | "µs" => number * 1e-6,
        "ms" => number * 1e-3,
        _ => match word.strip_prefix('e').map(str::parse::<i32>) {
            Some(Ok(power)) => number * 10_f64.powi(power),
            _ => {
                parse_duration(&format!("{digits}{word}")).map_or(number, |time| time.as_secs_f64())
            }
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (21.437, "21.4"),
            (9.996, "10.0"),
            (99.96, "100"),
            (0.41249, "0.412"),
            (0.000_123_4, "0.000123"),
            (61_440.0, "61400"),
            (-1.5, "-1.50"),
            (4.2e-9, "4.20e-9"),
            (3.1e12, "3.10e12"),
            (f64::NAN, "–"),
            (f64::NEG_INFINITY, "–"),
        ] {
            assert_eq!(significant(value), text);
        }
    }

    #[test]
    fn half_widths() {
        for (value, text) in [
            (0.0, "0"),
            (0.041_249, "0.041"),
            (1.25, "1.2"),
            (9.96, "10"),
            (14.37, "14"),
            (1234.0, "1200"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(rough(value), text);
        }
    }

    #[test]
    fn shares() {
        assert_eq!(percent(0.0123), "1.2%");
        assert_eq!(percent(0.0996), "10%");
        assert_eq!(percent(0.000_01), "<0.1%");
        assert_eq!(percent(0.0), "0.0%");
        assert_eq!(percent(f64::INFINITY), "–");
        assert_eq!(percent(1e9), ">999%");
        assert_eq!(chosen_percent(0.95), "95 %");
        assert_eq!(chosen_percent(0.999), "99.9 %");
        assert_eq!(chosen_percent(0.025), "2.5 %");
    }

    #[test]
    fn texts_that_begin_with_a_number() {
        for (text, number) in [
            ("64", Some(64.0)),
            ("64 KiB", Some(65_536.0)),
            ("1400 B", Some(1400.0)),
            ("10gbit", Some(1e10)),
            ("1.31×", Some(1.31)),
            ("-0.02 ±0.10", Some(-0.02)),
            ("12 [11 to 13]", Some(12.0)),
            ("500us", Some(0.0005)),
            ("2ms", Some(0.002)),
            ("1.5s", Some(1.5)),
            ("2m05s", Some(125.0)),
            ("3m", Some(180.0)),
            ("1h30m", Some(5400.0)),
            ("4.20e-9", Some(4.2e-9)),
            ("0-3", None),
            ("–", None),
            ("not up to 32", None),
            ("", None),
        ] {
            assert_eq!(leading(text), number, "{text}");
        }
    }

    /// Tables are sorted, and pictures drawn, by what the text of a value says.
    #[test]
    fn shown_values_of_every_axis_are_in_the_order_of_the_values() {
        use crate::model::{AXES, Axes};
        let texts = [
            "0", "1", "2", "10", "64", "300", "999", "1000", "1500", "4KiB", "9000", "64000",
            "64KiB", "100KiB", "1MiB", "256MiB", "300MiB", "1025MiB", "2048MiB", "50us", "100us",
            "999us", "1ms", "1.5ms", "2ms", "10ms", "20ms", "1kbit", "1.5kbit", "999kbit", "1mbit",
            "2.5gbit", "10gbit", "900gbit",
        ];
        for axis in AXES.iter().filter(|axis| axis.is_quantity) {
            let read = |text: &&str| {
                let mut axes = Axes::default();
                (axis.set)(&mut axes, text).ok()?;
                let value = serde_json::to_value(&axes).unwrap()[axis.key].as_f64();
                Some((value.unwrap(), (axis.show)(&axes).unwrap()))
            };
            let mut values: Vec<(f64, String)> = texts.iter().filter_map(read).collect();
            values.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(values.len() > 1, "{}: {values:?}", axis.name);
            for pair in values.windows(2) {
                let [low, high] = [&pair[0], &pair[1]].map(|(_, shown)| leading(shown).unwrap());
                assert_eq!(low < high, pair[0].0 < pair[1].0, "{}: {pair:?}", axis.name);
            }
        }
    }

    proptest! {
        #[test]
        fn any_number_is_short_and_never_nan(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            for text in [significant(value), rough(value), percent(value), ratio(value)] {
                prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
                prop_assert!(text.chars().count() <= 11, "{text}");
            }
        }

        #[test]
        fn what_is_shown_is_near(value in -1e12f64..1e12) {
            let shown: f64 = significant(value).parse().unwrap();
            prop_assert!((shown - value).abs() <= value.abs() * 0.00501);
        }
    }
}
