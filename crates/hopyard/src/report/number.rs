//! Numbers as people read them: three significant digits, never more than the samples carry.

/// What stands for a value that was not measured.
pub(super) const ABSENT: &str = "–";

/// Three significant digits in plain notation; powers of ten only where plain digits would run
/// away. Not finite counts as not measured.
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

/// Two significant digits in plain notation, at least all before the point: for half-widths.
pub(super) fn rough(value: f64) -> String {
    if !value.is_finite() {
        return ABSENT.to_owned();
    }
    let value: f64 = format!("{value:.1e}").parse().unwrap_or(value);
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

/// To three significant digits, so that a prefix is chosen for what will be shown: 999.9 is 1000.
pub(super) fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

/// The power of ten of the first digit.
fn exponent(value: f64) -> i32 {
    let text = format!("{value:e}");
    text.rsplit_once('e')
        .and_then(|(_, power)| power.parse().ok())
        .unwrap_or(0)
}

/// A share as a percentage for a table, `1.2%`; two digits are plenty for a half-width.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        p if !p.is_finite() => ABSENT.to_owned(),
        p if p >= 999.5 => ">999%".to_owned(),
        p if p >= 9.95 => format!("{percent:.0}%"),
        p if p >= 0.095 || p == 0.0 => format!("{percent:.1}%"),
        _ => "<0.1%".to_owned(),
    }
}

/// A share somebody chose (95 %, 99.9 %, 2.5 %): as many digits as it has.
pub(super) fn chosen_percent(share: f64) -> String {
    if !share.is_finite() {
        return ABSENT.to_owned();
    }
    format!("{} %", (share * 1e6).round() / 1e4)
}

/// A ratio, `1.31×`.
pub(super) fn ratio(value: f64) -> String {
    if value.is_finite() {
        format!("{}×", significant(value))
    } else {
        ABSENT.to_owned()
    }
}

/// `1 block`, `2 blocks`.
pub(super) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
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
