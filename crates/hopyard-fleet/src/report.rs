//! What people read.

use std::collections::BTreeMap;
use std::fmt::Write;

use hopyard_model::{Family, plain, units};

use crate::assess::Assessed;
use crate::document::counts;
use crate::fleet::Fleet;
use crate::outcome::End;
use crate::plan::{Column, Plan};
use crate::rank::{Ranks, standing};

/// Lines of each table; `--json` has all.
const LINES: usize = 10;
/// Pairs that are named of those that were skipped for one cause.
const FEW: usize = 4;

/// A fleet in text: the worst machines, the worst pairs, what failed.
#[must_use]
pub fn text(fleet: &Fleet, ranks: &Ranks) -> String {
    let [measured, failed, skipped] = counts(fleet);
    let mut out = format!(
        "fleet of {} · {} of {} measured",
        units::counted(fleet.plan.endpoints.len(), "endpoint"),
        measured,
        units::counted(fleet.pairs.len(), "pair"),
    );
    for (count, what) in [(failed, "failed"), (skipped, "skipped")] {
        if count > 0 {
            let _ = write!(out, " · {count} {what}");
        }
    }
    match fleet.end {
        Some(End::Complete) => {}
        Some(End::Interrupted) => out += " · interrupted",
        Some(End::TimeLimit) => out += " · the time was over",
        Some(End::Broken) => out += " · it could not go on",
        None => out += " · it was killed, or still runs",
    }
    out.push('\n');
    for (column, median) in ranks.main.iter().zip(&ranks.medians) {
        let column = &fleet.columns[*column];
        if let Some(median) = median {
            let _ = writeln!(
                out,
                "median of {}: {}",
                column.load,
                with_unit(column, *median)
            );
        }
    }
    if !ranks.pairs.is_empty() {
        machines(&mut out, fleet, ranks);
        pairs(&mut out, fleet, ranks);
    }
    not_measured(&mut out, fleet);
    // Tables fill their last column with blanks.
    let out: String = out
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect();
    plain::document(&out).into_owned()
}

/// Pairs against the median of all, by what their samples say.
#[must_use]
pub fn verdicts_text(fleet: &Fleet, ranks: &Ranks, assessed: &Assessed, margin: f64) -> String {
    let mut out = format!(
        "\nagainst the median of all pairs, from {} samples (equivalent: within ±{})\n",
        assessed.samples,
        percent(margin)
    );
    for (main, at) in ranks.main.iter().enumerate() {
        let column = &fleet.columns[*at];
        let [below, above, same, open] = assessed.counts(main);
        let (worse, better) = match column.more_is_better() {
            true => (below, above),
            false => (above, below),
        };
        let _ = writeln!(
            out,
            "  {}: {} worse, {better} better, {same} equivalent, {open} inconclusive",
            column.load,
            units::counted(worse, "pair")
        );
    }
    out
}

/// A figure, and in brackets how it compares with the median.
pub(crate) fn compared(
    column: &Column,
    value: Option<f64>,
    median: Option<f64>,
    width: &str,
) -> String {
    let Some(value) = value else {
        return "–".to_owned();
    };
    let shown = with_unit(column, value);
    let against = median.and_then(|m| standing(column, value, m).map(|_| value / m));
    match against {
        Some(ratio) => format!("{shown}{width} ({})", times(ratio)),
        None => format!("{shown}{width}"),
    }
}

fn machines(out: &mut String, fleet: &Fleet, ranks: &Ranks) {
    let main = || ranks.main.iter().map(|column| &fleet.columns[*column]);
    let mut table = table(
        ["machine", "rack", "pairs"]
            .into_iter()
            .map(str::to_owned)
            .chain(main().flat_map(|c| [format!("{} as client", c.load), "as server".to_owned()])),
    );
    let has_racks = fleet.plan.endpoints.iter().any(|e| e.rack.is_some());
    for machine in ranks.machines.iter().take(LINES) {
        let endpoint = &fleet.plan.endpoints[usize::from(machine.machine)];
        let all = machine.measured + machine.failed + machine.skipped;
        let mut cells = vec![
            endpoint.name.clone(),
            endpoint.rack.clone().unwrap_or_default(),
            format!("{} of {all}", machine.measured),
        ];
        let medians = main().zip(machine.medians.iter().zip(&ranks.medians));
        cells.extend(medians.flat_map(|(c, (own, all))| own.map(|own| compared(c, own, *all, ""))));
        table.add_row(cells);
    }
    if !has_racks && let Some(column) = table.column_mut(1) {
        column.set_constraint(comfy_table::ColumnConstraint::Hidden);
    }
    let _ = write!(
        out,
        "\nworst machines, by the median over their pairs (and against the median of all pairs)\n{table}\n"
    );
    left_out(out, ranks.machines.len(), "machine");
}

fn pairs(out: &mut String, fleet: &Fleet, ranks: &Ranks) {
    let main = || {
        ranks
            .main
            .iter()
            .map(|column| (*column, &fleet.columns[*column]))
    };
    let heads = ["client", "server"].into_iter().map(str::to_owned);
    let mut table = table(heads.chain(main().map(|(_, c)| c.load.to_string())));
    for (place, _) in ranks.pairs.iter().take(LINES) {
        let mut cells: Vec<String> = fleet.pairs[*place]
            .ends()
            .map(|m| fleet.name(m).to_owned())
            .into();
        for ((at, column), median) in main().zip(&ranks.medians) {
            let outcome = fleet.outcomes[*place].as_ref();
            let figure = outcome.and_then(|outcome| outcome.figure(at));
            let width = figure.map_or_else(String::new, |f| {
                format!(" ±{}", percent((f.high - f.low) / 2.0 / f.value))
            });
            cells.push(compared(column, figure.map(|f| f.value), *median, &width));
        }
        table.add_row(cells);
    }
    let _ = write!(out, "\nworst pairs\n{table}\n");
    left_out(out, ranks.pairs.len(), "pair");
}

fn not_measured(out: &mut String, fleet: &Fleet) {
    let lost = fleet.lost.iter().zip(0..);
    let lost: Vec<(&String, u16)> = lost.filter_map(|(l, m)| Some((l.as_ref()?, m))).collect();
    if !lost.is_empty() {
        out.push_str("\nlost machines\n");
    }
    for (cause, machine) in lost.iter().take(LINES) {
        let _ = writeln!(out, "  {}: {}", fleet.name(*machine), plain::line(cause));
    }
    left_out(out, lost.len(), "machine");
    let ends = |place: usize| {
        let [client, server] = fleet.pairs[place].ends().map(|m| fleet.name(m));
        format!("{client} → {server}")
    };
    let outcomes = fleet.outcomes.iter().enumerate();
    let failed: Vec<(usize, &str)> = outcomes
        .filter_map(|(place, o)| Some((place, o.as_ref()?.cause.as_deref()?)))
        .collect();
    if !failed.is_empty() {
        out.push_str("\nfailed\n");
    }
    for (place, cause) in failed.iter().take(LINES) {
        let _ = writeln!(out, "  {}: {}", ends(*place), plain::line(cause));
    }
    left_out(out, failed.len(), "pair");
    let skipped = || (0..fleet.pairs.len()).filter(|place| fleet.outcomes[*place].is_none());
    if skipped().next().is_some() {
        out.push_str("\nskipped\n");
    }
    let mut by_cause: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for place in skipped() {
        let why = fleet.why_skipped(fleet.pairs[place]);
        by_cause.entry(why).or_default().push(place);
    }
    for (why, places) in by_cause.iter().take(LINES) {
        let named: Vec<String> = places.iter().take(FEW).map(|place| ends(*place)).collect();
        let more = match places.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let _ = writeln!(out, "  {why}: {}{more}", named.join(", "));
    }
    left_out(out, by_cause.len(), "cause");
}

fn left_out(out: &mut String, count: usize, what: &str) {
    if count > LINES {
        let _ = writeln!(
            out,
            "  and {} more (--json has all)",
            units::counted(count - LINES, what)
        );
    }
}

/// What would be done, for `hopyard fleet plan`.
#[must_use]
pub fn plan_text(plan: &Plan) -> String {
    let rounds = plan.rounds();
    let pairs: usize = rounds.iter().map(Vec::len).sum();
    let loads: Vec<&str> = plan.loads.iter().map(|l| l.name()).collect();
    let mut out = format!(
        "{}, {}: {} in {}, {} at once at most{}\neach pair: {}, windows of {}, {}..{} blocks, {} at most\n",
        units::counted(plan.endpoints.len(), "endpoint"),
        plan.pairs,
        units::counted(pairs, "pair"),
        units::counted(rounds.len(), "round"),
        plan.at_once,
        match plan.family {
            Family::V4 => "",
            Family::V6 => ", IPv6",
        },
        loads.join(", "),
        units::show_duration(plan.window()),
        plan.blocks_min,
        plan.blocks_max,
        units::show_duration(std::time::Duration::from_secs(plan.deadline_s)),
    );
    let [least, most] = plan.pair_takes().map(long);
    let [all_least, all_most] = plan.takes().map(long);
    let _ = if least == most {
        writeln!(out, "about {least} for a pair, {all_least} for all")
    } else {
        writeln!(
            out,
            "about {least} to {most} for a pair, {all_least} to {all_most} for all"
        )
    };
    let shown = |pair: &crate::schedule::Pair| {
        let [client, server] = pair.ends().map(|m| &plan.endpoints[usize::from(m)].name);
        format!("{client}→{server}")
    };
    for (number, round) in rounds.iter().enumerate().take(LINES) {
        let mut pairs: Vec<String> = round.iter().take(LINES).map(shown).collect();
        if round.len() > LINES {
            pairs.push(format!("… {} more", round.len() - LINES));
        }
        let _ = writeln!(out, "round {}: {}", number + 1, pairs.join("  "));
    }
    left_out(&mut out, rounds.len(), "round");
    out
}

/// A time that may be days.
fn long(time: std::time::Duration) -> String {
    let minutes = (time.as_secs_f64() / 60.0).round() as u64;
    match minutes {
        0..=2 => units::show_duration(time),
        3..180 => format!("{minutes}m"),
        180..2880 => format!("{}h{:02}m", minutes / 60, minutes % 60),
        _ => format!("{} days {}h", minutes / 1440, minutes % 1440 / 60),
    }
}

fn table(heads: impl Iterator<Item = String>) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table
        .load_style(comfy_table::presets::NOTHING)
        .set_header(heads);
    table
}

/// Three digits with a prefix of the unit.
pub(crate) fn with_unit(column: &Column, value: f64) -> String {
    // The load says what is counted.
    let unit = match column.unit() {
        "transactions/s" | "packets/s" => "/s",
        unit => unit,
    };
    if unit.starts_with("ns") && column.is_main() {
        let (value, unit) = match value.abs() {
            v if v >= 999_500_000.0 => (value / 1e9, "s"),
            v if v >= 999_500.0 => (value / 1e6, "ms"),
            v if v >= 999.5 => (value / 1e3, "µs"),
            _ => (value, "ns"),
        };
        return format!("{} {unit}", digits(value));
    }
    let (value, prefix) = match value.abs() {
        v if v >= 999_500_000.0 => (value / 1e9, "G"),
        v if v >= 999_500.0 => (value / 1e6, "M"),
        v if v >= 999.5 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    format!("{} {prefix}{unit}", digits(value))
}

fn digits(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        // With two decimals these would read as 0.
        v if v > 0.0 && v < 0.0995 => {
            let zeros = (-v.log10()).floor().clamp(1.0, 12.0);
            format!("{value:.*}", zeros as usize + 2)
        }
        _ => format!("{value:.2}"),
    }
}

pub(crate) fn times(ratio: f64) -> String {
    format!("{}×", digits(ratio))
}

pub(crate) fn percent(share: f64) -> String {
    match share.abs() * 100.0 {
        p if !p.is_finite() => "–".to_owned(),
        p if p >= 999.5 => ">999 %".to_owned(),
        p if p > 0.0 && p < 0.05 => "<0.1 %".to_owned(),
        p if p >= 9.95 => format!("{p:.0} %"),
        p => format!("{p:.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopyard_model::LoadKind;

    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_prefix() {
        let rate = Column {
            load: LoadKind::TcpStream,
            quantity: "goodput_bps",
        };
        let time = Column {
            load: LoadKind::UdpPaced,
            quantity: "latency_p99_ns",
        };
        for (value, text) in [
            (9.994e8, "999 Mbit/s"),
            (9.996e8, "1.00 Gbit/s"),
            (12.34e9, "12.3 Gbit/s"),
            (5.0, "5.00 bit/s"),
        ] {
            assert_eq!(with_unit(&rate, value), text);
        }
        assert_eq!(with_unit(&time, 41_250.0), "41.2 µs");
        // What is measured does not read as nothing.
        let shown = [1.0, 0.0996, 0.0042, 0.0, 12.0].map(times);
        assert_eq!(shown, ["1.00×", "0.10×", "0.0042×", "0.00×", "12.0×"]);
    }

    #[test]
    fn long_times_are_hours_and_days() {
        for (seconds, text) in [
            (30, "30s"),
            (150, "3m"),
            (10_740, "179m"),
            (10_800, "3h00m"),
            (105_894, "29h25m"),
            (200_000, "2 days 7h"),
        ] {
            assert_eq!(long(Duration::from_secs(seconds)), text);
        }
    }
}
