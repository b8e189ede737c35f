//! Spans of time, and counts as floating-point numbers.

use std::time::Duration;

use super::{NotAQuantity, not, split};

/// Units of time and their length in seconds, with all their spellings; the longest first.
const TIMES: [(&str, f64); 7] = [
    ("h", 3600.0),
    ("m", 60.0),
    ("min", 60.0),
    ("s", 1.0),
    ("ms", 1e-3),
    ("us", 1e-6),
    ("µs", 1e-6),
];

/// The longest span: added to any instant of today, it gives one that a clock can hold.
const LONGEST: Duration = Duration::from_secs(1000 * 365 * 24 * 3600);

/// A span of time: `300ms`, `1s`, `50us`, or several parts as in `8m30s`, the longest unit first.
///
/// # Errors
/// A number without its unit, an unknown unit, units that do not become smaller, or a span of more than 1,000 years.
pub fn parse_duration(text: &str) -> Result<Duration, NotAQuantity> {
    const FORMS: &str = "a time with its unit as in 300ms, 1s, 2m or 8m30s";
    let bad = || not(text, "a time", FORMS);
    let (mut seconds, mut longer) = (0.0, f64::INFINITY);
    let mut rest = text.trim();
    loop {
        let (number, units) = split(rest).ok_or_else(bad)?;
        let end = units.find(|c: char| c.is_ascii_digit() || c == '.');
        let (unit, after) = units.split_at(end.unwrap_or(units.len()));
        let named = |(name, _): &&(&str, f64)| *name == unit.trim_end();
        let (_, length) = TIMES.iter().find(named).ok_or_else(bad)?;
        if *length >= longer {
            return Err(bad());
        }
        seconds += number * length;
        (longer, rest) = (*length, after);
        if rest.is_empty() {
            let span = Duration::try_from_secs_f64(seconds).map_err(|_| bad())?;
            return (span <= LONGEST).then_some(span).ok_or_else(bad);
        }
    }
}

/// A span of time in the form that [`parse_duration`] reads, to about three digits.
#[must_use]
pub fn show_duration(span: Duration) -> String {
    let seconds = span.as_secs_f64();
    let rounded = |parts: f64| (seconds * parts).round();
    let (us, ms, tenths, whole) = (rounded(1e6), rounded(1e3), rounded(10.0), rounded(1.0));
    if us == 0.0 {
        "0s".to_owned()
    } else if us < 1e3 {
        format!("{us}us")
    } else if ms < 1e3 {
        format!("{ms}ms")
    } else if tenths < 1200.0 {
        format!("{}s", tenths / 10.0)
    } else {
        format!("{}m{:02}s", (whole / 60.0).floor(), whole % 60.0)
    }
}

/// A span of whole µs with all its digits, in the form that [`parse_duration`] reads.
#[must_use]
pub fn show_short_duration(span: Duration) -> String {
    match span.as_micros() {
        us if us % 1_000_000 == 0 => format!("{}s", us / 1_000_000),
        us if us % 1000 == 0 => format!("{}ms", us / 1000),
        us => format!("{us}us"),
    }
}

/// Whole ns of a span, up to the largest number (584 years).
pub fn ns(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// A count, or a time in ns, as a floating-point number.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a run, and its times in ns, are far below 2^53"
)]
pub fn float(count: u64) -> f64 {
    count as f64
}

/// A time in ns as seconds.
pub fn seconds(ns: u64) -> f64 {
    float(ns) / 1e9
}

/// How long a wire or a sender rests at a time, in whole µs.
///
/// # Errors
/// Anything else, and times outside 50 µs to 20 ms.
pub(crate) fn parse_pause(text: &str) -> Result<Duration, NotAQuantity> {
    const BOUNDS: std::ops::RangeInclusive<Duration> =
        Duration::from_micros(50)..=Duration::from_millis(20);
    match parse_duration(text) {
        Ok(span) if BOUNDS.contains(&span) => Ok(span),
        _ => Err(not(text, "a pause", "50us to 20ms as in 2ms")),
    }
}

/// The time between the starts of two flows, in whole µs.
///
/// # Errors
/// Anything else, and times outside 10 µs to 10 s.
pub(crate) fn parse_stagger(text: &str) -> Result<Duration, NotAQuantity> {
    const BOUNDS: std::ops::RangeInclusive<Duration> =
        Duration::from_micros(10)..=Duration::from_secs(10);
    match parse_duration(text) {
        Ok(span) if BOUNDS.contains(&span) => Ok(span),
        _ => Err(not(
            text,
            "a time between two starts",
            "10us to 10s as in 10ms",
        )),
    }
}
