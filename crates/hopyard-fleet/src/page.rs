//! A fleet as a page: a heat map of pairs, the worst machines with their pairs, the distribution, and the runs before it.

mod history;
mod picture;

use hopyard_model::{plain, units};
use hopyard_report::page_of;
use hopyard_stats::Verdict;
use maud::{Markup, html};

use crate::assess::Assessed;
use crate::document::counts;
use crate::fleet::Fleet;
use crate::plan::Column;
use crate::rank::{Machine, Ranks, standing};
use crate::report::{compared, percent, with_unit};

pub use self::history::{Point, points};

/// Machines that are shown with their pairs.
const MACHINES: usize = 20;
/// Pairs of a machine, and of all.
const PAIRS: usize = 20;
/// Lines of what failed or was lost.
const LINES: usize = 20;

/// What a page is made of.
#[derive(Debug)]
pub struct Page<'a> {
    /// The fleet.
    pub fleet: &'a Fleet,
    /// Its ranks.
    pub ranks: &'a Ranks,
    /// What the samples say, where they were read.
    pub assessed: Option<&'a Assessed>,
    /// Medians of earlier fleets and of this one, by time; empty where none was asked for.
    pub history: &'a [Point],
}

/// The whole page, in one file that needs nothing else.
#[must_use]
pub fn page(of: &Page<'_>) -> String {
    let loads = || (0..).zip(of.ranks.main.iter().map(|at| &of.fleet.columns[*at]));
    let body = html! {
        p.answer { (answer(of)) }
        ul.facts {
            li { (of.fleet.started) }
            li { (of.fleet.plan.pairs) }
            li { "windows of " (units::show_duration(of.fleet.plan.window())) }
            @if let Some(assessed) = of.assessed { li { (assessed.samples) " samples" } }
        }
        @for (main, column) in loads() {
            section {
                h2 { (column.load) }
                @if let Some(median) = of.ranks.medians[main] {
                    p {
                        "The median of all pairs is " (with_unit(column, median)) ". "
                        @if let Some(assessed) = of.assessed { (verdicts(column, assessed.counts(main))) }
                    }
                }
                div.plots {
                    (picture::heat_map(of.fleet, of.ranks, main))
                    (picture::distribution(of.fleet, of.ranks, main))
                }
                (racks(of, main))
            }
        }
        h2 { "Worst machines" }
        p.notes { "By the medians over their pairs, as the client and as the server, against the median of all pairs. Open one for its pairs." }
        @for machine in of.ranks.machines.iter().take(MACHINES) { (machine_with_pairs(of, machine)) }
        h2 { "Worst pairs" }
        (pairs(of, &of.ranks.pairs.iter().take(PAIRS).map(|(place, _)| *place).collect::<Vec<_>>()))
        (not_measured(of))
        (history::history(of.fleet, of.ranks, of.history))
    };
    let page = page_of(
        &format!(
            "hopyard fleet of {}",
            units::counted(of.fleet.plan.endpoints.len(), "endpoint")
        ),
        &body,
    );
    // The directory may be somebody else's, and the page may go to a terminal.
    plain::document(&page).into_owned()
}

fn answer(of: &Page<'_>) -> String {
    let [measured, failed, skipped] = counts(of.fleet);
    let all = units::counted(of.fleet.pairs.len(), "pair");
    let mut text = format!("{measured} of {all} measured");
    if failed + skipped > 0 {
        text += &format!(", {failed} failed, {skipped} skipped");
    }
    let worst = of.ranks.machines.iter().find(|m| m.standing.is_some());
    if let Some((machine, standing)) = worst.and_then(|m| Some((m, m.standing?))) {
        text += &format!(
            "; the worst machine is {} at {} of the median",
            of.fleet.name(machine.machine),
            crate::report::times(standing)
        );
    }
    text + "."
}

fn verdicts(column: &Column, counts: [usize; 4]) -> String {
    let [below, above, same, open] = counts;
    let (worse, better) = if column.more_is_better() {
        (below, above)
    } else {
        (above, below)
    };
    format!(
        "Against it {} worse, {better} better, {same} equivalent, {open} inconclusive.",
        units::counted(worse, "pair")
    )
}

/// Medians from rack to rack, where machines have racks.
fn racks(of: &Page<'_>, main: usize) -> Markup {
    let fleet = of.fleet;
    let rack = |machine: u16| fleet.plan.endpoints[usize::from(machine)].rack.as_deref();
    let mut names: Vec<&str> = fleet
        .plan
        .endpoints
        .iter()
        .filter_map(|e| e.rack.as_deref())
        .collect();
    names.sort_unstable();
    names.dedup();
    if names.len() < 2 || names.len() > 40 {
        return html! {};
    }
    let at = of.ranks.main[main];
    let column = &fleet.columns[at];
    let mut values = vec![Vec::new(); names.len() * names.len()];
    for (place, pair) in fleet.pairs.iter().enumerate() {
        let place_of = |machine| names.binary_search(&rack(machine)?).ok();
        let ends = pair.ends().map(place_of);
        let figure = fleet.outcomes[place].as_ref().and_then(|o| o.figure(at));
        if let ([Some(client), Some(server)], Some(figure)) = (ends, figure) {
            values[client * names.len() + server].push(figure.value);
        }
    }
    let median = of.ranks.medians[main];
    html! {
        div.scroll tabindex="0" role="region" aria-label=(format!("{} from rack to rack", column.load)) { table {
            caption { "Median from rack to rack" }
            thead { tr { th scope="col" { "client's rack" } @for name in &names { th.number scope="col" { "to " (name) } } } }
            tbody { @for (row, name) in names.iter().enumerate() { tr {
                th scope="row" { (name) }
                @for cell in &values[row * names.len()..(row + 1) * names.len()] {
                    td.number { (compared(column, hopyard_stats::median(cell.clone()), median, "")) }
                }
            } } }
        } }
    }
}

fn machine_with_pairs(of: &Page<'_>, machine: &Machine) -> Markup {
    let fleet = of.fleet;
    let own = |place: &usize| fleet.pairs[*place].ends().contains(&machine.machine);
    let places: Vec<usize> = of
        .ranks
        .pairs
        .iter()
        .map(|(place, _)| *place)
        .filter(own)
        .collect();
    let endpoint = &fleet.plan.endpoints[usize::from(machine.machine)];
    let all = machine.measured + machine.failed + machine.skipped;
    let roles = (0..)
        .zip(&of.ranks.main)
        .filter_map(|(main, at): (usize, &usize)| {
            let column = &fleet.columns[*at];
            let told = |role: usize, name: &str| {
                let value = machine.medians[main][role]?;
                Some(format!(
                    "{name} {}",
                    compared(column, Some(value), of.ranks.medians[main], "")
                ))
            };
            let both: Vec<String> = [told(0, "as client"), told(1, "as server")]
                .into_iter()
                .flatten()
                .collect();
            (!both.is_empty()).then(|| format!("{}: {}", column.load, both.join(", ")))
        });
    let roles: Vec<String> = roles.collect();
    html! {
        details.fold {
            summary {
                b { (endpoint.name) }
                @if let Some(rack) = &endpoint.rack { ", rack " (plain::line(rack)) }
                " · " (machine.measured) " of " (units::counted(all, "pair"))
                @for role in &roles { " · " (role) }
                @if let Some(lost) = &fleet.lost[usize::from(machine.machine)] { " · lost: " (plain::line(lost)) }
            }
            @if places.is_empty() { p { "No pair of it was measured." } }
            @else {
                (pairs(of, &places[..places.len().min(PAIRS)]))
                @if places.len() > PAIRS { p.notes { "and " (units::counted(places.len() - PAIRS, "pair")) " that are better" } }
            }
        }
    }
}

fn pairs(of: &Page<'_>, places: &[usize]) -> Markup {
    let fleet = of.fleet;
    let main = || {
        of.ranks
            .main
            .iter()
            .enumerate()
            .map(|(main, at)| (main, *at, &fleet.columns[*at]))
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label="Pairs" { table {
            thead { tr {
                th scope="col" { "client" } th scope="col" { "server" }
                @for (_, _, column) in main() { th.number scope="col" { (column.load) } }
                th scope="col" { "its run" }
            } }
            tbody { @for place in places { tr {
                @for machine in fleet.pairs[*place].ends() { td { (fleet.name(machine)) } }
                @for (main, at, column) in main() { (figure(of, *place, main, at, column)) }
                td { (run_of(fleet, *place)) }
            } } }
        } }
    }
}

fn figure(of: &Page<'_>, place: usize, main: usize, at: usize, column: &Column) -> Markup {
    let figure = of.fleet.outcomes[place].as_ref().and_then(|o| o.figure(at));
    let Some(figure) = figure else {
        return html! { td.number { "–" } };
    };
    let width = format!(
        " ±{}",
        percent((figure.high - figure.low) / 2.0 / figure.value)
    );
    let judged = of.assessed.and_then(|a| a.verdicts[main][place].as_ref());
    let (sign, class) = match judged.map(|j| (j.verdict, standing(column, j.ratio.value, 1.0))) {
        Some((Verdict::Different, Some(s))) if s < 1.0 => (" ≠", "worse"),
        Some((Verdict::Different, _)) => (" ≠", "better"),
        Some((Verdict::Equivalent, _)) => (" =", "same"),
        Some((Verdict::Inconclusive, _)) => (" ?", "open"),
        None => ("", ""),
    };
    html! {
        td.number { (compared(column, Some(figure.value), of.ranks.medians[main], &width)) span class=(class) { (sign) } }
    }
}

/// Directory of the run of a pair, for `hopyard report`.
fn run_of(fleet: &Fleet, place: usize) -> String {
    let [client, server] = fleet.pairs[place].ends().map(|m| fleet.name(m));
    let attempt = fleet.outcomes[place].as_ref().map_or(1, |o| o.attempt);
    format!("pairs/{client}--{server}/{attempt}/run")
}

fn not_measured(of: &Page<'_>) -> Markup {
    let fleet = of.fleet;
    let failed = fleet.outcomes.iter().enumerate();
    let failed: Vec<(usize, &str)> = failed
        .filter_map(|(place, o)| Some((place, o.as_ref()?.cause.as_deref()?)))
        .collect();
    html! {
        @if !failed.is_empty() {
            h2 { "Failed" }
            ul { @for (place, cause) in failed.iter().take(LINES) {
                @let [client, server] = fleet.pairs[*place].ends().map(|m| fleet.name(m));
                li { (client) " → " (server) ": " (plain::line(cause)) }
            } }
            @if failed.len() > LINES { p.notes { "and " (units::counted(failed.len() - LINES, "pair")) " more" } }
        }
    }
}
