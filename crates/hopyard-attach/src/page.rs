//! A run as a page: the answer, all comparisons in one table, pictures, and every figure.

mod picture;

use hopyard_model::plain;
use hopyard_report::page_of;
use hopyard_stats::Verdict;
use maud::{Markup, html};

use crate::answer::answer;
use crate::assess::QUANTITIES;
use crate::document::{Cell, Document, Versus};
use crate::report::{HEADS, by_setting, columns, legend, networks, removals, rows};

/// The whole page, in one file that needs nothing else.
#[must_use]
pub fn page(document: &Document) -> String {
    let run = &document.run;
    let settings = by_setting(document);
    let body = html! {
        p.answer { (answer(document)) }
        ul.facts {
            li { "Linux " (run.kernel) ", " (run.cpus) " CPUs" }
            li { (run.plan.blocks) " blocks" }
            li { (run.plan.attachments) " attachments of each network in a block" }
            li { "seed " (run.seed) }
            li { (run.started) }
        }
        (matrix(document, &settings))
        @if !document.warnings.is_empty() {
            h2 { "Warnings" }
            ul { @for warning in &document.warnings { li { (warning) } } }
        }
        h2 { "ADD and DEL" }
        p.notes {
            "A sign is the median, the thick line its interval; the thin line ends at the 99th percentile, where there are enough attachments."
        }
        div.plots { @for (setting, cells) in &settings { (picture::times(setting, cells)) } }
        h2 { "All figures" }
        @for (setting, cells) in &settings {
            h3 { (setting) }
            (figures(document, setting, cells))
        }
        @for removed in removals(run) { p { (removed) } }
        p.notes { (legend(run)) }
        h2 { "Plugins" }
        ul { @for (kind, words) in &run.plugins { li { b { (kind) } ": " (words) } } }
    };
    let page = page_of(&format!("hopyard attach: {}", networks(run)), &body);
    // A network's name is its file's, and the page may go to a terminal.
    plain::document(&page).into_owned()
}

/// Every comparison with the base: networks down, numbers of containers across.
fn matrix(document: &Document, settings: &[(String, Vec<&Cell>)]) -> Markup {
    let base = &document.run.plan.base;
    let others: Vec<&str> = document
        .run
        .plan
        .networks
        .iter()
        .map(|network| network.name.as_str())
        .filter(|name| name != base)
        .collect();
    let compared = QUANTITIES.iter().zip(HEADS).filter(|(q, _)| q.compared);
    let caption = format!("Against {base}, by containers there and ADDs at once");
    let short = |cells: &[&Cell]| {
        let first = cells.first();
        first.map_or_else(String::new, |c| {
            format!("{} there, {} at once", c.ports, c.beside)
        })
    };
    html! {
        @if !others.is_empty() {
            div.matrix { div.scroll tabindex="0" role="region" aria-label=(caption) { table {
                caption { (caption) }
                thead { tr {
                    th scope="col" { span.heard { "quantity and network" } }
                    @for (_, cells) in settings { th.number scope="col" { (short(cells)) } }
                } }
                tbody { @for (quantity, head) in compared { @for network in &others { tr {
                    th scope="row" { (head) ", " (network) }
                    @for (_, cells) in settings {
                        td.number { (cells.iter().find(|c| c.network == *network).map(|c| standing(c, quantity.name)).unwrap_or_default()) }
                    }
                } } } }
            } } }
            p.notes {
                span.better { "≠" } " is less and " span.worse { "≠" } " more than with " (base) ", " span.same { "=" } " equivalent; "
                span.open { "?" } " is not decided, with the least difference that would have shown."
            }
        }
    }
}

/// `0.37× ≠`
fn standing(cell: &Cell, quantity: &str) -> Markup {
    let versus = cell.figures.get(quantity).and_then(|f| f.versus.as_ref());
    let Some(Versus {
        ratio,
        verdict,
        smallest_detectable,
        ..
    }) = versus
    else {
        return html! { "–" };
    };
    let unseen = smallest_detectable.map(|least| format!(" {:.0} %", least * 100.0));
    let (class, sign, heard) = match verdict {
        Some(Verdict::Different) if ratio.value < 1.0 => ("better", "≠", "less"),
        Some(Verdict::Different) => ("worse", "≠", "more"),
        Some(Verdict::Equivalent) => ("same", "=", "equivalent"),
        Some(Verdict::Inconclusive) => ("open", "?", "inconclusive"),
        None => return html! { (format!("{:.2}×", ratio.value)) },
    };
    let is_open = *verdict == Some(Verdict::Inconclusive);
    html! {
        span class=(class) {
            (format!("{:.2}× {sign}", ratio.value))
            @if let Some(unseen) = unseen.filter(|_| is_open) { (unseen) }
        }
        span.heard { " " (heard) }
    }
}

fn figures(document: &Document, setting: &str, cells: &[&Cell]) -> Markup {
    let [_, _, middle, tail, against] = columns(&document.run);
    let mut head = String::new();
    let rows = rows(&document.run, cells).into_iter().map(|row| {
        let [first, network, middle, tail, against] = row;
        if !first.is_empty() {
            head = first;
        }
        (format!("{head}, {network}"), [middle, tail, against])
    });
    html! {
        div.scroll tabindex="0" role="region" aria-label=(setting) { table {
            caption { span.heard { (setting) ", " } "ms" }
            thead { tr {
                th scope="col" { span.heard { "quantity and network" } }
                @for column in [middle, tail, against] { th scope="col" { (column) } }
            } }
            tbody { @for (name, values) in rows { tr {
                th scope="row" { (name) }
                @for value in values { td { (value) } }
            } } }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assess::assess;
    use crate::assess::tests::{drifting, run};

    #[test]
    fn it_answers_first_and_names_are_text() {
        let mut made = run(8, drifting);
        let hostile = "<script>alert(1)</script>\u{1b}[2J";
        for network in &mut made.plan.networks {
            if network.name == "same" {
                hostile.clone_into(&mut network.name);
            }
        }
        for visit in &mut made.visits {
            if visit.network == "same" {
                hostile.clone_into(&mut visit.network);
            }
        }
        let document = assess(made);
        let page = page(&document);
        let answer = page.find("p class=\"answer\"").unwrap();
        assert!(answer < page.find("<table").unwrap());
        for part in [
            "Against one, ",
            ">1 there, 2 at once<",
            "ADD, two",
            "class=\"better\">0.50× ≠",
            "class=\"same\">",
            "<svg viewBox",
            "1 container there, 2 at once",
        ] {
            assert!(page.contains(part), "{part}:\n{page}");
        }
        assert!(!page.contains("<script>alert") && !page.contains('\u{1b}'));
        assert!(page.contains("&lt;script&gt;alert(1)"));
    }

    #[test]
    fn two_blocks_have_figures_and_no_verdict() {
        let page = page(&assess(run(2, drifting)));
        assert!(page.contains("Nothing is decided yet"));
        assert!(page.contains(">0.50×<") && !page.contains("class=\"better\">0.50"));
    }
}
