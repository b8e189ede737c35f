//! Sizes, durations, rates and percentages as people write them, read strictly and printed back.

use std::time::Duration;

/// Why a piece of text is not the quantity it should be: a full sentence with the accepted forms.
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

/// Splits `12.5ms` into its number and its unit; the number has to be finite and not negative.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    number.is_finite().then(|| (number, text[end..].trim()))
}

/// Bytes: `64`, `16KiB`, `16K`, `1MiB`, `1500B`. Binary prefixes only, as netperf and iperf read them.
///
/// # Errors
/// Anything else, fractions of a byte included.
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

/// A size the way [`parse_bytes`] reads it, with the largest binary prefix that divides it.
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

/// Reads a set of CPUs, `0-3+6`, ascending.
///
/// # Errors
/// It is none, or has CPUs beyond those that a thread can be confined to (`cpu_set_t`).
pub fn parse_cpus(text: &str) -> Result<Vec<usize>, NotAQuantity> {
    const MOST: usize = 1024;
    let bad = || not(text, "a set of CPUs", "CPUs as in 0, 0-3 or 0+2");
    let number = |text: &str| {
        text.parse::<usize>()
            .ok()
            .filter(|cpu| *cpu < MOST)
            .ok_or_else(bad)
    };
    let mut cpus = Vec::new();
    for part in text.split('+') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let span = number(first)?..=number(last)?;
        if span.is_empty() {
            return Err(bad());
        }
        cpus.extend(span);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// A span of time: `300ms`, `1s`, `2m`, `50us`.
///
/// # Errors
/// A number without its unit, an unknown unit, or nothing a clock can hold.
pub fn parse_duration(text: &str) -> Result<Duration, NotAQuantity> {
    const FORMS: &str = "a time with its unit as in 300ms, 1s or 2m";
    let bad = || not(text, "a time", FORMS);
    let (number, unit) = split(text).ok_or_else(bad)?;
    let factor = match unit {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(bad()),
    };
    Duration::try_from_secs_f64(number * factor).map_err(|_| bad())
}

/// A span of time as [`parse_duration`] reads it.
#[must_use]
pub fn show_duration(span: Duration) -> String {
    let seconds = span.as_secs_f64();
    match seconds {
        0.0 => "0s".to_owned(),
        s if s < 1e-3 => format!("{:.0}us", s * 1e6),
        s if s < 1.0 => format!("{:.0}ms", s * 1e3),
        s if s < 120.0 => format!("{}s", round_to(s, 1)),
        s => format!("{}m{:02.0}s", (s / 60.0).floor(), s % 60.0),
    }
}

fn round_to(value: f64, digits: i32) -> f64 {
    let factor = 10f64.powi(digits);
    (value * factor).round() / factor
}

/// A share of one: `2.5%` or `0.025`, both 0.025.
///
/// # Errors
/// Anything outside 0 to 1.
pub fn parse_share(text: &str) -> Result<f64, NotAQuantity> {
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

/// A share as [`parse_share`] reads it, `2.5%`.
#[must_use]
pub fn show_share(share: f64) -> String {
    format!("{}%", round_to(share * 100.0, 4))
}

/// A loss that is let through: a share below 100 %.
///
/// # Errors
/// Anything else.
pub fn parse_loss(text: &str) -> Result<f64, NotAQuantity> {
    let bad = || not(text, "a loss", "a share below 100% as in 3% or 0.03");
    match parse_share(text) {
        Ok(share) if share < 1.0 => Ok(share),
        _ => Err(bad()),
    }
}

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
    if (0.5..=0.9999).contains(&level) {
        Ok(level)
    } else {
        Err(bad())
    }
}

/// Bits per second: `100mbit`, `1gbit`, `2.5gbit` (tc's decimal units).
///
/// # Errors
/// Anything else, and rates outside 1 kbit/s to 1 Tbit/s.
pub fn parse_rate(text: &str) -> Result<u64, NotAQuantity> {
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

/// A rate as [`parse_rate`] reads it.
#[must_use]
pub fn show_rate(bps: u64) -> String {
    const KBIT: u64 = 1_000;
    const MBIT: u64 = 1_000_000;
    const GBIT: u64 = 1_000_000_000;
    match bps {
        b if b % GBIT == 0 => format!("{}gbit", b / GBIT),
        b if b % MBIT == 0 => format!("{}mbit", b / MBIT),
        b => format!("{}kbit", b / KBIT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        assert!(parse_duration("5").is_err());
        assert!(parse_duration("5 parsecs").is_err());
        assert!(parse_duration("99999999999999999999999h").is_err());
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
        fn shown_rates_read_back(kbit in 1u64..=1_000_000_000) {
            prop_assert_eq!(parse_rate(&show_rate(kbit * 1000)), Ok(kbit * 1000));
        }

        #[test]
        fn no_text_makes_a_parser_panic(text in ".{0,12}") {
            let _ = (parse_bytes(&text), parse_duration(&text), parse_share(&text));
            let _ = (parse_confidence(&text), parse_rate(&text));
        }
    }
}
