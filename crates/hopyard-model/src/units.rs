//! Sizes, durations, rates and percentages as users write them: strict parsing and printing.

mod times;

use std::collections::BTreeSet;

pub use times::{float, ns, parse_duration, seconds, show_duration, show_short_duration};
pub(crate) use times::{parse_pause, parse_stagger};

/// Why a text is not the quantity it should be: a full sentence with the accepted forms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {what}: write {forms}")]
pub struct NotAQuantity {
    text: String,
    what: &'static str,
    forms: &'static str,
}

fn not(text: &str, what: &'static str, forms: &'static str) -> NotAQuantity {
    NotAQuantity {
        text: text.to_owned(),
        what,
        forms,
    }
}

/// `1 block`, `2 blocks`.
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Splits `12.5ms` into its number and its unit; the number must be finite and not negative.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    number.is_finite().then(|| (number, text[end..].trim()))
}

/// A count: digits alone.
///
/// # Errors
/// Anything else.
pub fn parse_count(text: &str) -> Result<u32, NotAQuantity> {
    let digits = Some(text.trim()).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let count = digits.and_then(|digits| digits.parse().ok());
    count.ok_or_else(|| not(text, "a number", "digits as in 1, 64 or 10000"))
}

/// Bytes: `64`, `16KiB`, `16K`, `1MiB`, `1500B`. Binary prefixes only, as netperf and iperf read them.
///
/// # Errors
/// Anything else, also fractions of a byte.
pub fn parse_bytes(text: &str) -> Result<u32, NotAQuantity> {
    const FORMS: &str = "bytes as in 64, 1400B, 16KiB or 1MiB";
    let bad = || not(text, "a size", FORMS);
    let (number, unit) = split(text).ok_or_else(bad)?;
    let factor = match unit {
        "" | "B" => 1.0,
        "K" | "k" | "KiB" => 1024.0,
        "M" | "MiB" => 1024.0 * 1024.0,
        _ => return Err(bad()),
    };
    let bytes = number * factor;
    if bytes.fract() != 0.0 || bytes > f64::from(u32::MAX) {
        return Err(bad());
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "whole and within u32, checked above"
    )]
    #[expect(clippy::cast_sign_loss, reason = "split() gives no negative number")]
    Ok(bytes as u32)
}

/// A size in the form that [`parse_bytes`] reads, with the largest binary prefix that divides it.
#[must_use]
pub fn show_bytes(bytes: u32) -> String {
    const KIB: u32 = 1024;
    const MIB: u32 = 1024 * 1024;
    match bytes {
        0 => "0 B".to_owned(),
        b if b % MIB == 0 => format!("{} MiB", b / MIB),
        b if b % KIB == 0 => format!("{} KiB", b / KIB),
        b => format!("{b} B"),
    }
}

/// Reads a set of CPUs, `0-3+6`, in ascending order.
///
/// # Errors
/// It is not one, or has CPUs beyond those that a kernel can have (`CONFIG_NR_CPUS`).
pub(crate) fn parse_cpus(text: &str) -> Result<Vec<usize>, NotAQuantity> {
    const MOST: usize = 8192;
    let bad = || not(text, "a set of CPUs", "CPUs as in 0, 0-3 or 0+2");
    let number = |text: &str| {
        text.parse::<usize>()
            .ok()
            .filter(|cpu| *cpu < MOST)
            .ok_or_else(bad)
    };
    let mut cpus = BTreeSet::new();
    for part in text.split('+') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let span = number(first)?..=number(last)?;
        if span.is_empty() {
            return Err(bad());
        }
        cpus.extend(span);
    }
    Ok(cpus.into_iter().collect())
}

fn round_to(value: f64, digits: i32) -> f64 {
    let factor = 10f64.powi(digits);
    (value * factor).round() / factor
}

/// A share of one: `2.5%` or `0.025`, both 0.025.
///
/// # Errors
/// Anything outside 0 to 1.
pub(crate) fn parse_share(text: &str) -> Result<f64, NotAQuantity> {
    const FORMS: &str = "a share as in 2.5% or 0.025";
    let bad = || not(text, "a share", FORMS);
    let (number, unit) = split(text).ok_or_else(bad)?;
    let share = match unit {
        "%" => number / 100.0,
        "" => number,
        _ => return Err(bad()),
    };
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err(bad())
    }
}

/// The half-width at which measuring may stop: a share above 0, because no interval has width 0.
///
/// # Errors
/// Anything else.
pub fn parse_half_width(text: &str) -> Result<f64, NotAQuantity> {
    const FORMS: &str = "a share above 0% as in 2.5% or 0.025 (no interval is narrower than nothing; for a fixed number of blocks \
                         use --blocks N)";
    above_nothing(text).ok_or_else(|| not(text, "a half-width", FORMS))
}

/// The difference that every comparison of a run must be able to show: a share above 0.
///
/// # Errors
/// Anything else.
pub fn parse_difference(text: &str) -> Result<f64, NotAQuantity> {
    const FORMS: &str =
        "a share from above 0% to 100% as in 3% or 0.03 (a difference of 0% takes for ever)";
    above_nothing(text).ok_or_else(|| not(text, "a difference to decide at", FORMS))
}

/// The difference below which two cells are equivalent: a share above 0, because no two figures are known to be equal.
///
/// # Errors
/// Anything else.
pub fn parse_margin(text: &str) -> Result<f64, NotAQuantity> {
    const FORMS: &str = "a share above 0% as in 2% or 0.02 (within a margin of nothing no two cells can be equivalent)";
    above_nothing(text).ok_or_else(|| not(text, "a margin", FORMS))
}

fn above_nothing(text: &str) -> Option<f64> {
    parse_share(text).ok().filter(|share| *share > 0.0)
}

/// A share in the form that [`parse_share`] reads, `2.5%`.
#[must_use]
pub fn show_share(share: f64) -> String {
    format!("{}%", round_to(share * 100.0, 4))
}

/// The loss that a gate allows: a share below 100 %.
///
/// # Errors
/// Anything else.
pub fn parse_loss(text: &str) -> Result<f64, NotAQuantity> {
    let loss = parse_share(text).ok().filter(|share| *share < 1.0);
    loss.ok_or_else(|| not(text, "a loss", "a share below 100% as in 3% or 0.03"))
}

/// The loss that a search for a rate allows: a share above 0, at most half.
///
/// # Errors
/// Anything else.
pub(crate) fn parse_goal_loss(text: &str) -> Result<f64, NotAQuantity> {
    const FORMS: &str =
        "a share from 0.0001% to 50% as in 0.5%, or search for ndr, which loses nothing";
    let loss = parse_share(text)
        .ok()
        .filter(|share| (1e-6..=0.5).contains(share));
    loss.ok_or_else(|| not(text, "a goal loss ratio", FORMS))
}

/// The confidence levels that a user may choose.
pub const CONFIDENCE: std::ops::RangeInclusive<f64> = 0.5..=0.9999;

/// A confidence level: `95%`, `0.95`, or netperf's bare `95`; between 50 % and 99.99 %.
///
/// # Errors
/// Anything outside that range.
pub fn parse_confidence(text: &str) -> Result<f64, NotAQuantity> {
    const FORMS: &str = "a level between 50% and 99.99%, as in 95% or 0.95";
    let bad = || not(text, "a confidence level", FORMS);
    let (number, unit) = split(text).ok_or_else(bad)?;
    let level = match unit {
        "%" => number / 100.0,
        "" if number > 1.0 => number / 100.0,
        "" => number,
        _ => return Err(bad()),
    };
    if CONFIDENCE.contains(&level) {
        Ok(level)
    } else {
        Err(bad())
    }
}

/// Bits per second: `100mbit`, `1gbit`, `2.5gbit` (tc's decimal units).
///
/// # Errors
/// Anything else, and rates outside 1 kbit/s to 1 Tbit/s.
pub(crate) fn parse_rate(text: &str) -> Result<u64, NotAQuantity> {
    const FORMS: &str = "a rate as in 100mbit, 1gbit or none";
    let bad = || not(text, "a rate", FORMS);
    let (number, unit) = split(text).ok_or_else(bad)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "kbit" | "kbit/s" => 1e3,
        "mbit" | "mbit/s" => 1e6,
        "gbit" | "gbit/s" => 1e9,
        _ => return Err(bad()),
    };
    let bps = number * factor;
    if !(1e3..=1e12).contains(&bps) {
        return Err(bad());
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "between 1e3 and 1e12, checked above"
    )]
    #[expect(clippy::cast_sign_loss, reason = "between 1e3 and 1e12, checked above")]
    Ok(bps.round() as u64)
}

/// A rate in the form that [`parse_rate`] reads.
#[must_use]
pub fn show_rate(bps: u64) -> String {
    const KBIT: u64 = 1_000;
    const MBIT: u64 = 1_000_000;
    const GBIT: u64 = 1_000_000_000;
    match bps {
        b if b % GBIT == 0 => format!("{}gbit", b / GBIT),
        b if b % MBIT == 0 => format!("{}mbit", b / MBIT),
        b if b % KBIT == 0 => format!("{}kbit", b / KBIT),
        b => format!("{}.{:03}kbit", b / KBIT, b % KBIT),
    }
}

/// Bytes in hexadecimal, two digits each.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counts_have_no_unit() {
        assert_eq!(parse_count(" 10000 "), Ok(10_000));
        for bad in ["", "10k", "5B", "-1", "1.5", "4294967296"] {
            let why = parse_count(bad).unwrap_err().to_string();
            assert!(why.contains("is not a number: write digits"), "{why}");
        }
    }

    #[test]
    fn sizes_are_binary() {
        assert_eq!(parse_bytes("16KiB"), Ok(16384));
        assert_eq!(parse_bytes("16K"), Ok(16384));
        assert_eq!(parse_bytes(" 1400 "), Ok(1400));
        assert_eq!(parse_bytes("1.5K"), Ok(1536));
        for bad in ["", "K", "-1", "1.5", "16KB", "5GiB", "NaN", "1e3", "0x10"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_need_a_unit() {
        assert_eq!(parse_duration("300ms"), Ok(Duration::from_millis(300)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "5", "5 parsecs", "99999999999999999999999h", "-1s"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_may_have_parts_the_longest_first() {
        assert_eq!(parse_duration("8m30s"), Ok(Duration::from_secs(510)));
        assert_eq!(
            parse_duration("1h 2min 3.5s"),
            Ok(Duration::from_millis(3_723_500))
        );
        for bad in [
            "8m30", "30s8m", "1s1s", "1m1min", "8m-30s", "1mm", "1s.", "m30s",
        ] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_shown_in_full_minutes() {
        let shown = |ms| show_duration(Duration::from_millis(ms));
        let all = [300, 1500, 119_940, 119_960, 179_700, 510_000, 10_800_000].map(shown);
        assert_eq!(
            all,
            [
                "300ms", "1.5s", "119.9s", "2m00s", "3m00s", "8m30s", "180m00s"
            ]
        );
    }

    #[test]
    fn shares_and_levels() {
        assert_eq!(parse_share("2.5%"), Ok(0.025));
        assert_eq!(parse_share("0.025"), Ok(0.025));
        assert!(parse_share("250%").is_err());
        assert_eq!(parse_confidence("99"), Ok(0.99));
        assert!(parse_confidence("5%").is_err());
    }

    #[test]
    fn a_difference_is_no_half_width() {
        assert_eq!(parse_difference("3%"), Ok(0.03));
        for bad in ["0%", "300%", "3", "-3%"] {
            let error = parse_difference(bad).unwrap_err().to_string();
            let said = format!("`{bad}` is not a difference to decide at: write a share");
            assert!(error.starts_with(&said), "{error}");
        }
    }

    #[test]
    fn what_nothing_can_reach_is_refused() {
        for parse in [parse_half_width, parse_margin] {
            assert_eq!(parse("2.5%"), Ok(0.025));
            assert_eq!(parse("100%"), Ok(1.0));
            for bad in ["0", "0%", "0.0%", "101%", "-1%", "a bit"] {
                let error = parse(bad).unwrap_err().to_string();
                assert!(error.contains("write a share above 0%"), "{bad}: {error}");
            }
        }
    }

    #[test]
    fn an_error_names_text_kind_and_forms() {
        assert_eq!(
            parse_rate("fast").unwrap_err().to_string(),
            "`fast` is not a rate: write a rate as in 100mbit, 1gbit or none"
        );
    }

    proptest! {
        #[test]
        fn shown_sizes_read_back(bytes in any::<u32>()) {
            prop_assert_eq!(parse_bytes(&show_bytes(bytes)), Ok(bytes));
        }

        #[test]
        fn shown_rates_read_back(bps in 1000u64..=1_000_000_000_000, thousands: bool) {
            let bps = if thousands { bps / 1000 * 1000 } else { bps };
            prop_assert_eq!(parse_rate(&show_rate(bps)), Ok(bps));
        }

        #[test]
        fn shown_times_read_back_as_shown(ns in any::<u64>(), bits in 0u32..64) {
            let shown = show_duration(Duration::from_nanos(ns >> bits));
            let read = parse_duration(&shown);
            prop_assert_eq!(read.map(show_duration), Ok(shown));
        }

        #[test]
        fn no_text_makes_a_parser_panic(text in ".{0,12}") {
            let _ = (parse_bytes(&text), parse_duration(&text), parse_share(&text));
            let _ = (parse_confidence(&text), parse_rate(&text));
        }
    }
}
