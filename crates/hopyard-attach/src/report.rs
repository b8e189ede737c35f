//! What people read of a run.

use std::fmt::Write;

use hopyard_model::FOR_A_VERDICT;
use hopyard_model::plain;
use hopyard_model::units::{counted, seconds};
use hopyard_stats::{Estimate, Verdict, mean};

use crate::answer::answer;
use crate::assess::QUANTITIES;
use crate::document::{Cell, Document, Figure, Run, Versus};

/// What stands for a figure that was not measured.
const ABSENT: &str = "–";

/// The heads of the groups of rows, in the order of the quantities.
pub(crate) const HEADS: [&str; 5] = ["ADD", "answer", "DEL", "CPU", "after"];

/// A run as text: for each number of ports and of ADDs side by side a table.
#[must_use]
pub fn text(document: &Document) -> String {
    let run = &document.run;
    let plan = &run.plan;
    let mut out = format!("{}\n\n", answer(document));
    let _ = writeln!(
        out,
        "attach: {} · {} blocks, {} attachments of each network in a block · seed {} · {}",
        networks(run),
        plan.blocks,
        plan.attachments,
        run.seed,
        run.started
    );
    let kernel = plain::line(&run.kernel);
    let _ = writeln!(out, "Linux {kernel}, {} CPUs", run.cpus);
    for (kind, words) in &run.plugins {
        let _ = writeln!(out, "{}: {}", plain::line(kind), plain::line(words));
    }
    for (setting, cells) in by_setting(document) {
        let _ = writeln!(out, "\n{setting}");
        let mut table = vec![columns(run)];
        table.extend(rows(run, &cells));
        lines(&mut out, &table);
    }
    for removed in removals(run) {
        let _ = writeln!(out, "\n{removed}");
    }
    let _ = writeln!(out, "\n{}", legend(run));
    if !document.warnings.is_empty() {
        let _ = writeln!(out, "\nWarnings");
        for warning in &document.warnings {
            let _ = writeln!(out, "- {}", plain::line(warning));
        }
    }
    out
}

/// The names of all networks.
pub(crate) fn networks(run: &Run) -> String {
    let names = run.plan.networks.iter().map(|n| n.name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

/// `100 containers there, 16 at once`, each with its cells.
pub(crate) fn by_setting(document: &Document) -> Vec<(String, Vec<&Cell>)> {
    let plan = &document.run.plan;
    let of = |ports: u32, beside: u32| {
        let there = counted(ports as usize, "container");
        let cells = document.cells.iter();
        let cells = cells.filter(|c| (c.ports, c.beside) == (ports, beside));
        (
            format!("{there} there, {beside} at once"),
            cells.collect::<Vec<_>>(),
        )
    };
    let ports = plan.ports.iter();
    ports
        .flat_map(|&ports| plan.beside.iter().map(move |&beside| of(ports, beside)))
        .collect()
}

/// The heads of the columns of [`rows`].
pub(crate) fn columns(run: &Run) -> [String; 5] {
    [
        String::new(),
        "ms".to_owned(),
        "p50".to_owned(),
        "p99".to_owned(),
        format!("p50 against {}", run.plan.base),
    ]
}

/// A row for each quantity of each network; the first of a quantity has its name.
pub(crate) fn rows(run: &Run, cells: &[&Cell]) -> Vec<[String; 5]> {
    let mut rows = Vec::new();
    for (quantity, head) in QUANTITIES.iter().zip(HEADS) {
        for (at, cell) in cells.iter().enumerate() {
            let of = |name: &str| cell.figures.get(name);
            let tail = quantity.tail.and_then(|(name, _)| of(name));
            let middle = of(quantity.name);
            let versus = middle.and_then(|figure| figure.versus.as_ref());
            let against = match versus {
                Some(versus) => against(versus),
                None if cell.network == run.plan.base && quantity.tail.is_some() => {
                    "base".to_owned()
                }
                None => String::new(),
            };
            rows.push([
                if at == 0 {
                    head.to_owned()
                } else {
                    String::new()
                },
                cell.network.clone(),
                milliseconds(middle),
                tail.map_or_else(
                    || tail_absent(quantity.tail.is_some()),
                    |figure| between(&figure.estimate),
                ),
                against,
            ]);
        }
    }
    rows
}

fn tail_absent(is_one: bool) -> String {
    if is_one {
        ABSENT.to_owned()
    } else {
        String::new()
    }
}

fn lines(out: &mut String, rows: &[[String; 5]]) {
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths = [0, 1, 2, 3].map(width);
    for row in rows {
        let mut line = String::new();
        for (text, width) in row.iter().zip(widths) {
            let _ = write!(line, "{text:width$}  ");
        }
        let _ = writeln!(out, "{}", (line + &row[4]).trim_end());
    }
}

/// `12.3 ±0.4`
fn milliseconds(figure: Option<&Figure>) -> String {
    let Some(Figure { estimate, .. }) = figure else {
        return ABSENT.to_owned();
    };
    let half = (estimate.high - estimate.value) / 1e6;
    format!("{:.1} ±{half:.1}", estimate.value / 1e6)
}

fn between(estimate: &Estimate) -> String {
    format!(
        "{:.1} [{:.1}, {:.1}]",
        estimate.value / 1e6,
        estimate.low / 1e6,
        estimate.high / 1e6
    )
}

/// `0.52× [0.50, 0.54] different`
fn against(versus: &Versus) -> String {
    let ratio = &versus.ratio;
    let start = format!("{:.2}× [{:.2}, {:.2}]", ratio.value, ratio.low, ratio.high);
    match (versus.verdict, versus.smallest_detectable) {
        (None, _) => start,
        (Some(Verdict::Different), _) => start + " different",
        (Some(Verdict::Equivalent), _) => start + " equivalent",
        (Some(Verdict::Inconclusive), Some(least)) => {
            format!(
                "{start} inconclusive, {:.0} % could have been seen",
                least * 100.0
            )
        }
        (Some(Verdict::Inconclusive), None) => start + " inconclusive",
    }
}

/// How long it took to remove all containers of each network, a line for each number of them.
pub(crate) fn removals(run: &Run) -> Vec<String> {
    let of = |&ports: &u32| {
        let times = run.plan.networks.iter().filter_map(|network| {
            let of = run
                .cleared
                .iter()
                .filter(|c| (c.ports, &c.network) == (ports, &network.name));
            let times: Vec<f64> = of.map(|cleared| seconds(cleared.clear_ns)).collect();
            Some(format!("{} {:.2} s", network.name, mean(&times)?))
        });
        let times: Vec<String> = times.collect();
        (!times.is_empty()).then(|| {
            format!(
                "DEL of all {ports} containers, 16 at once, mean of the blocks: {}",
                times.join(", ")
            )
        })
    };
    let ports = run.plan.ports.iter();
    ports.filter(|ports| **ports > 1).filter_map(of).collect()
}

pub(crate) fn legend(run: &Run) -> String {
    format!(
        "ADD, DEL: from the start of the plugin to its end. answer: from the start of ADD until a packet to another container of
the network was answered. CPU: of all processes of ADD and DEL, for each attachment; a mean. after: how long processes go on after the
last DEL. ±, [ ]: {} % confidence. A p99 needs some 370 attachments. against: paired within rounds, blocks independent;
equivalent: within {} %; different: after Benjamini and Hochberg over all ratios; verdicts from {FOR_A_VERDICT} blocks on.",
        run.plan.confidence * 100.0,
        run.plan.margin * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assess::assess;
    use crate::assess::tests::{drifting, run};

    #[test]
    fn a_table_says_all_of_it() {
        let mut made = run(8, drifting);
        made.plan
            .left_out
            .push("network `ptp`: there is no plugin `ptp`".to_owned());
        let text = text(&assess(made));
        for part in [
            "With two, the first packet of a container is answered after ",
            "attach: one, two, same · 8 blocks",
            "1 container there, 2 at once",
            "p50 against one",
            "0.50× [0.50, 0.50] different",
            "equivalent",
            "base",
            "- network `ptp`: there is no plugin `ptp`",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        // 160 attachments are too few for a p99.
        assert!(text.contains(" –  "), "{text}");
    }
}
