//! The printed report.

use comfy_table::{Table as Grid, presets};

use super::judge::Ratio;
use super::tally::{CONFIDENCE, Count, Tally, Times};
use super::target::{Against, Outcome};

/// The methods side by side, then turns against each of the others.
pub(super) fn text(tallies: &[Tally], targets: &[Against]) -> String {
    let mut ways = grid([
        "machine",
        "way",
        "decided",
        "per minute",
        "wrong",
        "slow-down found",
        "intervals that hold the known ratio",
        "tables",
    ]);
    for tally in tallies {
        ways.add_row(row(tally));
    }
    let mut ratios = grid([
        "machine",
        "turns against",
        "times as many decisions per minute",
        "target",
        "coverage no lower",
    ]);
    for one in targets {
        ratios.add_row([
            machine(one.hog).to_owned(),
            one.other.to_string(),
            one.times
                .map_or_else(|| "neither decided any".to_owned(), times),
            one.at_least.map_or_else(String::new, |least| {
                format!("≥ {least}: {}", outcome(one.speed))
            }),
            outcome(one.coverage).to_owned(),
        ]);
    }
    format!(
        "{ways}\n\n{ratios}\nintervals at {:.0} %\n",
        CONFIDENCE * 100.0
    )
}

fn grid<const N: usize>(header: [&str; N]) -> Grid {
    let mut grid = Grid::new();
    grid.load_style(presets::UTF8_HORIZONTAL_ONLY)
        .set_header(header);
    grid
}

fn row(tally: &Tally) -> [String; 8] {
    let failed = match (tally.failed, tally.failed_by_hog) {
        (0, _) => String::new(),
        (failed, 0) => format!(", {failed} failed"),
        (failed, by_hog) => format!(", {failed} failed, {by_hog} of them only with the hog"),
    };
    [
        machine(tally.hog).to_owned(),
        tally.way.to_string(),
        format!("{} of {}", tally.decided.hits, tally.decided.of),
        tally
            .per_minute
            .map_or_else(none, |rate| interval(rate, 1.0, 2)),
        format!("{} of {}", tally.wrong.hits, tally.wrong.of),
        format!("{} of {}", tally.found.hits, tally.found.of),
        covered(tally.covered),
        format!("{} in {:.1} min{failed}", tally.tables, tally.minutes),
    ]
}

fn covered(count: Count) -> String {
    count.share().map_or_else(none, |share| {
        format!(
            "{} of {}: {} %",
            count.hits,
            count.of,
            interval(share, 100.0, 0)
        )
    })
}

fn none() -> String {
    "-".to_owned()
}

pub(super) fn machine(hog: bool) -> &'static str {
    if hog { "hog" } else { "as it is" }
}

fn interval(ratio: Ratio, unit: f64, digits: usize) -> String {
    format!(
        "{:.digits$} ({:.digits$} to {:.digits$})",
        ratio.value * unit,
        ratio.low * unit,
        ratio.high * unit
    )
}

fn times(times: Times) -> String {
    let Times { value, low, high } = times;
    match (value, high) {
        (Some(value), Some(high)) => format!("{value:.2} ({low:.2} to {high:.2})"),
        (Some(value), None) => format!("{value:.2} ({low:.2} or more)"),
        (None, _) => format!("{low:.2} or more: the other decided none"),
    }
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Met => "met",
        Outcome::Missed => "MISSED",
        Outcome::Open => "not shown",
        Outcome::Stated => "(stated)",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::tests::decided;
    use super::super::target;
    use super::super::way::Way;
    use super::*;

    #[test]
    fn rows_of_both_tables() {
        let records = [
            decided(Way::Turns, true, 60, 60),
            decided(Way::Windows, true, 0, 60),
        ];
        let tallies = [Way::Turns, Way::Windows].map(|way| Tally::of(&records, way, true));
        let text = text(&tallies, &target::all(&tallies));
        for wanted in [
            "60 of 60: 100 (94 to 100) %",
            "or more: the other decided none",
            "≥ 5: met",
            "0 of 60",
        ] {
            assert!(text.contains(wanted), "{wanted} is not in\n{text}");
        }
    }
}
