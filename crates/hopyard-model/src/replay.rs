//! Traces of datagrams: their sizes and the times between them, to be sent again (load `udp_trace`).
//!
//! A trace is text, a line for each datagram: the time since the one before, in seconds, and the payload in bytes.
//!
//! ```text
//! gap_s,bytes
//! 0.000000000,1200
//! 0.000012500,1200
//! ```
//!
//! The first line may be that heading; empty lines, and those that begin with `#`, say nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::float;

/// Most datagrams of a trace: what fits a message to a worker.
pub(crate) const MOST_DATAGRAMS: usize = 100_000;
/// Longest time between two of them, ns.
const LONGEST_GAP_NS: u64 = 10_000_000_000;
/// Each datagram carries its number and times (docs/datagrams.md).
const LEAST_BYTES: u32 = 32;
/// Largest UDP payload over IPv4 (RFC 768, RFC 791).
const MOST_BYTES: u32 = 65_507;
/// More than this per second are no trace of a network.
const MOST_PER_S: u64 = 10_000_000;
/// Digits after the point: ns.
const DIGITS: usize = 9;
const HEADING: &str = "gap_s,bytes";
const NS_PER_S: u64 = 1_000_000_000;

/// A datagram of a trace: ns since the one before, and payload in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Datagram(pub u64, pub u32);

/// The datagrams of a trace, within bounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Datagram>", into = "Vec<Datagram>")]
pub struct Replay(Vec<Datagram>);

/// What is wrong with a trace, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {why}")]
pub struct NotATrace {
    /// From 1.
    pub line: usize,
    /// From 1, characters.
    pub column: usize,
    /// What is wrong, and what would be right.
    pub why: String,
}

/// What a trace is, in a run that replays it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceSummary {
    /// As the axis names it, with the digest of sizes and gaps.
    pub trace: String,
    /// How many datagrams it has.
    pub datagrams: u64,
    /// From its beginning to its last datagram, ns.
    pub span_ns: u64,
    /// Payload of all, bytes.
    pub bytes: u64,
    /// Payload of the smallest, bytes.
    pub smallest_bytes: u32,
    /// Payload of the largest, bytes.
    pub largest_bytes: u32,
}

impl Replay {
    /// Reads a trace.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn parse(text: &str) -> Result<Self, NotATrace> {
        let mut datagrams = Vec::new();
        let mut lines = 0;
        for (index, line) in text.lines().enumerate() {
            lines = index + 1;
            let is_heading = index == 0 && line.trim() == HEADING;
            if is_heading || line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |(column, why)| NotATrace {
                line: lines,
                column,
                why,
            };
            if datagrams.len() == MOST_DATAGRAMS {
                return Err(wrong((
                    1,
                    format!("more than {MOST_DATAGRAMS} datagrams: cut the trace"),
                )));
            }
            datagrams.push(datagram(line).map_err(wrong)?);
        }
        Self::checked(datagrams).map_err(|why| NotATrace {
            line: lines.max(1),
            column: 1,
            why,
        })
    }

    /// What all of it together is wrong with.
    fn checked(datagrams: Vec<Datagram>) -> Result<Self, String> {
        if datagrams.is_empty() {
            return Err(format!(
                "no datagram: a line for each, as in `{HEADING}`, 0.001,1200"
            ));
        }
        if datagrams.len() > MOST_DATAGRAMS {
            return Err(format!(
                "more than {MOST_DATAGRAMS} datagrams: cut the trace"
            ));
        }
        for Datagram(gap_ns, bytes) in &datagrams {
            check_gap(*gap_ns)?;
            check_bytes(*bytes)?;
        }
        let all = Self(datagrams);
        let count = all.0.len() as u64;
        if count * NS_PER_S > all.span_ns().saturating_mul(MOST_PER_S) {
            return Err(format!(
                "{count} datagrams within {} ns: at most {MOST_PER_S} a second",
                all.span_ns()
            ));
        }
        Ok(all)
    }

    /// A small trace that comes with hopyard: 20 ms of a call with pictures. Every ms 160 bytes, as of voice; every 5 ms a picture
    /// of 8 datagrams of 1200 bytes, 10 µs apart.
    #[must_use]
    pub fn sample() -> Self {
        let mut datagrams = Vec::new();
        for ms in 0..20 {
            let since_picture = if ms % 5 == 1 { 80_000 } else { 0 };
            datagrams.push(Datagram(1_000_000 - since_picture, 160));
            if ms % 5 == 0 {
                datagrams.extend([Datagram(10_000, 1200); 8]);
            }
        }
        Self(datagrams)
    }

    /// Its datagrams, in their order.
    #[must_use]
    pub fn datagrams(&self) -> &[Datagram] {
        &self.0
    }

    /// From its beginning to its last datagram, ns. After that it begins again.
    #[must_use]
    pub fn span_ns(&self) -> u64 {
        self.0.iter().map(|Datagram(gap_ns, _)| gap_ns).sum()
    }

    /// Payload of the largest datagram, bytes.
    #[must_use]
    pub fn largest_bytes(&self) -> u32 {
        self.0
            .iter()
            .map(|Datagram(_, bytes)| *bytes)
            .max()
            .unwrap_or(0)
    }

    /// As [`Replay::parse`] reads it: what its digest is of, however it was written.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{HEADING}\n");
        for Datagram(gap_ns, bytes) in &self.0 {
            let (seconds, rest) = (gap_ns / NS_PER_S, gap_ns % NS_PER_S);
            text.push_str(&format!("{seconds}.{rest:09},{bytes}\n"));
        }
        text
    }

    /// What it is, under a name.
    #[must_use]
    pub fn summary(&self, trace: String) -> TraceSummary {
        let sizes = || self.0.iter().map(|Datagram(_, bytes)| *bytes);
        TraceSummary {
            trace,
            datagrams: self.0.len() as u64,
            span_ns: self.span_ns(),
            bytes: sizes().map(u64::from).sum(),
            smallest_bytes: sizes().min().unwrap_or(0),
            largest_bytes: self.largest_bytes(),
        }
    }
}

impl TryFrom<Vec<Datagram>> for Replay {
    type Error = String;

    fn try_from(datagrams: Vec<Datagram>) -> Result<Self, String> {
        Self::checked(datagrams)
    }
}

impl From<Replay> for Vec<Datagram> {
    fn from(replay: Replay) -> Self {
        replay.0
    }
}

impl TraceSummary {
    /// Payload offered, bit/s.
    #[must_use]
    pub fn bps(&self) -> f64 {
        float(self.bytes) * 8.0 / (float(self.span_ns) / 1e9)
    }
}

fn check_gap(gap_ns: u64) -> Result<(), String> {
    if gap_ns <= LONGEST_GAP_NS {
        return Ok(());
    }
    let most = LONGEST_GAP_NS / NS_PER_S;
    Err(format!("a gap of more than {most} s: cut the trace there"))
}

fn check_bytes(bytes: u32) -> Result<(), String> {
    if bytes < LEAST_BYTES {
        return Err(format!(
            "a datagram of {bytes} bytes: at least {LEAST_BYTES}, since each carries its number and times"
        ));
    }
    if bytes > MOST_BYTES {
        return Err(format!(
            "a datagram of {bytes} bytes: at most {MOST_BYTES} fit a datagram"
        ));
    }
    Ok(())
}

/// A line; else the column that is wrong, and why.
fn datagram(line: &str) -> Result<Datagram, (usize, String)> {
    let Some((gap, bytes)) = line.split_once(',') else {
        let end = line.chars().count() + 1;
        return Err((end, format!("no comma: a line is `{HEADING}`")));
    };
    let bytes_at = gap.chars().count() + 2;
    let gap_ns = nanoseconds(gap.trim()).map_err(|why| (1, why))?;
    let bytes: u32 = bytes.trim().parse().map_err(|_| {
        let shown = crate::plain::line(bytes.trim());
        (bytes_at, format!("`{shown}` is no number of bytes"))
    })?;
    check_gap(gap_ns).map_err(|why| (1, why))?;
    check_bytes(bytes).map_err(|why| (bytes_at, why))?;
    Ok(Datagram(gap_ns, bytes))
}

/// Seconds, with up to nine digits after the point.
fn nanoseconds(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "`{}` is no time in seconds, such as 0.000125",
            crate::plain::line(text)
        )
    };
    let is_digits = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let (seconds, rest) = text.split_once('.').unwrap_or((text, "0"));
    if !is_digits(seconds) || !is_digits(rest) {
        return Err(wrong());
    }
    if rest.len() > DIGITS {
        return Err(format!(
            "`{}` has more than {DIGITS} digits after the point, which are ns",
            crate::plain::line(text)
        ));
    }
    let seconds: u64 = seconds.parse().map_err(|_| wrong())?;
    let rest: u64 = format!("{rest:0<DIGITS$}").parse().map_err(|_| wrong())?;
    let whole = seconds.checked_mul(NS_PER_S).ok_or_else(wrong)?;
    whole.checked_add(rest).ok_or_else(wrong)
}

#[cfg(test)]
mod tests;
