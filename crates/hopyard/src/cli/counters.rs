//! Texts of switch counters.

/// Seconds between two readings of counters.
#[derive(Clone, Copy)]
pub(super) struct Span(pub(super) f64);

impl Span {
    /// Frames per second.
    pub(super) fn frames(self, now: u64, before: u64) -> String {
        format!("{:.0}", self.rate(now, before))
    }

    /// Mbit/s of bytes.
    pub(super) fn mbit(self, now: u64, before: u64) -> String {
        format!("{:.1}", self.rate(now, before) * 8.0 / 1e6)
    }

    fn rate(self, now: u64, before: u64) -> f64 {
        now.saturating_sub(before) as f64 / self.0
    }
}

/// Frames dropped for each reason.
pub(super) fn drops<T: std::fmt::Display>(counts: impl IntoIterator<Item = (T, u64)>) -> String {
    let counts = counts.into_iter();
    let all: Vec<String> = counts.map(|(reason, n)| format!("{reason} {n}")).collect();
    if all.is_empty() {
        "-".to_owned()
    } else {
        all.join(", ")
    }
}

/// Frames dropped for each reason since an earlier reading, which may lack a reason.
pub(super) fn fresh_drops<T: std::fmt::Display>(
    now: impl IntoIterator<Item = (T, u64)>,
    before: impl Fn(&T) -> Option<u64>,
) -> String {
    drops(now.into_iter().filter_map(|(reason, count)| {
        let fresh = count.saturating_sub(before(&reason).unwrap_or(0));
        (fresh > 0).then_some((reason, fresh))
    }))
}
