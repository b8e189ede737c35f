//! Comparisons with the base as text: `8 % slower than veth`.

use super::listed;
use super::time::{unseen, whole};
use crate::group::{Group, Layout};
use crate::model::{RunReport, VerdictReport, distinct};
use crate::plain;
use crate::quantity;
use crate::stats::Verdict;

pub(super) fn more_is_better(name: &str) -> bool {
    let quantity = crate::assess::quantity(name).ok();
    quantity
        .and_then(crate::assess::Quantity::more_is_better)
        .unwrap_or(true)
}

/// The result of a comparison for somebody who wants speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Faster,
    Slower,
    Same,
    Open,
}

fn outcome(verdict: &VerdictReport, more_is_better: bool) -> Outcome {
    match verdict.verdict {
        Some(Verdict::Different) if (verdict.ratio.value > 1.0) == more_is_better => {
            Outcome::Faster
        }
        Some(Verdict::Different) => Outcome::Slower,
        Some(Verdict::Equivalent) => Outcome::Same,
        Some(Verdict::Inconclusive) | None => Outcome::Open,
    }
}

/// One path compared with the base for several loads or settings: `8 to 23 % slower than veth`. `None` if nothing was
/// compared.
pub(super) fn phrase(met: &[Met<'_>], base: &str) -> Option<String> {
    let base = plain::line(base);
    let mut outcomes = distinct(met.iter().map(|(_, verdict, more)| outcome(verdict, *more)));
    outcomes.sort_unstable();
    let clauses = outcomes.iter().map(|wanted| {
        let own = met
            .iter()
            .filter(|(_, v, more)| outcome(v, *more) == *wanted);
        let own: Vec<&Met<'_>> = own.collect();
        let ratios = own.iter().map(|(_, verdict, _)| verdict.ratio.value);
        let what = match wanted {
            Outcome::Faster => format!("{} faster than {base}", sizes(ratios)),
            Outcome::Slower => format!("{} slower than {base}", sizes(ratios)),
            Outcome::Same => format!("as fast as {base}"),
            Outcome::Open => format!("not told apart from {base}"),
        };
        if outcomes.len() == 1 {
            return what;
        }
        let places: Vec<String> = own.iter().map(|(place, ..)| place.clone()).collect();
        format!("{what} under {}", listed(&places))
    });
    let clauses: Vec<String> = clauses.collect();
    (!clauses.is_empty()).then(|| clauses.join(", "))
}

/// `8 %`, or `8 to 23 %`.
fn sizes(ratios: impl Iterator<Item = f64>) -> String {
    let (least, most) = ratios
        .map(|ratio| (ratio - 1.0).abs())
        .fold((f64::INFINITY, 0.0_f64), |(least, most), size| {
            (least.min(size), most.max(size))
        });
    let most = bounded(most);
    match bounded(least) {
        least if least == most => most,
        least => format!("{} to {most}", least.trim_end_matches(" %")),
    }
}

/// A share in percent, or `more than 999 %`.
fn bounded(share: f64) -> String {
    if share >= 9.995 {
        "more than 999 %".to_owned()
    } else {
        whole(share)
    }
}

/// A comparison and the path it belongs to.
type Met<'a> = (String, &'a VerdictReport, bool);

/// Without a recommendation: the greatest differences.
pub(super) fn extremes(report: &RunReport, layout: &Layout<'_>) -> Option<String> {
    let base = layout
        .base
        .map_or_else(|| "its base".to_owned(), plain::line);
    let all = compared(layout, |group| group.main);
    let of = |wanted: Outcome| {
        let own = all
            .iter()
            .filter(move |(_, v, more)| outcome(v, *more) == wanted);
        own.rev().max_by(|a, b| size(a.1).total_cmp(&size(b.1)))
    };
    let told = |(who, verdict, _): &Met<'_>, how: &str| {
        let by = sizes(std::iter::once(verdict.ratio.value));
        format!("{who} is {by} {how} than {}", plain::line(&verdict.base))
    };
    let verdicts = all.iter().map(|(_, verdict, _)| verdict.verdict);
    let open = verdicts
        .filter(|v| matches!(v, Some(Verdict::Inconclusive) | None))
        .count();
    let parts = [
        of(Outcome::Faster).map(|one| told(one, "faster")),
        of(Outcome::Slower).map(|one| told(one, "slower")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    Some(match (parts.is_empty(), open) {
        _ if all.is_empty() => return None,
        (true, 0) => alike(report, layout, &base, all.len()),
        (true, _) => {
            let sizes = all
                .iter()
                .map(|(who, v, _)| (who.clone(), v.smallest_detectable.unwrap_or(f64::INFINITY)));
            let sizes: Vec<(String, f64)> = sizes.collect();
            format!(
                "No difference from {base} is shown: {}.",
                unseen(&sizes, report)
            )
        }
        (false, 0) if all.len() == parts.len() => format!("{}.", parts.join(", ")),
        (false, _) => format!(
            "{} of {} comparisons are decided; the largest differences: {}.",
            all.len() - open,
            all.len(),
            parts.join(", ")
        ),
    })
}

/// The answer where all main figures are equivalent: what they cost. `figures` is how many there are.
fn alike(report: &RunReport, layout: &Layout<'_>, base: &str, figures: usize) -> String {
    let margin = whole(report.run.margin);
    let costs = compared(layout, |group| quantity::cpu_cost(group.load));
    let differ = costs
        .iter()
        .filter(|(_, v, _)| v.verdict == Some(Verdict::Different));
    if let Some((who, verdict, _)) = differ.max_by(|a, b| size(a.1).total_cmp(&size(b.1))) {
        let by = sizes(std::iter::once(verdict.ratio.value));
        let how = if verdict.ratio.value > 1.0 {
            "more"
        } else {
            "less"
        };
        return format!(
            "All are as fast as {base} within {margin}; {who} costs {by} {how} CPU time than {}.",
            plain::line(&verdict.base)
        );
    }
    let is_same = |(_, v, _): &Met<'_>| v.verdict == Some(Verdict::Equivalent);
    if costs.iter().all(is_same) {
        return match costs.len() {
            0 => format!(
                "All are as fast as {base} within {margin}; what CPU time they cost is not known."
            ),
            known if known < figures => format!(
                "All are as fast as {base} within {margin}; their CPU cost is equivalent where it is known, in {known} of \
                 {figures} comparisons."
            ),
            _ => format!(
                "No difference from {base} that matters: all are equivalent within {margin}."
            ),
        };
    }
    let sizes = costs.iter().filter(|one| !is_same(one));
    let sizes =
        sizes.map(|(who, v, _)| (who.clone(), v.smallest_detectable.unwrap_or(f64::INFINITY)));
    format!(
        "All are as fast as {base} within {margin}; no difference in CPU cost is shown: {}.",
        unseen(&sizes.collect::<Vec<_>>(), report)
    )
}

fn size(verdict: &VerdictReport) -> f64 {
    verdict.ratio.value.ln().abs()
}

/// Every comparison of a figure whose path proofs succeeded, with its load or setting if there are several.
fn compared<'a>(layout: &Layout<'a>, figure: fn(&Group<'a>) -> &'static str) -> Vec<Met<'a>> {
    let cells = || {
        let groups = layout.groups.iter();
        groups.flat_map(|group| group.cells.iter().map(move |cell| (group, *cell)))
    };
    let places = distinct(cells().map(|(_, cell)| layout.place(cell))).len();
    cells()
        .filter(|(_, cell)| cell.way.proved)
        .filter_map(|(group, cell)| {
            let verdict = cell.verdicts.get(figure(group))?;
            let path = plain::line(&cell.path);
            let who = if places > 1 {
                format!("{path} ({})", layout.place(cell).replace(" · ", ", "))
            } else {
                path
            };
            Some((who, verdict, more_is_better(figure(group))))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_times_as_much_is_not_called_999_percent() {
        let of = |ratios: &[f64]| sizes(ratios.iter().copied());
        assert_eq!(of(&[0.92]), "8 %");
        assert_eq!(of(&[1.08, 0.77]), "8 to 23 %");
        assert_eq!(of(&[28.0, 40.0]), "more than 999 %");
        assert_eq!(of(&[28.0, 2.0]), "100 to more than 999 %");
    }
}
