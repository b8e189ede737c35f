//! The sentence that answers the question of a run: with which network a container gets its network soonest.

use hopyard_model::FOR_A_VERDICT;
use hopyard_model::units::counted;
use hopyard_stats::{Verdict, mean};

use crate::document::{Cell, Document, Versus};

/// When a container can use its network.
const ANSWER: &str = "answer_p50_ns";
const DEL: &str = "del_p50_ns";

/// How one network compares with the base, with every number of ports and of ADDs side by side with which the base works.
struct Compared<'a> {
    network: &'a str,
    /// `None`: it does not work.
    all: Vec<Option<&'a Versus>>,
}

impl<'a> Compared<'a> {
    fn of(document: &'a Document, network: &'a str, quantity: &str) -> Self {
        let cells = document.cells.iter().filter(|c| c.network == network);
        let cells = cells.filter(|cell| base_works(document, cell, quantity));
        let versus = |cell: &'a Cell| cell.figures.get(quantity)?.versus.as_ref();
        Self {
            network,
            all: cells.map(versus).collect(),
        }
    }

    fn is_quicker(&self) -> bool {
        let is_quicker = |versus: &&Versus| {
            versus.verdict == Some(Verdict::Different) && versus.ratio.value < 1.0
        };
        let mut all = self.all.iter();
        !self.all.is_empty() && all.all(|versus| versus.as_ref().is_some_and(is_quicker))
    }

    fn ratios(&self) -> impl Iterator<Item = f64> {
        self.all.iter().flatten().map(|versus| versus.ratio.value)
    }

    fn mean_log(&self) -> f64 {
        let logs: Vec<f64> = self.ratios().map(f64::ln).collect();
        mean(&logs).unwrap_or(f64::INFINITY)
    }

    /// `0.29 to 0.38`
    fn range(&self) -> String {
        range(self.ratios(), |ratio| format!("{ratio:.2}"))
    }
}

/// Does the base work with as many ports and ADDs side by side?
fn base_works(document: &Document, cell: &Cell, quantity: &str) -> bool {
    document.cells.iter().any(|one| {
        one.network == document.run.plan.base
            && (one.ports, one.beside) == (cell.ports, cell.beside)
            && one.figures.contains_key(quantity)
    })
}

/// The least and the greatest, or one of them where both read alike.
fn range(values: impl Iterator<Item = f64>, told: impl Fn(f64) -> String) -> String {
    let ends = values.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), value| {
        (low.min(value), high.max(value))
    });
    let (low, high) = (told(ends.0), told(ends.1));
    if low == high {
        low
    } else {
        format!("{low} to {high}")
    }
}

/// The network that is shown to be quicker than the base with every number, or why none is.
pub(crate) fn answer(document: &Document) -> String {
    let plan = &document.run.plan;
    let names = plan.networks.iter().map(|network| network.name.as_str());
    let others: Vec<&str> = names.filter(|name| *name != plan.base).collect();
    if others.is_empty() {
        return format!("There is no other network to compare {} with.", plan.base);
    }
    let compared: Vec<Compared<'_>> = others
        .iter()
        .map(|network| Compared::of(document, network, ANSWER))
        .collect();
    let quicker = compared.iter().filter(|one| one.is_quicker());
    let best = quicker.min_by(|a, b| a.mean_log().total_cmp(&b.mean_log()));
    let said = best.map_or_else(
        || none_is_quicker(&plan.base, &compared),
        |best| is_quicker(document, best),
    );
    said + &without_the_base(document)
}

fn is_quicker(document: &Document, best: &Compared<'_>) -> String {
    let mut text = format!(
        "With {}, the first packet of a container is answered after {} of the time that it takes with {}",
        best.network,
        best.range(),
        document.run.plan.base
    );
    let del = Compared::of(document, best.network, DEL);
    if del.is_quicker() {
        text += &format!("; DEL takes {} of the time", del.range());
    }
    text + "."
}

fn none_is_quicker(base: &str, compared: &[Compared<'_>]) -> String {
    let all: Vec<&Versus> = compared
        .iter()
        .flat_map(|one| one.all.iter().copied().flatten())
        .collect();
    if all.is_empty() {
        return format!("Nothing could be compared with {base}: the warnings say why.");
    }
    let judged: Vec<Verdict> = all.iter().filter_map(|versus| versus.verdict).collect();
    if judged.is_empty() {
        return format!("Nothing is decided yet: a verdict needs at least {FOR_A_VERDICT} blocks.");
    }
    let mut text = format!(
        "No network is shown to be quicker than {base} with every number of containers there and of ADDs at once"
    );
    let of = counted(all.len(), "comparison");
    let is_open = |versus: &&&Versus| versus.verdict == Some(Verdict::Inconclusive);
    let open: Vec<&&Versus> = all.iter().filter(is_open).collect();
    if !open.is_empty() {
        text += &format!(": {} of {of} are not decided", open.len());
        let seen = || open.iter().filter_map(|versus| versus.smallest_detectable);
        if seen().next().is_some() {
            let percent = |share| format!("{:.0}", share * 100.0);
            text += &format!(
                ", where a network that is slower by {} % would have shown",
                range(seen(), percent)
            );
        }
    } else if judged.len() < all.len() {
        text += &format!(
            ": {} of {of} have fewer than {FOR_A_VERDICT} blocks",
            all.len() - judged.len()
        );
    }
    text + "."
}

/// Where the base does not work, so that nothing is compared.
fn without_the_base(document: &Document) -> String {
    let base = &document.run.plan.base;
    let of_base = document.cells.iter().filter(|cell| cell.network == *base);
    let failed = of_base.filter(|cell| !cell.figures.contains_key(ANSWER) && cell.failed.is_some());
    let failed: Vec<String> = failed
        .map(|cell| format!("{} there and {} at once", cell.ports, cell.beside))
        .collect();
    if failed.is_empty() {
        return String::new();
    }
    format!(
        " Nothing is compared with {}: {base} failed.",
        failed.join(", or with ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assess::assess;
    use crate::assess::tests::{drifting, run};

    #[test]
    fn the_quickest_is_named_with_its_shares() {
        let said = answer(&assess(run(8, drifting)));
        // 10 ms and more for each ADD of `one`, half of that for `two`, and 1 ms until the answer.
        assert!(
            said.starts_with("With two, the first packet of a container is answered after 0.5"),
            "{said}"
        );
        assert!(
            said.contains("that it takes with one; DEL takes 0.50 of the time."),
            "{said}"
        );
    }

    #[test]
    fn without_a_quicker_one_it_says_why() {
        let slower = |network: &str, block, round| {
            let time = drifting("one", block, round);
            if network == "one" { time } else { time * 2 }
        };
        let said = answer(&assess(run(8, slower)));
        assert_eq!(
            said,
            "No network is shown to be quicker than one with every number of containers there and of ADDs at once."
        );
        let said = answer(&assess(run(2, drifting)));
        assert_eq!(
            said,
            "Nothing is decided yet: a verdict needs at least 8 blocks."
        );
        // By half or by twice as much, from block to block.
        let wild = |network: &str, block: u32, round| {
            let time = drifting("one", block, round);
            match (network, block % 2) {
                ("one", _) => time,
                (_, 0) => time * 2,
                _ => time / 2,
            }
        };
        let said = answer(&assess(run(8, wild)));
        assert!(
            said.contains(
                "at once: 2 of 2 comparisons are not decided, where a network that is slower by "
            ),
            "{said}"
        );
        let mut alone = run(8, drifting);
        alone.plan.networks.truncate(1);
        assert_eq!(
            answer(&assess(alone)),
            "There is no other network to compare one with."
        );
    }

    /// With four containers there, `two` or the base works no more.
    #[test]
    fn who_fails_with_one_number_is_not_named_for_all() {
        let with_four = |fails: &str| {
            let mut made = run(8, drifting);
            made.plan.ports.push(4);
            let more: Vec<_> = made.visits.clone();
            made.visits.extend(more.into_iter().map(|mut visit| {
                visit.ports = 4;
                if visit.network == fails {
                    visit.add_ns.clear();
                    visit.answer_ns.clear();
                    visit.del_ns.clear();
                    visit.failed = Some("no room".to_owned());
                }
                visit
            }));
            answer(&assess(made))
        };
        let named = "With two, the first packet";
        assert!(with_four("nobody").starts_with(named));
        let two = with_four("two");
        assert!(
            two.starts_with("No network is shown to be quicker than one "),
            "{two}"
        );
        let base = with_four("one");
        assert!(base.starts_with(named), "{base}");
        assert!(
            base.ends_with(" Nothing is compared with 4 there and 2 at once: one failed."),
            "{base}"
        );
        let mut all = run(8, drifting);
        for visit in all.visits.iter_mut().filter(|v| v.network == "one") {
            visit.add_ns.clear();
            visit.answer_ns.clear();
            visit.del_ns.clear();
            visit.failed = Some("no room".to_owned());
        }
        let nothing = answer(&assess(all));
        assert!(
            nothing.starts_with("Nothing could be compared with one: "),
            "{nothing}"
        );
    }
}
