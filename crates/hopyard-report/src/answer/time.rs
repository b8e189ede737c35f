//! The differences that a run could not see, and how much longer it would take to see them.

use crate::model::RunReport;

/// Differences that users ask for, as shares; the first one that is smaller than what can be seen is used.
const WANTED: [f64; 4] = [0.05, 0.02, 0.01, 0.005];
/// Beyond this time the report does not advise a longer run, s.
const LONGEST_S: f64 = 86_400.0;
/// Loads whose detectable differences differ by less than this factor are mentioned together.
const ALIKE: f64 = 1.3;

/// The smallest detectable differences by load, and the time for a smaller one:
/// `differences under 35 % cannot be seen here yet; about 6 more minutes would show 5 %`.
pub(super) fn unseen(sizes: &[(String, f64)], report: &RunReport) -> String {
    let finite = || {
        sizes
            .iter()
            .filter(|(_, size)| size.is_finite() && *size > 0.0)
    };
    let least = finite().min_by(|a, b| a.1.total_cmp(&b.1));
    let most = finite().max_by(|a, b| a.1.total_cmp(&b.1));
    let (Some(least), Some(most)) = (least, most) else {
        return "no difference can be seen here yet".to_owned();
    };
    if most.1 <= ALIKE * least.1 {
        let after = after(most.1, report).map_or_else(String::new, |(time, share)| {
            format!("; {time} would show {share}")
        });
        return format!(
            "differences under {} cannot be seen here yet{after}",
            whole(most.1)
        );
    }
    let after = after(least.1, report).map_or_else(String::new, |(time, share)| {
        format!("; {time} would show {share} under {}", least.0)
    });
    format!(
        "differences under {} ({}) to {} ({}) cannot be seen here yet{after}",
        whole(least.1),
        least.0,
        whole(most.1),
        most.0
    )
}

/// The additional time until a smaller difference would show, and that difference.
fn after(size: f64, report: &RunReport) -> Option<(String, String)> {
    let wanted = WANTED.into_iter().find(|wanted| *wanted < 0.9 * size)?;
    let time = in_words(needed(size, wanted, report)?);
    Some((time, super::super::number::chosen_percent(wanted)))
}

/// The additional time in seconds until a difference of the wanted size would show, if one of `size` is detectable now.
/// Standard errors fall with the square root of the time. If the wanted size is already detectable and was missed by
/// chance, a tenth of the time is added.
pub(crate) fn needed(size: f64, wanted: f64, report: &RunReport) -> Option<f64> {
    let measured_s = report.run.measured_s?;
    let more = measured_s * ((size.ln_1p() / wanted.ln_1p()).powi(2) - 1.0);
    more.is_finite().then(|| more.max(measured_s / 10.0))
}

/// `about 4 more minutes`.
pub(crate) fn in_words(seconds: f64) -> String {
    if seconds > LONGEST_S {
        "no run of a day".to_owned()
    } else {
        format!("about {}", longer(seconds))
    }
}

fn longer(seconds: f64) -> String {
    let (count, unit) = match seconds {
        s if s < 90.0 => (s, "second"),
        s if s < 5400.0 => (s / 60.0, "minute"),
        s => (s / 3600.0, "hour"),
    };
    // A rounding error must not add a second.
    let count = (count - 0.001).ceil().max(1.0);
    let plural = if count == 1.0 { "" } else { "s" };
    format!("{count:.0} more {unit}{plural}")
}

/// A share in whole percent, or tenths below ten.
pub(super) fn whole(share: f64) -> String {
    match share * 100.0 {
        p if p >= 999.5 => "999 %".to_owned(),
        p if p >= 9.95 => format!("{p:.0} %"),
        p => format!(
            "{} %",
            super::super::number::trimmed((p * 10.0).round() / 10.0)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn said(sizes: &[(&str, f64)], measured_s: Option<f64>) -> String {
        let mut report = fixture::run();
        report.run.measured_s = measured_s;
        let sizes: Vec<(String, f64)> = sizes.iter().map(|(l, s)| ((*l).to_owned(), *s)).collect();
        unseen(&sizes, &report)
    }

    #[test]
    fn four_times_as_long_shows_half_of_it() {
        // On the log scale, 10.25 % is twice 5 %.
        assert_eq!(
            said(&[("tcp_rr", 0.1025)], Some(100.0)),
            "differences under 10 % cannot be seen here yet; about 5 more minutes would show 5 %"
        );
        assert_eq!(
            said(&[("tcp_rr", 0.04)], Some(10.0)),
            "differences under 4 % cannot be seen here yet; about 30 more seconds would show 2 %"
        );
    }

    #[test]
    fn loads_that_are_far_apart_are_told_apart() {
        assert_eq!(
            said(
                &[
                    ("tcp_stream", 1.4),
                    ("udp_rr", 0.1025),
                    ("tcp_rr", f64::INFINITY)
                ],
                Some(3600.0)
            ),
            "differences under 10 % (udp_rr) to 140 % (tcp_stream) cannot be seen here yet; about 3 more hours would \
             show 5 % under udp_rr"
        );
    }

    #[test]
    fn what_takes_too_long_or_is_not_known_is_not_promised() {
        assert_eq!(
            said(&[("tcp_rr", 5.0)], Some(3600.0)),
            "differences under 500 % cannot be seen here yet; no run of a day would show 5 %"
        );
        assert_eq!(
            said(&[("tcp_rr", 0.5)], None),
            "differences under 50 % cannot be seen here yet"
        );
        assert_eq!(
            said(&[("tcp_rr", f64::INFINITY)], Some(60.0)),
            "no difference can be seen here yet"
        );
    }
}
